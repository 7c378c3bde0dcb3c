package plainio

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Routine is a benchmark without requests: every worker repeats Step until the
// window is over. It reports its bytes and operations to the Bench it is given.
type Routine interface {
	// Prepare runs once before the window.
	Prepare(ctx context.Context, b *Bench) error
	// Step does one operation. It is called by many goroutines, each with its
	// own worker number. An error that is not the context's fails the trial.
	Step(ctx context.Context, b *Bench, worker int) error
	// A Routine that keeps buffers of the pool also has Finish(b *Bench), which
	// gives them back when the workers have ended, or Prepare failed, and one with
	// numbers of its own Report(r *result.Result), called after the window.
}

// Config describes the window of a routine.
type Config struct {
	Workers    int
	Window     time.Duration // 0 = until Operations are completed or the routine ends
	Operations int64         // end the window with that many, 0 = no bound
	// why the window ends when the routine does; EndedByInput is the default
	EndedBy string
}

// Bench is what a Routine works with. It is the Workload that repeats it.
//
// A routine goes past cache, queue and requests on purpose: what it measures is a tier, and what
// the engine adds is the difference to a run with requests on the same tier.
type Bench struct {
	*kvbench.Env
	Workers int

	cfg     Config
	routine Routine
	drained clock.Event
	over    atomic.Bool // an operation ended after the window: no more begins
	gen     atomic.Uint64
	last    sync.Mutex // serializes completions where their number ends the window
}

var _ kvbench.Workload = (*Bench)(nil)

// New makes a routine the workload of one trial, whose unit of completion is
// the operation.
func New(cfg Config, r Routine) *Bench {
	return &Bench{Workers: cfg.Workers, cfg: cfg, routine: r}
}

// Phases implements Workload.
func (b *Bench) Phases() []kvbench.Phase {
	return []kvbench.Phase{{Name: "plain", Window: b.cfg.Window, Limit: b.cfg.Operations}}
}

// Prepare implements Workload. It rests first: what the drive still does for whoever used it before
// would slow the filling.
func (b *Bench) Prepare(ctx context.Context, e *kvbench.Env, _ int) error {
	b.Env, b.drained = e, e.Clock.NewEvent()
	if err := e.Rest(ctx); err != nil {
		return err
	}
	return b.routine.Prepare(ctx, b)
}

// Run implements Workload: every worker steps through the window. There is no open loop: a worker
// that has ended an operation begins the next, so that throughput is what this many can get.
func (b *Bench) Run(ctx context.Context, e *kvbench.Env, _ int) error {
	for w := range b.Workers {
		e.Clock.Go(func() { b.step(ctx, w) })
	}
	if err := b.drained.Wait(ctx); err != nil {
		return err
	}
	e.End(cmp.Or(b.cfg.EndedBy, result.EndedByInput))
	return nil
}

// step repeats the routine until the window is over. A panic becomes the run's error.
func (b *Bench) step(ctx context.Context, worker int) {
	defer func() {
		if p := recover(); p != nil {
			b.Fail(fmt.Errorf("worker %d panicked: %v\n%s", worker, p, debug.Stack()),
				result.EndedByError)
		}
	}()
	for ctx.Err() == nil && !b.over.Load() {
		if err := b.routine.Step(ctx, b, worker); err != nil && ctx.Err() == nil {
			b.Fail(err, result.EndedByError)
			return
		}
	}
}

// Report implements Workload. Workers without requests are never idle, unless the routine says so:
// a verdict of "load-limited" would make no sense.
func (b *Bench) Report(in *record.Info) {
	in.CompletionUnit, in.Workload.Workers = result.UnitOperation, b.Workers
	if b.Env == nil {
		return
	}
	if start, end := b.Rec.Window(); start < end {
		in.Harness.WorkerBusyNS = int64(b.Workers) * int64(end-start)
	}
	if r, ok := b.routine.(interface{ Report(*result.Result) }); ok {
		r.Report(&in.Result)
	}
}

// Close lets the routine give back what it holds.
//
// The workers have ended: only now are their buffers free.
func (b *Bench) Close() error {
	if f, ok := b.routine.(interface{ Finish(*Bench) }); ok && b.Env != nil {
		f.Finish(b)
	}
	return nil
}

// Tier returns the tier of a level, nil when there is none.
func (b *Bench) Tier(l tiers.Kind) (tiers.Tier, int64) {
	for _, c := range b.Levels {
		if c.Kind == l {
			return c.Tier, c.Capacity
		}
	}
	return nil, 0
}

// Gen returns a new write generation: no two objects have the same content, also when one is
// written in the place of another, so that a stale read is seen.
func (b *Bench) Gen() uint64 { return b.gen.Add(1) }

// Drained ends the window: the routine has come to its own end.
func (b *Bench) Drained() { b.drained.Fire() }

// Chunk counts bytes that have moved.
func (b *Bench) Chunk(worker int, l tiers.Kind, op tiers.Op, bytes int64) {
	b.Rec.Chunk(b.Clock.Now(), worker, l, op, phaseOf(op), bytes)
}

// Done counts a completed operation.
func (b *Bench) Done(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing) {
	b.done(worker, l, op, o, t, 0, t.IO())
}

// DoneDue is for what has a time of its own, a row of a trace: its latency counts from when it was
// due, so that a stall cannot hide the queue behind it.
//
// DoneDue counts a completed operation that was due at one moment and began at
// another.
func (b *Bench) DoneDue(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing, due,
	began time.Duration) {
	b.done(worker, l, op, o, t, max(0, began-due), max(0, b.Clock.Now()-due))
}

func (b *Bench) done(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing, queue,
	endToEnd time.Duration) {
	if b.cfg.Operations > 0 { // the one that ends the window is the last in every count
		b.last.Lock()
		defer b.last.Unlock()
	}
	now := b.Clock.Now()
	counted := b.Rec.Request(
		record.RequestSample{At: now, Shard: worker, Queue: queue, EndToEnd: endToEnd,
			Storage: t.IO()},
		record.OpSample{
			At: now, Shard: worker, Level: l, Op: op, Phase: phaseOf(op), Purpose: purposeOf(op),
			Bytes: o.Size, First: op == tiers.Read,
			Device: t.Device, Host: t.Host, Generation: t.Generation,
			Admission: t.Admission, Buffers: t.Admission,
		})
	if !counted {
		b.over.Store(true)
	}
}
