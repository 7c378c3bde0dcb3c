package enginetier

import (
	"golang.org/x/sys/unix"

	"kvbench/tiers/workdir"
)

const openDirect = unix.O_DIRECT

// setDirect is how some engines ask for direct I/O once a file is open.
func setDirect(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_DIRECT)
	return err
}

// nameMax is the longest name that a directory takes, in bytes; 0 = it does not say.
func nameMax(dir int) int64 {
	var s unix.Statfs_t
	_ = unix.Fstatfs(dir, &s)
	return s.Namelen
}

// allocate gives a file its blocks.
func allocate(fd int, size int64) error {
	return workdir.Retry(func() error { return unix.Fallocate(fd, 0, 0, size) })
}
