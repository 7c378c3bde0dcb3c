package kvbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
	"kvbench/workloads"
)

// Interrupted is the cause with which a caller cancels Run's context when a
// signal ended the run: the result is then marked incomplete, and cleaning is
// cut short in favour of ending soon.
type Interrupted struct{ Why error }

func (i Interrupted) Error() string { return "interrupted: " + i.Why.Error() }

// Unwrap returns what interrupted the run.
func (i Interrupted) Unwrap() error { return i.Why }

var (
	// errWindowOver is the cause with which operations in flight are cancelled.
	errWindowOver = errors.New("the window is over")
	// errEnded is the cause with which a load ends that has come to its end.
	errEnded = errors.New("the load has ended")
)

// How long an interrupted run waits: for its workers before the result is
// written, and for them and the cleaning afterwards (interface.md: 0.5 s and 2 s).
const (
	drainOnSignal = 200 * time.Millisecond
	cleanOnSignal = 1200 * time.Millisecond
)

// trial is one run of one workload. It lives from Run's call to its return. Wall and
// virtual time run the same one: everybody waits through its clock.
type trial struct {
	cfg      *Config
	clock    clock.Clock
	rec      *record.Recorder
	stack    *stack
	dispatch *dispatcher
	src      workloads.Source
	info     record.Info
	begun    time.Duration
	device   host.Device
	tracer   *collector.Collector // nil unless asked for
	obs      *observer
	release  func() // gives back what the work took from the stack, nil = nothing

	sim    *simulation // nil in real time
	scaler *scaler     // nil without autoscaling

	stop   context.CancelCauseFunc // cancels the operations
	ending ending

	meters  meters                      // when the window opened
	before  books                       // likewise
	running [workloads.NumClasses]int64 // requests in flight then
}

// ending is why the trial ended. Anybody may end it, also while it is ending.
type ending struct {
	mu      sync.Mutex
	failure error
	by      string
	over    context.Context // ends with the first reason, or with the caller's context
	cancel  context.CancelCauseFunc
}

// Run executes one trial: make the tiers, fill and precondition them, run the
// load through one exact window, drain, build the result, publish it, and
// remove what was written. It blocks until all of that is done.
//
// A run that began returns its Result even when it failed or was interrupted
// (see Result.Status); the error then says why. Only a run that could not begin
// has no Result. Run may be called again and again, but not twice at a time:
// it resets the process's peak memory and may change GOMAXPROCS meanwhile.
func Run(ctx context.Context, cfg Config) (*result.Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t, err := newTrial(ctx, &cfg, nil)
	if err != nil {
		return nil, err
	}
	return t.run(ctx, func() { t.serve(ctx) })
}

// newTrial opens the storage side.
func newTrial(ctx context.Context, cfg *Config, sim *simulation) (*trial, error) {
	t := &trial{cfg: cfg, clock: cfg.Clock, info: cfg.Info, sim: sim}
	t.ending.over, t.ending.cancel = context.WithCancelCause(ctx)
	if t.clock == nil {
		t.clock = clock.NewWall()
	}
	t.begun = t.clock.Now()
	shards := min(8, runtime.NumCPU())
	if sim != nil {
		shards = 1
	}
	t.rec = record.New(shards)
	t.obs = &observer{clock: t.clock, rec: t.rec, fail: t.fail}
	var obs cache.Observer = t.obs
	if sim != nil {
		obs = sim.join(t)
	}
	var err error
	t.stack, err = openStack(cfg.Storage, t.clock, obs)
	return t, err
}

// serve prepares and runs a load of requests.
func (t *trial) serve(ctx context.Context) {
	if err := t.prepare(); err != nil {
		t.failPreparing(ctx, err)
		return
	}
	t.load(ctx)
}

// fail ends the trial with an error; the first one counts.
func (t *trial) fail(err error, endedBy string) {
	e := &t.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil {
		e.failure, e.by = err, endedBy
		e.cancel(err)
	}
}

// failPreparing ends the trial before its load. What the preparation says about
// itself tells more than the failed operation that the observer has seen.
func (t *trial) failPreparing(ctx context.Context, err error) {
	t.fail(err, endedByOf(ctx, err))
	t.ending.mu.Lock()
	defer t.ending.mu.Unlock()
	t.ending.failure = err
}

// end ends the window; the first reason counts, though a failure in the same moment
// tells more.
func (t *trial) end(by string) {
	e := &t.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == "" {
		e.by = by
		e.cancel(errEnded)
	}
}

// drained ends the window of a finite load that has been served. A trace that turns
// out to be broken ends, too.
func (t *trial) drained() {
	if s, ok := t.src.(interface{ Err() error }); ok && s.Err() != nil {
		t.fail(s.Err(), result.EndedByError)
		return
	}
	t.end(cmp.Or(t.cfg.EndedBy, result.EndedByInput))
}

// ended returns what ended the trial so far.
func (t *trial) ended() (by string, failure error) {
	t.ending.mu.Lock()
	defer t.ending.mu.Unlock()
	return t.ending.by, t.ending.failure
}

// run does the work, which returns when the window is over, though workers may
// still be draining; then it concludes and cleans up.
func (t *trial) run(ctx context.Context, work func()) (*result.Result, error) {
	defer t.ending.cancel(nil)
	defer t.raiseProcs()()
	t.describe()
	t.startTracing(ctx)
	defer t.stopTracing()
	work()
	by, failure := t.ended()
	res := t.conclude(by, failure)
	var errs []error
	switch {
	case failure != nil:
		errs = append(errs, failure)
	case res.Status == result.StatusFailed: // nothing completed, or too much failed
		errs = append(errs, errors.New(res.Error))
	}
	if t.cfg.Publish != nil {
		if err := t.cfg.Publish(res); err != nil {
			errs = append(errs, fmt.Errorf("writing the result: %w", err))
		}
	}
	// On a signal the result came first: cancelled writers remove their files, and
	// a flush on the same filesystem would wait for that.
	if t.stop != nil {
		t.stop(errWindowOver)
	}
	errs = append(errs, t.clean(ctx, failure == nil))
	return res, errors.Join(errs...)
}

// endedByOf classifies an error of the preparation. Whatever fails after the
// caller gave up fails because of that.
func endedByOf(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return result.EndedBySignal
	case errors.Is(err, cache.ErrTooLarge):
		return result.EndedByCapacity
	}
	return result.EndedByError
}

// prepare does everything that happens before the load starts.
func (t *trial) prepare() error {
	ctx := t.ending.over
	if t.sim != nil {
		defer t.sim.preparing()()
	}
	if err := t.readValidation(); err != nil {
		return err
	}
	if err := t.precondition(ctx); err != nil {
		return err
	}
	if err := t.populate(ctx); err != nil {
		return err
	}
	if err := t.ingest(ctx); err != nil {
		return err
	}
	t.say(ctx, "resting", t.cfg.Settle)
	if err := t.clock.Sleep(ctx, t.cfg.Settle); err != nil {
		return err
	}
	t.stack.cache.ResetCounters()
	src, err := t.cfg.Source()
	if err != nil {
		return err // src may be a nil pointer in a non-nil interface
	}
	t.src = src
	t.scaler, err = t.newScaler()
	return err
}

// load runs the workers through warm-up and window and returns when the window
// is over; the workers may still be draining.
func (t *trial) load(ctx context.Context) {
	opctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t.stop = stop
	_ = host.ResetPeakRSS() // without it the peak is that of the process, which the result then shows

	t.dispatch = newDispatcher(t.cfg, t.clock, t.src, t.stack.cache, t.rec)
	t.dispatch.drained = t.drained
	if t.sim != nil {
		t.dispatch.tell = t.sim.guard(ctx, t.dispatch)
	}
	t.limitRequests()
	warm := t.clock.NewEvent()
	if t.cfg.Warmup == 0 {
		t.openWindow(opctx)
	} else {
		t.clock.At(t.dispatch.origin+t.cfg.Warmup, warm.Fire)
	}
	t.dispatch.hire(t.cfg.Workers)
	work := func(id int) {
		w := &worker{id: id, run: t}
		t.clock.Go(func() { w.loop(opctx) })
	}
	for id := range t.cfg.Workers {
		work(id)
	}
	if t.scaler != nil {
		t.scaler.spawn = work
	}
	t.watch(opctx)
	if t.cfg.Warmup > 0 {
		if !t.undisturbed(ctx, warm.Wait(t.ending.over)) {
			t.closeWindow(ctx)
			return
		}
		t.openWindow(opctx)
	}
	t.awaitEnd(ctx)
	t.closeWindow(ctx)
}

// limitRequests ends the window with as many completed requests as were asked for.
func (t *trial) limitRequests() {
	if t.cfg.Requests > 0 {
		t.rec.LimitRequests(t.cfg.Requests, func() { t.end(result.EndedByCount) })
	}
}

// awaitEnd waits for the window's end, which is its deadline if nothing comes before it.
func (t *trial) awaitEnd(ctx context.Context) {
	wait := clock.Never
	if t.cfg.Window > 0 {
		wait = t.cfg.Window - (t.clock.Now() - t.windowStart())
	}
	if t.undisturbed(ctx, t.clock.Sleep(t.ending.over, wait)) {
		t.end(result.EndedByDeadline)
	}
}

// undisturbed says, given what it returned, whether a wait for the next stage of the load
// came to its own end.
func (t *trial) undisturbed(ctx context.Context, err error) bool {
	switch by, failure := t.ended(); {
	case err == nil:
		return true
	case errors.Is(err, clock.ErrStill):
		t.fail(errors.New("the simulation stands still: every worker waits and nothing will happen"), result.EndedByError)
	case by == "" && failure == nil:
		t.fail(context.Cause(ctx), result.EndedBySignal)
	}
	return false
}

// windowStart is the moment the window opened, or will be reckoned from.
func (t *trial) windowStart() time.Duration {
	if start, _ := t.rec.Window(); start != workloads.Never {
		return start
	}
	return t.dispatch.origin
}

// openWindow notes the load so far and opens the window.
func (t *trial) openWindow(ctx context.Context) {
	t.stack.cache.ResetCounters()
	t.info.LoadStart, t.before, t.running = t.dispatch.open(t.startMeters)
	if t.sim != nil {
		t.sim.opened()
	}
	if t.scaler != nil {
		t.scaler.start(ctx)
	}
}

// startMeters reads the kernel's and the process's counters and lets samples
// count from now on.
func (t *trial) startMeters() (start time.Duration) {
	t.openTrace()
	t.meters = meters{usage: host.ReadUsage(), device: t.readDevice()}
	t.info.StartTime = time.Now().UTC().Format(time.RFC3339Nano)
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
	t.closeTrace()
	t.measured()
	return start, end, true
}

// closeWindow stops the meters, ends the handing out and cancels what is in
// flight.
func (t *trial) closeWindow(ctx context.Context) {
	_, end, opened := t.stopMeters()
	if opened {
		h, idle := &t.info.Harness, t.dispatch.idleUntil(end)
		h.WorkerIdleNS, h.WorkerBusyNS = int64(idle), int64(max(0, t.dispatch.workedUntil(end)-idle))
	}
	if t.scaler != nil {
		t.scaler.report()
	}
	books, inflight := t.dispatch.close(end)
	t.rec.Close()
	load, _ := t.dispatch.account(end)
	if t.sim != nil {
		t.sim.report()
	}
	if ctx.Err() == nil {
		t.stop(errWindowOver)
	}
	t.info.LoadEnd, t.info.LoadEndAt = load, end-t.dispatch.origin
	for c := range t.info.Requests {
		t.info.Requests[c] = record.RequestCount{
			Running: t.running[c],
			Started: books.Started[c] - t.before.Started[c],
			Failed:  books.Failed[c] - t.before.Failed[c],
		}
	}
	for _, f := range inflight {
		r := &t.info.Requests[f.Class]
		r.InFlight++
		r.OldestInFlight = max(r.OldestInFlight, f.Age)
	}
	t.tierInfo()
	if ctx.Err() == nil {
		t.drain(ctx)
	}
	t.info.DrainNS = int64(t.clock.Now() - end)
}

// drain waits for the workers. On a signal, now or while draining, the result
// comes first.
func (t *trial) drain(ctx context.Context) {
	drained := make(chan struct{})
	go func() { t.clock.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-ctx.Done():
		select {
		case <-drained:
		case <-time.After(drainOnSignal):
		}
	}
}

// clean waits for the workers, removes the files and, if asked for, rests.
func (t *trial) clean(ctx context.Context, rest bool) error {
	done := make(chan error, 1)
	go func() {
		t.clock.Wait()
		if t.release != nil {
			t.release()
		}
		if c, ok := t.src.(interface{ Close() error }); ok {
			_ = c.Close()
		}
		done <- t.stack.close(context.WithoutCancel(ctx))
	}()
	if err := t.cleaned(ctx, done); err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	if rest {
		t.say(ctx, "resting", t.cfg.Settle)
		_ = t.clock.Sleep(ctx, t.cfg.Settle)
	}
	return nil
}

// cleaned waits until everything is removed, which takes long for many files on some disks, and says so meanwhile.
func (t *trial) cleaned(ctx context.Context, done <-chan error) error {
	began, tick := time.Now(), time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			select {
			case err := <-done:
				return err
			case <-time.After(cleanOnSignal): // the next start reclaims the rest
				return nil
			}
		case <-tick.C:
			if t.cfg.Progress != nil {
				t.cfg.Progress(Snapshot{Stage: "removing its files", Elapsed: time.Since(began), Free: -1})
			}
		}
	}
}

// raiseProcs sets GOMAXPROCS for the trial and returns the way back.
func (t *trial) raiseProcs() func() {
	if t.cfg.Procs <= 0 {
		return func() {}
	}
	old := runtime.GOMAXPROCS(t.cfg.Procs)
	return func() { runtime.GOMAXPROCS(old) }
}

// rawPermits is how many direct reads and writes may block their processor
// (tiers.FileOptions): measured on two cores, more than 16 in flight make no
// device here faster.
const rawPermits = 16

// LoadProcs is GOMAXPROCS while a load runs on the given number of cores. A
// goroutine that blocks in a system call the usual way costs the Go scheduler
// 10 to 60 µs of CPU (hand-off, sysmon, wake-ups); with a spare processor for
// each, the call can keep its own. Measured here with 16 readers of 1 MiB:
// 0.079 CPU s/GiB with GOMAXPROCS = 2, 0.024 with spare processors, 0.013 when
// the calls also keep their processors; fio's psync engine takes 0.010.
func LoadProcs(cores int) int { return cores + rawPermits }
