package tiers

import (
	"errors"

	"golang.org/x/sys/unix"
)

// advice returns what to do about an errno that has a usual cure, with its own "; ", else nothing.
func advice(err error) string {
	var errno unix.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	switch errno {
	case unix.ENOSPC, unix.EDQUOT:
		return "; free space there or give the storage tier less (-storage-capacity-gb)"
	case unix.EROFS:
		return "; the filesystem is mounted read-only, remount it or choose another -cache-dir"
	case unix.EACCES, unix.EPERM:
		return "; this user may not do that there, choose a -cache-dir that it owns"
	case unix.EMFILE, unix.ENFILE:
		return "; raise the limit of open files (ulimit -n) or use fewer workers"
	case unix.EIO:
		return "; the device reports a failure, see the kernel log (dmesg)"
	}
	return ""
}
