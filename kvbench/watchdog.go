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

// grace has the deadlines of a trial that the caller's context or a call without answer ends, counted
// from that end. From the end on the trial submits no more requests, and makes the result without
// waiting for requests in flight.
//
// The kernel releases a thread only when the storage has completed its system call; a signal does not
// help. So the trial runs in a goroutine of its own and may block. The caller's goroutine is the
// watchdog. Once a second the watchdog reads the list of calls in flight: requests, calls on files and
// directories, reads of an input, the removal of files. It shows them on the live line, and ends the
// trial if a call takes longer than StorageConfig.IOTimeout.
type grace struct {
	// drain: after this time the watchdog makes the result from the counters, if the trial has not.
	drain time.Duration
	// publish: after this time the trial no longer waits for Config.Publish. The caller has the Result,
	// and the files have to be removed.
	publish time.Duration
	// remove: after this time the removal of files stops. The next run removes the remaining files.
	remove time.Duration
	// abandon: after this time the watchdog returns. The trial's goroutine stays in the call that
	// blocks. The process can then exit, but the kernel keeps it until the storage has completed the
	// call.
	abandon time.Duration
}

// The README promises the result within 0.5 s of a signal and the end of the process within 2 s. The
// caller has half a second of that for its output. The user of an attended run sees on the live line
// what the run waits for, and can end it with a second signal.
var (
	unattended = grace{200 * time.Millisecond, time.Second, 1400 * time.Millisecond,
		1500 * time.Millisecond}
	attended = grace{200 * time.Millisecond, 10 * time.Second, clock.Never, clock.Never}
)

// watchdog is the state of the watchdog, and of the trial's end.
type watchdog struct {
	// rush ends with the caller's context, or when hurry is called. From then on the grace counts.
	rush     context.Context
	hurry    context.CancelCauseFunc
	removing context.Context // ends when the removal of files has to stop

	opened    atomic.Bool   // the storage is open
	finishing atomic.Bool   // finish has begun to make the result
	finished  chan struct{} // closed when finish has published the result

	mu          sync.Mutex
	res         *result.Result
	failure     error   // the error that ended the trial
	unpublished error   // why the result is not written
	errs        []error // further errors
}

func (w *watchdog) begin(ctx context.Context) (stop func()) {
	w.finished = make(chan struct{})
	w.rush, w.hurry = context.WithCancelCause(ctx)
	removing, end := w.after(func(g grace) time.Duration { return g.remove })
	w.removing = removing
	return func() { end(); w.hurry(nil) }
}

// after returns a context that ends a part of the grace after rush.
func (w *watchdog) after(part func(grace) time.Duration) (context.Context, func()) {
	return After(w.rush, func(cause error) time.Duration {
		if i := (Interrupted{}); errors.As(cause, &i) && i.Attended {
			return part(attended)
		}
		return part(unattended)
	})
}

// After returns a context that ends the time wait after ctx has ended, with the same cause. If ctx has
// ended before the call, the time starts at the call.
func After(ctx context.Context, wait func(cause error) time.Duration) (context.Context, func()) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		time.AfterFunc(wait(cause), func() { end(cause) })
	})
	return longer, func() { stop(); end(nil) }
}

// note adds err to the errors that Run returns.
func (w *watchdog) note(err error) {
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.errs = append(w.errs, err)
	}
}

// Interrupted is the cause with which a caller cancels Run's context after a signal. The result is then
// incomplete. Attended selects the long deadlines for a run that a user watches.
type Interrupted struct {
	Why      error
	Attended bool
}

func (i Interrupted) Error() string { return "interrupted: " + i.Why.Error() }

// Unwrap returns Why.
func (i Interrupted) Unwrap() error { return i.Why }

// ErrUnanswered is in Run's error if a call was in flight for longer than StorageConfig.IOTimeout, or if
// Config.Publish did not return in time.
var ErrUnanswered = errors.New("the storage does not answer")

// Unanswered returns the error for a call that has been in flight for longer than -io-timeout.
func Unanswered(what string, silent, limit time.Duration) error {
	return fmt.Errorf("%w: %s, for %s, longer than -io-timeout %s: the kernel log (dmesg) may "+
		"say why; processes that wait for it end only when it answers, or is aborted",
		ErrUnanswered, what, silent.Round(time.Millisecond), limit)
}

// Abandoned is in the error of a trial that Run abandoned. Calls are the calls that the storage has not
// completed.
type Abandoned struct{ Calls []ioengine.Stuck }

func (a Abandoned) Error() string {
	what, age := oldest(a.Calls)
	return fmt.Sprintf("the kernel keeps this process until the storage has completed the %s, "+
		"which is in flight for %s", what, age.Round(time.Second/10))
}

// Unpublished is in the error of a trial whose result was not written, or perhaps not written.
type Unpublished struct{ Why error }

func (u Unpublished) Error() string { return "writing the result: " + u.Why.Error() }

// Unwrap returns Why.
func (u Unpublished) Unwrap() error { return u.Why }

// oldest returns the text and the age of the oldest call. The text also has the number of other calls.
func oldest(calls []ioengine.Stuck) (what string, age time.Duration) {
	first := slices.MaxFunc(calls,
		func(a, b ioengine.Stuck) int { return cmp.Compare(a.For, b.For) })
	if n := len(calls) - 1; n > 0 {
		return fmt.Sprintf("%s (and of %d others)", first, n), first.For
	}
	return first.String(), first.For
}

// Guard runs work in a goroutine, because work may block in the kernel, and calls look at each interval.
// It returns false if ctx ends before work returns. Then work runs on concurrently, and the caller needs
// a lock for the data of work.
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

// guard runs the trial. It returns when the trial has ended, or abandons it.
func (t *trial) guard(ctx context.Context) {
	drained, stop := t.after(func(g grace) time.Duration { return g.drain })
	defer stop()
	defer context.AfterFunc(drained, t.finish)()
	abandoned, stop := t.after(func(g grace) time.Duration { return g.abandon })
	defer stop()
	// Eight looks in IOTimeout: the trial ends at most IOTimeout/8 late.
	interval := time.Second
	if limit := t.cfg.Storage.IOTimeout; limit > 0 {
		interval = min(interval, max(limit/8, time.Millisecond))
	}
	if Guard(abandoned, interval, t.look, func() { t.run(ctx) }) {
		return
	}
	t.finish() // or wait for the finish in progress
	t.live.mu.Lock()
	t.live.over = true
	t.live.mu.Unlock()
	if _, failure := t.ended(); !t.opened.Load() {
		t.note(cmp.Or(failure, context.Cause(ctx)))
	}
	if calls := t.stuck(unattended.abandon / 2); len(calls) > 0 {
		t.note(Abandoned{calls})
	}
}

// look ends the trial if a call is in flight for longer than IOTimeout, and updates the live line.
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

// stuck returns the calls of the I/O engine and the read of the input that have been in flight for
// longer than limit.
func (t *trial) stuck(limit time.Duration) (all []ioengine.Stuck) {
	t.mu.Lock()
	engine := t.engine
	t.mu.Unlock()
	if engine != nil {
		for _, s := range engine.Stuck(nil, limit) {
			if s.For -= t.paused(s.For); s.For >= limit {
				all = append(all, s)
			}
		}
	}
	if t.counted != nil {
		if path, since := t.counted.Waits(); since-t.paused(since) > limit {
			all = append(all, ioengine.Stuck{What: "reading", Path: path, For: since})
		}
	}
	return all
}

// paused returns how long this process was paused in the last time of that length.
func (t *trial) paused(length time.Duration) time.Duration {
	if t.pauses == nil {
		return 0
	}
	return t.pauses.within(length)
}

// finish makes the result and publishes it. The trial calls finish after the load. The watchdog calls it
// if the trial is late. The first call makes the result, and a second call waits for it.
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
	if failure == nil && res.Status == result.StatusFailed { // no request completed, or too many failed
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

// returns returns the result and the joined errors of the trial, for Run.
func (t *trial) returns() (*result.Result, error) {
	_, late := t.ended()
	t.mu.Lock()
	defer t.mu.Unlock()
	errs := append([]error{t.failure}, t.errs...)
	if t.unpublished != nil {
		errs = append(errs, Unpublished{t.unpublished})
	}
	if t.res != nil && t.failure == nil && errors.Is(late, ErrUnanswered) { // the result is complete
		errs = append(errs, fmt.Errorf("after the result was written: %w", late))
	}
	return t.res, errors.Join(errs...)
}
