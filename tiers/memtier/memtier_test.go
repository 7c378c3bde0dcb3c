package memtier_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/memtier"
	"kvbench/tiers/transfer"
)

const piece = 64 << 10

var bytesIn = content.New([16]byte{7}, 0)

func memory(t *testing.T, capacity int64) *memtier.Tier {
	t.Helper()
	c, err := memtier.New(capacity)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// copier moves entries in chunks of that size and verifies all that it reads.
func copier(t *testing.T, chunk int) *transfer.Transfer {
	t.Helper()
	pool, err := buffer.NewPool(2, chunk)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pool.Close()) })
	return &transfer.Transfer{
		Pool: pool, Content: bytesIn, Chunk: chunk, Depth: 1, Verify: content.VerifyFull,
		Clock: clock.NewWall(),
	}
}

func TestCPUTierHoldsItsCapacityInAnyMixAndReusesIt(t *testing.T) {
	const capacity = 24 << 20
	tier := memory(t, capacity)
	x := copier(t, 1<<20)
	rng := rand.New(rand.NewPCG(9, 9))
	var live []tiers.Object
	var held int64
	for i := range 400 {
		o := tiers.Object{Key: fmt.Sprint("k", i), Size: []int64{1, 100, 5000, 65536, 70_000, 1 << 20, 3<<20 + 5}[rng.IntN(7)]}
		for held+o.Size > capacity {
			victim := rng.IntN(len(live))
			require.NoError(t, tier.Remove(t.Context(), live[victim]))
			held -= live[victim].Size
			live = append(live[:victim], live[victim+1:]...)
		}
		_, _, err := x.Write(t.Context(), tier, nil, o)
		require.NoError(t, err)
		held += o.Size
		live = append(live, o)
		got, waste := tier.Footprint()
		assert.Equal(t, held, got)
		assert.Less(t, waste, int64(len(live))*64<<10)
	}
	for _, o := range live {
		_, _, err := x.Read(t.Context(), tier, nil, o)
		require.NoError(t, err)
		require.NoError(t, tier.Remove(t.Context(), o))
	}
	got, waste := tier.Footprint()
	assert.Zero(t, got+waste)
	assert.NotEmpty(t, tier.HugePages())
}

func TestCPUTierKeepsMemoryOfARemovedEntryUntilItsReaderCloses(t *testing.T) {
	tier := memory(t, 1<<20)
	x := copier(t, piece)
	o := tiers.Object{Key: "k", Gen: 1, Size: piece}
	_, _, err := x.Write(t.Context(), tier, nil, o)
	require.NoError(t, err)
	r, err := tier.Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, tier.Remove(t.Context(), o))
	_, _, err = x.Write(t.Context(), tier, nil, tiers.Object{Key: "k", Gen: 2, Size: piece})
	require.NoError(t, err)
	p := make([]byte, piece)
	require.NoError(t, read(t, r, p, 0))
	assert.NoError(t, bytesIn.Check(p, o, 0), "the new version did not take its place")
	held, _ := tier.Footprint()
	assert.EqualValues(t, 2*piece, held)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	held, _ = tier.Footprint()
	assert.EqualValues(t, piece, held)
	assert.ErrorContains(t, readBeyond(t, tier), "beyond the entry's")
}

func readBeyond(t *testing.T, tier tiers.Tier) error {
	r, err := tier.Open(t.Context(), tiers.Object{Key: "k", Gen: 2, Size: piece})
	require.NoError(t, err)
	defer r.Close()
	return read(t, r, make([]byte, 10), piece-5)
}

func read(t *testing.T, r tiers.Reader, p []byte, off int64) error {
	t.Helper()
	return transfer.Do(t.Context(), clock.NewWall(), r, &tiers.IO{Buf: tiers.Buffer{B: p}, Off: off, N: len(p)})
}

func TestCPUTierRefusesSizesThatCannotBe(t *testing.T) {
	_, err := memtier.New(0)
	assert.ErrorContains(t, err, "-cpu-mem-gb")
}
