package transfer

import (
	"context"
	"errors"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
)

// Settings say how objects are moved. All tiers of a run can share one Settings.
type Settings struct {
	// Pool has the buffers of the chunks. Each buffer has at least Chunk bytes.
	Pool *buffer.Pool
	// Chunk is the size of requests to files whose Traits.Chunk is 0: a multiple of 4096 bytes.
	Chunk int
	// Depth is the number of requests that one operation has in flight, at least 1.
	Depth int
	// Ranges is the number of ranges of an object that are read or written concurrently, each from front
	// to back. 0 means 1.
	Ranges int
	// FlushOnly: of the time of a write only the flush counts as Device, and the other time in the tier
	// counts as Host. The Python benchmark counts buffered writes like this.
	FlushOnly bool
	Clock     clock.Clock
}

// Tier moves objects through files. The end of a context takes effect at the next chunk.
type Tier struct {
	files    tiers.Files
	Settings *Settings // set before the first Put and Get
}

var _ tiers.Tier = (*Tier)(nil)

// New returns a tier of the files. Its Close closes the files.
func New(files tiers.Files, s *Settings) *Tier { return &Tier{files, s} }

// Files returns the files: see tiers.FilesOf.
func (t *Tier) Files() tiers.Files { return t.files }

// Traits returns the traits of the files.
func (t *Tier) Traits() tiers.Traits { return t.files.Traits() }

// Close closes the files.
func (t *Tier) Close() error { return t.files.Close() }

// Remove removes objects.
func (t *Tier) Remove(ctx context.Context, objs ...tiers.Object) error {
	return t.files.Remove(ctx, objs...)
}

// Lookup looks up objects, if the files support it.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (int, error) {
	if l, ok := t.files.(tiers.Looker); ok {
		return l.Lookup(ctx, objs...)
	}
	return 0, errors.ErrUnsupported
}

// Put implements tiers.Tier. It generates the next chunk while at most Depth chunks are in flight.
func (t *Tier) Put(ctx context.Context, c *tiers.Call, objs []tiers.Object, src tiers.Source,
) error {
	return t.move(tiers.Write, c, objs, func(objs []tiers.Object) error {
		op := operation{Tier: t, ctx: ctx, call: c, op: tiers.Write, src: src}
		return op.run(objs)
	})
}

// Get implements tiers.Tier.
func (t *Tier) Get(ctx context.Context, c *tiers.Call, objs []tiers.Object, dst tiers.Sink) error {
	return t.move(tiers.Read, c, objs, func(objs []tiers.Object) error {
		op := operation{Tier: t, ctx: ctx, call: c, op: tiers.Read, dst: dst}
		return op.run(objs)
	})
}

// move runs one operation, which moves the first n of the objects; the tier chooses n. If the files have
// layers, move moves all objects: first the first layer of all objects, then the second layer, and so on,
// like an inference engine that computes a layer while it loads the next one. The operations do not overlap,
// and the timing is their sum. If a write fails, move removes the written layers.
func (t *Tier) move(op tiers.Op, c *tiers.Call, objs []tiers.Object,
	run func([]tiers.Object) error) error {
	layers := t.Traits().Layers
	if layers < 2 {
		return run(objs)
	}
	var sum tiers.Timing
	var written []tiers.Object
	defer func() { c.Timing, c.Done = sum, len(objs) }()
	for layer := 1; layer <= layers; layer++ {
		for rest := ofLayer(objs, layer, layers); len(rest) > 0; rest = rest[c.Done:] {
			err := run(rest)
			sum.Add(c.Timing)
			if err != nil && len(written) > 0 {
				err = errors.Join(err, t.Remove(context.Background(), written...))
			}
			if err != nil {
				return err
			}
			if op == tiers.Write {
				written = append(written, rest[:c.Done]...)
			}
		}
		if op == tiers.Read {
			sum.Layers = append(sum.Layers, t.Settings.Clock.Now())
		}
	}
	return nil
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
