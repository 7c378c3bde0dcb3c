package kvbench

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/transfer"
	"kvbench/tracing/host"
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
	// numbers of its own Report(in *RunInfo), called after the window.
}

// Bench is what a Routine works with.
type Bench struct {
	Clock    clock.Clock
	Transfer *transfer.Transfer
	Pool     *buffer.Pool
	Content  *content.Content
	Levels   []cache.Level
	Workers  int

	rec   *record.Recorder
	trial *trial
	gen   atomic.Uint64
	last  sync.Mutex // serializes completions where their number ends the window
}

// Tier returns the tier of a level, nil when there is none.
func (b *Bench) Tier(l tiers.Kind) (tiers.Tier, int64) {
	for _, c := range b.Levels {
		if c.Level == l {
			return c.Tier, c.Capacity
		}
	}
	return nil, 0
}

// Gen returns a new write generation: no two objects have the same content.
func (b *Bench) Gen() uint64 { return b.gen.Add(1) }

// Go runs f beside the workers and waits for it as for them.
func (b *Bench) Go(f func()) { b.Clock.Go(f) }

// Drained ends the window: the routine has come to its own end.
func (b *Bench) Drained() { b.trial.drained() }

// Fail ends the trial.
func (b *Bench) Fail(err error) { b.trial.fail(err, result.EndedByError) }

// Chunk counts bytes that have moved.
func (b *Bench) Chunk(worker int, l tiers.Kind, op tiers.Op, bytes int64) {
	b.rec.Chunk(b.Clock.Now(), worker, l, op, phaseOf(op), bytes)
}

// Done counts a completed operation.
func (b *Bench) Done(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing) {
	b.done(worker, l, op, o, t, 0, t.IO())
}

// DoneDue counts a completed operation that was due at one moment and began at
// another.
func (b *Bench) DoneDue(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing, due, began time.Duration) {
	b.done(worker, l, op, o, t, max(0, began-due), max(0, b.Clock.Now()-due))
}

func (b *Bench) done(worker int, l tiers.Kind, op tiers.Op, o tiers.Object, t tiers.Timing, queue, endToEnd time.Duration) {
	if b.trial.cfg.Requests > 0 { // the one that ends the window is the last in every count
		b.last.Lock()
		defer b.last.Unlock()
	}
	now := b.Clock.Now()
	if !b.rec.Request(record.RequestSample{At: now, Shard: worker, Queue: queue, EndToEnd: endToEnd, Storage: t.IO()}) {
		return
	}
	b.rec.Operation(record.OpSample{
		At: now, Shard: worker, Level: l, Op: op, Phase: phaseOf(op), Purpose: purposeOf(op),
		Key: o.Key, Bytes: o.Size, First: op == tiers.Read,
		Device: t.Device, Host: t.Host, Generation: t.Generation, Admission: t.Admission, Buffers: t.Admission,
	})
}

// RunPlain executes one trial of a routine, as Run does for a workload: an
// exact window, the kernel's witness, the harness's cost, and a Result whose
// unit of completion is the operation. Of the Config it reads Info, Workers,
// Window, Requests (operations), Settle, Storage, Procs, Clock, Progress and
// Publish.
func RunPlain(ctx context.Context, cfg Config, r Routine) (*result.Result, error) {
	cfg.Info.CompletionUnit = result.UnitOperation
	t, err := newTrial(ctx, &cfg, nil)
	if err != nil {
		return nil, err
	}
	b := &Bench{
		Clock: t.clock, Transfer: t.stack.transfer, Pool: t.stack.pool, Content: t.stack.content,
		Levels: t.stack.levels, Workers: cfg.Workers, rec: t.rec, trial: t,
	}
	if f, ok := r.(interface{ Finish(*Bench) }); ok {
		t.release = func() { f.Finish(b) }
	}
	return t.run(ctx, func() {
		t.say(ctx, "resting", cfg.Settle)
		err := t.clock.Sleep(ctx, cfg.Settle)
		if err == nil {
			err = r.Prepare(ctx, b)
		}
		if err != nil {
			t.failPreparing(ctx, err)
			return
		}
		t.repeat(ctx, b, r)
	})
}

// repeat lets every worker step through the window.
func (t *trial) repeat(ctx context.Context, b *Bench, r Routine) {
	opctx, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	_ = host.ResetPeakRSS()
	t.limitRequests()
	start := t.startMeters()
	for w := range t.cfg.Workers {
		t.clock.Go(func() { t.step(opctx, b, r, w) })
	}
	t.watchPlain(opctx, start)
	t.awaitEnd(ctx)
	_, end, _ := t.stopMeters()
	stop(errWindowOver)
	t.info.Harness.WorkerBusyNS = int64(t.cfg.Workers) * int64(end-start)
	t.tierInfo()
	t.drain(ctx)
	t.info.DrainNS = int64(t.clock.Now() - end)
	if p, ok := r.(interface{ Report(*result.Result) }); ok {
		p.Report(&t.info.Result)
	}
}

func (t *trial) step(ctx context.Context, b *Bench, r Routine, worker int) {
	defer func() {
		if p := recover(); p != nil {
			t.fail(fmt.Errorf("worker %d panicked: %v\n%s", worker, p, debug.Stack()), result.EndedByError)
		}
	}()
	for ctx.Err() == nil {
		if err := r.Step(ctx, b, worker); err != nil && ctx.Err() == nil {
			t.fail(err, result.EndedByError)
			return
		}
	}
}

// watchPlain feeds the live line.
func (t *trial) watchPlain(ctx context.Context, start time.Duration) {
	if t.cfg.Progress == nil {
		return
	}
	t.clock.Every(ctx, time.Second, func() {
		t.cfg.Progress(Snapshot{
			Stage: "running", Elapsed: t.clock.Now() - start, Total: t.cfg.Window, Live: t.rec.Counters(),
			Tiers: []cache.Gauge{}, Free: t.freeSpace(),
		})
	})
}
