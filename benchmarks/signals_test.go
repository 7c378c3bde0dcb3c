package benchmarks

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// watched tells how often watchParent says that its parent, process 500, is gone.
func watched(t *testing.T, isGo bool) (parent *atomic.Int64, gone *atomic.Int64, stop func()) {
	parent, gone = new(atomic.Int64), new(atomic.Int64)
	parent.Store(500)
	ctx, stop := context.WithCancel(t.Context())
	watchParent(ctx, func() int { return int(parent.Load()) }, func(int) bool { return isGo },
		func() { gone.Add(1) })
	return parent, gone, stop
}

func TestWatchParentEndsWithTheGoCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, gone, stop := watched(t, true)
		defer stop()
		<-time.After(time.Hour) // virtual
		assert.Zero(t, gone.Load(), "it lives as long as its parent")
		parent.Store(1)
		<-time.After(parentPoll + 1)
		assert.EqualValues(t, 1, gone.Load())
		<-time.After(time.Hour)
		assert.EqualValues(t, 1, gone.Load(), "which is told once")
	})
}

func TestWatchParentIgnoresOtherParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, gone, stop := watched(t, false)
		defer stop()
		parent.Store(1) // the shell of a detached run has gone
		<-time.After(time.Minute)
		assert.Zero(t, gone.Load())
	})
}

func TestWatchParentEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, gone, stop := watched(t, true)
		stop()
		synctest.Wait() // the bubble fails if the watching goroutine stays
		parent.Store(1)
		<-time.After(time.Minute)
		assert.Zero(t, gone.Load())
	})
}
