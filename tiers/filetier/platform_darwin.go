package filetier

import (
	"golang.org/x/sys/unix"

	"kvbench/tracing/host"
)

// openDirect is 0: macOS has no open flag for direct I/O, see afterOpen.
const openDirect = 0

// afterOpen turns off caching of the file, in the suite's own layouts.
func afterOpen(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_NOCACHE, 1)
	return err
}

// setDirect is not supported: the engines use no such call here.
func setDirect(int) error { return unix.EOPNOTSUPP }

// allocate is not supported: macOS has no fallocate.
func allocate(int, int64, int64) error { return unix.EOPNOTSUPP }

// punch is not supported. APFS can punch holes (F_PUNCHHOLE), but that is untested, and a deletion that
// frees nothing would make the storage tier's fill level wrong.
func punch(int, int64, int64) error { return unix.EOPNOTSUPP }

// dropCache turns off caching of the file: macOS cannot drop it.
func dropCache(fd int) error { return afterOpen(fd) }

func directAlign(int) int { return pageSize }

func directIgnored(host.Filesystem) string { return "" }

// dirtied and cachedWrites are unknown: macOS has no such counter.
func dirtied() int64 { return 0 }

func cachedWrites(int64, func() int64, func() error) (bool, error) { return false, nil }

// sequential: macOS reads ahead on its own.
func sequential(int) error { return nil }
