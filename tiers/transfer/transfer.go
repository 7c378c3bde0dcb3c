package transfer

import (
	"context"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
)

// Transfer is how objects are moved. It is plain settings: one Transfer serves all workers at once.
//
// Objects given together are neighbours of one request. Those that the tier has side by side, the
// first ones and at least one, are moved as one operation: n is how many it dealt with, also when
// it failed. The end of a context takes effect at the next chunk. A ChunkFunc may be nil.
type Transfer struct {
	// where the chunks' buffers come from; its buffers hold at least Chunk bytes
	Pool    *buffer.Pool
	Content *content.Content // what is written, and what reads are compared with
	// bytes per request to a tier that has no wish of its own: a multiple of 4096
	Chunk  int
	Depth  int // requests of one operation in flight at the same time, at least 1
	Verify content.Verify
	// FlushOnly makes Device of a write the flush alone and calls the rest of the time inside the
	// tier Host, as the Python benchmark does with buffered writes.
	FlushOnly bool
	Clock     clock.Clock
}

// Read reads objects and verifies them as the Transfer says. The data is dropped.
func (t *Transfer) Read(ctx context.Context, tier tiers.Tier, done tiers.ChunkFunc,
	objs ...tiers.Object) (
	n int, tm tiers.Timing, err error,
) {
	op := &operation{t: t, ctx: ctx, objs: objs[:1], in: t.side(tiers.Read, tier, done)}
	err = op.run(objs)
	tm.Admission = op.waited
	if tm.Device = op.wall; op.in.traits.Holds {
		tm.Device = op.device(op.in)
		tm.Host = op.wall - tm.Device
	}
	return len(op.objs), tm, err
}

// Write makes objects: at most Depth chunks are in flight while the next ones are generated. If it
// fails, panics inside the tier included, or ctx ends, nothing of the objects is left in the tier;
// done was still told of the chunks that completed.
func (t *Transfer) Write(ctx context.Context, tier tiers.Tier, done tiers.ChunkFunc,
	objs ...tiers.Object) (
	n int, tm tiers.Timing, err error,
) {
	op := &operation{t: t, ctx: ctx, objs: objs[:1], out: t.side(tiers.Write, tier, done)}
	err = op.run(objs)
	tm.Admission = op.waited
	if tm.Device = op.wall; op.out.traits.Holds {
		tm.Device = op.device(op.out)
		tm.Generation = op.wall - tm.Device
		if t.FlushOnly {
			tm.Device, tm.Host = op.flush, tm.Device-op.flush
		}
	}
	return len(op.objs), tm, err
}

// Move copies an object from one tier to a lower one: what a demotion does. The source stays, the
// caller removes it. If it fails nothing of the object is left in the destination. The two timings
// overlap; the wait for buffers is in rd.Admission.
func (t *Transfer) Move(ctx context.Context, from, to tiers.Tier, o tiers.Object, read,
	write tiers.ChunkFunc) (
	rd, wr tiers.Timing, err error,
) {
	op := &operation{t: t, ctx: ctx, in: t.side(tiers.Read, from, read),
		out: t.side(tiers.Write, to, write)}
	if !op.in.traits.Holds || !op.out.traits.Holds {
		// Nothing to carry over: what the source does not hold is generated again for the target.
		if _, rd, err = t.Read(ctx, from, read, o); err == nil {
			_, wr, err = t.Write(ctx, to, write, o)
		}
		return rd, wr, err
	}
	op.objs = []tiers.Object{o}
	err = op.run(op.objs)
	rd.Device, rd.Admission, wr.Device = op.device(op.in), op.waited, op.device(op.out)
	return rd, wr, err
}

// Do carries out one request and waits for it, without an operation around it: plain I/O. When ctx
// ends it waits for at most tiers.Grace; the buffer belongs to the tier until Done all the same.
func Do(ctx context.Context, c clock.Clock, s tiers.Submitter, io *tiers.IO) error {
	over := c.NewEvent()
	io.Done = func(*tiers.IO) { over.Fire() }
	s.Submit(io)
	err := over.Wait(ctx)
	if err == nil {
		return io.Err
	}
	c.At(c.Now()+tiers.Grace, over.Fire)
	_ = over.Wait(context.WithoutCancel(ctx))
	return err
}
