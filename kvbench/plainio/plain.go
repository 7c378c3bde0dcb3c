package plainio

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/workloads"
)

// Routine is a benchmark without requests: every worker repeats Step until the window is over. It
// reports its bytes and operations to its Bench.
type Routine interface {
	// Prepare runs once before the window.
	Prepare(ctx context.Context, b *Bench) error
	// Step does one operation. It is called by many goroutines, each with its
	// own worker number. An error that is not the context's fails the trial.
	Step(ctx context.Context, b *Bench, worker int) error
	// A Routine that keeps buffers of the pool also has Finish(b *Bench), called when the workers
	// have ended or Prepare failed. A Routine with numbers of its own has Report(r *result.Result),
	// called after the window.
}

// Config describes the window of a routine.
type Config struct {
	Workers       int
	Seed          uint64 // of what is read, rank included
	kvbench.Phase        // with a window of 0 until the routine ends; Limit counts operations
}

// Bench is a Routine's environment, and the Workload that repeats it.
//
// A routine does not use cache, queue and requests: it measures a tier. The difference to a run
// with requests on the same tier is the engine's cost.
type Bench struct {
	*kvbench.Env
	Config

	routine Routine
	drained clock.Event // fired by a routine that has come to its own end
	// prepared: the routine has come back from that, whatever came of it.
	prepared atomic.Bool
	over     atomic.Bool // an operation ended after the window: no more begins
	// The last write generation: no two objects have the same content, also when one replaces
	// another, so that a stale read is detected.
	gen  atomic.Uint64
	last sync.Mutex // serializes completions where their number ends the window
}

var (
	_ kvbench.Workload = (*Bench)(nil)
	_ kvbench.Filled   = (*Bench)(nil)
)

// New makes a routine the workload of one trial; its unit of completion is the operation.
func New(cfg Config, r Routine) *Bench {
	return &Bench{Config: cfg, routine: r}
}

// Phase implements Workload.
func (b *Bench) Phase() kvbench.Phase { return b.Config.Phase }

// Prepare implements Workload. It waits first until the device is idle: the drive's work for
// earlier users would slow the filling.
func (b *Bench) Prepare(ctx context.Context, e *kvbench.Env) error {
	b.Env, b.drained = e, e.Clock.NewEvent()
	if err := e.Rest(ctx); err != nil {
		return err
	}
	defer b.prepared.Store(true)
	defer e.Showing("preparing", 0)()
	return b.routine.Prepare(ctx, b)
}

// Run implements Workload: every worker steps through the window. The loop is closed: a worker
// begins an operation when its last one has ended, so throughput is what this many workers reach.
func (b *Bench) Run(ctx context.Context, e *kvbench.Env) error {
	for w := range b.Workers {
		e.Go(fmt.Sprint("worker ", w), func() {
			for ctx.Err() == nil && !b.over.Load() {
				if err := b.routine.Step(ctx, b, w); err != nil && ctx.Err() == nil {
					b.Fail(err, result.EndedByError)
					return
				}
			}
		})
	}
	return b.drained.Wait(ctx)
}

// Stop ends the window for one of the result's reasons; no more operations begin.
func (b *Bench) Stop(by string) {
	b.over.Store(true)
	if start, _ := b.Rec.Window(); start == workloads.Never {
		b.Fail(fmt.Errorf("the load came to its end (%s) before the window opened: give a shorter "+
			"-warmup or a larger -ceiling-size-gb", by), by)
		return
	}
	b.End(by)
}

// Report implements Workload. Workers without requests are never idle, unless the routine reports
// it: a verdict of "load-limited" would be meaningless.
func (b *Bench) Report(in *record.Info) {
	in.CompletionUnit, in.Workload.Workers = result.UnitOperation, b.Workers
	if !b.prepared.Load() {
		return // the trial ended before: Prepare did not begin, or still runs
	}
	if start, end := b.Rec.Window(); start < end {
		in.Harness.WorkerBusyNS = int64(b.Workers) * int64(end-start)
	}
	if r, ok := b.routine.(interface{ Report(*result.Result) }); ok {
		r.Report(&in.Result)
	}
}

// Objects implements [kvbench.Filled]: a routine may implement it, too.
func (b *Bench) Objects() []tiers.Object {
	if r, ok := b.routine.(kvbench.Filled); ok {
		return r.Objects()
	}
	return nil
}

// Close lets the routine free its buffers.
//
// The workers have ended: only now are their buffers free.
func (b *Bench) Close() error {
	if f, ok := b.routine.(interface{ Finish(*Bench) }); ok {
		f.Finish(b)
	}
	return nil
}

// Object returns a new object: keys are never written again, as with content-addressed entries.
func (b *Bench) Object(l cache.Level, size int64) tiers.Object {
	gen := b.gen.Add(1)
	return tiers.Object{Key: evenly(l.Files(), "plain/", int64(gen)), Gen: gen, Size: size}
}

// Move reads or writes an object as the cache does, and counts its bytes.
func (b *Bench) Move(
	ctx context.Context, worker int, l cache.Level, op tiers.Op, o tiers.Object,
) (t tiers.Timing, err error) {
	c := tiers.Call{Observe: func(c tiers.Chunk) { b.Chunk(worker, l.Kind, c) }}
	if op == tiers.Read {
		err = l.Get(ctx, b.Clock.Now, &c, []tiers.Object{o}, b.Sink)
	} else {
		err = l.Put(ctx, b.Clock.Now, &c, []tiers.Object{o}, b.Content.Source())
	}
	return c.Timing, err
}

// Chunk counts a request that the tier has completed, or a flush.
func (b *Bench) Chunk(worker int, l tiers.Kind, c tiers.Chunk) {
	b.Rec.Chunk(worker, l, record.PlainPhase(c.Op), c)
}

// Block counts a request of the storage tier that is a whole operation. Where the number of
// operations ends the window, the ending one is the last in every count.
func (b *Bench) Block(worker int, c tiers.Chunk) {
	if b.Limit > 0 {
		b.last.Lock()
		defer b.last.Unlock()
	}
	if start, _ := b.Rec.Window(); !b.Rec.Block(worker, c) && c.Done >= start {
		b.over.Store(true) // else it was of the warm-up
	}
}

// Cut counts an operation that did not complete because ctx had ended, with its time until then.
func (b *Bench) Cut(ctx context.Context, worker int, l tiers.Kind, op tiers.Op, o tiers.Object,
	t tiers.Timing) {
	if ctx.Err() != nil {
		cut := record.PlainOp(b.Clock.Now(), worker, l, op, o, t)
		cut.Partial = true
		b.Rec.Operation(cut)
	}
}

// Done counts a completed operation, its wait before it began, and its time including the wait.
func (b *Bench) Done(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing, queue,
	endToEnd time.Duration) {
	if b.Limit > 0 { // the one that ends the window is the last in every count
		b.last.Lock()
		defer b.last.Unlock()
	}
	spent := result.RequestTime{EndToEnd: int64(endToEnd), Queue: int64(queue)}
	if spent.Decode = int64(t.IO()); op == tiers.Write {
		spent.Prefill, spent.Decode = spent.Decode, 0
	}
	now := b.Clock.Now()
	counted := b.Rec.Request(
		record.RequestSample{At: now, Shard: worker, Storage: t.IO(), Time: spent},
		record.PlainOp(now, worker, l, op, o, t))
	if start, _ := b.Rec.Window(); !counted && now >= start { // else it was of the warm-up
		b.over.Store(true)
	}
}
