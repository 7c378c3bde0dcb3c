package kvbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
	"kvbench/workloads"
)

// Interrupted is the cause with which a caller cancels Run's context when a signal ended the run:
// the result is then marked incomplete. In an attended run the files are removed however long that
// takes, because the user sees the progress and can end it at any moment. Otherwise the next run
// removes what is left.
type Interrupted struct {
	Why      error
	Attended bool
}

func (i Interrupted) Error() string { return "interrupted: " + i.Why.Error() }

// Unwrap returns what interrupted the run.
func (i Interrupted) Unwrap() error { return i.Why }

// errWindowOver is the cause with which operations in flight are cancelled.
var errWindowOver = errors.New("the window is over")

// mostShards bounds the memory of the recorder, 10 MB for each processor of a run with everything.
const mostShards = 64

// Shards is the number of the recorder's shards, which bounds its memory: one for each processor
// that this process may use. The additional processors that Go gets for goroutines in system calls
// need none, because they do not count concurrently.
func Shards() int { return min(mostShards, runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// How long an interrupted run waits: for its workers before the result is written, and, unattended,
// for them and the cleaning afterwards (a promise of README: 2 s).
const (
	drainOnSignal = 200 * time.Millisecond
	cleanOnSignal = 1200 * time.Millisecond
)

// garbageAfter is how much garbage there may be when the window is over, in percent of what is in
// use.
const garbageAfter = 10

// Run executes one trial: make the tiers, fill and precondition them, run the
// load through one exact window, drain, build the result, publish it, and
// remove what was written. It blocks until all of that is done.
//
// A run that began returns its Result even when it failed or was interrupted
// (see Result.Status); the error then says why. Only a run that could not begin
// has no Result. Run may be called again and again, but not twice at a time:
// it resets the process's peak memory, and may change GOMAXPROCS and, once the
// window is over, how much garbage there may be.
func Run(ctx context.Context, cfg Config, w Workload) (*result.Result, error) {
	return run(ctx, &cfg, w, nil)
}

func run(ctx context.Context, cfg *Config, w Workload, sim *simulation) (*result.Result, error) {
	cfg.Storage.Removal = cmp.Or(cfg.Storage.Removal, new(workdir.Removal))
	t := &trial{cfg: cfg, workload: w, phase: w.Phase(), sim: sim, info: cfg.Info}
	t.counted, _ = w.(Counted)
	t.ending.over, t.ending.cancel = context.WithCancelCause(ctx)
	defer t.ending.cancel(nil)
	t.trial, t.Clock, t.Group, t.Simulated = t, cfg.Clock, cfg.Group, sim != nil
	if t.Simulated { // virtual time is the trial's own
		t.Group = nil
	}
	if t.Clock == nil {
		t.Clock = clock.NewWall()
	}
	if t.cfg.Usage == nil {
		t.cfg.Usage = host.ReadUsage
	}
	t.begun = t.Clock.Now()
	shards := Shards()
	if sim != nil {
		shards = 1
	}
	t.Rec = record.New(shards)
	t.Rec.Timeless = sim != nil && sim.Device == nil
	t.info.Nonce = fmt.Sprintf("%x", cfg.Storage.Nonce)
	t.hung, t.prepared = make(chan struct{}), make(chan struct{})
	if cfg.Storage.StorageBytes > 0 && cfg.Storage.Levels == nil && cfg.Storage.Bucket == nil {
		if err := t.openEngine(); err != nil {
			return nil, err
		}
	}
	over := make(chan struct{})
	defer close(over)
	if cfg.Storage.IOTimeout > 0 && t.engine != nil {
		go t.attend(over)
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	return t.run(ctx)
}

// begin opens the storage. If the device does not answer, there is no result.
func (t *trial) begin(ctx context.Context) error {
	open := func() error {
		if err := t.openStorage(ctx); err != nil {
			return errors.Join(err, t.closeStorage(context.Background()))
		}
		t.describe()
		return nil
	}
	if t.sim != nil || t.cfg.Storage.Bucket != nil {
		return open() // virtual time has one thread, and a bucket has its own time-outs
	}
	show := func() Snapshot {
		if s := t.removing("reclaiming files of an earlier run"); s.Of > 0 {
			return s
		}
		return stage("opening the storage tier")()
	}
	ended, err := t.await(ctx, patience, show, open)
	if _, failure := t.ended(); !ended {
		return cmp.Or(failure, context.Cause(ctx))
	}
	return err
}

// run prepares and loads until the window is over, though workers may still be
// draining; then it concludes and cleans up.
func (t *trial) run(ctx context.Context) (*result.Result, error) {
	t.startTracing(ctx)
	if t.tracer != nil {
		// Not for the window: detaching fexit takes up to a second.
		defer func() { _ = t.tracer.Close() }()
	}
	unprepared := t.prepare(ctx)
	if unprepared != nil {
		t.Fail(unprepared, endedByOf(ctx, unprepared))
	} else {
		t.load(ctx)
	}
	by, failure := t.ended()
	if unprepared != nil { // more specific than the failed operation that the observer has seen
		failure = unprepared
	}
	// The window is over, and the collector disturbs no measurement. The garbage of adding up,
	// encoding and sending the histograms would be memory of each of many ranks at the same time.
	defer debug.SetGCPercent(debug.SetGCPercent(garbageAfter))
	res := t.conclude(by, failure)
	errs := []error{failure}
	if failure == nil && res.Status == result.StatusFailed { // nothing completed, too much failed
		errs = append(errs, errors.New(res.Error))
	}
	unpublished := t.publish(ctx, res)
	// On a signal the result came first: a flush on the same filesystem would wait for what
	// cancelled writers do. They leave their files to clean, which removes them in small steps.
	if t.hurried(ctx) && t.files != nil && !t.cfg.Storage.KeepFiles {
		t.files.LeaveFiles()
	}
	if t.stop != nil {
		t.stop(errWindowOver)
	}
	dirty := t.clean(ctx)
	if _, late := t.ended(); failure == nil && errors.Is(late, ErrUnanswered) {
		dirty = fmt.Errorf("after the result was written: %w", late) // the result stays
	}
	if failure == nil && dirty == nil {
		_ = t.Rest(ctx)
	}
	return res, errors.Join(append(errs, unpublished(), dirty)...)
}

// ended returns what ended the trial so far.
func (t *trial) ended() (by string, failure error) {
	t.ending.mu.Lock()
	defer t.ending.mu.Unlock()
	return t.ending.by, t.ending.failure
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

// longQuiet is the wait for discards above which the result has a warning.
const longQuiet = 2 * time.Second

// prepare does everything that happens before the load starts.
func (t *trial) prepare(caller context.Context) error {
	ctx := t.ending.over
	if t.sim != nil {
		// The cache's content before the load takes no time.
		t.sim.free(true)
		defer t.sim.free(false)
	}
	if t.cfg.AwaitDiscards {
		begun := t.Clock.Now()
		since, err := t.Quiet(ctx)
		if err != nil {
			close(t.prepared)
			return err
		}
		if took := since - begun; took > longQuiet {
			t.warn(fmt.Sprintf("began %s later, when %s had discarded what was removed before",
				took.Round(time.Second/10), t.device.Title()))
		}
	}
	work := func() error {
		defer close(t.prepared)
		if err := t.workload.Prepare(ctx, &t.Env); err != nil || t.sim != nil {
			return err
		}
		return t.measureUnloaded(ctx)
	}
	if t.sim != nil {
		if err := work(); err != nil {
			return err
		}
	} else if ended, err := t.await(caller, briefly, nil, work); !ended {
		return context.Cause(ctx) // its call may never return
	} else if err != nil {
		return err
	}
	// Without this reset the result shows the peak of the process.
	_ = host.ResetPeakRSS()
	return t.Group.Barrier(ctx)
}

// load runs the workload through warm-up and window and returns when the window
// is over; its workers may still be draining.
func (t *trial) load(ctx context.Context) {
	opctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t.stop = stop
	if n := t.phase.Limit; n > 0 {
		t.Rec.LimitRequests(n, func() { t.End(result.EndedByCount) })
	}
	t.loaded = t.Clock.Now()
	warm := t.Clock.NewEvent()
	if t.phase.Warmup == 0 {
		t.openWindow(opctx)
	} else {
		t.Clock.At(t.loaded+t.phase.Warmup, warm.Fire)
	}
	t.Go("the workload", func() {
		switch err := t.workload.Run(opctx, &t.Env); {
		case opctx.Err() != nil: // it says nothing of the end
		case err != nil:
			t.Fail(err, result.EndedByError)
		default:
			t.End(result.EndedByInput)
		}
	})
	t.watch(opctx)
	t.lookAtTrace(opctx)
	if t.phase.Warmup > 0 && t.undisturbed(ctx, warm.Wait(t.ending.over)) {
		t.openWindow(opctx)
	}
	t.awaitEnd(ctx)
	t.closeWindow(ctx)
}

// awaitEnd waits for the window's end, which is its deadline if nothing comes before it.
func (t *trial) awaitEnd(ctx context.Context) {
	wait := clock.Never
	if t.phase.Window > 0 {
		wait = t.phase.Window - (t.Clock.Now() - t.windowStart())
	}
	err := t.Clock.Sleep(t.ending.over, wait)
	if v, ok := t.Clock.(*clock.Virtual); ok && err == nil && v.Still() {
		err = clock.ErrStill // a load that hangs is no measurement, though its time has passed
	}
	if t.undisturbed(ctx, err) {
		t.End(result.EndedByDeadline)
	}
}

// undisturbed says, given what it returned, whether a wait for the next stage of the load
// came to its own end.
func (t *trial) undisturbed(ctx context.Context, err error) bool {
	switch by, failure := t.ended(); {
	case err == nil:
		return true
	case errors.Is(err, clock.ErrStill):
		t.Fail(errors.New("the simulation stands still: every worker waits and nothing will "+
			"happen"), result.EndedByError)
	case by == "" && failure == nil:
		t.Fail(context.Cause(ctx), result.EndedBySignal)
	}
	return false
}

// openWindow opens the window, in one step with the workload's counts.
func (t *trial) openWindow(ctx context.Context) {
	t.Cache.ResetGauges()
	if t.sim != nil {
		t.sim.device.Busy = 0
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
	if t.tracer != nil {
		_ = t.tracer.OpenWindow() // it notes the error, too
	}
	if t.bucket != nil {
		t.objects.OpenWindow(t.bucket)
	}
	t.usage, t.stat = t.cfg.Usage(), t.readDevice()
	t.openedRoots()
	// Three clocks note the same moment. Nothing slow comes between the calls: a thread that loses
	// its processor there makes the clocks differ.
	opened := time.Now()
	start = t.Clock.Now()
	t.Group.Opened()
	t.info.StartTime = opened.UTC().Format(time.RFC3339Nano)
	deadline := workloads.Never
	if t.phase.Window > 0 {
		deadline = start + t.phase.Window
	}
	t.Rec.Open(start, deadline)
	return start
}

// closeWindow ends the window, if it has not ended by its deadline, reads the meters again, ends
// the handing out and cancels what is in flight.
func (t *trial) closeWindow(ctx context.Context) {
	t.Rec.SetEnd(t.Clock.Now())
	start, end := t.Rec.Window()
	opened := start != workloads.Never
	if opened {
		if t.tracer != nil {
			_ = t.tracer.CloseWindow() // it notes the error, too
		}
		if t.bucket != nil {
			t.objects.CloseWindow(t.bucket)
		}
		t.measured()
	}
	if t.counted != nil {
		t.counted.CloseWindow(end, opened)
	}
	t.Rec.Close()
	if t.sim != nil {
		t.sim.over, t.info.MediumBusy = true, t.sim.device.Busy
	}
	t.tierInfo() // before what is in flight gives back its room
	if ctx.Err() == nil {
		t.stop(errWindowOver)
	}
	if ctx.Err() == nil { // on a signal, now or while draining, the result comes first
		_, _ = t.await(ctx, briefly, waiting, func() error { t.Clock.Wait(); return nil })
	}
	t.info.DrainNS = int64(t.Clock.Now() - end)
}

// stage is the live line's data of a stage without progress, for await.
func stage(name string) func() Snapshot {
	return func() Snapshot { return Snapshot{Stage: name, Free: -1} }
}

// waiting is the stage in which workers end.
var waiting = stage("waiting for what is in flight")

// clean waits for the workers and removes the files, which takes long for many files on some disks.
// The next run removes what is left.
func (t *trial) clean(ctx context.Context) error {
	removing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop() // ends the removal when clean stops waiting
	var drained atomic.Bool
	show := func() Snapshot {
		if !drained.Load() {
			return waiting()
		}
		return t.removing("removing its files")
	}
	_, err := t.await(ctx, patience, show, func() error {
		<-t.prepared
		t.Clock.Wait()
		if c, ok := t.workload.(io.Closer); ok {
			_ = c.Close()
		}
		drained.Store(true)
		return t.closeStorage(removing)
	})
	if err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	return nil
}

// patience is how long cleaning may go on once ctx has ended.
func patience(ctx context.Context) time.Duration {
	var i Interrupted
	if errors.As(context.Cause(ctx), &i) && i.Attended {
		return clock.Never
	}
	return cleanOnSignal
}

// briefly is how long an interrupted run waits before it makes its result.
func briefly(context.Context) time.Duration { return drainOnSignal }

// hurried reports whether the trial has to end soon, whatever is in flight.
func (t *trial) hurried(ctx context.Context) bool {
	select {
	case <-t.hung:
		return true
	default:
		return ctx.Err() != nil
	}
}

// await runs work and waits for its end. Once ctx has ended, or the storage has not answered for
// longer than it may, it waits no longer than grace(ctx). ended reports whether work has ended.
// Each second, and when ctx ends, it shows what show returns; nil shows nothing.
func (t *trial) await(ctx context.Context, grace func(context.Context) time.Duration,
	show func() Snapshot, work func() error) (ended bool, err error) {
	done := make(chan error, 1)
	go func() { done <- work() }()
	began, tick := time.Now(), time.NewTicker(time.Second)
	defer tick.Stop()
	over, hung, patience := ctx.Done(), t.hung, (<-chan time.Time)(nil)
	for {
		select {
		case err := <-done:
			return true, err
		case <-over:
			over, patience = nil, time.After(grace(ctx))
		case <-hung:
			hung, patience = nil, time.After(grace(ctx))
		case <-patience:
			return false, nil
		case <-tick.C:
		}
		if show == nil {
			continue
		}
		s := show()
		if s.Stage == "" { // nothing yet
			continue
		}
		s.Elapsed = time.Since(began)
		t.show(s)
	}
}
