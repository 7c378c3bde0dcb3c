package ioengine

import "golang.org/x/sys/unix"

// syncData is fdatasync.
func syncData(fd int) error { return unix.Fdatasync(fd) }

// leave begins the write-back of a written range of a file, or drops a range that was read from the
// page cache.
func leave(kind Kind, fd int, off, n int64) error {
	if kind == Write {
		return unix.SyncFileRange(fd, off, n, unix.SYNC_FILE_RANGE_WRITE)
	}
	return unix.Fadvise(fd, off, n, unix.FADV_DONTNEED)
}
