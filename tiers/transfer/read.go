package transfer

import (
	"context"
	"errors"

	"kvbench/tiers"
	"kvbench/tiers/content"
)

// Read reads entry o from tier with at most Depth chunks in flight and verifies as the Transfer says. The data
// is dropped. The context's end takes effect at the next chunk; done was told of the chunks that completed.
func (t *Transfer) Read(ctx context.Context, tier tiers.Tier, o tiers.Object, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	defer recoverInto(&err)
	traits := tier.Traits()
	if traits.NoData {
		return t.skipRead(ctx, tier, o, done)
	}
	op, waited, err := t.begin(ctx, o, t.Depth, traits.Align)
	tm.Admission = waited
	if err != nil {
		return tm, err
	}
	defer op.release()

	r := &readOp{operation: op, done: done, meter: meter{now: t.Now}}
	from := t.Now()
	err = r.all(tier)
	wall := t.Now() - from
	tm.Device, tm.Host = r.meter.busy, wall-r.meter.busy
	return tm, err
}

// readOp is the state that the lanes of one Read share.
type readOp struct {
	*operation
	done  tiers.ChunkFunc
	meter meter
	r     tiers.Reader
}

func (r *readOp) all(tier tiers.Tier) (err error) {
	err = r.meter.in(func() (err error) { r.r, err = tier.Open(r.ctx, r.o); return err })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.meter.in(r.r.Close)) }()
	return r.run(r.lane)
}

func (r *readOp) lane(buf []byte) {
	step := int64(r.t.Chunk)
	for {
		off := r.next.Add(step) - step
		if off >= r.o.Size || r.stopped() {
			return
		}
		p := r.chunk(buf, off)
		if err := r.get(p, off); err != nil {
			r.fail(err)
			return
		}
		if r.done != nil {
			r.done(tiers.Read, int64(len(p)))
		}
		if err := r.t.verify(p, r.o, off); err != nil {
			r.fail(err)
			return
		}
	}
}

func (r *readOp) get(p []byte, off int64) error {
	r.meter.begin()
	defer r.meter.end()
	return r.r.ReadAt(r.ctx, p, off)
}

func (t *Transfer) verify(p []byte, o tiers.Object, off int64) error {
	switch t.Verify {
	case content.VerifyFull:
		return t.Content.Check(p, o, off)
	case content.VerifySample:
		return t.Content.CheckSample(p, o, off)
	}
	return nil
}

// skipRead takes the time of a read from a tier that keeps no bytes.
func (t *Transfer) skipRead(ctx context.Context, tier tiers.Tier, o tiers.Object, done tiers.ChunkFunc) (tm tiers.Timing, err error) {
	from := t.Now()
	defer func() { tm.Device = t.Now() - from }()
	r, err := tier.Open(ctx, o)
	if err != nil {
		return tm, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	reported, err := skip(ctx, r, tiers.Read, o.Size, done)
	if err != nil {
		return tm, err
	}
	if done != nil && !reported {
		done(tiers.Read, o.Size)
	}
	return tm, nil
}

// skip takes the time of n bytes through rw, a reader or writer of a NoData tier. It says whether the bytes were reported
// as they moved.
func skip(ctx context.Context, rw any, op tiers.Op, n int64, done tiers.ChunkFunc) (reported bool, err error) {
	switch rw := rw.(type) {
	case tiers.Pacer:
		return true, rw.Pace(ctx, n, func(bytes int64) {
			if done != nil {
				done(op, bytes)
			}
		})
	case tiers.Skipper:
		return false, rw.Skip(ctx, n)
	}
	return false, nil
}
