package buffer

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bind is mbind(2) on untouched memory: it prefers one node, or interleaves the pages of several.
func bind(mem []byte, nodes []int) error {
	mode := unix.MPOL_PREFERRED
	if len(nodes) > 1 {
		mode = unix.MPOL_INTERLEAVE
	}
	const bits = 64
	mask := make([]uint64, slices.Max(nodes)/bits+1)
	for _, n := range nodes {
		mask[n/bits] |= 1 << (n % bits)
	}
	// The kernel uses one bit less than maxnode (mm/mempolicy.c, get_nodes).
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, address(mem), uintptr(len(mem)), uintptr(mode),
		uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*bits+1), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
