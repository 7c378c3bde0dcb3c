package kvbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
	"kvbench/tiers/ioengine"
)

// The kernel does not release a thread before the storage has completed its call, and no signal
// changes that. So a trial runs in plain order in a goroutine of its own, and blocks where the
// storage blocks it. The caller's goroutine is the watchdog: once a second it looks at the calls in
// flight (requests, calls on files and directories, reads of an input, the removal of files), shows
// them on the live line, and ends the trial when one takes longer than StorageConfig.IOTimeout.
//
// When the caller's context or such a call ends a trial, it has the following times. At once no
// more requests are submitted, and those in flight are not waited for before the result is made.
type grace struct {
	// drain: the result is made from the counters, if the trial has not come to that by then.
	drain time.Duration
	// publish: the result's directory is not waited for any longer, from the result on. The files
	// have to be removed, too, and the caller has the result.
	publish time.Duration
	// remove: the removal of files stops, between two of them. The next run removes the others.
	remove time.Duration
	// abandon: the watchdog returns, and leaves the trial's goroutine in the call that blocks it.
	// The process can end in order. The kernel keeps it until the storage has completed the call.
	abandon time.Duration
}

// README promises the result within 0.5 s and the end of the process within 2 s, half a second of
// which are for what the caller prints. A user who attends a run sees what it waits for, and ends
// it with a second signal.
var (
	unattended = grace{200 * time.Millisecond, time.Second, 1400 * time.Millisecond,
		1500 * time.Millisecond}
	attended = grace{200 * time.Millisecond, 10 * time.Second, clock.Never, clock.Never}
)

// watchdog is the state of the watchdog, and of the trial's end.
type watchdog struct {
	// rush ends when the trial has to end soon: with the caller's context, or by hurry.
	rush     context.Context
	hurry    context.CancelCauseFunc
	removing context.Context // ends when the removal of files has to stop

	opened    atomic.Bool   // the storage is
	finishing atomic.Bool   // the result is being made, or has been
	finished  chan struct{} // closed when it has been published

	mu          sync.Mutex
	res         *result.Result
	failure     error // of the trial
	unpublished error
	errs        []error // further ones
}

func (w *watchdog) begin(ctx context.Context) (stop func()) {
	w.finished = make(chan struct{})
	w.rush, w.hurry = context.WithCancelCause(ctx)
	removing, end := w.after(func(g grace) time.Duration { return g.remove })
	w.removing = removing
	return func() { end(); w.hurry(nil) }
}

// after returns a context that ends some time after the trial has to end.
func (w *watchdog) after(part func(grace) time.Duration) (context.Context, func()) {
	return After(w.rush, func(cause error) time.Duration {
		if i := (Interrupted{}); errors.As(cause, &i) && i.Attended {
			return part(attended)
		}
		return part(unattended)
	})
}

// After returns a context that ends some time after another one has, or after this call if that is
// later. It ends with the cause of the other one.
func After(ctx context.Context, wait func(cause error) time.Duration) (context.Context, func()) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		time.AfterFunc(wait(cause), func() { end(cause) })
	})
	return longer, func() { stop(); end(nil) }
}

// note adds an error to what Run returns.
func (w *watchdog) note(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, err)
	}
}

// Interrupted is the cause with which a caller cancels Run's context when a signal ended the run:
// the result is then marked incomplete. Attended selects the times of a run whose user watches it.
type Interrupted struct {
	Why      error
	Attended bool
}

func (i Interrupted) Error() string { return "interrupted: " + i.Why.Error() }

// Unwrap returns what interrupted the run.
func (i Interrupted) Unwrap() error { return i.Why }

// ErrUnanswered is in the error of a trial that ended because a device did not answer for
// StorageConfig.IOTimeout, and of a result whose directory did not answer.
var ErrUnanswered = errors.New("the storage does not answer")

// Unanswered returns the error for something that has not answered within -io-timeout.
func Unanswered(what string, silent, limit time.Duration) error {
	return fmt.Errorf("%w: %s, for %s, longer than -io-timeout %s: the kernel log (dmesg) may "+
		"say why; processes that wait for it end only when it answers, or is aborted",
		ErrUnanswered, what, silent.Round(time.Millisecond), limit)
}

// Abandoned is in the error of a trial whose goroutine is in calls that the storage has not
// completed.
type Abandoned struct{ Calls []ioengine.Stuck }

func (a Abandoned) Error() string {
	what, age := oldest(a.Calls)
	return fmt.Sprintf("the kernel keeps this process until the storage has completed the %s, "+
		"which is in flight for %s", what, age.Round(time.Second/10))
}

// Unpublished is in the error of a trial whose result was not written, or may not have been.
type Unpublished struct{ Why error }

func (u Unpublished) Error() string { return "writing the result: " + u.Why.Error() }

// Unwrap returns why.
func (u Unpublished) Unwrap() error { return u.Why }

// oldest names the oldest of some calls, and how many others there are.
func oldest(calls []ioengine.Stuck) (what string, age time.Duration) {
	first := slices.MaxFunc(calls,
		func(a, b ioengine.Stuck) int { return cmp.Compare(a.For, b.For) })
	if n := len(calls) - 1; n > 0 {
		return fmt.Sprintf("%s (and of %d others)", first, n), first.For
	}
	return first.String(), first.For
}

// Guard runs work, which may block in the kernel, in a goroutine and calls look at each interval. It returns false when ctx ends before work: work continues then, and the caller
// must not read what it writes.
func Guard(ctx context.Context, interval time.Duration, look, work func()) (ended bool) {
	done := make(chan struct{})
	go func() { defer close(done); work() }()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return false
		case <-tick.C:
			look()
		}
	}
}

// guard runs the trial, and returns when it has ended or is abandoned.
func (t *trial) guard(ctx context.Context) {
	drained, stop := t.after(func(g grace) time.Duration { return g.drain })
	defer stop()
	defer context.AfterFunc(drained, t.finish)()
	abandoned, stop := t.after(func(g grace) time.Duration { return g.abandon })
	defer stop()
	// Eight times in IOTimeout: the trial ends an eighth late at most.
	interval := time.Second
	if limit := t.cfg.Storage.IOTimeout; limit > 0 {
		interval = min(interval, max(limit/8, time.Millisecond))
	}
	if Guard(abandoned, interval, t.look, func() { t.run(ctx) }) {
		return
	}
	t.finish() // which may be in progress
	t.live.close()
	if _, failure := t.ended(); !t.opened.Load() {
		t.note(cmp.Or(failure, context.Cause(ctx)))
	}
	if calls := t.stuck(unattended.abandon / 2); len(calls) > 0 {
		t.note(Abandoned{calls})
	}
}

// look looks at the calls in flight.
func (t *trial) look() {
	limit := t.cfg.Storage.IOTimeout
	if limit > 0 && t.cfg.Storage.Bucket == nil && t.rush.Err() == nil { // a store has time-outs of its own
		if calls := t.stuck(limit); len(calls) > 0 {
			what, age := oldest(calls)
			err := Unanswered(what, age, limit)
			t.Fail(err, result.EndedByError)
			t.hurry(err)
		}
	}
	t.redraw()
}

// stuck returns the calls of the engine, and the read of the input, that have been in flight for
// longer than the limit.
func (t *trial) stuck(limit time.Duration) (all []ioengine.Stuck) {
	t.mu.Lock()
	engine := t.engine
	t.mu.Unlock()
	if engine != nil {
		all = engine.Stuck(nil, limit)
	}
	if t.counted != nil {
		if path, since := t.counted.Waits(); since > limit {
			all = append(all, ioengine.Stuck{What: "reading", Path: path, For: since})
		}
	}
	return all
}

// finish makes the result and publishes it. The first call counts, and others wait for it: the
// trial's own when its load is over, or the watchdog's when the trial does not come to that.
func (t *trial) finish() {
	if !t.opened.Load() {
		return // without storage there was no trial
	}
	if !t.finishing.CompareAndSwap(false, true) {
		<-t.finished
		return
	}
	defer close(t.finished)
	by, failure := t.ended()
	if by == "" && failure == nil {
		t.Fail(context.Cause(t.rush), result.EndedBySignal)
		by, failure = t.ended()
	}
	res := t.conclude(by, failure)
	t.mu.Lock()
	t.res, t.failure = res, failure
	t.mu.Unlock()
	if failure == nil && res.Status == result.StatusFailed { // nothing completed, too much failed
		t.note(errors.New(res.Error))
	}
	t.publish(res)
}

// publish calls Config.Publish. If the results directory hangs, publish stops waiting; Publish
// continues and may succeed.
func (t *trial) publish(res *result.Result) {
	c := t.cfg
	if c.Publish == nil {
		return
	}
	published := false
	work := func() {
		err := c.Publish(res)
		t.mu.Lock()
		defer t.mu.Unlock()
		published, t.unpublished = true, err
	}
	if t.sim != nil { // virtual time has one thread
		work()
		return
	}
	t.stage("writing the result to " + c.PublishTo)
	ctx, stop := t.after(func(g grace) time.Duration { return g.publish })
	defer stop()
	if timeout := c.Storage.IOTimeout; timeout > 0 {
		ctx, stop = context.WithTimeout(ctx, max(timeout, attended.publish)) // a result takes many calls
		defer stop()
	}
	began := time.Now()
	Guard(ctx, time.Minute, func() {}, work)
	t.stage(waiting)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !published {
		t.unpublished = fmt.Errorf("%w: %s, for %s, and the run stopped waiting for it",
			ErrUnanswered, c.PublishTo, time.Since(began).Round(time.Second/10))
	}
}

// returns is what Run returns.
func (t *trial) returns() (*result.Result, error) {
	_, late := t.ended()
	t.mu.Lock()
	defer t.mu.Unlock()
	errs := append([]error{t.failure}, t.errs...)
	if t.unpublished != nil {
		errs = append(errs, Unpublished{t.unpublished})
	}
	if t.res != nil && t.failure == nil && errors.Is(late, ErrUnanswered) { // the result stays
		errs = append(errs, fmt.Errorf("after the result was written: %w", late))
	}
	return t.res, errors.Join(errs...)
}
