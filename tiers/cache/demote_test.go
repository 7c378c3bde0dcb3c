package cache

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/faults"
	"kvbench/tiers/filetier"
	"kvbench/tiers/memtier"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

// brokenMemory fails its n-th read of a demotion, after the pause.
type brokenMemory struct {
	*memtier.Tier
	n     atomic.Int64
	pause func()
}

type brokenView struct {
	tiers.Source
	m *brokenMemory
}

func (m *brokenMemory) View(o tiers.Object) (tiers.Source, func(), error) {
	src, release, err := m.Tier.View(o)
	return brokenView{src, m}, release, err
}

func (v brokenView) Fill(o tiers.Object, off int64, p []byte) error {
	v.m.pause()
	if v.m.n.Add(-1) == 0 {
		return syscall.EIO
	}
	return v.Source.Fill(o, off, p)
}

// failures is an Observer that records failures, and the traffic of demotions.
type failures struct {
	NoObserver
	failed      []string
	moved       [tiers.NumKinds]int64
	read, write tiers.Timing
}

func (f *failures) Failed(_ Tag, _ tiers.Object, l tiers.Kind, what string, _ error) {
	f.failed = append(f.failed, what+" "+l.String())
}

func (f *failures) Chunk(_ Tag, l tiers.Kind, phase tiers.Phase, c tiers.Chunk) {
	if phase == tiers.Evict {
		f.moved[l] += c.Bytes
	}
}

func (f *failures) Demoted(_ Tag, _ tiers.Object, _, _ tiers.Kind, read, write tiers.Timing) {
	f.read, f.write = read, write
}

// A demotion copies the bytes of memory. A failure of either level is reported as its own, and leaves
// nothing in the lower level.
func TestDemotionsCopyMemory(t *testing.T) {
	const size = 5*tiertest.Chunk - 100
	for name, c := range map[string]struct {
		n      int64
		hook   faults.Hook
		failed []string
		left   int64 // bytes in the lower level
	}{
		"all is well":   {0, nil, nil, size},
		"the read":      {4, nil, []string{"read cpu"}, 0},
		"the write":     {0, faults.On(faults.Write, 3, syscall.ENOSPC), []string{"write storage"}, 0},
		"the flush":     {0, faults.On(faults.Commit, 1, syscall.EIO), []string{"write storage"}, 0},
		"a second time": {0, faults.On(faults.Write, 3, syscall.EAGAIN), nil, size},
	} {
		t.Run(name, func(t *testing.T) {
			x, seen := tiertest.Transfer(t, tiertest.Chunk, 1), &failures{}
			memory := &brokenMemory{Tier: tiertest.Memory(t, 1<<20),
				pause: func() { time.Sleep(time.Millisecond) }}
			memory.n.Store(c.n)
			files := tiertest.Files(t, filetier.Config{})
			cache := New(Config{Clock: x.Clock, Observer: seen, Source: x.Content.Source,
				Sink: &x.Verifier, Policy: Policy{Keep: 1}, Levels: []Level{
					{Kind: tiers.CPU, Tier: transfer.New(memory, x.Settings), Capacity: size},
					{Kind: tiers.Storage, Capacity: 1 << 20,
						Tier: transfer.New(faults.Wrap(files, c.hook), x.Settings)}}})
			var l Lease
			_, _, err := use(t.Context(), cache, &l, Want{Key: "a", Size: size, Write: true})
			require.NoError(t, err)
			_, _, err = use(t.Context(), cache, &l, Want{Key: "b", Size: size, Write: true})
			assert.Equal(t, c.failed == nil, err == nil, err)
			assert.Equal(t, c.failed, seen.failed)
			held, _ := files.Footprint()
			assert.Equal(t, c.left, held)
			if c.failed == nil {
				assert.Positive(t, min(seen.read.Device, seen.write.Device))
				assert.GreaterOrEqual(t, seen.moved[tiers.CPU], int64(size), "repeated reads count")
				hits, _, err := use(t.Context(), cache, &l, Want{Key: "a", Size: size})
				require.NoError(t, err, "verified in the lower level")
				assert.Equal(t, 1, hits)
			}
			cache.clear(t)
		})
	}
}

// A store may read its source after it has returned: such reads are not reported.
func TestLateReadsOfADemotionAreNotReported(t *testing.T) {
	x, seen := tiertest.Transfer(t, tiertest.Chunk, 1), &failures{}
	late := &lateTier{}
	cache := New(Config{Clock: x.Clock, Observer: seen, Source: x.Content.Source,
		Sink: &x.Verifier, Policy: Policy{Keep: 1}, Levels: []Level{{Kind: tiers.CPU, Capacity: 100,
			Tier: transfer.New(tiertest.Memory(t, 1<<20), x.Settings)},
			{Kind: tiers.Storage, Tier: late, Capacity: 100}}})
	var l Lease
	_, _, err := use(t.Context(), cache, &l, Want{Key: "a", Size: 100, Write: true})
	require.NoError(t, err)
	_, _, err = use(t.Context(), cache, &l, Want{Key: "b", Size: 100, Write: true})
	require.ErrorIs(t, err, errBroken)
	assert.EqualValues(t, 50, seen.moved[tiers.CPU])
	assert.ErrorIs(t, late.src.Fill(tiers.Object{Size: 100}, 50, make([]byte, 50)), tiers.ErrClosed)
	assert.EqualValues(t, 50, seen.moved[tiers.CPU])
	cache.clear(t)
}

var errBroken = errors.New("broken")

// lateTier is a store that fails, and keeps the source.
type lateTier struct {
	tiers.Tier
	src tiers.Source
}

func (*lateTier) Traits() tiers.Traits { return tiers.Traits{Align: 1, Holds: true} }

func (s *lateTier) Put(_ context.Context, _ *tiers.Call, objs []tiers.Object, src tiers.Source,
) error {
	s.src = src
	return errors.Join(src.Fill(objs[0], 0, make([]byte, 50)), errBroken)
}
