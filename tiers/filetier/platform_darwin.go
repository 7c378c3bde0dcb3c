package filetier

import (
	"golang.org/x/sys/unix"

	"kvbench/tracing/host"
)

// openDirect: macOS has no open flag for it, setDirect asks afterwards.
const openDirect = 0

// setDirect turns off caching of the file.
func setDirect(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_NOCACHE, 1)
	return err
}

// allocate: there is no fallocate.
func allocate(int, int64, int64) error { return unix.EOPNOTSUPP }

// punch: APFS can (F_PUNCHHOLE), but that was never tried on a Mac, and a deletion that frees
// nothing would make every number of the storage tier's fill wrong.
func punch(int, int64, int64) error { return unix.EOPNOTSUPP }

// dropCache turns off caching of the file, the nearest that macOS offers.
func dropCache(fd int) error { return setDirect(fd) }

func directAlign(int) int { return pageSize }

func directIgnored(host.Filesystem) string { return "" }

// sequential: macOS reads ahead on its own.
func sequential(int) error { return nil }
