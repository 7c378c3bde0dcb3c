package cache

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/evict"
)

// policies are the policies whose hits do not depend on timing.
var policies = map[string]Policy{
	"waterfall":                   {},
	"write-through":               {Place: WriteThrough},
	"write-through, promoting":    {Place: WriteThrough, Promote: OnHit},
	"write-back, promoting":       {Place: WriteBack, Promote: OnHit},
	"selective":                   {Place: Selective, After: 2},
	"selective, promoting":        {Place: Selective, After: 3, Promote: OnHit},
	"waterfall that admits twice": {After: 2},
	"write-back, fifo":            {Place: WriteBack, Promote: OnHit, Evict: evict.NewFIFO},
	"write-through, lfu":          {Place: WriteThrough, Evict: evict.NewLFU},
	"selective, s3-fifo":          {Place: Selective, After: 2, Evict: evict.NewS3FIFO},
	"waterfall, watermarks":       {Keep: 0.3, Largest: 0.95},
	"waterfall, buckets":          {Evict: testBuckets},
	"write-through, buckets":      {Place: WriteThrough, Promote: OnHit, Evict: testBuckets},
}

func testBuckets(int64) evict.Order { return evict.NewBuckets(60, 9) }

// Under every policy the hits depend on the requests and the capacities alone: they are the same with
// one worker and with eight, with any timing, tiers and write limit. The accounts are exact, and the
// tiers hold the objects of the index.
func TestPoliciesDecideWhateverTheTiming(t *testing.T) {
	for name, p := range policies {
		for where, capacity := range map[string][]int64{
			"storage":               {0, 0, 1500},
			"cpu over storage":      {0, 400, 1500},
			"gpu, cpu and storage":  {200, 300, 1500},
			"cpu larger than below": {0, 1200, 800},
		} {
			alone := capacity[1] == 0
			brief := testing.Short() || buffer.RaceEnabled
			if brief && capacity[0] == 0 && !alone || alone && (p.Place != Exclusive || p.After > 0) {
				continue
			}
			t.Run(name+"/"+where, bubble(func(t *testing.T) {
				requests := blockRequests(4, 300)
				c, stores := policyCache(t, 0, false, p, capacity...)
				want := play(t, c, requests, 1, false)
				c.quiet(t, stores)
				require.Positive(t, c.left()[0])
				again, stores := policyCache(t, 2, alone, p, capacity...)
				for _, b := range stores {
					var coin atomic.Uint64
					b.pause = func() { gosched(rand.New(rand.NewPCG(coin.Add(1), 7))) }
				}
				require.Equal(t, want, play(t, again, requests, 8, false))
				again.quiet(t, stores)
				assert.Equal(t, cacheState(c), cacheState(again))
				assert.Equal(t, c.Moves(), again.Moves())
				assert.Equal(t, c.left(), again.left())
				moved := c.Moves()
				switch {
				case p.Place == WriteThrough, p.Place == Selective:
					assert.Positive(t, moved.Copied.Entries)
				case p.After > 0:
					assert.Positive(t, moved.Refused.Entries)
				}
				if p.Promote == OnHit && capacity[1] < capacity[2] {
					assert.Positive(t, moved.Promoted.Entries)
				}
			}))
		}
	}
}

// The accounts stay exact and no request hangs with failures, cancellations, abandoned leases and
// copies behind the requests, also if the open requests do not all fit at once.
func TestPoliciesInAStorm(t *testing.T) {
	all := map[string]Policy{
		"write-through behind": {Place: WriteThrough, Behind: 300, Promote: OnHit},
		"selective behind":     {Place: Selective, After: 2, Behind: 150},
	}
	maps.Copy(all, policies)
	for name, p := range all {
		sizes := [][]int64{{0, 500, 1000}, {300, 600, 700}, {0, 900, 400}}
		rounds := 40
		if name == "waterfall" { // all policies take the same locks: one of them runs longer
			sizes = append(sizes, []int64{0, 0, 1000}, []int64{0, 0, 210}, []int64{600, 0, 200},
				[]int64{100, 150, 200}, []int64{0, 0, 100}, []int64{0, 60, 100})
			rounds = 100
		}
		for _, faulty := range []bool{false, true} {
			if (testing.Short() || buffer.RaceEnabled) && !faulty {
				continue
			}
			t.Run(fmt.Sprintf("%s/faulty=%v", name, faulty), bubble(func(t *testing.T) {
				for i, capacity := range sizes {
					c, stores := policyCache(t, (3+i)%5, i%2 == 1, p, capacity...)
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
					if capacity[2] >= 200 {
						storm(t, c, 12, rounds, faulty)
					}
					play(t, c, blockRequests(7, rounds), 6, faulty)
					require.NoError(t, c.Close(t.Context()))
					c.quiet(t, stores)
					require.Zero(t, c.open)
				}
			}))
		}
	}
}

// Bytes written to the storage tier, calculated by hand: ten entries of 100 bytes through a cpu tier
// of 300 (filled to 80 %: two entries). Each entry is read once right after it was written, and the
// first five once more at the end.
func TestBytesToTheStorageByHand(t *testing.T) {
	for _, x := range []struct {
		name    string
		p       Policy
		storage int64 // written to the storage tier
		found   int   // of the five
	}{
		// Eight of ten are demoted.
		{"waterfall", Policy{}, 800, 5},
		// All ten are copied when they are written.
		{"write-through", Policy{Place: WriteThrough}, 1000, 5},
		// As the waterfall. A promoted entry still has its copy below when it is demoted again, so
		// only the ninth and the tenth entry are written, for the first two of the five.
		{"write-back", Policy{Place: WriteBack, Promote: OnHit}, 1000, 5},
		// Each entry has two requests before it leaves.
		{"selective", Policy{Place: Selective, After: 2}, 1000, 5},
		// No entry has three.
		{"selective at three", Policy{Place: Selective, After: 3}, 0, 0},
		{"admitted at two", Policy{After: 2}, 800, 5},
		{"admitted at three", Policy{After: 3}, 0, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, stores := policyCache(t, 0, false, x.p, 0, 300, 2000)
			written := &countWrites{}
			c.observer = written
			ask := func(i int, write bool) (hit bool) {
				l := Lease{}
				hits, _, err := use(t.Context(), c, &l, Want{Key: fmt.Sprint("e", i), Size: 100,
					Write: write})
				require.NoError(t, err)
				return hits > 0
			}
			for i := range 10 {
				ask(i, true)
				require.True(t, ask(i, false))
			}
			found := 0
			for i := range 5 {
				if ask(i, false) {
					found++
				}
			}
			assert.Equal(t, x.found, found)
			assert.Equal(t, x.storage, written.bytes[tiers.Storage])
			assert.EqualValues(t, 1000+c.Moves().Promoted.Bytes, written.bytes[tiers.CPU])
			c.quiet(t, stores)
		})
	}
}

// countWrites counts the bytes of requests that write.
type countWrites struct {
	tally
	bytes [tiers.NumKinds]int64
}

func (n *countWrites) Chunk(_ Tag, l tiers.Kind, _ tiers.Phase, ch tiers.Chunk) {
	if ch.Op == tiers.Write {
		n.bytes[l] += ch.Bytes
	}
}

// The write-behind queue holds a limited number of bytes and drops copies when it is full.
func TestWriteBehindIsBounded(t *testing.T) {
	bubble(func(t *testing.T) {
		p := Policy{Place: WriteThrough, Behind: 250}
		c, stores := policyCache(t, 0, false, p, 0, 1000, 2000)
		held := make(chan struct{})
		stores[tiers.Storage].pause = func() { <-held }
		for i := range 5 {
			_, _, err := use(t.Context(), c, &Lease{}, Want{Key: fmt.Sprint("e", i), Size: 100,
				Write: true})
			require.NoError(t, err)
			require.NoError(t, c.check())
		}
		m := c.Moves()
		assert.Equal(t, Count{3, 300}, m.Unwritten)
		assert.EqualValues(t, 200, m.MostBehind)
		assert.Zero(t, m.Copied)
		close(held)
		synctest.Wait()
		require.NoError(t, c.Close(t.Context()))
		assert.Equal(t, Count{2, 200}, c.Moves().Copied)
		c.quiet(t, stores)
		assert.Len(t, stores[tiers.Storage].objects, 2)
	})(t)
}

// Every one of several concurrent calls of Close returns when the copies are written.
func TestConcurrentCloses(t *testing.T) {
	bubble(func(t *testing.T) {
		c, stores := policyCache(t, 0, false, Policy{Place: WriteThrough, Behind: 250}, 0, 1000, 2000)
		held, closed := make(chan struct{}), make(chan error, 2)
		stores[tiers.Storage].pause = func() { <-held }
		_, _, err := use(t.Context(), c, &Lease{}, Want{Key: "e", Size: 100, Write: true})
		require.NoError(t, err)
		synctest.Wait() // the copy has begun
		for range 2 {
			go func() { closed <- c.Close(t.Context()) }()
			synctest.Wait()
		}
		assert.Empty(t, closed, "a copy is being written")
		close(held)
		synctest.Wait()
		require.Len(t, closed, 2)
		assert.NoError(t, <-closed)
		assert.NoError(t, <-closed)
	})(t)
}
