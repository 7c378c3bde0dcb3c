//go:build !linux

package ioengine

import "golang.org/x/sys/unix"

// syncData makes a file durable: macOS has no fdatasync.
func syncData(fd int) error { return unix.Fsync(fd) }

// leave does nothing: this system has no such call.
func leave(Kind, int, int64, int64) error { return nil }
