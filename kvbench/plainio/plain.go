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

// Routine is a benchmark without inference requests. Every worker repeats Step until the window is over.
// A Routine reports its bytes and operations to its Bench.
type Routine interface {
	// Prepare runs once before the window.
	Prepare(ctx context.Context, b *Bench) error
	// Step does one operation. Many goroutines call it, each with its own worker number. An error fails
	// the trial, unless ctx has ended.
	Step(ctx context.Context, b *Bench, worker int) error
	// A Routine may also have Finish(b *Bench), which is called when the workers have ended or Prepare
	// failed, Report(r *result.Result), which is called after the window, and Forecast() of its own.
}

// Config describes the window of a routine.
type Config struct {
	Workers int
	// Lanes divides the workers: worker w is in lane w modulo Lanes. The workers of a lane share a ring of
	// the I/O engine, descriptors of files and counters with each other, and nothing with other lanes, so
	// that lanes scale with processors. 0 is 1.
	Lanes         int
	Seed          uint64 // of the random choice of objects; different for each rank
	kvbench.Phase        // Window 0: until the routine ends; Limit counts operations
}

// Bench is the Workload that repeats a Routine, and the Routine's environment. A Routine measures a tier
// without cache, queue and requests.
type Bench struct {
	*kvbench.Env
	Config

	routine Routine
	drained clock.Event // fired when a routine ends the window itself
	// prepared: the routine's Prepare has returned.
	prepared atomic.Bool
	over     atomic.Bool // the window is over: start no more operations
	// gen is the last write generation. Each write has its own generation and content, so that a stale
	// read is detected.
	gen  atomic.Uint64
	last sync.Mutex // serializes completions if Limit ends the window
}

var (
	_ kvbench.Workload = (*Bench)(nil)
	_ kvbench.Filled   = (*Bench)(nil)
)

// New returns the workload of one trial that repeats a routine.
func New(cfg Config, r Routine) *Bench {
	cfg.Lanes = max(1, cfg.Lanes)
	return &Bench{Config: cfg, routine: r}
}

// Phase implements Workload.
func (b *Bench) Phase() kvbench.Phase { return b.Config.Phase }

// Forecast implements Workload. It returns the forecast of the routine if the routine has one.
func (b *Bench) Forecast() kvbench.Forecast {
	if r, ok := b.routine.(interface{ Forecast() kvbench.Forecast }); ok {
		return r.Forecast()
	}
	return kvbench.Forecast{WriteShare: 1}
}

// Prepare implements Workload. It first waits for the settle time, so that work of the drive for earlier
// runs does not slow down the filling.
func (b *Bench) Prepare(ctx context.Context, e *kvbench.Env) error {
	b.Env, b.drained = e, e.Clock.NewEvent()
	if err := e.Rest(ctx); err != nil {
		return err
	}
	defer b.prepared.Store(true)
	defer e.Showing("preparing", 0)()
	return b.routine.Prepare(ctx, b)
}

// Run implements Workload. Every worker calls Step in a closed loop: it starts an operation when its
// last operation has ended.
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

// Stop ends the window. by is one of the result's reasons. No more operations start.
func (b *Bench) Stop(by string) {
	b.over.Store(true)
	if start, _ := b.Rec.Window(); start == workloads.Never {
		b.Fail(fmt.Errorf("the load came to its end (%s) before the window opened: give a shorter "+
			"-warmup or a larger -ceiling-size-gb", by), by)
		return
	}
	b.End(by)
}

// Report implements Workload. Workers count as busy for the whole window, unless the routine reports
// idle time: a closed loop is never load-limited.
func (b *Bench) Report(in *record.Info) {
	in.CompletionUnit, in.Workload.Workers = result.UnitOperation, b.Workers
	if !b.prepared.Load() {
		return // Prepare was not called, or still runs
	}
	if start, end := b.Rec.Window(); start < end {
		in.Harness.WorkerBusyNS = int64(b.Workers) * int64(end-start)
	}
	if r, ok := b.routine.(interface{ Report(*result.Result) }); ok {
		r.Report(&in.Result)
	}
}

// Objects implements [kvbench.Filled]. It returns the objects of the routine if the routine is Filled.
func (b *Bench) Objects() []tiers.Object {
	if r, ok := b.routine.(kvbench.Filled); ok {
		return r.Objects()
	}
	return nil
}

// Close calls the routine's Finish. The workers have ended, so their buffers are free.
func (b *Bench) Close() error {
	if f, ok := b.routine.(interface{ Finish(*Bench) }); ok {
		f.Finish(b)
	}
	return nil
}

// plainKeys is the start of the keys of plain I/O. No other writer of the run may use it.
const plainKeys = "plain/"

// Object returns a new object with a new key.
func (b *Bench) Object(l cache.Level, size int64) tiers.Object {
	gen := b.gen.Add(1)
	return tiers.Object{Key: evenly(l.Files(), plainKeys, int64(gen)), Gen: gen, Size: size}
}

// Move reads or writes an object as the cache does, and counts its bytes.
func (b *Bench) Move(
	ctx context.Context, worker int, l cache.Level, op tiers.Op, o tiers.Object,
) (t tiers.Timing, err error) {
	c := tiers.Call{Observe: func(c tiers.Chunk) { b.Chunk(worker, l.Kind, c) }}
	err = l.Move(ctx, b.Clock.Now, op, &c, []tiers.Object{o}, b.Content.Source, b.Sink)
	return c.Timing, err
}

// Chunk counts a request that the tier has completed, or a flush.
func (b *Bench) Chunk(worker int, l tiers.Kind, c tiers.Chunk) {
	b.Rec.Chunk(worker, l, record.PlainPhase(c.Op), c)
}

// Block counts a request to the storage tier that is a whole operation. If Limit ends the window, no
// later operation is in any count.
func (b *Bench) Block(worker int, c tiers.Chunk) {
	if b.Limit > 0 {
		b.last.Lock()
		defer b.last.Unlock()
	}
	if start, _ := b.Rec.Window(); !b.Rec.Block(worker, c) && c.Completed >= start {
		b.over.Store(true) // else the request was in the warm-up
	}
}

// Cut counts an operation that ctx ended before its completion, with its time until then.
func (b *Bench) Cut(ctx context.Context, worker int, l tiers.Kind, op tiers.Op, o tiers.Object,
	t tiers.Timing) {
	if ctx.Err() != nil {
		cut := record.PlainOp(b.Clock.Now(), worker, l, op, o, t)
		cut.Partial = true
		b.Rec.Operation(cut)
	}
}

// Done counts a completed operation. queue is its wait before the start, and endToEnd includes queue.
func (b *Bench) Done(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing, queue,
	endToEnd time.Duration) {
	if b.Limit > 0 { // the operation that ends the window is the last in every count
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
