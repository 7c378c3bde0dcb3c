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
)

// TestWatchParent: the run ends once when the go command that started it dies, while it runs itself;
// any other parent may end, as the shell of a detached run does.
func TestWatchParent(t *testing.T) {
	for _, c := range []struct {
		isGo, stopped bool
		want          int64
	}{{true, false, 1}, {false, false, 0}, {true, true, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var parent, gone atomic.Int64
			parent.Store(500)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			watchParent(ctx, func() int { return int(parent.Load()) },
				func(int) bool { return c.isGo }, func() { gone.Add(1) })
			<-time.After(time.Hour) // virtual
			assert.Zero(t, gone.Load(), "its parent lives")
			if c.stopped {
				stop()
				synctest.Wait()
			}
			parent.Store(1)
			<-time.After(parentPoll + 1)
			assert.Equal(t, c.want, gone.Load(), c)
			<-time.After(time.Hour)
			assert.Equal(t, c.want, gone.Load(), "once")
		})
	}
}

// TestExitCodes: a signal decides, also where something else has ended the run before it came.
func TestExitCodes(t *testing.T) {
	s := &session{}
	s.ctx, s.cancel = context.WithCancelCause(t.Context())
	assert.Equal(t, 7, s.exitCode(7))
	s.cancel(kvbench.Interrupted{Why: errParentGone})
	assert.Equal(t, 143, s.exitCode(1))
	s.signal.Store(int64(syscall.SIGINT))
	assert.Equal(t, 130, s.exitCode(1))
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
			var calls []string
			ends := make(chan syscall.Signal, 1)
			go func() {
				ends <- twoSignals(got,
					func(s syscall.Signal) { calls = append(calls, s.String()) },
					func() { calls = append(calls, "last words") })
			}()
			got <- syscall.SIGINT
			synctest.Wait()
			<-time.After(c.after)
			got <- c.second
			<-time.After(time.Hour)
			got <- syscall.SIGQUIT
			assert.Equal(t, c.ends, <-ends, c.what)
			assert.Equal(t, []string{syscall.SIGINT.String(), "last words"}, calls)
		})
	}
}
