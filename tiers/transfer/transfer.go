package transfer

import (
	"context"
	"errors"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
)

// Transfer is how objects are moved. It is plain settings: one Transfer serves all workers at once.
//
// Objects given together are neighbours of one request. Those that the tier has side by side, the
// first ones and at least one, are moved as one operation: n is how many it dealt with, also when
// it failed. Where a tier keeps layers (tiers.Traits) those of all are moved, in their order. The
// end of a context takes effect at the next chunk. A ChunkFunc may be nil.
//
// A tier that streams (tiers.Streamer) is asked for one object at a time, with pieces of Chunk
// bytes; Depth is how many of them a read may have under way.
type Transfer struct {
	// where the chunks' buffers come from; its buffers hold at least Chunk bytes
	Pool    *buffer.Pool
	Content *content.Content // what is written, and what reads are compared with
	// bytes per request to a tier that has no wish of its own: a multiple of 4096
	Chunk int
	Depth int // requests of one operation in flight at the same time, at least 1
	// Stretches of an object are gone through beside each other, each from front to back, by the
	// Depth requests together; 0 = one. A tier that streams goes through its objects by itself.
	Stretches int
	Verify    content.Verify
	// Sample is in how many bytes VerifySample looks at one block; 0 = in a chunk.
	Sample int64
	// FlushOnly makes Device of a write the flush alone and calls the rest of the time inside the
	// tier Host, as the Python benchmark does with buffered writes.
	FlushOnly bool
	Clock     clock.Clock
}

// Read reads objects and verifies them as the Transfer says. The data is dropped.
func (t *Transfer) Read(ctx context.Context, tier tiers.Tier, done tiers.ChunkFunc,
	objs ...tiers.Object) (n int, tm tiers.Timing, err error) {
	if tier == nil {
		t.nothing(tiers.Read, done, objs[0])
		return 1, tm, nil
	}
	if s := streamed(tier); s != nil {
		tm, err = t.get(ctx, s, done, objs[0])
		return 1, tm, err
	}
	if layers := tier.Traits().Layers; layers > 1 {
		tm, err = t.readLayers(ctx, tier, layers, done, objs)
		return len(objs), tm, err
	}
	return t.read(ctx, tier, done, objs)
}

// read is Read of whole objects, or of one layer of them.
func (t *Transfer) read(ctx context.Context, tier tiers.Tier, done tiers.ChunkFunc,
	objs []tiers.Object) (n int, tm tiers.Timing, err error) {
	op := &operation{t: t, ctx: ctx, objs: objs[:1], in: sideOf(tiers.Read, tier, done)}
	err = op.run(objs)
	tm, tm.Host = op.timing(&op.in)
	return len(op.objs), tm, err
}

// Write makes objects: at most Depth chunks are in flight while the next ones are generated. If it
// fails, panics inside the tier included, or ctx ends, nothing of the objects is left in the tier;
// done was still told of the chunks that completed.
func (t *Transfer) Write(ctx context.Context, tier tiers.Tier, done tiers.ChunkFunc,
	objs ...tiers.Object) (n int, tm tiers.Timing, err error) {
	if tier == nil {
		t.nothing(tiers.Write, done, objs[0])
		return 1, tm, nil
	}
	if s := streamed(tier); s != nil {
		tm, err = t.put(ctx, s, done, objs[0], nil)
		return 1, tm, err
	}
	if layers := tier.Traits().Layers; layers > 1 {
		tm, err = t.writeLayers(ctx, tier, layers, done, objs)
		return len(objs), tm, err
	}
	return t.write(ctx, tier, done, objs)
}

// write is Write of whole objects, or of one layer of them.
func (t *Transfer) write(ctx context.Context, tier tiers.Tier, done tiers.ChunkFunc,
	objs []tiers.Object) (n int, tm tiers.Timing, err error) {
	op := &operation{t: t, ctx: ctx, objs: objs[:1], out: sideOf(tiers.Write, tier, done)}
	err = op.run(objs)
	tm, tm.Generation = op.timing(&op.out)
	if t.FlushOnly && op.holds() {
		tm.Device, tm.Host = op.flush, tm.Device-op.flush
	}
	return len(op.objs), tm, err
}

// readLayers reads objects layer by layer: of each layer those of all objects, one operation after
// the other, as an engine asks for them that computes a layer while the next one comes. What it is
// told of is the sum of the operations, and when each layer had come.
func (t *Transfer) readLayers(ctx context.Context, tier tiers.Tier, layers int,
	done tiers.ChunkFunc, objs []tiers.Object) (sum tiers.Timing, err error) {
	for layer := 1; layer <= layers; layer++ {
		for rest := ofLayer(objs, layer, layers); len(rest) > 0; {
			n, tm, err := t.read(ctx, tier, done, rest)
			add(&sum, tm)
			if err != nil {
				return sum, err
			}
			rest = rest[n:]
		}
		sum.Layers = append(sum.Layers, t.Clock.Now())
	}
	return sum, nil
}

// writeLayers writes objects in the same order. If it fails what was written of them is removed.
func (t *Transfer) writeLayers(ctx context.Context, tier tiers.Tier, layers int,
	done tiers.ChunkFunc, objs []tiers.Object) (sum tiers.Timing, err error) {
	var made []tiers.Object
	for layer := 1; layer <= layers; layer++ {
		for rest := ofLayer(objs, layer, layers); len(rest) > 0; {
			n, tm, err := t.write(ctx, tier, done, rest)
			add(&sum, tm)
			if err != nil {
				return sum, errors.Join(err, remove(ctx, tier, made))
			}
			made = append(made, rest[:n]...)
			rest = rest[n:]
		}
	}
	return sum, nil
}

// remove takes back what was written, if there is any.
func remove(ctx context.Context, tier tiers.Tier, made []tiers.Object) error {
	if len(made) == 0 {
		return nil
	}
	return tier.Remove(context.WithoutCancel(ctx), made...)
}

// ofLayer is one layer of each object that has bytes in it: of few bytes not every layer has some.
func ofLayer(objs []tiers.Object, layer, layers int) (list []tiers.Object) {
	for _, o := range objs {
		if o = o.OfLayer(layer, layers); o.Size > 0 {
			list = append(list, o)
		}
	}
	return list
}

// add adds the times of another operation. They follow each other, so that sums are times in which
// something was inside the tier, as those of one operation are.
func add(sum *tiers.Timing, tm tiers.Timing) {
	sum.Device += tm.Device
	sum.Host += tm.Host
	sum.Generation += tm.Generation
	sum.Admission += tm.Admission
}

// Move copies an object from one tier to a lower one: what a demotion does. The source stays, the
// caller removes it. If it fails nothing of the object is left in the destination; where reading
// the source did, the error is a *SourceError. The two timings overlap; the wait for buffers is in
// rd.Admission.
func (t *Transfer) Move(ctx context.Context, from, to tiers.Tier, o tiers.Object, read,
	write tiers.ChunkFunc) (rd, wr tiers.Timing, err error) {
	if !holds(from) || !holds(to) {
		// Nothing to carry over: what the source does not hold is generated again for the target.
		if _, rd, err = t.Read(ctx, from, read, o); err != nil {
			return rd, wr, &SourceError{err}
		}
		_, wr, err = t.Write(ctx, to, write, o)
		return rd, wr, err
	}
	if s := streamed(to); s != nil {
		return t.demote(ctx, from, s, o, read, write)
	}
	op := &operation{t: t, ctx: ctx, in: sideOf(tiers.Read, from, read),
		out: sideOf(tiers.Write, to, write), objs: []tiers.Object{o}}
	err = op.run(op.objs)
	rd, _ = op.timing(&op.in)
	wr, _ = op.timing(&op.out)
	wr.Admission = 0
	if err != nil && op.failed == &op.in {
		err = &SourceError{err}
	}
	return rd, wr, err
}

// SourceError is the failure of a move's reading half.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }

// Unwrap returns what failed.
func (e *SourceError) Unwrap() error { return e.Err }

// nothing is an operation on a tier that keeps nothing and takes no time.
func (t *Transfer) nothing(op tiers.Op, done tiers.ChunkFunc, o tiers.Object) {
	now := t.Clock.Now()
	done(tiers.Chunk{Op: op, Bytes: o.Size, Begun: now, Ended: now, Asked: now, Done: now})
}

func holds(tier tiers.Tier) bool { return tier != nil && tier.Traits().Holds }
