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
		lookup := func(ctx context.Context, _ tiers.Tier, o tiers.Object, _ func(tiers.Chunk)) error {
			_, err := tier.Lookup(ctx, o)
			return err
		}
		own := func() tiers.Tier { return tier }
		plain := func() tiers.Tier { return tier.Plain(tiers.Buffer{B: make([]byte, 8192)}) }
		// With the bound, two requests wait for one second, and one for two seconds.
		for _, c := range []struct {
			name       string
			move       func(context.Context, tiers.Tier, tiers.Object, func(tiers.Chunk)) error
			via        func() tiers.Tier
			took, held time.Duration
			peak       int
		}{
			{"a", put, own, 3 * time.Second, 4 * time.Second, 2},
			{"a", check, own, 3 * time.Second, 4 * time.Second, 2},
			{"a", lookup, own, 3 * time.Second, 0, 2}, // a lookup reports nothing
			{"b", put, plain, time.Second, 0, 5},
			{"b", check, plain, time.Second, 0, 5},
		} {
			tier.ResetPeaks()
			var all sync.WaitGroup
			var held atomic.Int64
			begun := time.Now()
			for i := range 5 {
				o := tiers.Object{Key: fmt.Sprint(c.name, i), Gen: 1, Size: 30_000}
				all.Go(func() {
					assert.NoError(t, c.move(t.Context(), c.via(), o, func(c tiers.Chunk) { held.Add(int64(c.Held)) }))
				})
			}
			all.Wait()
			assert.Equal(t, c.took, time.Since(begun))
			assert.EqualValues(t, c.held, held.Load())
			assert.Equal(t, c.peak, tier.Endpoints()[0].Peak())
		}
		// A request that still waits at the end of its context gets no turn.
		for i := range 3 {
			go func() { _ = put(t.Context(), tier, tiers.Object{Key: fmt.Sprint("c", i), Size: 1}, nil) }()
		}
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Second/2)
		defer stop()
		late := tiers.Object{Key: "late", Size: 1}
		assert.ErrorIs(t, put(ctx, tier, late, nil), context.DeadlineExceeded)
		<-time.After(2 * time.Second)
		assert.NoError(t, put(t.Context(), tier, late, nil))
	})
}
