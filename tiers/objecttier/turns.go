package objecttier

import (
	"context"
	"errors"
	"sync"
	"time"

	"kvbench/tiers/clock"
)

// turns let so many requests go to the store at a time, in the order in which they ask; nil: all of
// them. An engine has so many threads for its store: what waits for one is inside of the tier, and
// not with the store.
type turns chan struct{}

// newTurns are those of n threads, 0: of as many as there are requests.
func newTurns(n int) turns {
	if n == 0 {
		return nil
	}
	return make(turns, n)
}

// leave gives a turn to who has waited longest.
func (t turns) leave() {
	if t != nil {
		<-t
	}
}

// take takes a turn, and says for how long the request was held back. It fails when nobody waits
// for it any more.
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

// beside does n things in their order, so many at once, and returns the first failure, after which
// nothing new begins and what is under way is cancelled. All have ended when it returns. A panic of
// one is the caller's.
func beside(ctx context.Context, n, atOnce int, do func(ctx context.Context, worker, i int) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	next := 0
	var failure error
	var panicked any
	take := func() (i int) {
		mu.Lock()
		defer mu.Unlock()
		if next == n || failure != nil {
			return -1
		}
		next++
		return next - 1
	}
	var all sync.WaitGroup
	work := func(worker int) {
		defer func() {
			if v := recover(); v != nil {
				mu.Lock()
				panicked, failure = v, errors.New("panic")
				mu.Unlock()
				cancel(failure)
			}
		}()
		for i := take(); i >= 0; i = take() {
			if err := do(ctx, worker, i); err != nil {
				mu.Lock()
				if failure == nil {
					failure = err
				}
				mu.Unlock()
				cancel(err)
				return
			}
		}
	}
	for w := 1; w < min(n, atOnce); w++ {
		all.Go(func() { work(w) })
	}
	work(0)
	all.Wait()
	if panicked != nil {
		panic(panicked)
	}
	return failure
}
