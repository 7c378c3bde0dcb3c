package buffer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
)

func newPool(t *testing.T, buffers, size int) *Pool {
	t.Helper()
	p, err := NewPool(buffers, size)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close(), "all buffers are back") })
	return p
}

func TestPoolServesInOrderAndNeverInParts(t *testing.T) {
	p := newPool(t, 4, PageSize)
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		held, err := p.Get(ctx, 3, nil)
		require.NoError(t, err)
		var order []int
		var mu sync.Mutex
		get := func(id, n int) {
			go func() {
				b, err := p.Get(ctx, n, nil)
				assert.NoError(t, err)
				assert.Len(t, b, n)
				mu.Lock()
				order = append(order, id)
				mu.Unlock()
				p.Put(b...)
			}()
			synctest.Wait()
		}
		get(1, 4) // has to wait
		get(2, 1) // waits too, because it came later
		get(3, 2)
		assert.Empty(t, order)
		assert.Len(t, p.free, 1, "the first in line holds nothing while it waits")
		p.Put(held[:2]...)
		synctest.Wait()
		assert.Empty(t, order)
		p.Put(held[2])
		synctest.Wait()
		assert.Equal(t, 1, order[0])
		assert.ElementsMatch(t, []int{1, 2, 3}, order)
	})
}

func TestPoolWaiterThatLeavesLetsTheNextOneIn(t *testing.T) {
	p := newPool(t, 2, PageSize)
	synctest.Test(t, func(t *testing.T) {
		held, err := p.Get(t.Context(), 1, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("deadline of the window")
		left, served := make(chan error, 1), make(chan struct{})
		go func() {
			dst, err := p.Get(ctx, 2, nil)
			assert.Empty(t, dst)
			left <- err
		}()
		synctest.Wait()
		go func() {
			b, err := p.Get(t.Context(), 1, nil)
			assert.NoError(t, err)
			p.Put(b...)
			close(served)
		}()
		synctest.Wait()
		cancel(stop)
		assert.ErrorIs(t, <-left, stop)
		<-served
		p.Put(held...)
	})
}

func TestPoolKeepsAllBuffersUnderRandomUse(t *testing.T) {
	p := newPool(t, 7, 2*PageSize)
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(g)))
			for range 300 {
				ctx, cancel := context.WithCancel(context.Background())
				if rng.IntN(3) == 0 {
					go cancel()
				}
				n := rng.IntN(7) + 1
				bufs, err := p.Get(ctx, n, nil)
				if err == nil {
					for _, b := range bufs {
						// the race detector sees two owners
						b.B[0], b.B[len(b.B)-1] = byte(g), byte(g)
					}
					p.Put(bufs...)
				}
				cancel()
			}
		})
	}
	all.Wait()
	assert.Len(t, p.free, 7)
}

func TestPoolRefusesWhatCannotBe(t *testing.T) {
	_, err := NewPool(0, PageSize)
	assert.ErrorContains(t, err, "at least one")
	_, err = NewPool(1, 1000)
	assert.ErrorContains(t, err, "multiple of 4096")

	p := newPool(t, 2, PageSize)
	_, err = p.Get(t.Context(), 3, nil)
	assert.ErrorContains(t, err, "only 2")
	b, err := p.Get(t.Context(), 1, nil)
	require.NoError(t, err)
	assert.ErrorContains(t, p.Close(), "1 of 2 buffers")
	p.Put(tiers.Buffer{B: b[0].B[:5]})
	assert.Panics(t, func() { p.Put(b[0]) }, "twice")
	assert.Panics(t, func() { p.Put(tiers.Buffer{B: make([]byte, PageSize)}) }, "foreign")
	require.NoError(t, p.Close())
	_, err = p.Get(t.Context(), 1, nil)
	assert.ErrorIs(t, err, tiers.ErrClosed)
}

func TestBuffersLieOnPagesAndKeepTheirCapacity(t *testing.T) {
	p := newPool(t, 5, 3*PageSize)
	bufs, err := p.Get(t.Context(), 5, nil)
	require.NoError(t, err)
	for _, b := range bufs {
		assert.Zero(t, address(b.B)%PageSize)
		assert.Equal(t, 3*PageSize, cap(b.B))
	}
	assert.NotEmpty(t, p.HugePages())
	t.Log(p.HugePages())
	p.Put(bufs...)
}

func TestReturnedBuffersArePoisonedUnderRace(t *testing.T) {
	if !RaceEnabled {
		t.Skip("only the race detector's builds poison")
	}
	p := newPool(t, 1, PageSize)
	b, err := p.Get(t.Context(), 1, nil)
	require.NoError(t, err)
	p.Put(tiers.Buffer{B: b[0].B[:10]})
	assert.EqualValues(t, 0xDB, b[0].B[PageSize-1])
}
