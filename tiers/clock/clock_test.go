package clock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/clock"
)

// both runs a program on both clocks, with the same expected results.
func both(t *testing.T, program func(t *testing.T, c clock.Clock)) {
	t.Helper()
	t.Run("wall", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { program(t, clock.NewWall()) })
	})
	t.Run("virtual", func(t *testing.T) { program(t, clock.NewVirtual()) })
}

// synctestWait waits until the goroutines that wake at the present moment have run.
func synctestWait(c clock.Clock) {
	if _, wall := c.(*clock.Wall); wall {
		synctest.Wait()
	}
}

var errOver = errors.New("it is over")

func TestSleepersWakeInTheirTime(t *testing.T) {
	both(t, func(t *testing.T, c clock.Clock) {
		ctx, cancel := context.WithCancelCause(t.Context())
		var mu sync.Mutex
		var log []string
		note := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, fmt.Sprintf(format, args...))
		}
		for _, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second} {
			c.Go(func() {
				assert.NoError(t, c.Sleep(ctx, d))
				note("slept %v at %v", d, c.Now())
			})
		}
		c.At(1500*time.Millisecond, func() { note("called at %v", c.Now()) })
		c.Go(func() { note("for ever until %v", c.Sleep(ctx, clock.Never)) })
		require.NoError(t, c.Sleep(ctx, 3*time.Second))
		assert.Equal(t, 3*time.Second, c.Now())
		synctestWait(c)
		cancel(errOver)
		c.Wait()
		assert.Equal(t, []string{"slept 1s at 1s", "called at 1.5s", "slept 2s at 2s",
			"slept 3s at 3s", "for ever until it is over"}, log)
		assert.ErrorIs(t, c.Sleep(ctx, time.Second), errOver)
	})
}

func TestAnEventLetsAllWhoWaitGoOn(t *testing.T) {
	both(t, func(t *testing.T, c clock.Clock) {
		ctx, cancel := context.WithCancelCause(t.Context())
		fired, never := c.NewEvent(), c.NewEvent()
		for range 3 {
			c.Go(func() {
				assert.NoError(t, fired.Wait(ctx))
				assert.Equal(t, time.Second, c.Now())
			})
			c.Go(func() { assert.ErrorIs(t, never.Wait(ctx), errOver) })
		}
		c.At(time.Second, func() { fired.Fire(); fired.Fire() })
		require.NoError(t, fired.Wait(ctx))
		assert.True(t, fired.Fired())
		assert.NoError(t, fired.Wait(ctx), "also those who come later")
		cancel(errOver)
		c.Wait()
		assert.NoError(t, fired.Wait(ctx), "what has happened counts, though the context has ended")
		assert.False(t, never.Fired())
	})
}

func TestACondWakesWhoLookAgain(t *testing.T) {
	both(t, func(t *testing.T, c clock.Clock) {
		var mu sync.Mutex
		cond := c.NewCond(&mu)
		left, taken, over := 0, 0, false
		for range 4 {
			c.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				for !over {
					if left == 0 {
						cond.Wait()
						continue
					}
					left--
					taken++
					cond.Signal() // there may be more
				}
			})
		}
		for range 5 {
			require.NoError(t, c.Sleep(t.Context(), time.Second))
			mu.Lock()
			left += 3
			cond.Signal()
			mu.Unlock()
		}
		require.NoError(t, c.Sleep(t.Context(), time.Second))
		mu.Lock()
		over = true
		cond.Broadcast()
		mu.Unlock()
		c.Wait()
		assert.Equal(t, 6*time.Second, c.Now())
		assert.Equal(t, 15, taken)
	})
}

func TestEveryTicksUntilItsContextEnds(t *testing.T) {
	both(t, func(t *testing.T, c clock.Clock) {
		ctx, cancel := context.WithCancel(t.Context())
		ticks := 0
		c.Every(ctx, time.Second, func() { ticks++ })
		c.Go(func() { _ = c.Sleep(t.Context(), 10500*time.Millisecond) })
		require.NoError(t, c.Sleep(t.Context(), 4500*time.Millisecond))
		cancel()
		c.Wait()
		assert.Equal(t, 4, ticks)
	})
}

// Where wall time would wait for ever, virtual time returns ErrStill.
func TestVirtualTimeStandsStill(t *testing.T) {
	v := clock.NewVirtual()
	ctx, cancel := context.WithCancelCause(t.Context())
	watched := 0
	v.Every(ctx, time.Second, func() { watched++ })
	v.Go(func() { assert.ErrorIs(t, v.NewEvent().Wait(ctx), errOver) })
	assert.False(t, v.Still())
	require.NoError(t, v.Sleep(ctx, time.Hour), "who sleeps for a time wakes all the same")
	assert.Equal(t, time.Hour, v.Now())
	assert.True(t, v.Still())
	require.ErrorIs(t, v.Sleep(ctx, clock.Never), clock.ErrStill)
	assert.Zero(t, watched, "watching alone keeps nothing going")
	cancel(errOver)
	v.Wait()
}

// A context that ends in virtual time ends waits when no event is left.
func TestVirtualTimeNoticesTheEndOfAContext(t *testing.T) {
	v := clock.NewVirtual()
	ctx, cancel := context.WithCancelCause(t.Context())
	freed := v.NewEvent()
	v.Go(func() {
		assert.ErrorIs(t, v.NewEvent().Wait(ctx), errOver)
		freed.Fire()
	})
	v.At(time.Minute, func() { cancel(errOver) })
	require.NoError(t, freed.Wait(t.Context()))
	assert.Equal(t, time.Minute, v.Now())
	v.Wait()
}

// Events at the same time happen in the order of their creation. Coroutines whose events fire together
// continue in the order of their waits.
func TestVirtualTimeKeepsItsOrder(t *testing.T) {
	v := clock.NewVirtual()
	var log []int
	a, b := v.NewEvent(), v.NewEvent()
	for i, e := range []clock.Event{a, b, a, b} {
		v.Go(func() {
			assert.NoError(t, e.Wait(t.Context()))
			log = append(log, i)
		})
	}
	for i := range 3 {
		v.Go(func() {
			assert.NoError(t, v.Sleep(t.Context(), time.Second))
			log = append(log, 10+i)
		})
	}
	v.At(2*time.Second, func() { b.Fire(); a.Fire() })
	v.At(time.Second, func() { log = append(log, 20) })
	v.Wait()
	assert.Equal(t, []int{20, 10, 11, 12, 0, 1, 2, 3}, log)
}
