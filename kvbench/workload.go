package kvbench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/group"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/sim"
	"kvbench/tiers/spread"
	"kvbench/tiers/transfer"
	"kvbench/tiers/workdir"
	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/host"
)

// Workload loads the storage; [Run] gives it a window and knows nothing else of it. A workload with
// state has Close, too, which is called when its workers have ended.
type Workload interface {
	// Phase is what is measured.
	Phase() Phase
	// Prepare runs before the phase and is not measured: it fills, ingests, preconditions, opens
	// inputs. ctx ends with the trial.
	Prepare(ctx context.Context, e *Env) error
	// Run loads the storage until ctx ends or the work is done: returning nil before ctx
	// ends ends the window. Its workers run through e.Clock.Go and wait through e.Clock
	// alone, so that the same load runs in virtual time; none may outlive ctx for long.
	Run(ctx context.Context, e *Env) error
	// Report adds the workload's own results when the window is over. After an interruption workers
	// may still run, and Prepare may not have been called, if the interruption came while the
	// device discarded files of earlier runs.
	Report(in *record.Info)
}

// Phase is the measured part of a workload.
type Phase struct {
	Window time.Duration // 0 = until Limit is reached or the work is done
	Warmup time.Duration // load before the window opens
	Limit  int64         // end the window with that many completed requests, 0 = no bound
}

// Counted is a Workload that hands out work and counts it itself: its counts have to agree with the
// window's edges to the request.
type Counted interface {
	Workload
	// OpenWindow calls open, which makes samples count from the moment that it returns, in
	// one step with noting the counts so far. ctx ends with the operations.
	OpenWindow(ctx context.Context, open func() time.Duration)
	// CloseWindow ends the handing out and notes the counts. The window ended at that
	// moment, or never opened.
	CloseWindow(end time.Duration, opened bool)
	// Gauge reads what waits and what runs.
	Gauge(now time.Duration) record.Gauge
	// Waits returns the input file whose read is in flight, and for how long it has been. Any
	// goroutine may call it at any time.
	Waits() (path string, since time.Duration)
}

// Env is what a trial provides to its workload.
type Env struct {
	Clock  clock.Clock
	Levels []cache.Level
	Cache  *cache.Cache
	// Reference measures the hits that the Cache's policy costs; nil with the usual policy.
	Reference *Reference
	Transfer  *transfer.Settings
	Sink      tiers.Sink   // verifies what is read
	Pool      *buffer.Pool // nil in a simulation
	Content   *content.Content
	Dir       *workdir.Dir // nil without a storage tier of files in one directory
	Rec       *record.Recorder
	Group     *group.Member
	// Simulated: no byte is moved, and what Prepare does takes no time.
	Simulated bool

	trial *trial
}

// Lowest is the last of the tiers, the one that is measured.
func (e *Env) Lowest() tiers.Kind { return e.Levels[len(e.Levels)-1].Kind }

// Level returns the tier of a kind.
func (e *Env) Level(kind tiers.Kind) (cache.Level, error) {
	for _, l := range e.Levels {
		if l.Kind == kind {
			return l, nil
		}
	}
	return cache.Level{}, fmt.Errorf("the run has no %s tier", kind)
}

// A Folder is a directory or prefix for files or objects with stable names, and the record of the
// files kept for a later run: see [workdir.Folder].
type Folder interface {
	Path() string
	// Contents is the marker's content. SetContents replaces it; only the opener may call it.
	Contents() json.RawMessage
	SetContents(contents json.RawMessage) error
	Joined() bool // another client of the run has opened it
	Stay()        // leave what lies there at the end
}

// Folder is the folder of the storage tier, nil where it has none.
func (e *Env) Folder() Folder {
	switch {
	case e.trial.cfg.Storage.Folder == nil:
	case e.Dir != nil:
		return e.Dir
	case e.trial.bucket != nil:
		return e.trial.bucket
	}
	return nil
}

// trial is one run of one workload. It lives from Run's call to its return. Wall and
// virtual time run the same one: every goroutine waits through its clock.
type trial struct {
	Env      // what it provides to the workload
	cfg      *Config
	workload Workload
	counted  Counted // the same, nil if it does not count
	phase    Phase
	sim      *simulation // nil in real time
	info     record.Info

	begun, loaded time.Duration // the trial, and its load
	device        host.Device
	files         []spread.Files       // of each rank's part of the objects; none: no storage tier of files
	bucket        *objecttier.Tier     // nil without one
	objects       *record.Objects      // its requests, nil without it
	engine        ioengine.Engine      // of the files, nil without them
	dirs          []*directory         // where they lie
	nodes         []int                // the NUMA nodes of their devices, empty if unknown
	prepared      atomic.Bool          // the workload's preparation has returned
	tracer        *collector.Collector // nil without tracing
	course        tracing.Recorder     // of what it saw
	closers       []func(context.Context) error

	live     liveLine
	unloaded result.Unloaded         // written before prepared is set
	stop     context.CancelCauseFunc // cancels the operations; nil before the load
	ending   ending
	free     atomic.Int64 // bytes behind the storage tier, with several directories the least; -1: unknown
	stopped  atomic.Int64 // ns of the load in which this process did not run
	drained  atomic.Int64 // ns in which the workers ended after the window

	watchdog

	// What the process and the kernel had counted when the window opened.
	usage host.Usage
	stat  host.BlockStat
}

// directory is one of the directories that the trial works in.
type directory struct {
	path string
	// Where there are several:
	device host.Device
	stat   host.BlockStat // when the window opened
}

// ending is why the trial ended. Any goroutine may end it, also while it is ending.
type ending struct {
	mu      sync.Mutex
	failure error
	by      string
	over    context.Context // ends with the first reason, or with the caller's context
	cancel  context.CancelCauseFunc
}

// replace replaces the failure by a more specific one.
func (e *ending) replace(failure error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failure = failure
}

// simulation is a trial's state in virtual time.
type simulation struct {
	SimConfig
	began  time.Time   // wall clock
	device *sim.Device // unused where all tiers are infinitely fast
	gpu    *sim.Link   // nil where they are, and without a gpu tier
	over   bool        // what begins from now on is cut before it moves a byte
}

// free makes tiers take no time, or their own.
func (s *simulation) free(yes bool) {
	s.device.Free = yes
	if s.gpu != nil {
		s.gpu.Free = yes
	}
}

// errEnded is the cause of a load's context after its regular end.
var errEnded = errors.New("the load has ended")

// Fail ends the trial with an error and one of the result's reasons; the first error counts.
func (e *Env) Fail(err error, endedBy string) { e.trial.end(err, endedBy) }

// End ends the window for one of the result's reasons. The first one counts, except that a failure
// replaces a regular end.
func (e *Env) End(by string) { e.trial.end(nil, by) }

func (t *trial) end(failure error, by string) {
	e := &t.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil && (failure != nil || e.by == "") {
		e.failure, e.by = failure, by
		e.cancel(cmp.Or(failure, errEnded))
	}
}

// Go runs f in a goroutine of the clock. A panic ends the trial with an error.
func (e *Env) Go(name string, f func()) {
	e.Clock.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				e.Fail(fmt.Errorf("%s panicked: %v\n%s", name, p, debug.Stack()),
					result.EndedByError)
			}
		}()
		f()
	})
}

// Rest waits for the settle time.
func (e *Env) Rest(ctx context.Context) error {
	settle := e.trial.cfg.Settle
	if settle > 0 {
		defer e.Showing("resting", settle)()
	}
	return e.Clock.Sleep(ctx, settle)
}

// Showing shows a stage of the given length (0: unknown), at once and each second until the
// returned function is called, with the storage's unanswered requests.
func (e *Env) Showing(stage string, total time.Duration) (over func()) {
	e.trial.show(Snapshot{Stage: stage, Total: total, Free: -1})
	return func() { e.trial.stage("") }
}

// Quiet waits until the device behind the storage tier has no discards left, and returns since
// when: discards of earlier removals would otherwise run during the next window. A filesystem sends
// discards when it commits the removal, so the caller has to flush something after a removal;
// creating the work directory does. Quiet stops with a warning after half a minute. Without a
// device it does not wait.
func (e *Env) Quiet(ctx context.Context) (since time.Duration, err error) {
	const longest = 30 * time.Second
	waiting, stop := context.WithTimeout(ctx, longest)
	defer stop()
	if since, err = e.trial.quiet(waiting); err != nil && ctx.Err() == nil {
		e.trial.warn(fmt.Sprintf("%s was still discarding what had been removed before, after %s",
			e.trial.device.Title(), longest))
		err = nil
	}
	return since, err
}

// quiet is Quiet for as long as ctx.
func (t *trial) quiet(ctx context.Context) (since time.Duration, err error) {
	const (
		poll  = 20 * time.Millisecond
		still = 200 * time.Millisecond // without a new discard
	)
	since = t.Clock.Now()
	if t.sim != nil || t.info.DeviceCounters.Device == "" {
		return since, nil
	}
	for last := int64(-1); ; {
		s, err := t.device.ReadStat()
		if err != nil {
			return since, nil // DeviceCounters reports the error
		}
		now := t.Clock.Now()
		if s.DiscardIOs != last && last >= 0 {
			since = now
		}
		last = s.DiscardIOs
		// The requests in flight may be a long discard, or endless I/O of another process.
		if quiet := now - since; quiet >= still && (s.InFlight == 0 || quiet >= 5*still) {
			return since, nil
		}
		if err := t.Clock.Sleep(ctx, poll); err != nil {
			return since, err
		}
	}
}

// Looker returns the storage tier if the user or the engine's layout requested lookups, else nil.
// all: look up each entry of a request, not only until the first missing one.
func (e *Env) Looker() (l tiers.Looker, all bool) {
	cfg := &e.trial.cfg.Storage
	if b := cfg.Bucket; b != nil && b.Lookup {
		return e.trial.bucket, false
	}
	if y, _ := cfg.Layout.Spec(); y.LooksUp {
		return e.Levels[len(e.Levels)-1].Tier, y.All
	}
	return nil, false
}

// Succeeded counts operations that the cache does not report by itself: more than one
// percent of failures among all ends the trial.
func (e *Env) Succeeded(operations int64) { e.Rec.Succeeded(e.Clock.Now(), operations) }

// Show shows a stage of the preparation on the live line. It is called about once a second.
func (e *Env) Show(s Snapshot) {
	s.Free = e.trial.free.Load()
	e.trial.show(s)
}

// Call makes a call that the storage may not answer, like calls of the I/O engine.
func (e *Env) Call(what, where string, f func() error) error {
	if e.trial.engine == nil {
		return f()
	}
	return e.trial.engine.Call(what, where, f)
}

// place is the storage tier's directory, the first of several, "" where it has none.
func (t *trial) place() string {
	if len(t.dirs) == 0 {
		return ""
	}
	return t.dirs[0].path
}

// lookAtSpace reads the free space of the storage tier's filesystems, and ends the run when it falls below the
// floor that other users keep.
func (t *trial) lookAtSpace() {
	least, roots := int64(-1), t.cfg.Storage.roots()
	for i, d := range t.dirs {
		var fs host.Filesystem
		if t.Call("statfs", d.path, func() (err error) {
			fs, err = host.FilesystemOf(d.path)
			return err
		}) != nil {
			least = -1
			break
		}
		if floor := roots[i].Floor; floor > 0 && fs.Free < floor {
			t.Fail(fmt.Errorf("only %d bytes are free on the filesystem of %s, less than the %d "+
				"that must stay free: something else is filling it, or -storage-capacity-gb is "+
				"too large", fs.Free, d.path, floor), result.EndedByCapacity)
		}
		if least < 0 || fs.Free < least {
			least = fs.Free
		}
	}
	t.free.Store(least)
}

func (t *trial) warn(why ...string) { t.info.Warnings = append(t.info.Warnings, why...) }
