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
	"kvbench/tiers/filetier"
	"kvbench/tiers/gputier"
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

// Workload is a load on the storage, which [Run] runs through a window. If a Workload is also an
// io.Closer, Run calls Close when its workers have ended.
type Workload interface {
	// Phase returns the lengths of warm-up and window.
	Phase() Phase
	// Forecast returns what the load is expected to do, also before Prepare.
	Forecast() Forecast
	// Prepare runs before the warm-up and is not measured. It preconditions the drive, fills the cache
	// and opens inputs. ctx ends with the trial.
	Prepare(ctx context.Context, e *Env) error
	// Run loads the storage until ctx ends or the work is done. If Run returns nil before ctx ends, the
	// window ends. e.Clock.Go starts the workers, and they wait only through e.Clock, so that the load
	// also runs in virtual time. The workers end soon after ctx.
	Run(ctx context.Context, e *Env) error
	// Report adds the workload's results when the window is over. After an interruption workers may
	// still run. If Run was interrupted before Prepare, Report is called without Prepare.
	Report(in *record.Info)
}

// Phase is the measured part of a workload.
type Phase struct {
	Window time.Duration // 0 = until Limit is reached or the work is done
	Warmup time.Duration // time under load before the window opens
	Limit  int64         // completed requests after which the window ends, 0 = no limit
}

// Counted is a Workload that counts its own requests. Its counts at the start and at the end of the
// window are exact to the request.
type Counted interface {
	Workload
	// OpenWindow calls open and notes its counts in one step. open returns the moment from which samples
	// count. ctx ends with the operations.
	OpenWindow(ctx context.Context, open func() time.Duration)
	// CloseWindow stops the dispatch of requests and notes the counts at the moment end. If opened is
	// false, the window never opened.
	CloseWindow(end time.Duration, opened bool)
	// Gauge returns the queue length and the requests in flight.
	Gauge(now time.Duration) record.Gauge
	// Waits returns the input file whose read is in flight, and the age of the read. Any goroutine may
	// call Waits at any time.
	Waits() (path string, since time.Duration)
}

// Forecast is what a trial does besides its warm-up and window, as far as the parameters determine it.
type Forecast struct {
	Search time.Duration // measurements before the load, and pauses in it
	Fill   int64         // bytes written before the load
	// Moves is the number of bytes read, written and removed at which the load ends, 0 = it has no such end,
	// or nothing shows it before the run.
	Moves      int64
	WriteShare float64 // the part of the load's bytes that is written
	// Room is the maximum number of bytes in the storage tier at a time, 0 = all that is written, as far as
	// the tier has room.
	Room int64
}

// Env is what a trial provides to its workload.
type Env struct {
	Clock  clock.Clock
	Levels []cache.Level
	Cache  *cache.Cache
	// Reference counts the hits of the default policy; nil if the Cache has the default policy.
	Reference *Reference
	Transfer  *transfer.Settings
	Sink      tiers.Sink   // verifies the bytes that are read
	Pool      *buffer.Pool // nil in a simulation
	Content   *content.Content
	Dir       *workdir.Dir // nil without a storage tier of files in one directory
	Rec       *record.Recorder
	Group     *group.Member
	// Simulated: tiers move no bytes, and Prepare takes no virtual time.
	Simulated bool

	trial *trial
}

// Level returns the tier of a kind.
func (e *Env) Level(kind tiers.Kind) (cache.Level, error) {
	for _, l := range e.Levels {
		if l.Kind == kind {
			return l, nil
		}
	}
	return cache.Level{}, fmt.Errorf("the run has no %s tier", kind)
}

// A Folder is a directory or prefix whose files or objects have stable names. Its marker file describes
// the files that a run keeps for a later run: see [workdir.Folder].
type Folder interface {
	Path() string
	// Contents returns the content of the marker file. SetContents replaces the content. Only the client
	// that opened the folder may call it.
	Contents() json.RawMessage
	SetContents(contents json.RawMessage) error
	Joined() bool // another client of the run opened the folder
	Stay()        // keep the files at the end of the run
}

// Folder returns the folder of the storage tier, or nil if the tier has none.
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

// trial is one run of one workload, during a call of Run. Wall and virtual time run the same code: every
// goroutine waits through the trial's clock.
type trial struct {
	Env      // the trial's services for the workload
	cfg      *Config
	workload Workload
	counted  Counted // the workload, nil if it is not Counted
	phase    Phase
	sim      *simulation // nil in real time
	info     record.Info

	begun, loaded time.Duration        // start of the trial, start of the load
	device        host.Device          // of the storage tier
	files         []*filetier.Tier     // of all directories and tensor-parallel ranks; empty: no files
	spreads       []*spread.Tier       // one per tensor-parallel rank, if there are several directories
	bucket        *objecttier.Tier     // nil without an object store
	objects       *record.Objects      // the requests to the bucket, nil without a bucket
	engine        ioengine.Engine      // for the files, nil without files
	dirs          []*directory         // the directories of the files
	cards         *gputier.Tier        // the memory of the gpu tier, nil without one or if it is simulated
	nodes         []int                // the NUMA nodes of the directories' devices, empty if unknown
	prepared      atomic.Bool          // the workload's Prepare has returned
	tracer        *collector.Collector // nil without tracing
	course        tracing.Recorder     // the snapshots of the tracer
	closers       []func(context.Context) error

	live     liveLine
	unloaded result.Unloaded         // written before prepared is set
	stop     context.CancelCauseFunc // cancels the operations; nil before the load
	ending   ending
	free     atomic.Int64 // free bytes of the fullest filesystem of the storage tier; -1: unknown
	pauses   *pauses      // of this process; nil in virtual time
	drained  atomic.Int64 // ns from the end of the window until the last worker ended

	watchdog

	meters
}

// meters are the counters of process and kernel at the start of the window, advanced by what they counted
// while the measurement was suspended.
type meters struct {
	metering sync.Mutex
	reading
	suspended *reading // the counters when the measurement was suspended; nil: it goes on
}

// reading is one reading of the counters.
type reading struct {
	usage     host.Usage
	stat      host.Reading
	rootStats []host.Reading // of each of several directories
	readAt    time.Duration  // a moment before
}

// directory is a directory of the storage tier.
type directory struct {
	path   string
	device host.Device
}

// ending is the reason why the trial ended. Any goroutine may set it, also when the trial has ended.
type ending struct {
	mu      sync.Mutex
	failure error
	by      string
	over    context.Context // done with the first reason, or with the caller's context
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
	began  time.Time                   // wall clock
	device *sim.Device                 // unused if no tier takes time
	busy   [tiers.NumOps]time.Duration // of the device's media when the window opened
	gpu    *sim.Device                 // nil without a gpu tier, and if no tier takes time
	over   bool                        // the window is closed: write no more rows of the I/O trace
}

// free makes the tiers take no time if yes is true, else the time of their models.
func (s *simulation) free(yes bool) {
	s.device.Free = yes
	if s.gpu != nil {
		s.gpu.Free = yes
	}
}

// errEnded is the cause of the context ending.over after an end without a failure.
var errEnded = errors.New("the load has ended")

// Fail ends the trial with an error. endedBy is one of the result's reasons. The first error counts.
func (e *Env) Fail(err error, endedBy string) { e.trial.end(err, endedBy) }

// End ends the window without an error. by is one of the result's reasons. The first reason counts, but
// a later Fail replaces it.
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

// Concurrently calls f(ctx, i) for i from 0 to n-1 concurrently, and waits for all calls. The first error
// ends ctx, and Concurrently returns it. Once ctx has ended, f may wait only for I/O.
func (e *Env) Concurrently(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	if n == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := e.Clock.NewEvent()
	var left atomic.Int64
	left.Store(int64(n))
	var first sync.Once
	var failure error
	for i := range n {
		e.Go("the preparation", func() {
			defer func() {
				if left.Add(-1) == 0 {
					ended.Fire()
				}
			}()
			if err := f(ctx, i); err != nil {
				first.Do(func() { failure = err })
				cancel(err)
			}
		})
	}
	if err := ended.Wait(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return failure
}

// Filling shows a stage that writes total bytes on the live line until ctx ends. The stage adds the bytes that
// it has written to done.
func (e *Env) Filling(ctx context.Context, stage string, total int64, done *atomic.Int64) {
	begun := e.Clock.Now()
	e.Clock.Every(ctx, time.Second, func() {
		e.Show(Snapshot{Stage: stage, Elapsed: e.Clock.Now() - begun, Done: done.Load(), DoneTotal: total})
	})
}

// Rest waits for the settle time.
func (e *Env) Rest(ctx context.Context) error {
	settle := e.trial.cfg.Settle
	if settle > 0 {
		defer e.Showing("pausing", settle)()
	}
	return e.Clock.Sleep(ctx, settle)
}

// Showing shows a stage on the live line, at once and each second until the caller calls over. total is
// the length of the stage, 0 = unknown.
func (e *Env) Showing(stage string, total time.Duration) (over func()) {
	e.trial.show(Snapshot{Stage: stage, Total: total, Free: -1})
	return func() { e.trial.stage("") }
}

// Quiet waits until the storage tier's device has completed the discards of earlier removals, because
// these would slow down the next window. It returns the moment of the last discard. A filesystem sends
// discards when it commits a removal. So after a removal the caller has to flush the filesystem; opening
// the work directory does. After 30 s Quiet stops waiting, with a warning. Without a device it does not
// wait.
func (e *Env) Quiet(ctx context.Context) (since time.Duration, err error) {
	waiting, stop := context.WithTimeout(ctx, longestQuiet)
	defer stop()
	if since, err = e.trial.quiet(waiting); err != nil && ctx.Err() == nil {
		e.trial.warn(fmt.Sprintf("%s was still discarding what had been removed before, after %s",
			e.trial.device.Title(), longestQuiet))
		err = nil
	}
	return since, err
}

// quiet is Quiet without the limit of 30 s.
func (t *trial) quiet(ctx context.Context) (since time.Duration, err error) {
	const (
		poll  = 20 * time.Millisecond
		still = 200 * time.Millisecond // this long without a new discard
	)
	since = t.Clock.Now()
	if t.sim != nil || t.info.DeviceCounters.Device == "" {
		return since, nil
	}
	for last := int64(-1); ; {
		all, err := t.device.ReadStat()
		if err != nil {
			return since, nil // DeviceCounters reports the error
		}
		s := all.Sub(nil)
		now := t.Clock.Now()
		if s.DiscardIOs != last && last >= 0 {
			since = now
		}
		last = s.DiscardIOs
		// A request in flight may be a long discard, so wait longer. It may also be I/O of another
		// process, which may never end.
		if quiet := now - since; quiet >= still && (s.InFlight == 0 || quiet >= 5*still) {
			return since, nil
		}
		if err := t.Clock.Sleep(ctx, poll); err != nil {
			return since, err
		}
	}
}

// Looker returns the storage tier if the user or the engine's layout wants lookups, else nil. If all is
// true, a request looks up each of its entries. Otherwise it stops at the first missing entry.
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

// Succeeded counts successful operations of the workload. The trial ends if more than 1 % of all
// operations fail. The cache counts its own operations.
func (e *Env) Succeeded(operations int64) { e.Rec.Succeeded(e.Clock.Now(), operations) }

// Show shows a snapshot on the live line. The caller calls it about once a second.
func (e *Env) Show(s Snapshot) {
	s.Free = e.trial.free.Load()
	e.trial.show(s)
}

// Call calls f, a call to the storage that may hang. The live line and the result show it while it is in
// flight, like the calls of the I/O engine.
func (e *Env) Call(what, where string, f func() error) error {
	if e.trial.engine == nil {
		return f()
	}
	return e.trial.engine.Call(what, where, f)
}

// lookAtSpace reads the free space of the storage tier's filesystems. It ends the run if the free space
// is below the Floor of the Root.
func (t *trial) lookAtSpace() {
	least := int64(-1)
	for i, d := range t.dirs {
		var fs host.Filesystem
		if t.Call("statfs", d.path, func() (err error) {
			fs, err = host.FilesystemOf(d.path)
			return err
		}) != nil {
			least = -1
			break
		}
		if floor := t.cfg.Storage.Roots[i].Floor; floor > 0 && fs.Free < floor {
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
