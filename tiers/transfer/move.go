package transfer

import (
	"context"
	"errors"
	"sync"

	"kvbench/tiers"
)

// Move copies entry o from one tier to a lower one, chunk by chunk: what a demotion does. The source stays, the
// caller removes it. If it fails nothing of the entry is left in the destination. The two timings overlap; the
// wait for buffers is in rd.Admission.
func (t *Transfer) Move(ctx context.Context, from, to tiers.Tier, o tiers.Object, read, write tiers.ChunkFunc) (rd, wr tiers.Timing, err error) {
	defer recoverInto(&err)
	source, target := from.Traits(), to.Traits()
	if source.NoData || target.NoData {
		// Nothing to carry over: what the source does not hold is generated again for the target.
		if rd, err = t.Read(ctx, from, o, read); err == nil {
			wr, err = t.Write(ctx, to, o, write)
		}
		return rd, wr, err
	}
	op, waited, err := t.begin(ctx, o, t.Depth+1, max(source.Align, target.Align))
	rd.Admission = waited
	if err != nil {
		return rd, wr, err
	}
	defer op.release()

	lanes := len(op.bufs)
	m := &moveOp{
		operation: op, traits: target, read: read, write: write,
		in: meter{now: t.Now}, out: meter{now: t.Now},
		inGate: newGate(lanes, t.Depth), outGate: newGate(lanes, t.Depth),
	}
	err = m.all(from, to)
	rd.Device, wr.Device = m.in.busy, m.out.busy
	return rd, wr, err
}

// moveOp is the state that the lanes of one Move share.
type moveOp struct {
	*operation
	traits          tiers.Traits // of the target
	read, write     tiers.ChunkFunc
	in, out         meter
	inGate, outGate gate
	order           sync.Mutex // chunks are taken in order by lanes that may read at once
	off             int64
	r               tiers.Reader
	w               tiers.Writer
}

func (m *moveOp) all(from, to tiers.Tier) (err error) {
	err = m.in.in(func() (err error) { m.r, err = from.Open(m.ctx, m.o); return err })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.in.in(m.r.Close)) }()
	err = m.out.in(func() (err error) { m.w, err = to.Create(m.ctx, m.o); return err })
	if err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			err = errors.Join(err, m.w.Abort())
		}
	}()
	if err = m.run(m.lane); err != nil {
		return err
	}
	if err = m.out.in(func() error { return m.w.Commit(m.ctx) }); err != nil {
		return err
	}
	committed = true
	if m.traits.BytesAtCommit && m.write != nil {
		m.write(tiers.Write, m.o.Size)
	}
	return nil
}

func (m *moveOp) lane(buf []byte) {
	for {
		p, off, err := m.get(buf)
		if err == nil && p != nil {
			if m.read != nil {
				m.read(tiers.Read, int64(len(p)))
			}
			if pad := p[len(p):tiers.AlignUp(len(p), m.traits.Align)]; len(pad) > 0 {
				// The same padding as a Write makes, so that files do not depend on their way.
				m.t.Content.Fill(pad, m.o, off+int64(len(p)))
			}
			err = m.put(p, off)
		}
		if err != nil {
			m.fail(err)
			return
		}
		if p == nil {
			return
		}
		if !m.traits.BytesAtCommit && m.write != nil {
			m.write(tiers.Write, int64(len(p)))
		}
	}
}

// get reads the next chunk, or returns nil.
func (m *moveOp) get(buf []byte) (p []byte, off int64, err error) {
	m.inGate.enter()
	defer m.inGate.leave()
	if m.stopped() {
		return nil, 0, nil
	}
	m.order.Lock()
	off = m.off
	m.off = min(m.off+int64(m.t.Chunk), m.o.Size)
	m.order.Unlock()
	if off == m.o.Size {
		return nil, 0, nil
	}
	p = m.chunk(buf, off)
	m.in.begin()
	defer m.in.end()
	return p, off, m.r.ReadAt(m.ctx, p, off)
}

func (m *moveOp) put(p []byte, off int64) error {
	m.outGate.enter()
	defer m.outGate.leave()
	if m.stopped() {
		return m.err
	}
	m.out.begin()
	defer m.out.end()
	return m.w.WriteAt(m.ctx, p, off)
}
