package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
)

// blockRequests is a trace of prefixes that share their beginnings, as in chats: each request
// continues an earlier one, or branches off.
func blockRequests(seed uint64, n int) [][]Want {
	r := rand.New(rand.NewPCG(seed, 11))
	next := 0
	fresh := func() Want {
		next++
		return Want{Key: fmt.Sprint("b", next), Size: 8}
	}
	var all [][]Want
	for range n {
		var in []Want
		before := next
		if len(all) > 0 && r.IntN(4) > 0 {
			from := all[len(all)-1-r.IntN(min(len(all), 20))]
			in = append(in, from[:r.IntN(len(from)+1)]...)
		}
		for len(in) == 0 || (len(in) < 12 && r.IntN(3) > 0) {
			in = append(in, fresh())
		}
		if next > before {
			in[len(in)-1].Size = 1 + r.Int64N(8) // the last block is partial
		}
		all = append(all, in)
	}
	return all
}

// serve executes a decided request as a worker does.
func serve(ctx context.Context, l *Lease, n int) error {
	var first error
	for i := 0; i < n; {
		var err error
		done := 1
		switch l.Outcome(i) {
		case Hit, Pending:
			done, _, err = l.Read(ctx, i, Tag{Phase: tiers.Decode})
		case Miss:
			done, _, err = l.Write(ctx, i, Tag{})
		}
		for range done {
			if l.Outcome(i) != Unreachable {
				l.Drop(ctx, i, Tag{})
			}
			i++
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// bubble runs a test in which a deadlock is reported at once.
func bubble(f func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) { synctest.Test(t, f) }
}

// play runs requests in order with that many workers and returns their outcomes. It counts pending as
// a hit: only that difference may depend on timing.
func play(t *testing.T, c *Cache, requests [][]Want, workers int, faulty bool) []string {
	t.Helper()
	var mu sync.Mutex // the dispatcher's
	cond := sync.NewCond(&mu)
	next, deciding := 0, false
	decisions := make([]string, len(requests))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			l := Lease{Prefix: true}
			for {
				mu.Lock()
				for deciding {
					cond.Wait()
				}
				if next == len(requests) {
					mu.Unlock()
					return
				}
				n := next
				next++
				at := requests[n]
				deciding = true
				for !c.Decide(&l, at) {
					cond.Wait()
				}
				deciding = false
				cond.Broadcast()
				for i := range at {
					o := l.Outcome(i)
					if o == Pending {
						o = Hit
					}
					decisions[n] += o.String()[:1]
				}
				mu.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				if faulty && rng.IntN(20) == 0 {
					cancel()
				}
				gosched(rng)
				err := serve(ctx, &l, len(at))
				if err != nil && !faulty {
					t.Errorf("request %d: %v", n, err)
				}
				l.Close(ctx, Tag{})
				cancel()
				if n%8 == 0 { // each check visits all entries
					assert.NoError(t, c.check())
				}
				mu.Lock()
				cond.Broadcast()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return decisions
}

// One tier, compared with the simplest model.
func TestBlockDecisionsMatchModel(t *testing.T) {
	tiertest.OneThread(t)
	requests := blockRequests(9, 1000)
	for _, capacity := range []int64{300, 700, 2000, 1 << 30} {
		c, stores := testCache(t, 0, 0, 0, capacity)
		got := play(t, c, requests, 1, false)
		var order []Want // least recent first
		used := int64(0)
		find := func(key string) int {
			for i := range order {
				if order[i].Key == key {
					return i
				}
			}
			return -1
		}
		for n, in := range requests {
			want, prefix := "", true
			for _, b := range in {
				switch there := find(b.Key) >= 0; {
				case !there:
					want, prefix = want+"m", false
				case prefix:
					want += "h"
				default:
					want += "u"
				}
			}
			for i := len(in) - 1; i >= 0; i-- {
				if at := find(in[i].Key); at >= 0 {
					order = append(order[:at], order[at+1:]...)
				} else {
					used += in[i].Size
				}
				order = append(order, in[i])
			}
			for used > capacity {
				used -= order[0].Size
				order = order[1:]
			}
			require.Equal(t, want, got[n], "request %d of %d bytes", n, capacity)
		}
		c.quiet(t, stores)
		require.Len(t, cacheState(c)[0], len(order))
	}
}

// A request larger than the whole cache is written block by block.
func TestBlockRequestLargerThanTheCache(t *testing.T) {
	c, stores := testCache(t, 0, 0, 0, 100)
	var in []Want
	for i := range 40 {
		in = append(in, Want{Key: fmt.Sprint("b", i), Size: 8})
	}
	for range 3 {
		play(t, c, [][]Want{in}, 1, true)
		c.quiet(t, stores)
	}
}

// A prefix reads only the needed parts of its blocks: the last part of the last hit alone, the second
// part of the last two hits, wherever the hits end.
func TestTailsOfHits(t *testing.T) {
	x := tiertest.Transfer(t, tiertest.Chunk, 1)
	c := New(Config{Levels: []Level{{Kind: tiers.Storage,
		Tier: transfer.New(tiertest.NewNull(), x.Settings), Capacity: 1 << 20}},
		Source: x.Content.Source, Sink: &x.Verifier, Clock: x.Clock, Observer: NoObserver{},
		Tails: tiers.Tails{0, 2, 1}})
	wants := []Want{{Key: "a", Size: 30}, {Key: "b", Size: 30}, {Key: "c", Size: 30},
		{Key: "d", Size: 30}}
	for n, want := range [][]int64{{}, {30}, {20, 30}, {10, 20, 30}} {
		l := Lease{Prefix: true}
		require.True(t, c.Decide(&l, wants[:n+1]))
		read := []int64{}
		for i := range n {
			_, res, err := l.Read(t.Context(), i, Tag{})
			require.NoError(t, err)
			read = append(read, res.Bytes)
		}
		assert.Equal(t, want, read)
		_, res, err := l.Write(t.Context(), n, Tag{})
		require.NoError(t, err)
		assert.EqualValues(t, 30, res.Bytes, "everything is written")
		l.Close(t.Context(), Tag{})
	}
	require.NoError(t, c.check())
}
