package benchmarks

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
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

// TestExitCodes: a signal decides, also where something else has ended the run before it was heard.
func TestExitCodes(t *testing.T) {
	ctx, came := withSignal(t.Context())
	ctx, cancel := context.WithCancelCause(ctx)
	assert.Equal(t, 7, interruptedCode(ctx, 7))
	cancel(kvbench.Interrupted{Why: errParentGone})
	assert.Equal(t, 143, interruptedCode(ctx, 1))
	came.Store(int64(syscall.SIGINT))
	assert.Equal(t, 130, interruptedCode(ctx, 1))
}

func TestASecondSignalIsAnotherOne(t *testing.T) {
	for _, c := range []struct {
		what   string
		second syscall.Signal
		after  time.Duration
		ends   syscall.Signal
	}{
		{"pressed twice", syscall.SIGINT, echo, syscall.SIGINT},
		{"sent twice, as timeout(1) does", syscall.SIGINT, 0, syscall.SIGQUIT},
		{"another one at once", syscall.SIGTERM, 0, syscall.SIGTERM},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := make(chan os.Signal, 2)
			var told []string
			ends := make(chan syscall.Signal, 1)
			go func() {
				ends <- twoSignals(got,
					func(s syscall.Signal) { told = append(told, s.String()) },
					func() { told = append(told, "last words") })
			}()
			got <- syscall.SIGINT
			synctest.Wait()
			<-time.After(c.after)
			got <- c.second
			<-time.After(time.Hour)
			got <- syscall.SIGQUIT
			assert.Equal(t, c.ends, <-ends, c.what)
			assert.Equal(t, []string{syscall.SIGINT.String(), "last words"}, told)
		})
	}
}

// TestASignalWhileTheParametersAreChecked ends the run with its exit code; what is wrong with the
// parameters is told elsewhere.
func TestASignalWhileTheParametersAreChecked(t *testing.T) {
	ctx, came := withSignal(t.Context())
	s := &session{}
	var cancel context.CancelCauseFunc
	s.ctx, cancel = context.WithCancelCause(ctx)
	_, is := s.unchecked(nil)
	assert.False(t, is)
	_, is = s.unchecked(params.Violations{"-x: must be y"})
	assert.False(t, is)
	code, is := s.unchecked(unanswered("a disk", time.Minute, time.Second))
	assert.True(t, is)
	assert.Equal(t, exitFailed, code)
	came.Store(int64(syscall.SIGTERM))
	cancel(kvbench.Interrupted{Why: stopped{syscall.SIGTERM}})
	code, is = s.unchecked(context.Cause(s.ctx))
	assert.True(t, is)
	assert.Equal(t, 143, code)
}
