package objecttier

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// turns limits the requests in flight, like the threads of an engine. Requests get turns in FIFO order.
// nil is no limit. A request that waits for a turn is in the tier, not in the store.
type turns chan struct{}

// leave gives the turn to the longest waiting request.
func (t turns) leave() {
	if t != nil {
		<-t
	}
}

// take waits for a turn, and returns the time of the wait. It fails if ctx ends.
func (t turns) take(ctx context.Context, clk clock.Clock) (held time.Duration, err error) {
	if t == nil {
		return 0, nil
	}
	begun := clk.Now()
	select {
	case t <- struct{}{}:
		return clk.Now() - begun, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// parallel calls do for i from 0 to n-1, in this order, with up to atOnce calls at a time. After a
// failure it starts no more calls, cancels the context of the running calls, waits for them and returns
// the failure. A panic becomes a PanicError.
func parallel(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	one := func(ctx context.Context, i int) (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &tiers.PanicError{Value: v, Stack: debug.Stack()}
			}
		}()
		return do(ctx, i)
	}
	if n == 1 {
		return one(ctx, 0)
	}
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := 0; i < n && each.Err() == nil; i++ {
		group.Go(func() error { return one(each, i) })
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}
