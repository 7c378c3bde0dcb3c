package buffer

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bind is mbind(2), for memory that nobody has touched: pages of one node as long as it has any,
// pages of several in turn.
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
	// The kernel takes one bit less than it is told (mm/mempolicy.c, get_nodes).
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, address(mem), uintptr(len(mem)), uintptr(mode),
		uintptr(unsafe.Pointer(&mask[0])), uintptr(len(mask)*bits+1), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
