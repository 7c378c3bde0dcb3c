package enginetier

import (
	"golang.org/x/sys/unix"

	"kvbench/tiers/workdir"
)

const openDirect = unix.O_DIRECT

// setDirect sets O_DIRECT on an open file, as some engines do.
func setDirect(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_DIRECT)
	return err
}

// nameMax returns the longest name that a directory accepts, in bytes; 0 = unknown.
func nameMax(dir int) int64 {
	var s unix.Statfs_t
	_ = unix.Fstatfs(dir, &s)
	return s.Namelen
}

// allocate preallocates the blocks of a file.
func allocate(fd int, size int64) error {
	return workdir.Retry(func() error { return unix.Fallocate(fd, 0, 0, size) })
}
