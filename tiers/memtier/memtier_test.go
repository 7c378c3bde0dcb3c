package memtier_test

import (
	"fmt"
	"math/rand/v2"
	"syscall"
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

// parts is a memory of several parts, which counts the copies into each.
type parts struct {
	t      *testing.T
	bytes  [][]byte
	copies []int
}

func (m *parts) Copy(op tiers.Op, off int64, b []byte) error {
	size := int64(len(m.bytes[0]))
	part, off := off/size, off%size
	require.LessOrEqual(m.t, off+int64(len(b)), size, "a copy is in one part")
	m.copies[part]++
	if op == tiers.Write {
		copy(m.bytes[part][off:], b)
	} else {
		copy(b, m.bytes[part][off:])
	}
	return nil
}

func (m *parts) Close() error { return nil }

func TestTierHoldsItsCapacityInAnyMixAndReusesIt(t *testing.T) {
	const capacity, part = 24 << 20, 8 << 20
	t.Run("cpu", func(t *testing.T) { anyMix(t, memory(t, capacity), capacity) })
	t.Run("three parts", func(t *testing.T) {
		m := &parts{t, [][]byte{make([]byte, part), make([]byte, part), make([]byte, part)}, make([]int, 3)}
		tier := memtier.Over(m, 3, part, tiers.GPU, "test")
		anyMix(t, tier, capacity)
		for i := range m.copies {
			assert.Positive(t, m.copies[i], "each part is used")
			m.copies[i] = 0
		}
		for i := range m.copies {
			put(t, tier, tiers.Object{Key: fmt.Sprint("p", i), Size: part})
		}
		assert.Equal(t, []int{2, 2, 2}, m.copies, "free pieces are joined: an entry in each part, in one piece")
		_, err := tier.Create(t.Context(), tiers.Object{Key: "k", Size: 1})
		assert.ErrorIs(t, err, syscall.ENOSPC)
		assert.ErrorContains(t, err, "gpu tier")
	})
}

// anyMix writes and removes entries of many sizes at random, up to the capacity.
func anyMix(t *testing.T, tier *memtier.Tier, capacity int64) {
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
		_, err := tier.Create(t.Context(), tiers.Object{Key: "large", Size: capacity + 1})
		assert.ErrorContains(t, err, fmt.Sprint(capacity-held, " are free"))
	}
	for _, o := range live {
		check(t, tier, o)
		require.NoError(t, tier.Remove(t.Context(), o))
	}
	w, err := tier.Create(t.Context(), tiers.Object{Key: "whole", Size: capacity})
	require.NoError(t, err)
	require.NoError(t, w.Abort())
}

func TestCPUTierRefusesSizesThatCannotBe(t *testing.T) {
	_, err := memtier.New(0)
	assert.ErrorContains(t, err, "-cpu-mem-gb")
}
