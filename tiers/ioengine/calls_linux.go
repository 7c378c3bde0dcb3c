package ioengine

import "golang.org/x/sys/unix"

// syncData makes a file's bytes durable, and of its metadata what is needed to find them.
func syncData(fd int) error { return unix.Fdatasync(fd) }
