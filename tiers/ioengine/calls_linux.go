package ioengine

import "golang.org/x/sys/unix"

// syncData makes a file's bytes durable, and of its metadata what is needed to find them.
func syncData(fd int) error { return unix.Fdatasync(fd) }

// leave lets the kernel begin to write a stretch of a file to the device, or drops what was read.
func leave(kind Kind, fd int, off, n int64) error {
	if kind == Write {
		return unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE)
	}
	return unix.Fadvise(fd, off, n, unix.FADV_DONTNEED)
}
