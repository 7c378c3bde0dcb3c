package plainio

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bits-and-blooms/bloom/v3"
	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/workloads"
	"kvbench/workloads/iotrace"
)

// Replay carries out the rows of an I/O trace on the storage tier.
//
// One reader goes through the file in order. It decides about every row on
// metadata alone, against an LRU of the tier's capacity: a write makes room by
// deleting what was used longest ago, a read of what is not there costs no I/O.
// So hits and victims are a function of the trace and the capacity, whatever the
// speed. The workers then carry out the operations: those on one key in the order
// of the file, those on different keys overlapping.
type Replay struct {
	Path   string
	Speed  float64 // divides the trace's gaps; 0 = as fast as the workers are
	Cycles int     // passes through the file, 0 = until the window ends
	Allow  bool    // more than 1 % malformed rows
	// Tiers and Phases that are carried out; nil means Tier-2 alone, and every phase.
	Tiers  []int
	Phases []string

	capacity int64
	rows     *iotrace.Reader
	ready    chan *replayOp
	tokens   chan struct{}
	begin    sync.Once
	left     atomic.Int64 // operations decided and not complete, plus one while rows may come
	idle     atomic.Int64 // ns that workers waited for an operation

	mu   sync.Mutex                           // guards what follows
	lru  *simplelru.LRU[string, tiers.Object] // what lies in the tier, as decided
	used int64                                // its bytes
	// key -> its last operation, while that is not complete
	chain map[string]*replayOp
	room  *replayOp // the last deletion, while that is not complete
	// seen are the keys that have ever been written, in constant memory whatever the length of
	// the trace: of keys never written it takes some for written, with ten million written
	// keys two in 100,000.
	seen  *bloom.BloomFilter
	count result.Replay
	input workloads.TraceReport
	late  time.Duration
}

// replayOp is one operation and what has to be complete before it. Operations form a graph whose
// edges are written when they are decided and taken away as they complete; one without edges left
// goes to the workers. Nobody blocks on another operation, so a hot key holds up no worker.
type replayOp struct {
	op      iotrace.Operation
	key     string
	object  tiers.Object
	victims []tiers.Object // to delete
	room    bool           // it only makes room for a write, and is no row
	old     int64          // of its victims, those that the write replaces
	due     time.Duration  // on the clock; never: as soon as possible
	waits   int            // operations that it waits for
	next    []*replayOp    // that wait for it
}

// replayAhead is how many operations may be decided and not complete: far enough
// to find work on other keys when one is hot.
const replayAhead = 4096

const (
	bloomBits   = 1 << 28 // 32 MiB
	bloomHashes = 8
)

// Prepare opens the file.
func (r *Replay) Prepare(_ context.Context, b *Bench) error {
	tier, capacity := b.Tier(tiers.Storage)
	if tier == nil {
		return errors.New("the run has no storage tier to replay the trace on")
	}
	r.capacity = capacity
	r.ready, r.tokens = make(chan *replayOp, 2*replayAhead), make(chan struct{}, replayAhead)
	r.chain = map[string]*replayOp{}
	r.left.Store(1)
	r.seen = bloom.New(bloomBits, bloomHashes)
	var err error
	if r.lru, err = simplelru.NewLRU[string, tiers.Object](math.MaxInt, nil); err != nil {
		return err
	}
	r.rows, err = iotrace.Open(r.Path, r.Allow)
	return err
}

// Finish closes the file.
func (r *Replay) Finish(*Bench) {
	if r.rows != nil {
		_ = r.rows.Close()
	}
}

// Report puts the replay's own numbers into the result.
func (r *Replay) Report(in *result.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.count
	c.LateNS = int64(r.late)
	in.Replay = &c
	h := &in.Harness
	h.WorkerIdleNS = min(h.WorkerBusyNS, r.idle.Load())
	h.WorkerBusyNS -= h.WorkerIdleNS
	in.Input = record.Input(r.input)
}

// Step carries out one operation. The first worker starts the reader, so that its time is the
// window's. A worker that finds nothing ready waits, which is counted as idle: a trace that comes
// slowly says nothing about the storage.
func (r *Replay) Step(ctx context.Context, b *Bench, worker int) error {
	var failed error
	if worker == 0 {
		r.begin.Do(func() { b.Clock.Go(func() { r.feed(ctx, b) }) })
	}
	waits := b.Clock.Now()
	select {
	case op := <-r.ready:
		r.idle.Add(int64(b.Clock.Now() - waits))
		failed = r.carryOut(ctx, b, worker, op)
		r.complete(b, op)
	case <-ctx.Done():
		r.idle.Add(int64(b.Clock.Now() - waits))
	}
	return failed
}

func (r *Replay) carryOut(ctx context.Context, b *Bench, worker int, op *replayOp) error {
	tier, _ := b.Tier(tiers.Storage)
	for _, v := range op.victims {
		if err := tier.Remove(ctx, v); err != nil {
			return fmt.Errorf("deleting %s: %w", v.Key, err)
		}
	}
	if op.room {
		r.tally(func(c *result.Replay) {
			c.Overwrites, c.Evictions = c.Overwrites+op.old,
				c.Evictions+int64(len(op.victims))-op.old
		})
		return nil
	}
	var t tiers.Timing
	var err error
	kind := tiers.Read
	start := b.Clock.Now()
	switch op.op {
	case iotrace.Delete:
		r.tally(func(c *result.Replay) { c.Deletes++ })
		return nil
	case iotrace.Write:
		kind = tiers.Write
		_, t, err = b.Transfer.Write(ctx, tier,
			func(_ tiers.Op, n int64) { b.Chunk(worker, tiers.Storage, tiers.Write, n) }, op.object)
	default:
		_, t, err = b.Transfer.Read(ctx, tier,
			func(_ tiers.Op, n int64) { b.Chunk(worker, tiers.Storage, tiers.Read, n) }, op.object)
	}
	if err != nil {
		return fmt.Errorf("replaying a %s of %s: %w", kind, op.key, err)
	}
	if op.due == clock.Never {
		op.due = start
	}
	r.tally(func(c *result.Replay) {
		if kind == tiers.Write {
			c.Writes++
		} else {
			c.Reads++
		}
	})
	b.DoneDue(worker, tiers.Storage, kind, op.object, t, op.due, start)
	return nil
}

func (r *Replay) tally(count func(*result.Replay)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.count)
}

// complete lets those go on that waited for op. They are handed over outside of the lock: the
// channel holds all that can be ready at once, two for each token, so this never blocks for long.
func (r *Replay) complete(b *Bench, op *replayOp) {
	r.mu.Lock()
	if r.chain[op.key] == op {
		delete(r.chain, op.key)
	}
	if r.room == op {
		r.room = nil
	}
	var free []*replayOp
	for _, n := range op.next {
		if n.waits--; n.waits == 0 {
			free = append(free, n)
		}
	}
	op.next, op.waits = nil, -1
	r.mu.Unlock()
	if !op.room {
		<-r.tokens
	}
	for _, n := range free {
		r.ready <- n // it holds two for each token: a write and its room
	}
	r.settle(b)
}

// settle ends the replay with its last operation: rows may come until the reader has counted
// itself out, so the count cannot reach zero before.
func (r *Replay) settle(b *Bench) {
	if r.left.Add(-1) == 0 {
		b.Drained()
	}
}

// feed reads the rows, waits for their time, and decides.
//
// Rows keep the gaps of the file, divided by the speed, from pass to pass: each begins a
// millisecond after the last row of the one before.
func (r *Replay) feed(ctx context.Context, b *Bench) {
	origin, base, last := b.Clock.Now(), time.Duration(0), time.Duration(0)
	cycle := 0
	defer func() { r.noteInput(cycle, false) }()
	for ctx.Err() == nil {
		row, ok := r.rows.Next()
		if !ok {
			r.noteInput(cycle, true)
			if err := r.rows.Err(); err != nil {
				b.Fail(err, result.EndedByError)
				return
			}
			if cycle++; cycle == r.Cycles {
				r.settle(b)
				return
			}
			if err := r.rewind(); err != nil {
				b.Fail(err, result.EndedByError)
				return
			}
			base = last + time.Millisecond
			continue
		}
		due := clock.Never
		if r.Speed > 0 {
			last = base + row.At
			due = origin + time.Duration(float64(last)/r.Speed)
			if err := b.Clock.Sleep(ctx, due-b.Clock.Now()); err != nil {
				return
			}
		}
		if !r.selected(row) {
			continue
		}
		select {
		case r.tokens <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r.decide(b, row, due)
	}
}

// noteInput keeps what the reader says of the first pass, however far the replay came, and how many
// passes were whole.
//
// A result tells of the input once, however often it was read: malformed rows of a second pass are
// the same rows.
func (r *Replay) noteInput(cycle int, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cycle == 0 {
		cycles := r.input.Cycles
		r.input = r.rows.Report()
		r.input.Cycles = cycles
	}
	if whole {
		r.input.Cycles = cycle + 1
	}
}

func (r *Replay) rewind() error {
	rows, err := iotrace.Open(r.Path, r.Allow)
	if err == nil {
		r.rows = rows
	}
	return err
}

// selected counts a row and says whether it is to be carried out.
func (r *Replay) selected(row iotrace.Row) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count.Rows++
	in := row.Tier == int(tiers.Storage)
	if r.Tiers != nil {
		in = false
		for _, t := range r.Tiers {
			in = in || t == row.Tier
		}
	}
	if r.Phases != nil && in {
		in = false
		for _, p := range r.Phases {
			in = in || p == row.Phase
		}
	}
	if !in {
		r.count.Skipped++
	}
	return in
}

var _ Routine = (*Replay)(nil)
