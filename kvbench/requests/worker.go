package requests

import (
	"cmp"
	"context"
	"errors"
	"time"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// worker serves one request at a time: it carries out the plan's operations in
// order and reports what each took. It owns its job; everything shared is safe.
//
// What a worker times are operations: the time between them, for planning and counting, belongs to
// the request's end-to-end latency and to nothing else.
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

// loop serves requests until the run ends. Whatever happens, it lets go of its entries, lest
// others wait for them: what was not decided any more, or panicked.
func (w *worker) loop(ctx context.Context) {
	defer w.job.lease.Close(ctx, w.tag(tiers.Prefill))
	for w.load.dispatch.next(w.id, &w.job) {
		w.serve(ctx)
	}
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

var _ counter = (*worker)(nil)

// count implements counter.
func (w *worker) count(at time.Duration, how outcome) bool {
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
//
// It holds the worker, as generation holds a place in a server's batch, but neither buffers nor
// the write limit.
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
//
// A storage that fails now and then is measured all the same, with its failures counted: a request
// goes on after one as a server would, which recomputes what it cannot read. The observer ends the
// trial when failures are too many or of a kind that makes the rest worthless.
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
			if _, _, err := w.read(ctx, op, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// readIfPresent is history, a document, or the own entry of a user who only reads. History that was
// read is let go at once: it need not stay in the tier until the answer is made.
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
	_, ok, err := w.read(ctx, op, at)
	if op.Purpose == workloads.ForHistory || op.Purpose == workloads.ForRetrieval {
		w.job.lease.Drop(ctx, at, w.tag(tiers.Decode))
	}
	w.notes.absent = w.notes.absent || (op.Purpose == workloads.ForDecodeRead && !ok)
	return err
}

// writeIfAbsent is the prefill of the own entry. Two requests for the same entry write it once: the
// second waits for the first, as it would for a server that computes it.
func (w *worker) writeIfAbsent(ctx context.Context, op *workloads.Op, at int) error {
	switch w.job.lease.Outcome(at) {
	case cache.Miss:
		_, err := w.write(ctx, op, at, tiers.Prefill)
		return err
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
			_, err := w.write(ctx, op, at, tiers.Decode)
			return err
		}
		_, err := w.write(ctx, op, at, tiers.Prefill)
		w.job.lease.Drop(ctx, at, w.tag(tiers.Decode)) // nobody reads it for this request
		return err
	}
	_, ok, err := w.read(ctx, op, at)
	if op.Purpose == workloads.ForPrefix {
		w.job.lease.Drop(ctx, at, w.tag(tiers.Decode))
	} else if !ok {
		w.notes.absent = true
	}
	return err
}

// blocks carries out what was decided about the blocks of a request, first to last. Blocks that lie
// side by side in the tier are moved together, which counts as one operation: its bytes are those
// of the blocks.
func (w *worker) blocks(ctx context.Context) error {
	j := &w.job
	for at, n := 0, 1; at < len(j.plan); at += n {
		var err error
		switch j.lease.Outcome(at) {
		case cache.Unreachable:
			n = 1
			continue
		case cache.Miss:
			n, err = w.write(ctx, &j.plan[at], at, tiers.Prefill)
		default:
			n, _, err = w.read(ctx, &j.plan[at], at)
		}
		for k := range n {
			j.lease.Drop(ctx, at+k, w.tag(tiers.Decode))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lookup counts how the cache answered a question for one key: the plan asks some questions only to
// get its bytes, which are operations and no lookups.
func (w *worker) lookup(op *workloads.Op, res record.LookupResult) {
	if op.Purpose == workloads.ForReread || op.Purpose == workloads.ForBlock {
		return // an operation, or decided and counted with its request
	}
	w.load.env.Rec.Lookup(w.load.env.Clock.Now(), w.id, op.Purpose, res)
}

// read reads intent at, or the n blocks from it on that lie side by side; false means that
// there was nothing to read or that the read failed. The error is that of a run that is over.
func (w *worker) read(ctx context.Context, op *workloads.Op, at int) (n int, ok bool, err error) {
	n, res, err := w.job.lease.Read(ctx, at, w.tag(tiers.Decode))
	s := w.sample(op, tiers.Read, tiers.Decode, n, res)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return n, false, w.cutShort(ctx, s)
	case errors.Is(err, cache.ErrGone):
		w.lookup(op, record.Gone)
		return n, false, nil
	default:
		w.notes.failed = true // the observer has counted it
		return n, false, nil
	}
	if w.job.lease.Outcome(at) == cache.Pending {
		w.lookup(op, record.Pending)
	} else {
		w.lookup(op, record.Hit)
	}
	w.record(s)
	return n, true, nil
}

// write writes intent at, or the n blocks from it on that are put side by side.
func (w *worker) write(
	ctx context.Context, op *workloads.Op, at int, ph tiers.Phase,
) (n int, err error) {
	n, res, err := w.job.lease.Write(ctx, at, w.tag(ph))
	s := w.sample(op, tiers.Write, ph, n, res)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return n, w.cutShort(ctx, s)
	default:
		w.notes.failed = true
		w.notes.absent = op.Purpose != workloads.ForPrefix
		if errors.Is(err, cache.ErrTooLarge) {
			w.load.env.Fail(err, result.EndedByCapacity)
		}
		return n, nil
	}
	w.record(s)
	return n, nil
}

// cutShort counts an operation that the end of the run cut: no latency, its
// chunks are counted already.
func (w *worker) cutShort(ctx context.Context, s record.OpSample) error {
	s.Partial = true
	w.load.env.Rec.Operation(s)
	return context.Cause(ctx)
}

func (w *worker) record(s record.OpSample) {
	w.load.env.Succeeded(1)
	w.notes.storage += s.IO()
	switch s.Purpose {
	case workloads.ForPrefill:
		w.notes.prefill += s.IO()
	case workloads.ForBlock:
		if s.Op == tiers.Read {
			w.notes.decode += s.IO()
		} else {
			w.notes.prefill += s.IO()
		}
	case workloads.ForDecodeRead, workloads.ForReread, workloads.ForRetrieval:
		w.notes.decode += s.IO()
	}
	w.load.env.Rec.Operation(s)
}

func (w *worker) sample(
	op *workloads.Op, kind tiers.Op, ph tiers.Phase, blocks int, res cache.Result,
) record.OpSample {
	return record.OpSample{
		At: w.load.env.Clock.Now(), Shard: w.id, Level: res.Level, Op: kind, Phase: ph,
		Blocks: blocks, Purpose: op.Purpose, Bytes: cmp.Or(res.Bytes, op.Bytes),
		First: res.First, Again: res.Again,
		Device: res.Timing.Device, Host: res.Timing.Host, Generation: res.Timing.Generation,
		Admission: res.Slot + res.Timing.Admission, Buffers: res.Timing.Admission,
		Space: res.Space, Pending: res.Waited,
	}
}
