package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// worker serves one request at a time: it carries out the plan's operations in
// order and reports what each took. It owns its job; everything shared is safe.
type worker struct {
	id    int
	load  *Load
	job   job
	notes notes
}

// notes sums up one request while it runs.
type notes struct {
	storage, prefill, decode, generation time.Duration

	failed bool // one of the operations failed
	absent bool // the own entry could not be had: nothing to decode
}

// loop serves requests until the run ends. A panic becomes the run's error.
func (w *worker) loop(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			w.load.env.Fail(fmt.Errorf("worker %d panicked: %v\n%s", w.id, p, debug.Stack()),
				result.EndedByError)
			w.abandon(ctx)
		}
	}()
	for w.load.dispatch.next(w.id, &w.job) {
		w.serve(ctx)
	}
	w.job.lease.Close(ctx, w.tag(tiers.Prefill)) // what was not decided any more
}

// abandon lets go of a request that panicked, so that nobody waits for its
// entries. A second panic of the same cause changes nothing.
func (w *worker) abandon(ctx context.Context) {
	defer func() { _ = recover() }()
	w.job.lease.Close(ctx, w.tag(tiers.Decode))
}

func (w *worker) serve(ctx context.Context) {
	w.notes = notes{}
	j := &w.job
	var err error
	if len(j.req.Blocks) > 0 {
		err = w.blocks(ctx)
	} else {
		for i := range j.plan {
			if err = w.operate(ctx, i); err != nil {
				break
			}
		}
	}
	j.lease.Close(ctx, w.tag(tiers.Decode))
	if err == nil {
		err = w.generate(ctx)
	}
	how := completed
	switch {
	case err != nil:
		how = cut
	case w.notes.failed:
		how = failed
	}
	w.load.dispatch.done(j, how, w)
}

var _ booker = (*worker)(nil)

// book implements booker.
func (w *worker) book(at time.Duration, how outcome) bool {
	r := w.job.req
	arrival := w.load.dispatch.origin + r.Arrival
	return w.load.env.Rec.Request(record.RequestSample{
		At: at, Shard: w.id, Class: r.Class,
		// A worker reads its clock before the source does, so an arrival may lie a moment ahead of
		// it.
		Queue: max(0, w.job.started-arrival), EndToEnd: max(0, at-arrival),
		Storage: w.notes.storage, Prefill: w.notes.prefill, Decode: w.notes.decode,
		Generation:     w.notes.generation,
		GenerateTokens: r.GenerateTokens, ContextTokens: r.ContextTokens,
		Failed: how == failed,
	})
}

// generate sleeps for the time that a GPU would take to make the answer.
func (w *worker) generate(ctx context.Context) error {
	d := time.Duration(w.job.req.GenerateTokens) * w.load.cfg.TokenTime
	if d <= 0 || w.job.req.Kind == workloads.PrefillOnly {
		return nil
	}
	w.notes.generation = d
	return w.load.env.Clock.Sleep(ctx, d)
}

func (w *worker) tag(ph tiers.Phase) cache.Tag {
	return cache.Tag{Shard: w.id, Phase: ph}
}

// operate carries out operation i of the plan. An error ends the request: the
// run is over. Failures of the storage are noted and the request goes on
// without that operation.
func (w *worker) operate(ctx context.Context, i int) error {
	j := &w.job
	op, at := &j.plan[i], j.intent[i]
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
		for n := 0; n < op.Times && !w.notes.absent; n++ {
			if _, err := w.read(ctx, op, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *worker) readIfPresent(ctx context.Context, op *workloads.Op, at int) error {
	switch w.job.lease.Outcome(at) {
	case cache.Miss:
		w.lookup(op, record.Miss)
		w.notes.absent = w.notes.absent || op.Purpose == workloads.ForDecodeRead
		return nil
	case cache.Pending:
		if op.Purpose == workloads.ForHistory && w.load.cfg.Overtaking {
			// The turn has overtaken its predecessor: nothing to wait for.
			w.lookup(op, record.NotYetWritten)
			return nil
		}
	}
	ok, err := w.read(ctx, op, at)
	if op.Purpose == workloads.ForHistory || op.Purpose == workloads.ForRetrieval {
		w.job.lease.Drop(ctx, at, w.tag(tiers.Decode))
	}
	w.notes.absent = w.notes.absent || (op.Purpose == workloads.ForDecodeRead && !ok)
	return err
}

func (w *worker) writeIfAbsent(ctx context.Context, op *workloads.Op, at int) error {
	switch w.job.lease.Outcome(at) {
	case cache.Miss:
		return w.write(ctx, op, at, tiers.Prefill)
	case cache.Pending: // joins the first writer
		_, err := w.job.lease.Wait(ctx, at, w.tag(tiers.Prefill))
		if errors.Is(err, cache.ErrGone) {
			w.notes.absent = true
			return nil
		}
		return err
	}
	return nil // exists already: costs nothing
}

// readOrWrite is a prefix or a probe. The prefill of the same plan may have
// written the entry already: then the decision was a miss and the read a hit,
// because by now the entry is there for certain.
func (w *worker) readOrWrite(ctx context.Context, op *workloads.Op, at int) error {
	if w.notes.absent {
		return nil
	}
	if w.job.lease.Owned(at) {
		w.lookup(op, record.Miss)
		if op.Purpose != workloads.ForPrefix {
			return w.write(ctx, op, at, tiers.Decode)
		}
		err := w.write(ctx, op, at, tiers.Prefill)
		w.job.lease.Drop(ctx, at, w.tag(tiers.Decode)) // nobody reads it for this request
		return err
	}
	ok, err := w.read(ctx, op, at)
	if op.Purpose == workloads.ForPrefix {
		w.job.lease.Drop(ctx, at, w.tag(tiers.Decode))
	} else if !ok {
		w.notes.absent = true
	}
	return err
}

func (w *worker) lookup(op *workloads.Op, res record.LookupResult) {
	if op.Purpose == workloads.ForReread || op.Purpose == workloads.ForBlock {
		return // an operation, or decided and booked with its request
	}
	w.load.env.Rec.Lookup(w.load.env.Clock.Now(), w.id, op.Purpose, res)
}

// read reads intent at once; false means that there was nothing to read or that
// the read failed. The error is that of a run that is over.
func (w *worker) read(ctx context.Context, op *workloads.Op, at int) (bool, error) {
	_, res, err := w.job.lease.Read(ctx, at, w.tag(tiers.Decode))
	return w.didRead(ctx, op, at, res, 1, err)
}

// didRead counts a read of that many blocks or of an entry.
func (w *worker) didRead(ctx context.Context, op *workloads.Op, at int, res cache.Result,
	blocks int, err error) (bool, error) {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return false, w.cutShort(ctx, op, tiers.Read, res, tiers.Decode, blocks)
	case errors.Is(err, cache.ErrGone):
		w.lookup(op, record.Gone)
		return false, nil
	default:
		w.notes.failed = true // the observer has booked it
		return false, nil
	}
	if w.job.lease.Outcome(at) == cache.Pending {
		w.lookup(op, record.Pending)
	} else {
		w.lookup(op, record.Hit)
	}
	w.record(op, tiers.Read, res, tiers.Decode, blocks)
	return true, nil
}

func (w *worker) write(ctx context.Context, op *workloads.Op, at int, ph tiers.Phase) error {
	_, res, err := w.job.lease.Write(ctx, at, w.tag(ph))
	return w.wrote(ctx, op, res, ph, 1, err)
}

// wrote counts a write of that many blocks or of an entry.
func (w *worker) wrote(ctx context.Context, op *workloads.Op, res cache.Result, ph tiers.Phase,
	blocks int, err error) error {
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return w.cutShort(ctx, op, tiers.Write, res, ph, blocks)
	default:
		w.notes.failed = true
		w.notes.absent = op.Purpose != workloads.ForPrefix
		if errors.Is(err, cache.ErrTooLarge) {
			w.load.env.Fail(err, result.EndedByCapacity)
		}
		return nil
	}
	w.record(op, tiers.Write, res, ph, blocks)
	return nil
}

// cutShort counts an operation that the end of the run cut: no latency, its
// chunks are counted already.
func (w *worker) cutShort(ctx context.Context, op *workloads.Op, kind tiers.Op, res cache.Result,
	ph tiers.Phase, blocks int) error {
	s := w.sample(op, kind, res, ph, blocks)
	s.Partial = true
	w.load.env.Rec.Operation(s)
	return context.Cause(ctx)
}

func (w *worker) record(op *workloads.Op, kind tiers.Op, res cache.Result, ph tiers.Phase,
	blocks int) {
	w.load.env.Succeeded(1)
	io := res.Timing.Device + res.Timing.Host
	w.notes.storage += io
	switch op.Purpose {
	case workloads.ForPrefill:
		w.notes.prefill += io
	case workloads.ForBlock:
		if kind == tiers.Read {
			w.notes.decode += io
		} else {
			w.notes.prefill += io
		}
	case workloads.ForDecodeRead, workloads.ForReread, workloads.ForRetrieval:
		w.notes.decode += io
	}
	w.load.env.Rec.Operation(w.sample(op, kind, res, ph, blocks))
}

func (w *worker) sample(op *workloads.Op, kind tiers.Op, res cache.Result, ph tiers.Phase,
	blocks int) record.OpSample {
	return record.OpSample{
		At: w.load.env.Clock.Now(), Shard: w.id, Level: res.Level, Op: kind, Phase: ph,
		Blocks:  blocks,
		Purpose: op.Purpose, Bytes: cmp.Or(res.Bytes, op.Bytes), First: res.First, Again: res.Again,
		Device: res.Timing.Device, Host: res.Timing.Host, Generation: res.Timing.Generation,
		Admission: res.Slot + res.Timing.Admission, Buffers: res.Timing.Admission,
		Space: res.Space, Pending: res.Waited,
	}
}
