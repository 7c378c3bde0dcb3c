package memtier_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/memtier"
)

// All memory of a tier comes from the nodes that it was told, what it grows by included.
func TestAllMemoryComesFromTheNodes(t *testing.T) {
	if buffer.RaceEnabled {
		t.Skip("under the race detector arenas lie on the heap")
	}
	a, err := buffer.NewArena(1, 0)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	if a.Placed() != "node 0" {
		t.Skip("memory is not to be had on node 0 here: " + a.Placed())
	}
	const capacity = 4 << 20
	c, err := memtier.New(capacity, 0)
	require.NoError(t, err)
	defer c.Close()
	for i := range 3 { // far beyond the capacity
		o := tiers.Object{Key: fmt.Sprint(i), Size: capacity}
		w, err := c.Create(t.Context(), o)
		require.NoError(t, err)
		b := make([]byte, o.Size)
		b[0] = 1
		require.NoError(t, do(w, b, 0))
		require.NoError(t, w.Commit(t.Context()))
	}
	maps, err := os.ReadFile("/proc/self/numa_maps")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this kernel has no /proc/self/numa_maps")
	}
	require.NoError(t, err)
	pages := 0
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); f[1] == "prefer:0" || f[1] == "prefer (many):0" {
			for _, word := range f {
				var n int
				if k, _ := fmt.Sscanf(word, "anon=%d", &n); k == 1 {
					pages += n
				}
			}
		}
	}
	require.GreaterOrEqual(t, pages*os.Getpagesize(), 3*capacity)
}
