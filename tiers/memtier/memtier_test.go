package memtier_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/content"
	"kvbench/tiers/memtier"
)

var bytesIn = content.New([16]byte{7}, 0)

func memory(t *testing.T, capacity int64) *memtier.Tier {
	t.Helper()
	c, err := memtier.New(capacity)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// do makes one request for all of b.
func do(x tiers.Submitter, b []byte, off int64) (err error) {
	done := func(io *tiers.IO) { err = io.Err }
	x.Submit(&tiers.IO{Buf: tiers.Buffer{B: b}, Off: off, N: len(b), Done: done})
	return err
}

// put writes an object, in two requests.
func put(t *testing.T, tier tiers.Files, o tiers.Object) {
	t.Helper()
	b := make([]byte, o.Size)
	bytesIn.Fill(b, o, 0)
	w, err := tier.Create(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, do(w, b[o.Size/2:], o.Size/2))
	require.NoError(t, do(w, b[:o.Size/2], 0))
	require.NoError(t, w.Commit(t.Context()))
}

// check reads an object and compares it.
func check(t *testing.T, tier tiers.Files, o tiers.Object) {
	t.Helper()
	r, err := tier.Open(t.Context(), o)
	require.NoError(t, err)
	b := make([]byte, o.Size)
	require.NoError(t, do(r, b, 0))
	require.NoError(t, r.Close())
	require.NoError(t, bytesIn.Check(b, o, 0))
}

func TestCPUTierHoldsItsCapacityInAnyMixAndReusesIt(t *testing.T) {
	const capacity = 24 << 20
	tier := memory(t, capacity)
	rng := rand.New(rand.NewPCG(9, 9))
	var live []tiers.Object
	var held int64
	for i := range 400 {
		o := tiers.Object{Key: fmt.Sprint("k", i),
			Size: []int64{1, 100, 5000, 65536, 70_000, 1 << 20, 3<<20 + 5}[rng.IntN(7)]}
		for held+o.Size > capacity {
			victim := rng.IntN(len(live))
			require.NoError(t, tier.Remove(t.Context(), live[victim]))
			held -= live[victim].Size
			live = append(live[:victim], live[victim+1:]...)
		}
		put(t, tier, o)
		held += o.Size
		live = append(live, o)
		got, waste := tier.Footprint()
		assert.Equal(t, held, got)
		assert.Less(t, waste, int64(len(live))*16<<10, "less than a block each")
	}
	for _, o := range live {
		check(t, tier, o)
		require.NoError(t, tier.Remove(t.Context(), o))
	}
	got, waste := tier.Footprint()
	assert.Zero(t, got+waste)
}

func TestCPUTierRefusesSizesThatCannotBe(t *testing.T) {
	_, err := memtier.New(0)
	assert.ErrorContains(t, err, "-cpu-mem-gb")
}
