package transfer

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/content"
)

// Write makes entry o in tier: at most Depth chunks are in flight while the next one is generated. If it fails,
// panics inside the tier included, or ctx ends, which takes effect at the next chunk, nothing of the entry is
// left in the tier; done was still told of the chunks that completed.
func (t *Transfer) Write(ctx context.Context, tier tiers.Tier, o tiers.Object, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	defer recoverInto(&err)
	traits := tier.Traits()
	if traits.NoData {
		return t.skipWrite(ctx, tier, o, done)
	}
	op, waited, err := t.begin(ctx, o, t.Depth+1, traits.Align)
	tm.Admission = waited
	if err != nil {
		return tm, err
	}
	defer op.release()

	w := &writeOp{operation: op, traits: traits, done: done, meter: meter{now: t.Now}, gate: newGate(len(op.bufs), t.Depth)}
	from := t.Now()
	flush, err := w.all(tier)
	wall := t.Now() - from
	tm.Device, tm.Generation = w.meter.busy, wall-w.meter.busy
	if t.FlushOnly {
		tm.Device, tm.Host = flush, w.meter.busy-flush
	}
	return tm, err
}

// writeOp is the state that the lanes of one Write share.
type writeOp struct {
	*operation
	traits tiers.Traits
	done   tiers.ChunkFunc
	meter  meter
	w      tiers.Writer

	gen    sync.Mutex // chunks are generated one after the other: the stream has an order
	stream content.Stream
	off    int64 // of the next chunk to generate
	gate   gate  // and then written, so many at a time
}

// all creates, writes and commits, and returns how long the commit took.
func (w *writeOp) all(tier tiers.Tier) (flush time.Duration, err error) {
	w.stream = w.t.Content.Stream(w.o, 0)
	err = w.meter.in(func() (err error) { w.w, err = tier.Create(w.ctx, w.o); return err })
	if err != nil {
		return 0, err
	}
	committed := false
	defer func() {
		if !committed { // also when Commit panics
			err = errors.Join(err, w.w.Abort())
		}
	}()
	if err = w.run(w.lane); err != nil {
		return 0, err
	}
	from := w.t.Now()
	err = w.meter.in(func() error { return w.w.Commit(w.ctx) })
	flush = w.t.Now() - from
	if err != nil {
		return flush, err
	}
	committed = true
	if w.traits.BytesAtCommit && w.done != nil {
		w.done(tiers.Write, w.o.Size)
	}
	return flush, nil
}

// lane generates and writes chunks in turn with the other lanes.
func (w *writeOp) lane(buf []byte) {
	for {
		p, off := w.generate(buf)
		if p == nil {
			return
		}
		if err := w.put(p, off); err != nil {
			w.fail(err)
			return
		}
		if !w.traits.BytesAtCommit && w.done != nil {
			w.done(tiers.Write, int64(len(p)))
		}
	}
}

// generate makes the next chunk, its padding included, or returns nil.
func (w *writeOp) generate(buf []byte) (p []byte, off int64) {
	w.gen.Lock()
	defer w.gen.Unlock()
	if w.off == w.o.Size || w.stopped() {
		return nil, 0
	}
	off = w.off
	p = w.chunk(buf, off)
	w.stream.Fill(p[:tiers.AlignUp(len(p), w.traits.Align)])
	w.off += int64(len(p))
	return p, off
}

func (w *writeOp) put(p []byte, off int64) error {
	w.gate.enter()
	defer w.gate.leave()
	if w.stopped() {
		return w.err
	}
	w.meter.begin()
	defer w.meter.end()
	return w.w.WriteAt(w.ctx, p, off)
}

// skipWrite takes the time of a write in a tier that keeps no bytes.
func (t *Transfer) skipWrite(ctx context.Context, tier tiers.Tier, o tiers.Object, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	from := t.Now()
	defer func() { tm.Device = t.Now() - from }()
	w, err := tier.Create(ctx, o)
	if err != nil {
		return tm, err
	}
	committed := false
	defer func() {
		if !committed {
			err = errors.Join(err, w.Abort())
		}
	}()
	reported, err := skip(ctx, w, tiers.Write, o.Size, done)
	if err != nil {
		return tm, err
	}
	if err := w.Commit(ctx); err != nil {
		return tm, err
	}
	committed = true
	if done != nil && !reported {
		done(tiers.Write, o.Size)
	}
	return tm, nil
}

// recoverInto turns a panic of the calling function into its error.
func recoverInto(err *error) {
	if v := recover(); v != nil {
		*err = &tiers.PanicError{Value: v, Stack: debug.Stack()}
	}
}
