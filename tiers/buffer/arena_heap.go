//go:build race

package buffer

// RaceEnabled: buffers come from the heap and are poisoned when they return to the pool.
const RaceEnabled = true

func newArena(n int) (*Arena, error) {
	return &Arena{mem: Aligned(make([]byte, n+PageSize), n, PageSize),
		reason: "ordinary pages: the race detector needs the heap"}, nil
}

func unmap([]byte) error { return nil }
