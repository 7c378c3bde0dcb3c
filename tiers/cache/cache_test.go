package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/tiertest"
)

// Random sequential operations are compared with a simple model: one list per tier, scanned and
// sorted.
func TestCacheMatchesModel(t *testing.T) {
	tiertest.OneThread(t)
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			caps := []int64{r.Int64N(2) * (50 + r.Int64N(100)), r.Int64N(2) * (50 + r.Int64N(200)),
				100 + r.Int64N(400)}
			p := []Policy{{}, {Keep: 0.5, Largest: 0.95}, {Keep: 0.9, Largest: 0.3}}[seed%3]
			c, stores := policyCache(t, 0, false, p, caps...)
			m := newModel(p, caps)
			var l Lease
			for n := range 2000 {
				key, size := fmt.Sprint("k", r.IntN(60)), 1+r.Int64N(60)
				if r.IntN(20) == 0 {
					size = 1 + r.Int64N(caps[2])
				}
				write := r.IntN(2) == 0
				in := Want{Key: key, Size: size, Write: write}
				hits, _, err := use(t.Context(), c, &l, in)
				require.NoError(t, err)
				require.Equal(t, m.use(in), hits == 1, "operation %d: %+v", n, in)
				require.NoError(t, c.check())
				require.Equal(t, m.state(), cacheState(c), "after operation %d", n)
			}
			c.quiet(t, stores)
			c.clear(t)
			c.quiet(t, stores)
			for l, b := range stores {
				require.Zero(t, b.bytes, "%s after Clear", l)
			}
		})
	}
}

// storm runs goroutines that use the cache at random.
func storm(t *testing.T, c *Cache, goroutines, rounds int, faulty bool) {
	t.Helper()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 42))
			var l Lease
			for n := range rounds {
				if err := stormRequest(t.Context(), c, &l, r); err != nil && !faulty {
					t.Errorf("goroutine %d round %d: %v", g, n, err)
					return
				}
				if n%16 == 0 {
					if err := c.check(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// stormRequest is one request of random shape: a shared prefix, some history,
// its own entry, re-reads; sometimes cancelled, sometimes abandoned.
func stormRequest(ctx context.Context, c *Cache, l *Lease, r *rand.Rand) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	size := func(key int) int64 { return int64(1 + key*37%100) }
	var in []Want
	seen := map[int]bool{}
	for range 1 + r.IntN(5) {
		k := r.IntN(40)
		if !seen[k] {
			seen[k] = true
			in = append(in, Want{Key: fmt.Sprint("k", k), Size: size(k), Write: r.IntN(2) == 0})
		}
	}
	c.Decide(l, in)
	defer l.Close(ctx, Tag{})
	if r.IntN(20) == 0 {
		return nil // abandoned
	}
	if r.IntN(10) == 0 {
		go cancel()
	}
	for i := range in {
		var err error
		gosched(r)
		switch {
		case l.Owned(i):
			_, _, err = l.Write(ctx, i, Tag{})
			if err == nil && r.IntN(2) == 0 {
				_, _, err = l.Read(ctx, i, Tag{Phase: tiers.Decode})
			}
		case l.Outcome(i) != Miss:
			_, _, err = l.Read(ctx, i, Tag{Phase: tiers.Decode})
		}
		if r.IntN(2) == 0 {
			l.Drop(ctx, i, Tag{})
		}
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

func TestCachePendingReaderWaits(t *testing.T) {
	c, stores := testCache(t, 0, 0, 0, 1000)
	ctx := t.Context()
	var owner, reader, joiner Lease
	c.Decide(&owner, []Want{{Key: "a", Size: 10, Write: true}})
	c.Decide(&reader, []Want{{Key: "a", Size: 10, Write: false}})
	c.Decide(&joiner, []Want{{Key: "a", Size: 10, Write: true}})
	require.Equal(t, []Outcome{Miss, Pending, Pending},
		[]Outcome{owner.Outcome(0), reader.Outcome(0), joiner.Outcome(0)})
	require.False(t, joiner.Owned(0), "a second writer joins the first")
	got := make(chan error, 2)
	go func() { _, _, err := reader.Read(ctx, 0, Tag{}); got <- err }()
	go func() { _, err := joiner.Wait(ctx, 0, Tag{}); got <- err }()
	_, _, err := owner.Write(ctx, 0, Tag{})
	require.NoError(t, err)
	require.NoError(t, <-got)
	require.NoError(t, <-got)
	for _, l := range []*Lease{&owner, &reader, &joiner} {
		l.Close(ctx, Tag{})
	}
	c.quiet(t, stores)
}

func TestCacheAbandonedWriterFreesItsWaiters(t *testing.T) {
	c, stores := testCache(t, 0, 0, 0, 1000)
	var owner, reader Lease
	c.Decide(&owner, []Want{{Key: "a", Size: 10, Write: true}})
	c.Decide(&reader, []Want{{Key: "a", Size: 10, Write: false}})
	owner.Close(t.Context(), Tag{})
	_, _, err := reader.Read(t.Context(), 0, Tag{})
	require.ErrorIs(t, err, ErrGone)
	reader.Close(t.Context(), Tag{})
	c.quiet(t, stores)
}

// An entry that is evicted while it is read stays readable for its reader, and its bytes count until
// the reader unpins it.
func TestCacheEvictionWaitsForReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stores := testCache(t, 0, 0, 0, 100)
		ctx := t.Context()
		var l, reader, writer Lease
		_, _, err := use(ctx, c, &l, Want{Key: "a", Size: 60, Write: true})
		require.NoError(t, err)
		c.Decide(&reader, []Want{{Key: "a", Size: 60, Write: false}})
		c.Decide(&writer, []Want{{Key: "b", Size: 60, Write: true}})
		written := make(chan error, 1)
		go func() { _, _, err := writer.Write(ctx, 0, Tag{}); written <- err }()
		synctest.Wait()
		require.EqualValues(t, 1, c.left()[0])
		var late Lease
		c.Decide(&late, []Want{{Key: "a", Size: 60, Write: false}})
		require.Equal(t, Miss, late.Outcome(0), "evicted while queued is a miss")
		_, _, err = reader.Read(ctx, 0, Tag{})
		require.NoError(t, err, "its reader still reads it")
		select {
		case <-written:
			t.Fatal("the writer got room that is still being read")
		default:
		}
		reader.Close(ctx, Tag{})
		require.NoError(t, <-written)
		writer.Close(ctx, Tag{})
		late.Close(ctx, Tag{})
		c.quiet(t, stores)
	})
}

// A failed demotion evicts the entry and keeps the accounts exact.
func TestCacheFailedDemotion(t *testing.T) {
	c, stores := testCache(t, 0, 0, 100, 100)
	ctx := t.Context()
	var l Lease
	_, _, err := use(ctx, c, &l, Want{Key: "a", Size: 60, Write: true})
	require.NoError(t, err)
	stores[tiers.Storage].breakOp = func() error { return syscall.EIO }
	_, _, err = use(ctx, c, &l, Want{Key: "b", Size: 60, Write: true})
	require.ErrorIs(t, err, syscall.EIO)
	require.NotContains(t, c.index, "a", "lost")
	c.quiet(t, stores)
	stores[tiers.Storage].breakOp = func() error { return nil }
	_, _, err = use(ctx, c, &l, Want{Key: "b", Size: 60, Write: true})
	require.NoError(t, err)
	c.quiet(t, stores)
}

// A lease that reads repeatedly follows its demoted entry: at the next read it unpins the old
// replica, for whose bytes a writer waits.
func TestCacheReaderFollowsDemotion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stores := testCache(t, 0, 0, 100, 100)
		ctx := t.Context()
		var l, reader Lease
		_, _, err := use(ctx, c, &l, Want{Key: "a", Size: 60, Write: true})
		require.NoError(t, err)
		c.Decide(&reader, []Want{{Key: "a", Size: 60, Write: false}})
		_, res, err := reader.Read(ctx, 0, Tag{})
		require.NoError(t, err)
		require.Equal(t, tiers.CPU, res.Level)
		written := make(chan error, 1)
		go func() {
			_, _, err := use(ctx, c, &l, Want{Key: "b", Size: 60, Write: true})
			written <- err
		}()
		synctest.Wait()
		require.EqualValues(t, 1, c.left()[1])
		_, res, err = reader.Read(ctx, 0, Tag{})
		require.NoError(t, err)
		require.Equal(t, tiers.Storage, res.Level)
		require.NoError(t, <-written)
		reader.Close(ctx, Tag{})
		c.quiet(t, stores)
	})
}
