package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"kvbench/tiers"
)

// A worked example: room for 3.5 entries and a 6-turn
// conversation whose turns read their history and then write themselves.
func TestCacheWorkedExample(t *testing.T) {
	const size = 1000
	c, stores := testCache(t, 0, 0, 0, 3500)
	ctx := t.Context()
	hits, misses := 0, 0
	for turn := 1; turn <= 6; turn++ {
		var in []Want
		for h := 1; h < turn; h++ {
			in = append(in, Want{Key: fmt.Sprint("t", h), Size: size})
		}
		in = append(in, Want{Key: fmt.Sprint("t", turn), Size: size, Write: true})
		var l Lease
		c.Decide(&l, in)
		for i := range turn - 1 {
			if l.Outcome(i) == Miss {
				misses++
				continue
			}
			_, _, err := l.Read(ctx, i, Tag{Phase: tiers.Decode})
			require.NoError(t, err)
			l.Drop(ctx, i, Tag{})
			hits++
		}
		_, _, err := l.Write(ctx, turn-1, Tag{})
		require.NoError(t, err)
		l.Close(ctx, Tag{})
		require.LessOrEqual(t, len(stores[tiers.Storage].objects), 3)
	}
	require.Equal(t, 12, hits)
	require.Equal(t, 3, misses)
	require.EqualValues(t, 3, c.left()[0])
	c.quiet(t, stores)
}

// Random sequential operations against a model that is too simple to be wrong:
// one list per tier, scanned and sorted.
func TestCacheMatchesModel(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			caps := []int64{r.Int64N(2) * (50 + r.Int64N(100)), r.Int64N(2) * (50 + r.Int64N(200)),
				100 + r.Int64N(400)}
			c, stores := testCache(t, 0, caps...)
			m := newModel(caps)
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

// Random operations from many goroutines, with failures, cancellations,
// abandoned leases and held pins: the accounts stay exact and nobody hangs.
func TestCacheRandomConcurrent(t *testing.T) {
	configs := map[string]struct {
		writers  int
		capacity []int64
	}{
		"storage only":             {0, []int64{0, 0, 1000}},
		"storage only, 2 writers":  {2, []int64{0, 0, 1000}},
		"tight storage":            {0, []int64{0, 0, 210}},
		"cpu and storage":          {3, []int64{0, 500, 1000}},
		"cpu larger than storage":  {3, []int64{0, 2000, 400}},
		"gpu, cpu and storage":     {4, []int64{300, 600, 1500}},
		"gpu over tiny storage":    {4, []int64{600, 0, 200}},
		"everything tight, 1 slot": {1, []int64{100, 150, 200}},
	}
	for name, cfg := range configs {
		for _, faulty := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/faulty=%v", name, faulty), bubble(func(t *testing.T) {
				c, stores := testCache(t, cfg.writers, cfg.capacity...)
				var coin atomic.Uint64
				for _, b := range stores {
					b.pause = func() { gosched(rand.New(rand.NewPCG(coin.Add(1), 7))) }
					if faulty {
						b.breakOp = func() error {
							if coin.Add(1)%23 == 0 {
								return syscall.EIO
							}
							return nil
						}
					}
				}
				storm(t, c, 16, 300, faulty)
				c.quiet(t, stores)
			}))
		}
	}
}

// storm lets goroutines use the cache at random.
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

// A cpu tier larger than the storage under it: what sinks together may be more
// than the storage can ever hold.
func TestCacheOverflow(t *testing.T) {
	c, stores := testCache(t, 0, 0, 1000, 200)
	var l Lease
	for n, size := range []int64{150, 150, 200, 200, 100} {
		_, _, err := use(t.Context(), c, &l, Want{Key: fmt.Sprint("k", n), Size: size, Write: true})
		require.NoError(t, err)
	}
	_, _, err := use(t.Context(), c, &l, Want{Key: "big", Size: 200, Write: true})
	require.NoError(t, err)
	c.quiet(t, stores)
	require.Equal(t, [][]string{{"k2", "k3", "k4", "big"}, {"k1"}}, cacheState(c))
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

// An entry that is read while it is evicted stays readable for its reader, and
// its bytes count until the reader leaves.
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

func TestCacheRefusesWhatNeverFits(t *testing.T) {
	c, stores := testCache(t, 0, 0, 500, 100)
	require.ErrorIs(t, c.fits(101), ErrTooLarge)
	require.NoError(t, c.fits(100))
	var l Lease
	_, _, err := use(t.Context(), c, &l, Want{Key: "a", Size: 450, Write: true})
	require.ErrorIs(t, err, ErrTooLarge)
	c.quiet(t, stores)
}

// Demotion failure loses the entry, never the accounting.
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

// A reader of many reads follows its entry down: between two reads it lets go
// of the copy that a writer is waiting for.
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
