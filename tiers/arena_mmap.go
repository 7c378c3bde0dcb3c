//go:build !race

package tiers

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// raceEnabled: buffers come from the heap and are poisoned when they return to the pool.
const raceEnabled = false

func newArena(n int) (*Arena, error) {
	mapped, err := unix.Mmap(-1, 0, n+hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w; use fewer or smaller buffers (-workers, -io-depth, -chunk-size) or a smaller -cpu-mem-gb", n, err)
	}
	// The advice covers whole huge pages: an arena that ends inside one still gets it, the mapping reaches further.
	whole := aligned(mapped, (n+hugePage-1)/hugePage*hugePage, hugePage)
	return &Arena{mem: whole[:n:n], mapped: mapped, reason: adviseHuge(whole)}, nil
}

func unmap(mapped []byte) error {
	if mapped == nil {
		return nil
	}
	return unix.Munmap(mapped)
}
