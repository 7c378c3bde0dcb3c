package spread_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/filetier"
	"kvbench/tiers/spread"
	"kvbench/tiers/tiertest"
)

// over returns a tier over n directories of a layout.
func over(t testing.TB, n int, room int64, cfg filetier.Config) *spread.Tier {
	var parts []spread.Part
	for i := range n {
		cfg.Part = i
		parts = append(parts, spread.Part{Tier: tiertest.Files(t, cfg), Room: room})
	}
	return spread.New(parts...)
}

// TestContract: several directories keep the contract of one, with an object per file and with several.
func TestContract(t *testing.T) {
	for name, cfg := range map[string]filetier.Config{
		"files, direct":    {Direct: true},
		"packed, buffered": {Layout: tiertest.Layouts["packed"]},
		"slots, direct":    {Layout: tiertest.Layouts["slots"], Direct: true},
	} {
		t.Run(name, func(t *testing.T) {
			tiertest.RunFiles(t, func(t testing.TB) tiers.Files { return over(t, 2, 1<<30, cfg) })
		})
	}
}

// TestHomes pins the directory of some keys, so that runs stay comparable, and tests that keys that
// differ by a number are spread evenly.
func TestHomes(t *testing.T) {
	assert.Equal(t, []int{2, 2, 0, 0}, []int{spread.Home("", 3), spread.Home("a", 3),
		spread.Home("user_0001_ctx", 3), spread.Home("user_0002_ctx", 3)})
	for _, format := range []string{"%d", "user_%04d_ctx", "%016x"} {
		for _, n := range []int{2, 3, 4, 8} {
			counts := make([]int, n)
			const keys = 20_000
			for i := range keys {
				counts[spread.Home(fmt.Sprintf(format, i), n)]++
			}
			for _, c := range counts {
				assert.InEpsilon(t, keys/n, c, 0.06, "%s over %d: %v", format, n, counts)
			}
		}
	}
}

// put writes an object without its bytes.
func put(t testing.TB, tier tiers.Files, o tiers.Object) {
	t.Helper()
	w, err := tier.Create(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, w.Commit(t.Context()))
}

// TestAFullDirectory: the next directory takes an object that does not fit, the object is found again,
// and counts.
func TestAFullDirectory(t *testing.T) {
	tier := over(t, 2, 10_000, filetier.Config{})
	var objs []tiers.Object
	for i := 0; len(objs) < 4; i++ { // all of them belong to the first
		if key := fmt.Sprint(i); spread.Home(key, 2) == 0 {
			objs = append(objs, tiers.Object{Key: key, Gen: 1, Size: 4_000})
		}
	}
	for i, o := range objs {
		if i == 2 { // an aborted object leaves nothing
			w, err := tier.Create(t.Context(), o)
			require.NoError(t, err)
			require.NoError(t, w.Abort())
			assert.Equal(t, spread.Use{Elsewhere: 1}, tier.Uses()[1])
		}
		put(t, tier, o)
	}
	assert.Equal(t, []spread.Use{{Entries: 2, Bytes: 8_000},
		{Entries: 2, Bytes: 8_000, Elsewhere: 3}}, tier.Uses())
	for i, o := range objs {
		r, err := tier.Open(t.Context(), o)
		require.NoError(t, err)
		assert.Equal(t, i/2, tiers.PartOf(r))
		require.NoError(t, r.Close())
	}
	// If no directory has enough capacity, the one with the most left takes the object.
	require.NoError(t, tier.Remove(t.Context(), objs[0]))
	put(t, tier, tiers.Object{Key: objs[1].Key, Gen: 2, Size: 9_000})
	assert.Equal(t, []spread.Use{{Entries: 2, Bytes: 13_000},
		{Entries: 2, Bytes: 8_000, Elsewhere: 3}}, tier.Uses())
	require.NoError(t, tier.Remove(t.Context(), objs[1:]...))
	assert.Equal(t, int64(0), tier.Uses()[1].Bytes)
}

// TestNeighboursOfOneDirectory: a writer takes the leading objects that belong to one directory.
func TestNeighboursOfOneDirectory(t *testing.T) {
	tier := over(t, 2, 1<<30, filetier.Config{Layout: tiertest.Layouts["packed"]})
	var objs []tiers.Object
	want := 0
	for i := range 8 {
		objs = append(objs, tiers.Object{Key: fmt.Sprint(i), Gen: 1, Size: 4096})
		if want == i && spread.Home(objs[i].Key, 2) == spread.Home("0", 2) {
			want++
		}
	}
	w, err := tier.Create(t.Context(), objs...)
	require.NoError(t, err)
	assert.Equal(t, min(want, 3), w.Len())
	assert.Equal(t, spread.Home("0", 2), tiers.PartOf(w))
	require.NoError(t, w.Abort())
	for _, u := range tier.Uses() {
		assert.Equal(t, spread.Use{}, u, "an aborted writer leaves nothing")
	}
}

// TestDirectoriesKnowTheirObjects: while several goroutines write, abort, read and remove, each object is
// found in its directory, and no missing object is found.
func TestDirectoriesKnowTheirObjects(t *testing.T) {
	tier := over(t, 3, 200_000, filetier.Config{Layout: tiertest.Layouts["packed"]})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			draw := rand.New(rand.NewPCG(1, uint64(g)))
			var there []tiers.Object
			for i := range 300 {
				o := tiers.Object{Key: fmt.Sprintf("%d/%d", g, i), Gen: 1,
					Size: 1 + draw.Int64N(9_000)}
				switch n := draw.IntN(10); {
				case n < 6:
					w, err := tier.Create(t.Context(), o)
					if !assert.NoError(t, err) {
						return
					}
					if n == 0 {
						assert.NoError(t, w.Abort())
						continue
					}
					assert.NoError(t, w.Commit(t.Context()))
					there = append(there, o)
				case len(there) > 0:
					k := draw.IntN(len(there))
					r, err := tier.Open(t.Context(), there[k])
					if assert.NoError(t, err) {
						assert.NoError(t, r.Close())
					}
					assert.NoError(t, tier.Remove(t.Context(), there[k]))
					_, err = tier.Open(t.Context(), there[k])
					assert.ErrorIs(t, err, tiers.ErrNotFound)
					there = append(there[:k], there[k+1:]...)
				}
			}
		})
	}
	wg.Wait()
	for _, u := range tier.Uses() {
		assert.Positive(t, u.Entries)
	}
}
