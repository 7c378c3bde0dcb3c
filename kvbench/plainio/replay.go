package plainio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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
	"kvbench/tiers/clock"
	"kvbench/workloads"
	"kvbench/workloads/iotrace"
)

// Replay executes the rows of an I/O trace on the storage tier.
//
// One reader reads the file in order. It decides about every row on metadata alone, with an LRU list of
// the tier's capacity. A write evicts the least recently used objects. A read of a missing object makes
// no I/O. So hits and victims depend only on the trace and the capacity. The workers execute the
// operations: operations on one key in the order of the file, operations on different keys concurrently.
type Replay struct {
	Path   string
	Speed  float64 // divides the gaps between rows; 0 = no gaps
	Cycles int     // passes through the file, 0 = until the window ends
	Allow  bool    // accept more than 1 % malformed rows
	// Tiers and Phases select the rows to execute. nil: only Tier-2, and every phase.
	Tiers  []int
	Phases []string

	level cache.Level
	rows  *iotrace.Reader
	begin sync.Once
	ahead *semaphore.Weighted // one unit per decided operation that is not complete
	ready chan *replayOp      // decided operations, for the workers
	idle  atomic.Int64        // ns that workers waited for an operation

	lru  *simplelru.LRU[string, tiers.Object] // the tier's content after the decided operations
	used int64                                // bytes of the objects in lru
	// seen has the keys that have been written, in constant memory. Its rate of false positives is 2 in
	// 100,000 with ten million keys.
	seen *bloom.BloomFilter

	mu       sync.Mutex           // guards the fields below, for reader, workers and Report
	latest   map[string]*replayOp // the latest operation on each key, until it is complete
	deletion *replayOp            // the latest deletion, until it is complete
	count    result.Replay
	input    workloads.TraceReport
}

// replayOp is one operation in a graph of dependencies. Edges are added at the decision and removed at
// completion. An operation that waits for no other goes to the workers. So no worker waits for another
// operation, and a hot key blocks no worker.
type replayOp struct {
	kind   iotrace.Operation
	object tiers.Object
	count  *int64        // incremented at completion
	due    time.Duration // on the clock; clock.Never: as soon as possible
	waits  int           // number of operations that have to complete before this one
	next   []*replayOp   // operations that wait for this one
}

// replayAhead is the maximum number of decided operations that are not complete. It is large enough to
// find work on other keys if one key is hot.
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
	r.rows, err = iotrace.Open(r.Path, r.Allow, r.Speed == 0)
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

// Step executes one operation. Worker 0 starts the reader, so that the trace starts with the load. A
// worker counts as idle while no operation is ready.
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
	err := r.execute(ctx, b, worker, op)
	r.complete(op, err == nil)
	return err
}

func (r *Replay) execute(ctx context.Context, b *Bench, worker int, op *replayOp) error {
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
	// The latency counts from the row's due time, so that a stall does not hide the queue behind it.
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

// feed reads the file pass after pass, and fires drained when all operations are complete. A pass starts
// a millisecond of trace time after the last row of the pass before.
func (r *Replay) feed(ctx context.Context, b *Bench) {
	origin := b.Clock.Now()
	last, err := r.pass(ctx, b, origin, 0)
	for cycle := 1; errors.Is(err, io.EOF) && cycle != r.Cycles; cycle++ {
		_ = r.rows.Close() // only read from
		if r.rows, err = iotrace.Open(r.Path, r.Allow, r.Speed == 0); err == nil {
			last, err = r.pass(ctx, b, origin, last+time.Millisecond)
		}
	}
	if errors.Is(err, io.EOF) {
		err = r.ahead.Acquire(ctx, replayAhead) // succeeds when all operations are complete
	}
	switch {
	case err == nil:
		b.drained.Fire()
	case ctx.Err() == nil:
		b.Fail(err, result.EndedByError)
	}
}

// pass decides about the rows of one pass, each at its due time. base is the trace time of the pass's
// start. pass returns the trace time of the last row and the error that ended it, io.EOF at the end of
// the file.
func (r *Replay) pass(ctx context.Context, b *Bench, origin, base time.Duration) (
	last time.Duration, err error,
) {
	// The result has the counts of the first pass, because later passes have the same rows.
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if seen := r.rows.Report(); base == 0 {
			r.input = seen
		} else {
			r.input.Cycles += seen.Cycles
		}
	}()
	for ctx.Err() == nil {
		row, err := r.rows.Next()
		if err != nil {
			return last, err
		}
		last = base + row.At
		due := clock.Never
		if r.Speed > 0 {
			due = origin + time.Duration(float64(last)/r.Speed)
			if err := b.Clock.Sleep(ctx, due-b.Clock.Now()); err != nil {
				return last, err
			}
		}
		if err := r.decide(ctx, b, row, due); err != nil {
			return last, err
		}
		r.mu.Lock()
		r.count.LateNS = max(r.count.LateNS, int64(b.Clock.Now()-due))
		r.mu.Unlock()
	}
	return last, context.Cause(ctx)
}

// decide makes the operations of a row: the evictions that it needs, and its own operation. The decision
// depends only on the order of the file and on metadata, so two drives get the same operations.
func (r *Replay) decide(ctx context.Context, b *Bench, row iotrace.Row, due time.Duration) error {
	r.tally(&r.count.Rows)
	key := row.Key
	if row.Tier != int(tiers.Storage) {
		// An entry in another tier is a different object.
		key = fmt.Sprintf("Tier-%d/%s", row.Tier, key)
	}
	held, there := r.lru.Peek(key)
	switch {
	case !slices.Contains(r.Tiers, row.Tier),
		r.Phases != nil && !slices.Contains(r.Phases, row.Phase):
		r.tally(&r.count.Skipped)
	case row.Operation == iotrace.Read && there:
		r.lru.Get(key)
		return r.queue(ctx,
			&replayOp{kind: iotrace.Read, object: held, count: &r.count.Reads, due: due})
	case row.Operation == iotrace.Read && r.seen.TestString(key):
		r.tally(&r.count.EvictedReads)
	case row.Operation == iotrace.Read:
		r.tally(&r.count.UnwrittenReads)
	case row.Operation == iotrace.Delete && there:
		return r.remove(ctx, held, &r.count.Deletes)
	case row.Operation == iotrace.Delete:
		r.tally(&r.count.UnknownDeletes)
	case row.Bytes > r.level.Capacity:
		r.tally(&r.count.TooLarge)
	default:
		return r.write(ctx, tiers.Object{Key: key, Gen: b.gen.Add(1), Size: row.Bytes}, due)
	}
	return nil
}

func (r *Replay) tally(count *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*count++
}

// write evicts objects until o fits, and writes o. If the key exists, the old object is deleted first,
// because both may not fit.
func (r *Replay) write(ctx context.Context, o tiers.Object, due time.Duration) error {
	if old, there := r.lru.Peek(o.Key); there {
		if err := r.remove(ctx, old, &r.count.Overwrites); err != nil {
			return err
		}
	}
	for r.used+o.Size > r.level.Capacity {
		_, oldest, _ := r.lru.GetOldest()
		if err := r.remove(ctx, oldest, &r.count.Evictions); err != nil {
			return err
		}
	}
	r.lru.Add(o.Key, o)
	r.used += o.Size
	r.seen.AddString(o.Key)
	return r.queue(ctx, &replayOp{kind: iotrace.Write, object: o, count: &r.count.Writes, due: due})
}

// remove removes an entry from the tier's decided content.
func (r *Replay) remove(ctx context.Context, o tiers.Object, count *int64) error {
	r.lru.Remove(o.Key)
	r.used -= o.Size
	return r.queue(ctx, &replayOp{kind: iotrace.Delete, object: o, count: count})
}

// queue adds an operation that waits for the latest operation on its key. A write or deletion also waits
// for the latest deletion. So deletions run one after the other, a write waits for its evictions, and
// the tier never holds more bytes than decided.
func (r *Replay) queue(ctx context.Context, op *replayOp) error {
	if err := r.ahead.Acquire(ctx, 1); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	op.after(r.latest[op.object.Key])
	r.latest[op.object.Key] = op
	if op.kind != iotrace.Read {
		op.after(r.deletion)
	}
	if op.kind == iotrace.Delete {
		r.deletion = op
	}
	if op.waits == 0 {
		r.ready <- op // never blocks: the channel's capacity is replayAhead
	}
	return nil
}

// after makes op wait for before, if before is not nil. Callers hold mu.
func (op *replayOp) after(before *replayOp) {
	if before != nil {
		before.next = append(before.next, op)
		op.waits++
	}
}
