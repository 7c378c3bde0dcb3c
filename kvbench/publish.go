package kvbench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
)

// How long an ended trial waits for its result to be written. A directory that answers takes
// milliseconds, or as long as a flush concurrent with the workers' last requests. The live line
// shows the wait. publishAttended is also the least effect of StorageConfig.IOTimeout here, because
// a result takes many calls.
const (
	publishOnSignal = time.Second
	publishAttended = 10 * time.Second
)

// slowPublishing is the time after which writing becomes a stage of its own on the live line.
const slowPublishing = 500 * time.Millisecond

// errSlowPublishing is the cause of a stopped wait without a signal.
var errSlowPublishing = errors.New("the results directory does not answer")

// publish calls Config.Publish. If the results directory hangs, it stops waiting and calls
// Unpublished at once, because the trial's files have to be removed, too. Publish continues and may
// succeed: failed returns its error so far.
func (t *trial) publish(ctx context.Context, res *result.Result) (failed func() error) {
	c := t.cfg
	if c.Publish == nil {
		return func() error { return nil }
	}
	var outcome atomic.Pointer[error] // nil before there is one
	work := func() error {
		err := c.Publish(res)
		outcome.Store(&err)
		return err
	}
	var abandoned error
	if t.sim != nil { // virtual time has one thread
		_ = work()
	} else if abandoned = t.awaitPublishing(ctx, work); abandoned != nil && c.Unpublished != nil {
		c.Unpublished(res, abandoned)
	}
	return func() error {
		err := abandoned
		if o := outcome.Load(); o != nil {
			err = *o
		}
		if err != nil {
			err = fmt.Errorf("writing the result: %w", err)
		}
		return err
	}
}

// awaitPublishing waits for work, which publishes. The error says why it stopped waiting.
func (t *trial) awaitPublishing(ctx context.Context, work func() error) error {
	limit := clock.Never
	if timeout := t.cfg.Storage.IOTimeout; timeout > 0 {
		limit = max(timeout, publishAttended)
	}
	limited, stop := context.WithTimeoutCause(ctx, limit, errSlowPublishing)
	defer stop()
	began := time.Now()
	grace := func(ctx context.Context) time.Duration {
		switch {
		case errors.Is(context.Cause(ctx), errSlowPublishing):
			return 0
		case patience(ctx) == clock.Never: // a user attends the run
			return publishAttended
		}
		return publishOnSignal
	}
	show := func() Snapshot {
		if time.Since(began) < slowPublishing {
			return Snapshot{}
		}
		return stage("writing the result to " + t.cfg.PublishTo)()
	}
	if ended, _ := t.await(limited, grace, show, work); ended {
		return nil
	}
	return fmt.Errorf("%w: %s, for %s, and the run stopped waiting for it", ErrUnanswered,
		t.cfg.PublishTo, time.Since(began).Round(time.Second/10))
}
