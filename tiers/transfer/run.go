package transfer

import (
	"context"
	"errors"
	"time"

	"kvbench/tiers"
)

// ReadRun reads the first of objects, as many as the tier has side by side within one chunk, with one request, and
// verifies each as the Transfer says. It returns how many that were, also of a run that failed. An entry larger than a
// chunk is read alone, as by Read. done is told once, of the entries' bytes without what lies between them.
func (t *Transfer) ReadRun(ctx context.Context, tier tiers.RunTier, objects []tiers.Object, done tiers.ChunkFunc) (n int, tm tiers.Timing, err error) {
	if len(objects) == 1 || objects[0].Size > int64(t.Chunk) {
		tm, err = t.Read(ctx, tier, objects[0], done)
		return 1, tm, err
	}
	n = 1
	defer recoverInto(&err)
	op, waited, err := t.begin(ctx, objects[0], 1, tier.Traits().Align)
	tm.Admission = waited
	if err != nil {
		return n, tm, err
	}
	defer op.release()
	m := meter{now: t.Now}
	from := t.Now()
	n, err = op.readRun(tier, objects, &m, done)
	tm.Device = m.busy
	tm.Host = t.Now() - from - m.busy
	return n, tm, err
}

func (op *operation) readRun(tier tiers.RunTier, objects []tiers.Object, m *meter, done tiers.ChunkFunc) (n int, err error) {
	var r tiers.RunReader
	err = m.in(func() (err error) { r, err = tier.OpenRun(op.ctx, objects, int64(op.t.Chunk)); return err })
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, m.in(r.Close)) }()
	n = r.Len()
	if op.stopped() {
		return n, op.err
	}
	p := op.bufs[0][:r.Start(n-1)+objects[n-1].Size]
	if err := m.in(func() error { return r.ReadAt(op.ctx, p, 0) }); err != nil {
		return n, err
	}
	if done != nil {
		done(tiers.Read, sizes(objects[:n]))
	}
	for i, o := range objects[:n] {
		if err := op.t.verify(p[r.Start(i):r.Start(i)+o.Size], o, 0); err != nil {
			return n, err
		}
	}
	return n, nil
}

// WriteRun writes the first of objects, as many as the tier puts side by side within one chunk, with one request, and
// returns how many that were. at is the place of the first among the entries of its request. Either all of them are in
// the tier afterwards or none is. An entry larger than a chunk is written alone, as by Write.
func (t *Transfer) WriteRun(ctx context.Context, tier tiers.RunTier, objects []tiers.Object, at int, done tiers.ChunkFunc) (n int, tm tiers.Timing, err error) {
	if len(objects) == 1 || objects[0].Size > int64(t.Chunk) {
		tm, err = t.Write(ctx, tier, objects[0], done)
		return 1, tm, err
	}
	n = 1
	defer recoverInto(&err)
	op, waited, err := t.begin(ctx, objects[0], 1, tier.Traits().Align)
	tm.Admission = waited
	if err != nil {
		return n, tm, err
	}
	defer op.release()
	w := runWrite{operation: op, traits: tier.Traits(), done: done, meter: meter{now: t.Now}}
	from := t.Now()
	n, err = w.all(tier, objects, at)
	tm.Device = w.meter.busy
	tm.Generation = t.Now() - from - w.meter.busy
	if t.FlushOnly {
		tm.Device, tm.Host = w.flush, w.meter.busy-w.flush
	}
	return n, tm, err
}

// runWrite is the state of one WriteRun.
type runWrite struct {
	*operation
	traits tiers.Traits
	done   tiers.ChunkFunc
	meter  meter
	flush  time.Duration
}

func (w *runWrite) all(tier tiers.RunTier, objects []tiers.Object, at int) (n int, err error) {
	var run tiers.RunWriter
	err = w.meter.in(func() (err error) {
		run, err = tier.CreateRun(w.ctx, objects, at, int64(w.t.Chunk))
		return err
	})
	if err != nil {
		return 1, err
	}
	committed := false
	defer func() {
		if !committed { // also when Commit panics
			err = errors.Join(err, run.Abort())
		}
	}()
	n = run.Len()
	end := run.Start(n-1) + objects[n-1].Size
	p := w.bufs[0][:tiers.AlignUp(end, int64(w.traits.Align))]
	for i, o := range objects[:n] {
		next := int64(len(p))
		if i < n-1 {
			next = run.Start(i + 1)
		}
		// What lies between goes to the disk too: content nobody else has, not what the buffer held before.
		w.t.Content.Stream(o, 0).Fill(p[run.Start(i):next])
	}
	if w.stopped() {
		return n, w.err
	}
	if err := w.meter.in(func() error { return run.WriteAt(w.ctx, p[:end], 0) }); err != nil {
		return n, err
	}
	if w.done != nil && !w.traits.BytesAtCommit {
		w.done(tiers.Write, sizes(objects[:n]))
	}
	from := w.t.Now()
	err = w.meter.in(func() error { return run.Commit(w.ctx) })
	w.flush = w.t.Now() - from
	if committed = err == nil; committed && w.done != nil && w.traits.BytesAtCommit {
		w.done(tiers.Write, sizes(objects[:n]))
	}
	return n, err
}

// sizes sums up the bytes of entries, without padding.
func sizes(objects []tiers.Object) (n int64) {
	for _, o := range objects {
		n += o.Size
	}
	return n
}
