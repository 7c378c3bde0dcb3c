package benchmarks

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWatchParentEndsWithTheGoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(500)
		ctx, cancel := watchParentOf(t.Context(), func() int { return int(parent.Load()) },
			func(pid int) bool { return pid == 500 })
		defer cancel()

		<-time.After(time.Hour) // virtual
		require.NoError(t, ctx.Err(), "it lives as long as its parent")
		died := time.Now()
		parent.Store(1)
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), errParentGone)
		assert.LessOrEqual(t, time.Since(died), parentPoll)
	})
}

func TestWatchParentIgnoresOtherParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(500)
		ctx, cancel := watchParentOf(t.Context(), func() int { return int(parent.Load()) },
			func(int) bool { return false })
		parent.Store(1) // the shell of a detached run has gone
		<-time.After(time.Minute)
		require.NoError(t, ctx.Err())
		cancel()
		assert.ErrorIs(t, context.Cause(ctx), context.Canceled)
	})
}

func TestWatchParentEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, stop := context.WithCancel(t.Context())
		ctx, cancel := watchParentOf(outer, func() int { return 500 },
			func(int) bool { return true })
		defer cancel()
		stop()
		<-ctx.Done()
		assert.ErrorIs(t, context.Cause(ctx), context.Canceled)
		synctest.Wait() // the bubble fails if the watching goroutine stays
	})
}
