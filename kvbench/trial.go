package kvbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tracing"
	"kvbench/workloads"
)

// Interrupted is the cause with which a caller cancels Run's context when a
// signal ended the run: the result is then marked incomplete, and cleaning is
// cut short in favour of ending soon.
type Interrupted struct{ Why error }

func (i Interrupted) Error() string { return "interrupted: " + i.Why.Error() }

// Unwrap returns what interrupted the run.
func (i Interrupted) Unwrap() error { return i.Why }

// errWindowOver is the cause with which operations in flight are cancelled.
var errWindowOver = errors.New("the window is over")

// How long an interrupted run waits: for its workers before the result is
// written, and for them and the cleaning afterwards (interface.md: 0.5 s and 2 s).
const (
	drainOnSignal = 200 * time.Millisecond
	cleanOnSignal = 1200 * time.Millisecond
)

// trial is one run of one workload. It lives from Run's call to its return.
type trial struct {
	cfg      *Config
	clock    Clock
	rec      *Recorder
	stack    *stack
	dispatch *dispatcher
	src      workloads.Source
	info     RunInfo
	begun    time.Duration
	device   tracing.Device

	stop     context.CancelCauseFunc // cancels the operations
	failOnce sync.Once
	failed   chan struct{} // closed by fail
	failure  error
	endedBy  string

	startedBefore [workloads.NumClasses]int64 // requests taken before the window
}

// Run executes one trial: make the tiers, fill and precondition them, run the
// load through one exact window, drain, build the result, publish it, and
// remove what was written. It blocks until all of that is done.
//
// A run that began returns its Result even when it failed or was interrupted
// (see Result.Status); the error then says why. Only a run that could not begin
// has no Result. Run may be called again and again, but not twice at a time:
// it resets the process's peak memory and may change GOMAXPROCS meanwhile.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t, err := newTrial(&cfg)
	if err != nil {
		return nil, err
	}
	return t.run(ctx, func() *sync.WaitGroup {
		if err := t.prepare(ctx); err != nil {
			t.fail(err, endedByOf(err))
			return nil
		}
		return t.load(ctx)
	})
}

// newTrial opens the storage side.
func newTrial(cfg *Config) (*trial, error) {
	t := &trial{cfg: cfg, clock: cfg.Clock, info: cfg.Info, failed: make(chan struct{})}
	if t.clock == nil {
		t.clock = NewWallClock()
	}
	if cfg.Procs > 0 {
		cfg.Storage.SpareProcs = max(0, cfg.Procs-runtime.NumCPU())
	}
	t.begun = t.clock.Now()
	t.rec = NewRecorder(min(8, runtime.NumCPU()))
	obs := &observer{clock: t.clock, rec: t.rec, fail: t.fail}
	var err error
	t.stack, err = openStack(cfg.Storage, t.clock, obs)
	return t, err
}

// fail ends the trial with an error; the first one counts.
func (t *trial) fail(err error, endedBy string) {
	t.failOnce.Do(func() {
		t.failure, t.endedBy = err, endedBy
		close(t.failed)
	})
}

// run does the work, which returns when the window is over, with the workers
// that may still be draining; then it concludes and cleans up.
func (t *trial) run(ctx context.Context, work func() *sync.WaitGroup) (*Result, error) {
	defer t.raiseProcs()()
	t.describe()
	workers := work()
	res := t.conclude()
	var errs []error
	if t.failure != nil {
		errs = append(errs, t.failure)
	}
	if t.cfg.Publish != nil {
		if err := t.cfg.Publish(res); err != nil {
			errs = append(errs, fmt.Errorf("writing the result: %w", err))
		}
	}
	errs = append(errs, t.clean(ctx, workers))
	return res, errors.Join(errs...)
}

// endedByOf classifies an error of the preparation.
func endedByOf(err error) string {
	var sig Interrupted
	switch {
	case errors.As(err, &sig):
		return EndedBySignal
	case errors.Is(err, tiers.ErrTooLarge):
		return EndedByCapacity
	}
	return EndedByError
}

// prepare does everything that happens before the load starts.
func (t *trial) prepare(ctx context.Context) error {
	if err := t.precondition(ctx); err != nil {
		return err
	}
	if err := t.populate(ctx); err != nil {
		return err
	}
	t.say(ctx, "resting", t.cfg.Settle)
	if err := t.clock.Sleep(ctx, t.cfg.Settle); err != nil {
		return err
	}
	t.stack.cache.ResetCounters()
	src, err := t.cfg.Source()
	t.src = src
	return err
}

// load runs the workers through warm-up and window and returns when the window
// is over; the workers may still be draining.
func (t *trial) load(ctx context.Context) *sync.WaitGroup {
	opctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t.stop = stop
	_ = ResetPeakRSS() // without it the peak is that of the process, which the result then shows

	t.dispatch = newDispatcher(t.clock, t.src, t.stack.cache, t.cfg.Planner)
	full := make(<-chan struct{})
	if t.cfg.Requests > 0 {
		full = t.rec.LimitRequests(t.cfg.Requests)
	}
	if t.cfg.Warmup == 0 {
		t.openWindow()
	}
	var wg sync.WaitGroup
	for id := range t.cfg.Workers {
		w := &worker{id: id, run: t}
		wg.Go(func() { w.loop(opctx) })
	}
	side, stopSide := context.WithCancel(opctx)
	defer stopSide()
	go t.dispatch.pace(side)
	go t.watch(side)
	if t.cfg.Warmup > 0 {
		if t.until(ctx, t.cfg.Warmup, full) {
			t.openWindow()
		} else {
			t.closeWindow(ctx, &wg)
			return &wg
		}
	}
	if t.until(ctx, t.cfg.Window, full) {
		t.endedBy = EndedByDeadline
	}
	t.closeWindow(ctx, &wg)
	return &wg
}

// until waits for the given time and says whether it passed undisturbed; 0
// waits for one of the other ends. These are booked here.
func (t *trial) until(ctx context.Context, d time.Duration, full <-chan struct{}) bool {
	var timer <-chan time.Time
	if d > 0 {
		tm := time.NewTimer(d - (t.clock.Now() - t.windowStart()))
		defer tm.Stop()
		timer = tm.C
	}
	select {
	case <-timer:
		return true
	case <-full:
		t.endedBy = EndedByCount
	case <-t.drained():
		t.endedBy = t.cfg.EndedBy
	case <-ctx.Done():
		t.fail(context.Cause(ctx), EndedBySignal)
	case <-t.failed:
	}
	return false
}

// drained is closed when a finite load has been served; nil where there is none.
func (t *trial) drained() <-chan struct{} {
	if t.dispatch == nil {
		return nil
	}
	return t.dispatch.drained
}

// windowStart is the moment the window opened, or will be reckoned from.
func (t *trial) windowStart() time.Duration {
	if start, _ := t.rec.Window(); start != workloads.Never {
		return start
	}
	return t.dispatch.origin
}

// openWindow notes the load so far and opens the window.
func (t *trial) openWindow() {
	t.stack.cache.ResetCounters()
	load, books := t.dispatch.account()
	t.info.LoadStart, t.startedBefore = load, books.Started
	t.dispatch.countIdleFrom(t.startMeters())
}

// startMeters reads the kernel's and the process's counters and lets samples
// count from now on.
func (t *trial) startMeters() (start time.Duration) {
	t.info.UsageBefore = ReadUsage()
	t.info.DeviceBefore = t.readDevice()
	t.info.Start = time.Now()
	start = t.clock.Now()
	deadline := workloads.Never
	if t.cfg.Window > 0 {
		deadline = start + t.cfg.Window
	}
	t.rec.Open(start, deadline)
	return start
}

// stopMeters ends the window, if it has not ended by its deadline, and reads
// the counters again.
func (t *trial) stopMeters() (start, end time.Duration, opened bool) {
	t.rec.SetEnd(t.clock.Now())
	start, end = t.rec.Window()
	if start == workloads.Never {
		return start, end, false
	}
	t.info.DeviceAfter = t.readDevice()
	t.info.UsageAfter = ReadUsage()
	return start, end, true
}

// closeWindow stops the meters, ends the handing out and cancels what is in
// flight.
func (t *trial) closeWindow(ctx context.Context, wg *sync.WaitGroup) {
	start, end, opened := t.stopMeters()
	if opened {
		t.info.WorkerIdle = t.dispatch.idleUntil(end)
		t.info.WorkerBusy = max(0, time.Duration(t.cfg.Workers)*(end-start)-t.info.WorkerIdle)
	}
	books, inflight := t.dispatch.close()
	load, _ := t.dispatch.account()
	t.stop(errWindowOver)
	t.info.LoadEnd, t.info.LoadEndAt = load, end-t.dispatch.origin
	for c := range t.info.Requests {
		t.info.Requests[c].Started = books.Started[c] - t.startedBefore[c]
	}
	for _, f := range inflight {
		r := &t.info.Requests[f.Class]
		r.InFlight++
		r.OldestInFlight = max(r.OldestInFlight, f.Age)
	}
	t.tierInfo()
	t.drain(ctx, wg)
	t.info.Drain = t.clock.Now() - end
}

// drain waits for the workers. On a signal, now or while draining, the result
// comes first.
func (t *trial) drain(ctx context.Context, wg *sync.WaitGroup) {
	drained := make(chan struct{})
	go func() { wg.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-ctx.Done():
		select {
		case <-drained:
		case <-time.After(drainOnSignal):
		}
	}
}

// clean waits for the workers, rests, and removes the files.
func (t *trial) clean(ctx context.Context, workers *sync.WaitGroup) error {
	done := make(chan error, 1)
	go func() {
		if workers != nil {
			workers.Wait()
		}
		if c, ok := t.src.(interface{ Close() error }); ok {
			_ = c.Close()
		}
		done <- t.stack.close(context.WithoutCancel(ctx))
	}()
	var limit <-chan time.Time
	if ctx.Err() != nil {
		limit = time.After(cleanOnSignal)
	}
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("cleaning up: %w", err)
		}
	case <-limit:
		return nil // the next start reclaims the rest
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(cleanOnSignal):
		}
		return nil
	}
	if t.failure == nil {
		t.say(ctx, "resting", t.cfg.Settle)
		_ = t.clock.Sleep(ctx, t.cfg.Settle)
	}
	return nil
}

// raiseProcs sets GOMAXPROCS for the trial and returns the way back.
func (t *trial) raiseProcs() func() {
	if t.cfg.Procs <= 0 {
		return func() {}
	}
	old := runtime.GOMAXPROCS(t.cfg.Procs)
	return func() { runtime.GOMAXPROCS(old) }
}
