package transfer

import (
	"context"
	"errors"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
)

// Transfer has the settings with which objects are moved. All workers can share one Transfer.
//
// The objects of one call are neighbours of one request. Objects that are adjacent in the tier move
// as one operation, from the first one on and at least one: n is their number, also after an error.
// If a tier stores layers (tiers.Traits), all objects move, layer by layer. The end of a context takes
// effect at the next chunk. A ChunkFunc may be nil.
//
// A tiers.Streamer moves one object at a time, in pieces of Chunk bytes; Depth limits the pieces of a
// read that are in flight.
type Transfer struct {
	// Pool has the chunks' buffers, of at least Chunk bytes.
	Pool    *buffer.Pool
	Content *content.Content // content of writes, and expected content of reads
	// Chunk is the size of requests to a tier without Traits.Chunk, a multiple of 4096 bytes.
	Chunk int
	Depth int // requests of one operation in flight, at least 1
	// Stretches are parts of an object that the Depth requests read or write concurrently, each part
	// from front to back; 0 = one. A tiers.Streamer ignores it.
	Stretches int
	Verify    content.Verify
	// Sample is the number of bytes in which VerifySample checks one block; 0 = a chunk.
	Sample int64
	// FlushOnly counts only the flush of a write as Device, and the rest of the time inside the tier
	// as Host, as the Python benchmark does with buffered writes.
	FlushOnly bool
	Clock     clock.Clock
}

// Read reads objects, verifies them according to Verify, and drops the data.
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

// Write writes objects: at most Depth chunks are in flight while the next ones are generated. After
// an error, a panic inside the tier or the end of ctx, nothing of the objects is left in the tier;
// done has still received the chunks that completed.
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

// readLayers reads objects layer by layer: one layer of all objects, then the next one, in the order
// of an engine that computes a layer while the next one is loaded. It returns the sum of the
// operations' times, and when each layer was complete.
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

// writeLayers writes objects in the same order. After an error it removes the written layers.
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

// remove removes the written layers, if there are any.
func remove(ctx context.Context, tier tiers.Tier, made []tiers.Object) error {
	if len(made) == 0 {
		return nil
	}
	return tier.Remove(context.WithoutCancel(ctx), made...)
}

// ofLayer returns one layer of each object. A small object may have no bytes in some layers.
func ofLayer(objs []tiers.Object, layer, layers int) (list []tiers.Object) {
	for _, o := range objs {
		if o = o.OfLayer(layer, layers); o.Size > 0 {
			list = append(list, o)
		}
	}
	return list
}

// add adds the times of another operation. The operations do not overlap, so that the sum of Device
// is the time in which the tier had a request in service.
func add(sum *tiers.Timing, tm tiers.Timing) {
	sum.Device += tm.Device
	sum.Host += tm.Host
	sum.Generation += tm.Generation
	sum.Admission += tm.Admission
}

// Move copies an object from one tier to a lower one, for a demotion. The caller removes the source.
// After an error nothing of the object is left in the destination; if reading the source has failed
// the error is a *SourceError. The two timings overlap; the wait for buffers is in rd.Admission.
func (t *Transfer) Move(ctx context.Context, from, to tiers.Tier, o tiers.Object, read,
	write tiers.ChunkFunc) (rd, wr tiers.Timing, err error) {
	if !holds(from) || !holds(to) {
		// The source has no bytes: the content is generated again for the target.
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

// SourceError is a failure of the reads of a Move.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the read.
func (e *SourceError) Unwrap() error { return e.Err }

// nothing reports an operation on a nil tier, which stores nothing and takes no time.
func (t *Transfer) nothing(op tiers.Op, done tiers.ChunkFunc, o tiers.Object) {
	now := t.Clock.Now()
	done(tiers.Chunk{Op: op, Bytes: o.Size, Begun: now, Ended: now, Asked: now, Done: now})
}

func holds(tier tiers.Tier) bool { return tier != nil && tier.Traits().Holds }
