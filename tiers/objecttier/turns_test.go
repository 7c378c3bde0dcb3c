package objecttier_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/objecttier/s3test"
)

// An engine with two threads for its store: of five requests that come together two are with the
// store at a time, and the others report that they were held back. Plain I/O is not.
func TestAnEngineHasSoManyThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, c := inBubble(t, 1)
		c.Requests = 2
		tier := open(t, c)
		require.NoError(t, d.SetRules(s3test.Rule{Key: "/[0-9a-f]{2}/", Fault: s3test.Fault{
			Kind: s3test.Delay, HeaderDelay: (time.Second)}}))
		tier.ResetPeaks()
		// together moves five objects of a name, and says how long it took and who was held back.
		together := func(name string, move func(o tiers.Object, done tiers.ChunkFunc) error) (
			took, held time.Duration) {
			var all sync.WaitGroup
			var mu sync.Mutex
			begun := time.Now()
			for i := range 5 {
				o := tiers.Object{Key: fmt.Sprint(name, i), Gen: 1, Size: 30_000}
				all.Go(func() {
					assert.NoError(t, move(o, func(c tiers.Chunk) {
						mu.Lock()
						defer mu.Unlock()
						held += c.Held
					}))
				})
			}
			all.Wait()
			return time.Since(begun), held
		}
		put := func(to tiers.Streamer) func(tiers.Object, tiers.ChunkFunc) error {
			return func(o tiers.Object, done tiers.ChunkFunc) error {
				_, err := to.Put(t.Context(), o, body(o), done)
				return err
			}
		}
		get := func(from tiers.Streamer) func(tiers.Object, tiers.ChunkFunc) error {
			return func(o tiers.Object, done tiers.ChunkFunc) error {
				_, err := from.Get(t.Context(), o, []tiers.Buffer{{B: make([]byte, 8192)}},
					func([]byte, int64) error { return nil }, done)
				return err
			}
		}
		took, held := together("a", put(tier))
		assert.Equal(t, 3*time.Second, took)
		assert.Equal(t, 4*time.Second, held, "two waited for one second, one for two")
		took, held = together("a", get(tier))
		assert.Equal(t, 3*time.Second, took)
		assert.Equal(t, 4*time.Second, held)
		took, _ = together("a", func(o tiers.Object, _ tiers.ChunkFunc) error {
			_, err := tier.Lookup(t.Context(), o)
			return err
		})
		assert.Equal(t, 3*time.Second, took)
		assert.Equal(t, 2, tier.Endpoints()[0].Peak())

		took, held = together("b", put(tier.Unbounded()))
		assert.Equal(t, time.Second, took)
		assert.Zero(t, held)
		took, _ = together("b", get(tier.Unbounded()))
		assert.Equal(t, time.Second, took)
		assert.Equal(t, 5, tier.Endpoints()[0].Peak())
	})
}

// Who waits for a turn when the run ends goes, and takes none.
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
