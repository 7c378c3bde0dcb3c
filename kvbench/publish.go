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
// milliseconds, or as long as a flush beside what the workers have still under way; who attends the
// run sees what it waits for. The longest is also the least that StorageConfig.IOTimeout means
// here, because a result takes many calls.
const (
	publishOnSignal = time.Second
	publishAttended = 10 * time.Second
)

// slowPublishing is how long it may take before it is a stage of its own.
const slowPublishing = 500 * time.Millisecond

// errSlowPublishing is the cause with which publishing is given up without a signal.
var errSlowPublishing = errors.New("the results directory does not answer")

// waiter is trial.await, or nil where nobody may wait beside the work.
type waiter func(ctx context.Context, grace func(context.Context) time.Duration,
	show func() Snapshot, work func() error) (ended bool, err error)

// publish hands the result over. Where the caller does not take it, because its directory hangs,
// that is given up, and Unpublished is told at once: the files of the trial are to be removed, too.
// What was given up may end well while that goes on: failed says so when it is asked.
func (c *Config) publish(ctx context.Context, res *result.Result, await waiter,
	patience func(context.Context) time.Duration) (failed func() error) {
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
	if await == nil {
		_ = work()
	} else if abandoned = c.awaitPublishing(ctx, await, patience, work); abandoned != nil &&
		c.Unpublished != nil {
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

// awaitPublishing waits for work, which publishes. The error says why it does so no more.
func (c *Config) awaitPublishing(ctx context.Context, await waiter,
	patience func(context.Context) time.Duration, work func() error) error {
	limit := clock.Never
	if c.Storage.IOTimeout > 0 {
		limit = max(c.Storage.IOTimeout, publishAttended)
	}
	limited, stop := context.WithTimeoutCause(ctx, limit, errSlowPublishing)
	defer stop()
	began := time.Now()
	grace := func(ctx context.Context) time.Duration {
		switch {
		case errors.Is(context.Cause(ctx), errSlowPublishing):
			return 0
		case patience(ctx) == clock.Never: // somebody attends it
			return publishAttended
		}
		return publishOnSignal
	}
	show := func() Snapshot {
		if time.Since(began) < slowPublishing {
			return Snapshot{}
		}
		return Snapshot{Stage: "writing the result to " + c.PublishTo, Free: -1}
	}
	if ended, _ := await(limited, grace, show, work); ended {
		return nil
	}
	return fmt.Errorf("%w: %s, for %s, and nobody waits for it any more", ErrUnanswered,
		c.PublishTo, time.Since(began).Round(time.Second/10))
}
