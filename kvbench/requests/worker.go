package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// worker serves one request at a time. It executes the operations of the plan in order and records their
// times. It owns its job.
//
// The time between operations, for planning and counting, is only in the request's end-to-end latency.
type worker struct {
	id    int
	load  *Load
	job   job
	asked []tiers.Object // the objects of a lookup; the memory is reused
	// came has the arrival time of each layer, if the storage loads layer by layer.
	came []time.Duration
}

// loop serves requests until the run ends. At its end it closes the lease, so that no other request
// waits for its entries, also after a panic.
func (w *worker) loop(ctx context.Context) {
	defer w.job.lease.Close(ctx, w.tag(tiers.Prefill))
	for w.load.dispatch.next(w.id, &w.job) {
		w.serve(ctx)
	}
}

func (w *worker) serve(ctx context.Context) {
	j := &w.job
	j.steps = j.steps[:0]
	for i := range j.plan {
		j.steps = append(j.steps, i)
	}
	err := w.ask(ctx)
	if err == nil && !w.load.cfg.Cost.Free() {
		err = w.firstToken(ctx)
	}
	if err == nil {
		err = w.execute(ctx, j.steps)
	}
	w.release(ctx, 0, 0)
	if err == nil {
		err = w.generate(ctx)
	}
	w.load.dispatch.done(j, err != nil)
}

// ask looks up the request's entries in the storage, as engines do before they read. It looks up entries
// in the order of the prompt, until the first missing entry or all. It does not look up entries that a
// tier above the storage has. The answer changes no decision, because the cache knows its entries. If
// the store has lost an entry, the read fails.
func (w *worker) ask(ctx context.Context) error {
	if w.load.looker == nil {
		return nil
	}
	j := &w.job
	objs := w.asked[:0]
	for i, want := range j.intents {
		o, in, there := j.lease.Found(i)
		if !there { // Gen 0 is a name that no object has: generations start at 1
			objs = append(objs, tiers.Object{Key: want.Key, Size: want.Size})
			if !w.load.askAll {
				break
			}
		} else if in == tiers.Storage {
			objs = append(objs, o)
		}
	}
	w.asked = objs
	begun := w.load.env.Clock.Now()
	n, err := w.load.looker.Lookup(ctx, objs...)
	j.sample.Time.Lookup = int64(w.load.env.Clock.Now() - begun)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		w.load.env.Failed(w.id, objs[min(n, len(objs)-1)], tiers.Storage, "look up", err)
	}
	return nil
}

// execute executes operations of the plan. A block's operation also moves the adjacent blocks.
func (w *worker) execute(ctx context.Context, steps []int) (err error) {
	for k, n := 0, 1; k < len(steps) && err == nil; k += n {
		if w.job.lease.Prefix {
			n, err = w.blocks(ctx, steps[k])
		} else {
			err = w.operate(ctx, steps[k])
		}
	}
	return err
}

// firstToken loads the cached part of the prompt and waits while the server computes the rest. It leaves
// the other operations in steps, because tokens are computed before they are written.
//
// A request waits only for entries of requests with earlier decisions, so waits make no cycle.
func (w *worker) firstToken(ctx context.Context) error {
	j, clock := &w.job, w.load.env.Clock
	begun := clock.Now()
	loads := slices.Clone(j.steps[:0])
	rest := j.steps[:0]
	for _, i := range j.steps {
		if j.loads(i) {
			loads = append(loads, i)
		} else {
			rest = append(rest, i)
		}
	}
	j.steps = rest
	w.came = w.came[:0]
	if err := w.execute(ctx, loads); err != nil {
		return err
	}
	now := clock.Now()
	missing, all, found, bytes := j.prompt.cost(w.load.cfg.Cost)
	wait, done := w.load.dispatch.gpu.Reserve(now, missing, all, w.came)
	t := &j.sample.Time
	t.GPUWait, t.Compute = int64(wait), int64(missing-done)
	j.sample.LoadedBelow = j.prompt.below
	loading := now - begun - time.Duration(t.Pending)
	// Loading excludes the time in which the server computed at the same time.
	j.sample.Loaded, j.sample.LoadedBytes, j.sample.Loading = found, bytes, max(0, loading-done)
	j.sample.FirstToken = result.FirstTokenTime{Queue: t.Queue, Load: int64(now - j.taken),
		LoadWaits: int64(now - j.taken - loading), LoadWriters: t.Pending, GPUWait: t.GPUWait,
		Compute: int64(missing), Overlap: int64(done), ComputeAll: int64(all)}
	if wait+missing-done == 0 {
		return nil
	}
	return w.load.dispatch.think(ctx, wait+missing-done)
}

// arrived records when the layers of a read arrived. For each layer the last read of the request counts.
// Without layers the whole read arrives now.
func (w *worker) arrived(layers []time.Duration) {
	if n := len(layers); len(w.came) < n {
		// Earlier reads had no layers, or failed.
		w.came = append(w.came, make([]time.Duration, n-len(w.came))...)
	}
	now := w.load.env.Clock.Now()
	for i := range w.came {
		at := now
		if i < len(layers) {
			at = layers[i]
		}
		w.came[i] = max(w.came[i], at)
	}
}

// loads reports whether operation i of the plan reads a part of the prompt.
func (j *job) loads(i int) bool {
	switch at := j.intent[i]; j.plan[i].Purpose {
	case workloads.ForPrefix:
		return !j.lease.Owned(at)
	case workloads.ForHistory, workloads.ForRetrieval:
		return true
	case workloads.ForDecodeRead:
		return j.req.Kind == workloads.DecodeOnly
	case workloads.ForBlock:
		out := j.lease.Outcome(at)
		return out == cache.Hit || out == cache.Pending
	}
	return false
}

// generate sleeps for the time in which a GPU generates the answer. The worker is busy meanwhile, as
// generation takes a place in a server's batch. It holds no buffers and no place in the write limit.
func (w *worker) generate(ctx context.Context) error {
	d := time.Duration(w.job.req.GenerateTokens) * w.load.cfg.TokenTime
	if d <= 0 || w.job.req.Kind == workloads.PrefillOnly {
		return nil
	}
	w.job.sample.Time.Generation = int64(d)
	return w.load.dispatch.think(ctx, d)
}

func (w *worker) tag(ph tiers.Phase) cache.Tag {
	return cache.Tag{Shard: w.id, Phase: ph}
}

// operate executes operation i of the plan. It returns an error only if the run is over. After a failure
// of the storage it records the failure, and the request continues without that operation, like a server
// that recomputes tokens that it cannot read. The observer ends the trial after too many failures, or
// after a fatal failure.
func (w *worker) operate(ctx context.Context, i int) error {
	j := &w.job
	op, at := &j.plan[i], j.intent[i]
	w.load.env.Reference.Write(&j.usual, at) // if the reference's lease owns the entry
	switch op.Kind {
	case workloads.ReadIfPresent:
		return w.readIfPresent(ctx, op, at)
	case workloads.WriteIfAbsent:
		err := w.writeIfAbsent(ctx, op, at)
		w.load.dispatch.wrote(j)
		return err
	case workloads.ReadOrWrite:
		return w.readOrWrite(ctx, op, at)
	case workloads.Reread:
		for n := 0; n < op.Times && !w.job.absent; n++ {
			if _, _, err := w.read(ctx, op, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// readIfPresent reads history, a chunk of a document, or the entry of a decode-only request. It releases
// history and chunks after the read, so that they may be evicted before the answer is generated.
func (w *worker) readIfPresent(ctx context.Context, op *workloads.Op, at int) error {
	switch out := w.job.lease.Outcome(at); {
	case out == cache.Miss:
		w.lookup(op, record.Miss)
		w.job.absent = w.job.absent || op.Purpose == workloads.ForDecodeRead
		return nil
	case out == cache.Pending && op.Purpose == workloads.ForHistory && w.load.cfg.Overtaking:
		// The turn has overtaken the turn before, and does not wait for it.
		w.lookup(op, record.NotYetWritten)
		w.job.prompt.early(at)
		return nil
	}
	_, ok, err := w.read(ctx, op, at)
	if op.Purpose == workloads.ForDecodeRead {
		w.job.absent = w.job.absent || !ok
	} else {
		w.release(ctx, at, 1)
	}
	return err
}

// writeIfAbsent writes the request's own entry, unless it exists. If another request is writing the
// entry, writeIfAbsent waits for that write.
func (w *worker) writeIfAbsent(ctx context.Context, op *workloads.Op, at int) (err error) {
	switch w.job.lease.Outcome(at) {
	case cache.Miss:
		_, err = w.write(ctx, op, at, tiers.Prefill)
	case cache.Pending:
		var waited time.Duration
		waited, err = w.job.lease.Wait(ctx, at, w.tag(tiers.Prefill))
		w.job.sample.Time.Pending += int64(waited)
		if errors.Is(err, cache.ErrGone) {
			w.job.absent, err = true, nil
		}
	}
	return err
}

// readOrWrite reads an entry, or writes it if this request owns it: a common prefix or a probe. If the
// prefill of the same plan has written the entry, the decision was a miss and the read is a hit.
func (w *worker) readOrWrite(ctx context.Context, op *workloads.Op, at int) (err error) {
	if w.job.absent {
		return nil
	}
	prefix := op.Purpose == workloads.ForPrefix
	if w.job.lease.Owned(at) {
		w.lookup(op, record.Miss)
		_, err = w.write(ctx, op, at, tiers.Prefill) // computed for all requests that wait for it
	} else {
		var ok bool
		_, ok, err = w.read(ctx, op, at)
		w.job.absent = !ok && !prefix
	}
	if prefix { // this request does not read the prefix again
		w.release(ctx, at, 1)
	}
	return err
}

// blocks reads or writes the block at, and the following blocks that are adjacent to it in the tier. n
// is the number of blocks. They count as one operation.
func (w *worker) blocks(ctx context.Context, at int) (n int, err error) {
	j := &w.job
	switch j.lease.Outcome(at) {
	case cache.Unreachable:
		return 1, nil
	case cache.Miss:
		n, err = w.write(ctx, &j.plan[at], at, tiers.Prefill)
	default:
		var ok bool
		if n, ok, err = w.read(ctx, &j.plan[at], at); !ok && err == nil {
			w.load.dispatch.lostBlocks(w.id, j, at, n)
		}
	}
	w.release(ctx, at, n)
	return n, err
}

// release releases n entries from index at on. With n = 0 it releases all entries that the request holds.
// The last holder of an evicted entry deletes it, and that time counts as Release.
func (w *worker) release(ctx context.Context, at, n int) {
	clock, lease := w.load.env.Clock, &w.job.lease
	from := clock.Now()
	for k := range n {
		lease.Drop(ctx, at+k, w.tag(tiers.Decode))
	}
	if n == 0 {
		lease.Close(ctx, w.tag(tiers.Decode))
		w.load.env.Reference.Close(&w.job.usual)
	}
	w.job.sample.Time.Release += int64(clock.Now() - from)
}

// lookup counts the cache's answer for one key. A reread is no lookup. Blocks are counted in
// countBlocks.
func (w *worker) lookup(op *workloads.Op, found result.LookupCount) {
	purpose := op.Purpose
	switch {
	case purpose == workloads.ForReread || purpose == workloads.ForBlock:
		return
	case purpose == workloads.ForDecodeRead && w.job.req.Kind != workloads.DecodeOnly:
		purpose = workloads.ForPrefill // the request reads the entry that its prefill wrote
	}
	w.load.env.Rec.Lookup(w.load.env.Clock.Now(), w.id, purpose, found)
}

// read reads the entry with index at, or n adjacent blocks from at on. ok is false if the entry is gone
// or the read failed. err is not nil only if the run is over.
func (w *worker) read(ctx context.Context, op *workloads.Op, at int) (n int, ok bool, err error) {
	n, res, err := w.job.lease.Read(ctx, at, w.tag(tiers.Decode))
	if errors.Is(err, cache.ErrGone) && ctx.Err() == nil {
		w.waited(res)
		w.lookup(op, record.Gone)
		return n, false, nil
	}
	ok, err = w.record(ctx, op, tiers.Read, tiers.Decode, n, res, err)
	if ok {
		w.job.prompt.found(at, n, res.Bytes, res.Level == w.load.lowest)
		w.arrived(res.Timing.Layers)
	}
	if ok && w.job.lease.Outcome(at) == cache.Pending {
		w.lookup(op, record.Pending)
	} else if ok {
		w.lookup(op, record.Hit)
	}
	return n, ok, err
}

// write writes the entry with index at, or n adjacent blocks from at on. err is not nil only if the run
// is over.
func (w *worker) write(
	ctx context.Context, op *workloads.Op, at int, ph tiers.Phase,
) (n int, err error) {
	n, res, failure := w.job.lease.Write(ctx, at, w.tag(ph))
	ok, err := w.record(ctx, op, tiers.Write, ph, n, res, failure)
	if !ok && err == nil {
		w.job.absent = op.Purpose != workloads.ForPrefix
		if errors.Is(failure, cache.ErrTooLarge) {
			w.load.env.Fail(failure, result.EndedByCapacity)
		}
	}
	return n, err
}

// record records an operation. ok is true if the operation succeeded. If the end of the run cut the
// operation, it counts as Partial, and err is the cause of the end.
func (w *worker) record(
	ctx context.Context, op *workloads.Op, kind tiers.Op, ph tiers.Phase, blocks int,
	res cache.Result, failure error,
) (ok bool, err error) {
	cut := failure != nil && ctx.Err() != nil
	if failure != nil && !cut {
		w.job.sample.Failed = true // the observer has counted it
		w.load.env.Rec.Operation(record.OpSample{Shard: w.id, Failed: true})
		return false, nil
	}
	s := record.OpSample{
		At: w.load.env.Clock.Now(), Shard: w.id, Level: res.Level, Op: kind, Phase: ph,
		Blocks: blocks, Purpose: op.Purpose, Bytes: cmp.Or(res.Bytes, op.Bytes),
		First: res.First, Again: res.Again,
		Timing: res.Timing, Slot: res.Slot, Space: res.Space, Room: res.Room,
		Pending: res.Waited, Partial: cut,
	}
	w.load.env.Rec.Operation(s)
	if cut {
		return false, context.Cause(ctx)
	}
	w.load.env.Succeeded(1)
	w.waited(res)
	t, took := &w.job.sample.Time, int64(s.IO()+res.Copy)
	w.job.sample.Storage += time.Duration(took)
	t.Data += int64(s.Generation)
	switch {
	case kind == tiers.Write:
		t.Prefill += took
	case s.Purpose == workloads.ForDecodeRead, s.Purpose == workloads.ForReread:
		t.Decode += took
	default:
		t.Context += took
	}
	return true, nil
}

// waited adds an operation's waits to the request's time.
func (w *worker) waited(res cache.Result) {
	t := &w.job.sample.Time
	t.Room += int64(res.Space)
	t.WriteLimit += int64(res.Slot)
	t.Buffers += int64(res.Timing.Admission)
	t.Pending += int64(res.Waited)
}

// startWorkers sets the number of workers to n, and calls change in the same step. Surplus workers end
// after their current request.
func (l *Load) startWorkers(ctx context.Context, n int, change func(now time.Duration)) {
	for _, id := range l.dispatch.staff(n, change) {
		w := &worker{id: id, load: l}
		l.env.Go(fmt.Sprint("worker ", id), func() { w.loop(ctx) })
	}
}
