package kvbench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
	"kvbench/workloads"
)

// errWindowOver is the cause with which operations in flight are cancelled.
var errWindowOver = errors.New("the window is over")

// mostShards bounds the memory of the recorder, 10 MB for each processor of a run with everything.
const mostShards = 64

// Shards is the number of the recorder's shards, which bounds its memory: one for each processor
// that this process may use. The additional processors that Go gets for goroutines in system calls
// need none, because they do not count concurrently.
func Shards() int { return min(mostShards, runtime.GOMAXPROCS(0), runtime.NumCPU()) }

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
	defer t.watchdog.begin(ctx)()
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
	t.free.Store(-1)
	if sim != nil { // virtual time has one thread
		t.run(ctx)
	} else {
		t.guard(ctx)
	}
	return t.returns()
}

// run is the trial from its beginning to its end.
func (t *trial) run(ctx context.Context) {
	t.stage(opening)
	if err := t.openStorage(ctx); err != nil {
		t.note(errors.Join(err, t.closeStorage(t.removing)))
		return
	}
	t.describe()
	t.opened.Store(true)
	t.stage("")
	if len(t.dirs) > 0 {
		t.lookAtSpace()
		t.Clock.Every(t.ending.over, time.Second, t.lookAtSpace)
	}
	t.startTracing(ctx)
	if t.tracer != nil {
		// Not for the window: detaching fexit takes up to a second.
		defer func() { _ = t.tracer.Close() }()
	}
	if err := t.prepare(); err != nil {
		t.Fail(err, endedByOf(ctx, err))
		t.ending.replace(err)
	} else {
		t.load(ctx)
	}
	// The window is over, and the collector disturbs no measurement. The garbage of adding up,
	// encoding and sending the histograms would be memory of each of many ranks at the same time.
	defer debug.SetGCPercent(debug.SetGCPercent(garbageAfter))
	t.finish()
	dirty := t.clean()
	t.note(dirty)
	if _, failure := t.ended(); failure == nil && dirty == nil {
		_ = t.Rest(ctx)
	}
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
func (t *trial) prepare() error {
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
			t.prepared.Store(true)
			return err
		}
		if took := since - begun; took > longQuiet {
			t.warn(fmt.Sprintf("began %s later, when %s had discarded what was removed before",
				took.Round(time.Second/10), t.device.Title()))
		}
	}
	err := t.workload.Prepare(ctx, &t.Env)
	if err == nil && t.sim == nil {
		err = t.measureUnloaded(ctx)
	}
	t.prepared.Store(true)
	if err != nil {
		return err
	}
	if t.sim == nil {
		// Without this reset the result shows the peak of the process.
		_ = host.ResetPeakRSS()
	}
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
	if t.phase.Warmup > 0 && t.undisturbed(warm.Wait(t.ending.over)) {
		t.openWindow(opctx)
	}
	t.awaitEnd()
	t.closeWindow()
}

// awaitEnd waits for the window's end, which is its deadline if nothing comes before it.
func (t *trial) awaitEnd() {
	wait := clock.Never
	if t.phase.Window > 0 {
		wait = t.phase.Window - (t.Clock.Now() - t.windowStart())
	}
	err := t.Clock.Sleep(t.ending.over, wait)
	if v, ok := t.Clock.(*clock.Virtual); ok && err == nil && v.Still() {
		err = clock.ErrStill // a load that hangs is no measurement, though its time has passed
	}
	if t.undisturbed(err) {
		t.End(result.EndedByDeadline)
	}
}

// undisturbed says, given what it returned, whether a wait for the next stage of the load
// came to its own end.
func (t *trial) undisturbed(err error) bool {
	if errors.Is(err, clock.ErrStill) {
		t.Fail(errors.New("the simulation stands still: every worker waits and nothing will "+
			"happen"), result.EndedByError)
	}
	return err == nil
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
func (t *trial) closeWindow() {
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
	t.Rec.Close()
	if t.sim != nil {
		t.sim.over, t.info.MediumBusy = true, t.sim.device.Busy
	}
	t.tierInfo() // before what is in flight releases its capacity
	if t.counted != nil {
		t.counted.CloseWindow(end, opened) // which waits for the input
	}
	if !t.hurried() { // else the result comes first
		t.stop(errWindowOver)
		t.stage(waiting)
		t.Clock.Wait()
	}
	t.drained.Store(int64(t.Clock.Now() - end))
}

// clean waits for the workers and removes the files, which takes long for many files on some disks.
// The next run removes what is left.
func (t *trial) clean() error {
	t.stage(waiting)
	if t.hurried() {
		t.show(Snapshot{Stage: waiting, Free: -1}) // at once: the user sees that the signal has come
		// A flush on the same filesystem would wait for what cancelled writers do. They leave their
		// files, which are removed in small steps below.
		for _, f := range t.files {
			if !t.cfg.Storage.KeepFiles {
				f.LeaveFiles()
			}
		}
	}
	if t.stop != nil {
		t.stop(errWindowOver)
	}
	t.Clock.Wait()
	if c, ok := t.workload.(io.Closer); ok {
		_ = c.Close()
	}
	t.stage(removing)
	err := t.closeStorage(t.removing)
	if err == nil || t.removing.Err() != nil {
		return nil
	}
	return fmt.Errorf("cleaning up: %w", err)
}

// hurried reports whether the trial has to end soon, whatever is in flight.
func (t *trial) hurried() bool { return t.rush.Err() != nil }
