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

// errWindowOver is the cause with which closeWindow cancels operations in flight.
var errWindowOver = errors.New("the window is over")

// mostShards limits the memory of the recorder. A shard takes up to 10 MB.
const mostShards = 64

// Shards returns the number of the recorder's shards: one per CPU that this process may use, at most
// mostShards. GOMAXPROCS may be larger than the number of CPUs, for goroutines in system calls. These do
// not record concurrently and need no shard.
func Shards() int { return min(mostShards, runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// garbageAfter is GOGC after the window, in percent of the live heap.
const garbageAfter = 10

// Run executes one trial: it opens the tiers, preconditions and fills them, runs the load through the
// window, drains the requests in flight, builds the result, publishes it and removes the files. It
// returns when all of this is done, or when it abandons the trial.
//
// If the storage was opened, Run returns a Result, also after a failure or an interruption: see
// Result.Status. The error then has the reason. Calls of Run must not overlap: Run resets the process's
// peak RSS, and may change GOMAXPROCS and, after the window, GOGC.
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
	if _, virtual := t.Clock.(*clock.Virtual); sim == nil && !virtual { // whose clock belongs to one goroutine
		var stop func()
		t.pauses, stop = watchPauses(t.Clock.Now)
		defer stop()
		t.Rec.Paused = t.pauses.within
	}
	t.info.Nonce = fmt.Sprintf("%x", cfg.Storage.Nonce)
	t.free.Store(-1)
	if sim != nil { // virtual time has one thread
		t.run(ctx)
	} else {
		t.guard(ctx)
	}
	return t.returns()
}

// run executes all stages of the trial.
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
		// Close is called after the window, because detaching fexit programs takes up to a second.
		defer func() { _ = t.tracer.Close() }()
	}
	if err := t.prepare(); err != nil {
		t.Fail(err, endedByOf(ctx, err))
		t.ending.replace(err)
	} else {
		t.load(ctx)
	}
	// After the window garbage collection disturbs no measurement. Merging, encoding and sending the
	// histograms makes garbage, and all ranks of a host do this at the same time. So keep it small.
	defer debug.SetGCPercent(debug.SetGCPercent(garbageAfter))
	t.finish()
	dirty := t.clean()
	t.note(dirty)
	if _, failure := t.ended(); failure == nil && dirty == nil {
		_ = t.Rest(ctx)
	}
}

// ended returns the reason and the error that ended the trial, or "" and nil if it has not ended.
func (t *trial) ended() (by string, failure error) {
	t.ending.mu.Lock()
	defer t.ending.mu.Unlock()
	return t.ending.by, t.ending.failure
}

// endedByOf returns the result's reason for an error of the preparation. After ctx has ended, the reason
// is always EndedBySignal.
func endedByOf(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return result.EndedBySignal
	case errors.Is(err, cache.ErrTooLarge):
		return result.EndedByCapacity
	}
	return result.EndedByError
}

// longestQuiet is the longest wait for discards, and longQuiet the wait above which the result has a warning.
const longestQuiet, longQuiet = 30 * time.Second, 2 * time.Second

// prepare waits for discards, prepares the workload, measures the unloaded latency and waits for all
// ranks.
func (t *trial) prepare() error {
	ctx := t.ending.over
	if t.sim != nil {
		// Filling the cache takes no virtual time.
		t.sim.free(true)
		defer t.sim.free(false)
	}
	if t.cfg.AwaitDiscards {
		begun := t.Clock.Now()
		t.stage(fmt.Sprintf("waiting at most %s for discards of %s", longestQuiet, t.device.Title()))
		since, err := t.Quiet(ctx)
		t.stage("")
		if err != nil {
			t.prepared.Store(true)
			return err
		}
		// After longestQuiet the result has the warning of Quiet.
		if took := since - begun; took > longQuiet && t.Clock.Now()-begun < longestQuiet {
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
		// If the reset fails, the result has the peak RSS since the process started.
		_ = host.ResetPeakRSS()
	}
	return t.Group.Barrier(ctx)
}

// load runs the workload through warm-up and window. It returns when the window is closed.
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
		case opctx.Err() != nil: // the load was cancelled: err is not the reason of the end
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

// awaitEnd waits until the window's deadline, or until another reason ends the trial.
func (t *trial) awaitEnd() {
	wait := clock.Never
	if t.phase.Window > 0 {
		wait = t.phase.Window - (t.Clock.Now() - t.windowStart())
	}
	err := t.Clock.Sleep(t.ending.over, wait)
	if v, ok := t.Clock.(*clock.Virtual); ok && err == nil && v.Still() {
		err = clock.ErrStill // every worker waits for ever, so the window measures nothing
	}
	if t.undisturbed(err) {
		t.End(result.EndedByDeadline)
	}
}

// undisturbed reports whether a wait with the error err completed. It ends the trial if virtual time
// stands still.
func (t *trial) undisturbed(err error) bool {
	if errors.Is(err, clock.ErrStill) {
		t.Fail(errors.New("the simulation stands still: every worker waits and nothing will "+
			"happen"), result.EndedByError)
	}
	return err == nil
}

// openWindow opens the window. The workload notes its counts at the same moment.
func (t *trial) openWindow(ctx context.Context) {
	t.Cache.ResetGauges()
	if t.sim != nil {
		t.sim.busy = t.sim.device.Busy(t.Clock.Now())
	}
	if t.counted != nil {
		t.counted.OpenWindow(ctx, t.startMeters)
	} else {
		t.startMeters()
	}
}

// startMeters reads the counters of kernel and process, starts to record samples, and returns the
// moment.
func (t *trial) startMeters() (start time.Duration) {
	if t.tracer != nil {
		_ = t.tracer.OpenWindow() // the tracer keeps the error for its Snapshot
	}
	if t.bucket != nil {
		t.objects.OpenWindow(t.bucket)
	}
	t.metering.Lock()
	if t.reading = t.readMeters(); t.suspended != nil { // before the window
		t.suspended = new(t.readMeters())
	}
	t.metering.Unlock()
	t.openCardCounters()
	// Three clocks note the same moment. No slow call may come between them: if the thread is
	// descheduled there, the three times differ.
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

// closeWindow ends the window now, or at its deadline if that has passed. It reads the counters again,
// ends the dispatch of work, cancels operations in flight and waits for the workers.
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
		t.sim.over = true
		for op, busy := range t.sim.device.Busy(end) {
			t.info.MediumBusy = max(t.info.MediumBusy, busy-t.sim.busy[op])
		}
	}
	t.tierInfo() // before operations in flight release their capacity
	if t.counted != nil {
		t.counted.CloseWindow(end, opened) // waits for a read of the input in flight
	}
	if !t.hurried() { // else make the result first; clean cancels and waits
		t.stop(errWindowOver)
		t.stage(waiting)
		t.Clock.Wait()
	}
	t.drained.Store(int64(t.Clock.Now() - end))
}

// clean waits for the workers and removes the files. If the removal is cut short, the next run removes
// the remaining files.
func (t *trial) clean() error {
	t.stage(waiting)
	if t.hurried() {
		t.show(Snapshot{Stage: waiting, Free: -1}) // at once: the user sees the effect of the signal
		// If cancelled writers removed their files, a flush on the same filesystem would wait for that.
		// So they leave their files, and closeStorage removes them in small steps.
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

// hurried reports whether the trial has to end without waiting for requests in flight.
func (t *trial) hurried() bool { return t.rush.Err() != nil }
