//go:build race

package buffer

// RaceEnabled: buffers come from the heap and are poisoned when they return to the pool.
const RaceEnabled = true

func newArena(n int) (*Arena, error) {
	return &Arena{mem: aligned(make([]byte, n+pageSize), n, pageSize), reason: "ordinary pages: the race detector needs the heap"}, nil
}

func unmap([]byte) error { return nil }
