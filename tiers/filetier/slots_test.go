package filetier_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/tiertest"
)

// slotTier is one with slots of a MiB, larger than any entry of the tests.
func slotTier(t *testing.T) *filetier.Tier {
	return tiertest.Files(t, filetier.Config{Direct: true,
		Layout: tiers.Layout{Kind: tiers.LayoutSlots, Bytes: 1 << 20}})
}

// Slots are used again, the lowest first, and the file has room from the start and is gone at the
// end.
func TestSlotsAreUsedAgain(t *testing.T) {
	dir := tiertest.Dir(t)
	tier := tiertest.Files(t, filetier.Config{
		Dir: dir, Direct: true, Layout: tiers.Layout{Kind: tiers.LayoutSlots, Bytes: 100_000},
		Capacity: 1 << 20,
	})
	x := tiertest.Transfer(t, chunk, 2)
	o := func(n int) tiers.Object {
		return tiers.Object{Key: "blk/x/" + string(rune('a'+n)), Gen: uint64(n),
			Size: 99_000 + int64(n)}
	}
	for n := range 20 { // more than fit: the file grows
		_, _, err := x.Write(t.Context(), tier, nil, o(n))
		require.NoError(t, err)
	}
	held, waste := tier.Footprint()
	assert.EqualValues(t, 20*99_000+190, held)
	assert.EqualValues(t, 20*102_400-held, waste, "whole blocks of 4 KiB")
	size := func() int64 {
		files, err := filepath.Glob(filepath.Join(dir.Path(), "*", "*-*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		info, err := os.Stat(files[0])
		require.NoError(t, err)
		return info.Size()
	}
	grown := size()
	for n := range 20 {
		if n%2 == 0 {
			require.NoError(t, tier.Remove(t.Context(), o(n)))
		}
	}
	for n := 20; n < 30; n++ {
		_, _, err := x.Write(t.Context(), tier, nil, o(n))
		require.NoError(t, err)
	}
	assert.Equal(t, grown, size(), "no slot beyond those that were free")
	for n := 1; n < 30; n++ {
		if n >= 20 || n%2 == 1 {
			_, _, err := x.Read(t.Context(), tier, nil, o(n))
			require.NoError(t, err, "verified")
		}
	}
	_, _, err := x.Write(t.Context(), tier, nil, tiers.Object{Key: "large", Size: 102_401})
	assert.ErrorContains(t, err, "102401 bytes do not fit into a slot of 102400")
	require.NoError(t, tier.Close())
	_, err = tier.Create(t.Context(), o(0))
	assert.ErrorIs(t, err, tiers.ErrClosed)
	require.NoError(t, dir.Close(), "which removes all files")
	files, err := filepath.Glob(filepath.Join(dir.Path(), "*", "*-*"))
	require.NoError(t, err)
	assert.Empty(t, files)
}

// A slot is not used again under its reader.
func TestSlotsWaitForTheirReaders(t *testing.T) {
	tier := slotTier(t)
	x := tiertest.Transfer(t, chunk, 1)
	a := tiers.Object{Key: "a", Gen: 1, Size: chunk}
	_, _, err := x.Write(t.Context(), tier, nil, a)
	require.NoError(t, err)
	r, err := tier.Open(t.Context(), a)
	require.NoError(t, err)
	require.NoError(t, tier.Remove(t.Context(), a))
	_, _, err = x.Write(t.Context(), tier, nil, tiers.Object{Key: "b", Gen: 2, Size: chunk})
	require.NoError(t, err)
	p, err := request(t, r, 0, chunk)
	require.NoError(t, err)
	assert.NoError(t, tiertest.Content.Check(p, a, 0))
	_, err = request(t, r, 4096, chunk)
	assert.Error(t, err, "beyond the entry")
	require.NoError(t, r.Close())
	_, waste := tier.Footprint()
	assert.EqualValues(t, 1<<20-chunk, waste)
}

func TestSlotsFromManyGoroutines(t *testing.T) {
	tier := slotTier(t)
	x := tiertest.Transfer(t, chunk, 1)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 20 {
				o := tiers.Object{Key: "k", Gen: uint64(g*100 + n),
					Size: int64(1 + (g*7919+n*104729)%chunk)}
				_, _, err := x.Write(t.Context(), tier, nil, o)
				assert.NoError(t, err)
				_, _, err = x.Read(t.Context(), tier, nil, o)
				assert.NoError(t, err)
				assert.NoError(t, tier.Remove(t.Context(), o))
			}
		})
	}
	wg.Wait()
	held, waste := tier.Footprint()
	assert.Zero(t, held+waste)
}
