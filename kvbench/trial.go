package kvbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"kvbench/kvbench/group"
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
	workload Workload
	counted  Counted // the same, nil if it does not count
	phase    Phase
	env      *Env

	clock  clock.Clock
	rec    *record.Recorder
	stack  *stack
	info   record.Info
	begun  time.Duration
	loaded time.Duration // when the load began
	device host.Device
	tracer *collector.Collector // nil unless asked for
	obs    *observer
	sim    *simulation // nil in real time

	shown  sync.Mutex              // one snapshot at a time goes to whoever looks
	stop   context.CancelCauseFunc // cancels the operations
	ending ending
	meters meters // when the window opened
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
func Run(ctx context.Context, cfg Config, w Workload) (*result.Result, error) {
	return run(ctx, &cfg, w, nil)
}

func run(ctx context.Context, cfg *Config, w Workload, sim *simulation) (*result.Result, error) {
	phases := w.Phases()
	if len(phases) != 1 {
		return nil, fmt.Errorf("the workload has %d phases: a result holds one", len(phases))
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	t, err := newTrial(ctx, cfg, w, sim)
	if err != nil {
		return nil, err
	}
	t.phase = phases[0]
	return t.run(ctx)
}

// newTrial opens the storage side.
func newTrial(ctx context.Context, cfg *Config, w Workload, sim *simulation) (*trial, error) {
	t := &trial{cfg: cfg, workload: w, clock: cfg.Clock, info: cfg.Info, sim: sim}
	t.counted, _ = w.(Counted)
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
	st, err := openStack(cfg.Storage, t.clock, obs)
	if err != nil {
		return nil, err
	}
	t.stack = st
	t.env = &Env{
		Clock: t.clock, Levels: st.levels, Cache: st.cache, Transfer: st.transfer, Pool: st.pool,
		Content: st.content,
		Rec:     t.rec, Group: group.Alone{}, Simulated: sim != nil, trial: t,
	}
	return t, nil
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

// ended returns what ended the trial so far.
func (t *trial) ended() (by string, failure error) {
	t.ending.mu.Lock()
	defer t.ending.mu.Unlock()
	return t.ending.by, t.ending.failure
}

// run prepares and loads until the window is over, though workers may still be
// draining; then it concludes and cleans up.
func (t *trial) run(ctx context.Context) (*result.Result, error) {
	defer t.ending.cancel(nil)
	t.describe()
	t.startTracing(ctx)
	defer t.stopTracing()
	if err := t.prepare(); err != nil {
		t.failPreparing(ctx, err)
	} else {
		t.load(ctx)
	}
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
	if err := t.workload.Prepare(ctx, t.env, 0); err != nil {
		return err
	}
	if !t.phase.Barrier {
		return nil
	}
	begin, err := t.env.Group.Barrier(ctx, t.phase.Name)
	if err != nil {
		return err
	}
	return t.clock.Sleep(ctx, time.Until(begin))
}

// rest waits for the settle time.
func (t *trial) rest(ctx context.Context) error {
	if t.cfg.Settle > 0 && t.cfg.Progress != nil {
		t.cfg.Progress(Snapshot{Stage: "resting", Total: t.cfg.Settle, Free: -1})
	}
	return t.clock.Sleep(ctx, t.cfg.Settle)
}

// load runs the workload through warm-up and window and returns when the window
// is over; its workers may still be draining.
func (t *trial) load(ctx context.Context) {
	opctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t.stop = stop
	// without it the peak is that of the process, which the result then shows
	_ = host.ResetPeakRSS()
	if n := t.phase.Limit; n > 0 {
		t.rec.LimitRequests(n, func() { t.end(result.EndedByCount) })
	}
	t.loaded = t.clock.Now()
	warm := t.clock.NewEvent()
	if t.phase.Warmup == 0 {
		t.openWindow(opctx)
	} else {
		t.clock.At(t.loaded+t.phase.Warmup, warm.Fire)
	}
	t.env.Go("the workload", func() { t.work(opctx) })
	t.watch(opctx)
	if t.phase.Warmup > 0 {
		if !t.undisturbed(ctx, warm.Wait(t.ending.over)) {
			t.closeWindow(ctx)
			return
		}
		t.openWindow(opctx)
	}
	t.awaitEnd(ctx)
	t.closeWindow(ctx)
}

// work runs the workload. What it says of the end counts while there was none.
func (t *trial) work(ctx context.Context) {
	switch err := t.workload.Run(ctx, t.env, 0); {
	case ctx.Err() != nil:
	case err != nil:
		t.fail(err, result.EndedByError)
	default:
		t.end(result.EndedByInput)
	}
}

// awaitEnd waits for the window's end, which is its deadline if nothing comes before it.
func (t *trial) awaitEnd(ctx context.Context) {
	wait := clock.Never
	if t.phase.Window > 0 {
		wait = t.phase.Window - (t.clock.Now() - t.windowStart())
	}
	err := t.clock.Sleep(t.ending.over, wait)
	if v, ok := t.clock.(*clock.Virtual); ok && err == nil && v.Still() {
		err = clock.ErrStill // a load that hangs is no measurement, though its time has passed
	}
	if t.undisturbed(ctx, err) {
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
		t.fail(errors.New("the simulation stands still: every worker waits and nothing will "+
			"happen"), result.EndedByError)
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
	return t.loaded
}

// openWindow opens the window, in one step with the workload's counts.
func (t *trial) openWindow(ctx context.Context) {
	t.stack.cache.ResetGauges()
	if t.sim != nil {
		t.sim.opened()
	}
	if t.counted != nil {
		t.counted.OpenWindow(ctx, t.startMeters)
	} else {
		t.startMeters()
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
	if t.phase.Window > 0 {
		deadline = start + t.phase.Window
	}
	t.rec.Open(start, deadline)
	return start
}

// stopMeters ends the window, if it has not ended by its deadline, and reads
// the counters again.
func (t *trial) stopMeters() (end time.Duration, opened bool) {
	t.rec.SetEnd(t.clock.Now())
	start, end := t.rec.Window()
	if start == workloads.Never {
		return end, false
	}
	t.closeTrace()
	t.measured()
	return end, true
}

// closeWindow stops the meters, ends the handing out and cancels what is in
// flight.
func (t *trial) closeWindow(ctx context.Context) {
	end, opened := t.stopMeters()
	if t.counted != nil {
		t.counted.CloseWindow(end, opened)
	}
	t.rec.Close()
	if t.sim != nil {
		t.sim.report()
	}
	if ctx.Err() == nil {
		t.stop(errWindowOver)
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
		if c, ok := t.workload.(io.Closer); ok {
			_ = c.Close()
		}
		done <- t.stack.close(context.WithoutCancel(ctx))
	}()
	if err := t.cleaned(ctx, done); err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	if rest {
		_ = t.rest(ctx)
	}
	return nil
}

// cleaned waits until everything is removed, which takes long for many files on some disks, and
// says so meanwhile.
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
				t.cfg.Progress(Snapshot{Stage: "removing its files", Elapsed: time.Since(began),
					Free: -1})
			}
		}
	}
}
