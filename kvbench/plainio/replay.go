package plainio

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/semaphore"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
	"kvbench/workloads/iotrace"
)

// Replay executes the rows of an I/O trace on the storage tier.
//
// One reader goes through the file in order. It decides about every row on metadata alone, with an
// LRU of the tier's capacity: a write evicts the least recently used objects, a read of a missing
// object costs no I/O. So hits and victims are a function of the trace and the capacity, whatever
// the speed. The workers then execute the operations: operations on one key in the order of the
// file, operations on different keys concurrently.
type Replay struct {
	Path   string
	Speed  float64 // divides the trace's gaps; 0 = as fast as the workers are
	Cycles int     // passes through the file, 0 = until the window ends
	Allow  bool    // more than 1 % malformed rows
	// Tiers and Phases to execute; nil means Tier-2 alone, and every phase.
	Tiers  []int
	Phases []string

	level cache.Level
	rows  *iotrace.Reader
	begin sync.Once
	ahead *semaphore.Weighted // held by each operation that is decided and not complete
	ready chan *replayOp      // of these, for the workers
	idle  atomic.Int64        // ns that workers waited for an operation

	lru  *simplelru.LRU[string, tiers.Object] // the tier's content, as decided
	used int64                                // its bytes
	// seen is the keys that have been written, in constant memory whatever the length of the trace:
	// it takes some other keys for written, with ten million written keys two in 100,000.
	seen *bloom.BloomFilter

	mu       sync.Mutex           // guards what follows: reader, workers and report meet there
	latest   map[string]*replayOp // of each key, while it is not complete
	deletion *replayOp            // the latest one, also
	count    result.Replay
	input    workloads.TraceReport
}

// replayOp is one operation and what has to complete before it. Operations form a graph. Its edges
// are added at the decision and removed at completion; an operation without edges goes to the
// workers. No worker waits for another operation, so a hot key blocks none.
type replayOp struct {
	kind   iotrace.Operation
	object tiers.Object
	count  *int64        // counts it when it is complete
	due    time.Duration // on the clock; never: as soon as possible
	waits  int           // operations that it waits for
	next   []*replayOp   // that wait for it
}

// replayAhead is how many operations may be decided and not complete: enough to find work on other
// keys when one is hot.
const replayAhead = 4096

var _ Routine = (*Replay)(nil)

// Prepare opens the file.
func (r *Replay) Prepare(_ context.Context, b *Bench) (err error) {
	if r.level, err = b.Level(tiers.Storage); err != nil {
		return err
	}
	if r.Tiers == nil {
		r.Tiers = []int{int(tiers.Storage)}
	}
	r.ready, r.ahead = make(chan *replayOp, replayAhead), semaphore.NewWeighted(replayAhead)
	r.latest = map[string]*replayOp{}
	// 32 MiB of bits, and eight hashes.
	r.seen = bloom.New(1<<28, 8)
	r.lru, _ = simplelru.NewLRU[string, tiers.Object](math.MaxInt, nil) // a good size
	r.rows, err = iotrace.Open(r.Path, r.Allow)
	return err
}

// Finish closes the file.
func (r *Replay) Finish(*Bench) {
	if r.rows != nil {
		_ = r.rows.Close()
	}
}

// Report adds the replay's own numbers to the result.
func (r *Replay) Report(in *result.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in.Replay = new(r.count)
	h := &in.Harness
	h.WorkerIdleNS = min(h.WorkerBusyNS, r.idle.Load())
	h.WorkerBusyNS -= h.WorkerIdleNS
	in.Input = record.Input(r.input)
}

// Step executes one operation. The first worker starts the reader, so that its time is the
// window's. A worker that finds no ready operation counts as idle: a slow trace shows nothing about
// the storage.
func (r *Replay) Step(ctx context.Context, b *Bench, worker int) error {
	if worker == 0 {
		r.begin.Do(func() { b.Go("the reader", func() { r.feed(ctx, b) }) })
	}
	waits := b.Clock.Now()
	var op *replayOp
	select {
	case op = <-r.ready:
	case <-ctx.Done():
	}
	r.idle.Add(int64(b.Clock.Now() - waits))
	if op == nil {
		return nil
	}
	err := r.carryOut(ctx, b, worker, op)
	r.complete(op, err == nil)
	return err
}

func (r *Replay) carryOut(ctx context.Context, b *Bench, worker int, op *replayOp) error {
	o, began := op.object, b.Clock.Now()
	if op.kind == iotrace.Delete {
		if err := r.level.Tier.Remove(ctx, o); err != nil {
			return fmt.Errorf("deleting %s: %w", o.Key, err)
		}
		return nil
	}
	kind := tiers.Read
	if op.kind == iotrace.Write {
		kind = tiers.Write
	}
	t, err := b.Move(ctx, worker, r.level, kind, o)
	if err != nil {
		b.Cut(ctx, worker, r.level.Kind, kind, o, t)
		return fmt.Errorf("replaying a %s of %s: %w", kind, o.Key, err)
	}
	// A row has a time of its own, from which its latency counts, so that a stall cannot hide the
	// queue behind it.
	due := min(op.due, began)
	b.Done(worker, r.level.Kind, kind, o, t, began-due, b.Clock.Now()-due)
	return nil
}

// complete releases the operations that waited for op.
func (r *Replay) complete(op *replayOp, succeeded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if succeeded {
		*op.count++
	}
	if r.latest[op.object.Key] == op {
		delete(r.latest, op.object.Key)
	}
	if r.deletion == op {
		r.deletion = nil
	}
	for _, n := range op.next {
		if n.waits--; n.waits == 0 {
			r.ready <- n
		}
	}
	r.ahead.Release(1)
}
