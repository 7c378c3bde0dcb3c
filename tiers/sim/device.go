package sim

import (
	"context"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Device is a tier that takes the time of a DeviceModel and holds no bytes.
type Device struct {
	model  tiers.DeviceModel
	clock  clock.Clock
	chunk  int64
	depth  int
	places placeHeap            // when each place is free again
	medium [tiers.NumOps]medium // without Duplex only the first counts
	Busy   time.Duration        // time for which the medium was in use, both directions
	Free   bool                 // nothing takes time: filling before the load
	traits tiers.Traits
}

var _ tiers.Tier = (*Device)(nil)

func NewDevice(m tiers.DeviceModel, description string, c clock.Clock, chunk int64, depth int) *Device {
	return &Device{
		model: m, clock: c, chunk: chunk, depth: depth, places: make(placeHeap, m.Parallelism),
		traits: tiers.Traits{NoData: true, Align: 1, Description: description},
	}
}

func (d *Device) Traits() tiers.Traits { return d.traits }

func (d *Device) Create(context.Context, tiers.Object) (tiers.Writer, error) {
	return &simIO{d, tiers.Write}, nil
}

func (d *Device) Open(context.Context, tiers.Object) (tiers.Reader, error) {
	return &simIO{d, tiers.Read}, nil
}

func (d *Device) Remove(context.Context, tiers.Object) error { return nil }
func (d *Device) Close() error                               { return nil }

// submit puts one request into the device and returns when it will be complete.
// Requests are served in the order of submission, so that this is known at once.
func (d *Device) submit(op tiers.Op, bytes int64) time.Duration {
	latency, medium := d.model.ReadLatency, &d.medium[tiers.Read]
	if op == tiers.Write {
		latency = d.model.WriteLatency
		if d.model.Duplex {
			medium = &d.medium[tiers.Write]
		}
	}
	start := max(d.clock.Now(), d.places[0])
	pass := d.model.Passing(op, bytes)
	d.Busy += pass
	done := medium.take(start+latency, pass, d.model.Slice)
	d.places.replaceFirst(done)
	return done
}

// medium is what the bytes of one direction, or of both, pass through.
type medium struct {
	free  time.Duration // when it has nothing left to pass
	begun time.Duration // a beginning of a slice
}

// take lets a request pass that comes at a moment, and returns when it is complete.
func (m *medium) take(comes, pass, slice time.Duration) time.Duration {
	if slice > 0 && m.free <= comes && comes-m.begun >= slice {
		m.begun = comes
	}
	m.free = max(m.free, comes) + pass
	if slice == 0 {
		return m.free
	}
	return max(comes, m.begun+(m.free-m.begun)/slice*slice)
}

// simIO is one operation.
type simIO struct {
	d  *Device
	op tiers.Op
}

var _ tiers.Pacer = (*simIO)(nil)

// Pace submits the chunks of n bytes, up to the depth at a time, and waits for
// the last of them.
func (io *simIO) Pace(ctx context.Context, n int64, done func(bytes int64)) error {
	d := io.d
	if d.Free {
		done(n)
		return nil
	}
	type request struct {
		at    time.Duration
		bytes int64
	}
	var few [16]request
	outstanding := few[:0]
	for n > 0 || len(outstanding) > 0 {
		for n > 0 && len(outstanding) < d.depth {
			bytes := min(n, d.chunk)
			outstanding = append(outstanding, request{d.submit(io.op, bytes), bytes})
			n -= bytes
		}
		first := outstanding[0] // of one operation they complete in order
		// Many are complete at the moment in which a slice begins: they take turns.
		complete := d.clock.NewEvent()
		d.clock.At(first.at, complete.Fire)
		if err := complete.Wait(ctx); err != nil {
			return err
		}
		done(first.bytes)
		outstanding = append(outstanding[:0], outstanding[1:]...)
	}
	return ctx.Err()
}

func (*simIO) WriteAt(context.Context, []byte, int64) error { return nil }
func (*simIO) ReadAt(context.Context, []byte, int64) error  { return nil }
func (*simIO) Commit(context.Context) error                 { return nil }
func (*simIO) Abort() error                                 { return nil }
func (*simIO) Close() error                                 { return nil }

// placeHeap is a min-heap of moments.
type placeHeap []time.Duration

// replaceFirst gives the earliest place a later moment.
func (h placeHeap) replaceFirst(at time.Duration) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= at {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = at
}
