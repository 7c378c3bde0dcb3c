//go:build !race

package buffer

import (
	"fmt"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// RaceEnabled: buffers come from the heap and are poisoned when they return to the pool.
const RaceEnabled = false

func newArena(n int) (*Arena, error) {
	// Reserve the last huge page to its end: the advice applies to whole huge pages.
	whole := tiers.AlignUp(n, HugePage)
	mapped, err := unix.Mmap(-1, 0, whole+HugePage, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w; use fewer or smaller buffers "+
			"(-workers, -io-depth, -chunk-size) or a smaller -cpu-mem-gb", n, err)
	}
	mem := Aligned(mapped, whole, HugePage)
	reason := adviseHuge(mem)
	return &Arena{mem: mem[:n:n], mapped: mapped, reason: reason}, nil
}

func unmap(mapped []byte) error {
	if mapped == nil {
		return nil
	}
	return unix.Munmap(mapped)
}
