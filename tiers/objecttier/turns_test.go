package objecttier_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/s3test"
)

// An engine has two threads for its store. Of five simultaneous requests two are in the store at a time,
// and the others report that they were held back. Plain I/O is not held back.
func TestAnEngineHasSoManyThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Requests = 2
		tier := open(t, c)
		require.NoError(t, d.SetRules(s3test.Rule{Key: "/[0-9a-f]{2}/", Fault: s3test.Fault{
			Kind: s3test.Delay, HeaderDelay: time.Second}}))
		put := func(to tiers.Streamer, o tiers.Object, done tiers.ChunkFunc) error {
			_, err := to.Put(t.Context(), o, body(o), done)
			return err
		}
		get := func(from tiers.Streamer, o tiers.Object, done tiers.ChunkFunc) error {
			_, err := from.Get(t.Context(), o, []tiers.Buffer{{B: make([]byte, 8192)}},
				func([]byte, int64) error { return nil }, done)
			return err
		}
		lookup := func(_ tiers.Streamer, o tiers.Object, _ tiers.ChunkFunc) error {
			_, err := tier.Lookup(t.Context(), o)
			return err
		}
		// With the bound, two requests wait for one second, and one for two seconds.
		for _, c := range []struct {
			name       string
			move       func(tiers.Streamer, tiers.Object, tiers.ChunkFunc) error
			via        tiers.Streamer
			took, held time.Duration
			peak       int
		}{
			{"a", put, tier, 3 * time.Second, 4 * time.Second, 2},
			{"a", get, tier, 3 * time.Second, 4 * time.Second, 2},
			{"a", lookup, tier, 3 * time.Second, 0, 2}, // a lookup reports nothing
			{"b", put, tier.Unbounded(), time.Second, 0, 5},
			{"b", get, tier.Unbounded(), time.Second, 0, 5},
		} {
			tier.ResetPeaks()
			var all sync.WaitGroup
			var held atomic.Int64
			begun := time.Now()
			for i := range 5 {
				o := tiers.Object{Key: fmt.Sprint(c.name, i), Gen: 1, Size: 30_000}
				all.Go(func() {
					assert.NoError(t, c.move(c.via, o, func(c tiers.Chunk) { held.Add(int64(c.Held)) }))
				})
			}
			all.Wait()
			assert.Equal(t, c.took, time.Since(begun))
			assert.EqualValues(t, c.held, held.Load())
			assert.Equal(t, c.peak, tier.Endpoints()[0].Peak())
		}
	})
}

// A request that still waits for a turn at the end of the run gets none.
func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Requests = 1
		tier := open(t, c)
		require.NoError(t, d.SetRules(s3test.Rule{Key: "/[0-9a-f]{2}/", Fault: s3test.Fault{
			Kind: s3test.Delay, HeaderDelay: (5 * time.Second)}}))
		put := func(ctx context.Context, key string) error {
			o := tiers.Object{Key: key, Gen: 1, Size: 30_000}
			_, err := tier.Put(ctx, o, body(o), func(tiers.Chunk) {})
			return err
		}
		var all sync.WaitGroup
		all.Go(func() { assert.NoError(t, put(t.Context(), "first")) })
		<-time.After(time.Second)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		assert.ErrorIs(t, put(ctx, "second"), context.DeadlineExceeded)
		all.Wait()
		assert.NoError(t, put(t.Context(), "third"))
	})
}
