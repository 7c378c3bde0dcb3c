package sim

import (
	"context"
	"slices"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Device is a tier that takes the time of a DeviceModel and holds no bytes.
type Device struct {
	bare
	model  tiers.DeviceModel
	clock  clock.Clock
	places []time.Duration      // when each place is free again, in order
	medium [tiers.NumOps]medium // without Duplex only the first counts
	Busy   time.Duration        // time for which the medium was in use, both directions
	Free   bool                 // nothing takes time: filling before the load
	traits tiers.Traits
}

var _ tiers.Tier = (*Device)(nil)

// NewDevice returns an idle one. All its users share the thread of a virtual clock.
func NewDevice(m tiers.DeviceModel, description string, c clock.Clock) *Device {
	return &Device{
		model: m, clock: c, places: make([]time.Duration, m.Parallelism),
		traits: tiers.Traits{Align: 1, Description: description},
	}
}

// Traits: no data, in requests of the run's size.
func (d *Device) Traits() tiers.Traits { return d.traits }

// Create begins an object.
func (d *Device) Create(context.Context, ...tiers.Object) (tiers.Writer, error) {
	return &deviceIO{d: d, op: tiers.Write}, nil
}

// Open takes any object for one that is there.
func (d *Device) Open(context.Context, ...tiers.Object) (tiers.Reader, error) {
	return &deviceIO{d: d, op: tiers.Read}, nil
}

// Remove takes no time.
func (d *Device) Remove(context.Context, ...tiers.Object) error { return nil }

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
	// Requests leave nearly in the order of their coming, so that the place is found near the end.
	i, _ := slices.BinarySearch(d.places[1:], done)
	copy(d.places, d.places[1:i+1])
	d.places[i] = done
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

// deviceIO is one operation.
type deviceIO struct {
	tiers.One
	d           *Device
	op          tiers.Op
	outstanding []request // in the order in which they complete, which is that of submission
}

// request is a chunk that the device has.
type request struct {
	io *tiers.IO
	at time.Duration // when it is complete
}

// Submit puts a request into the device. Only the first one outstanding is an event of the clock:
// many requests are complete at the moment in which a slice begins, and operations take turns then.
func (x *deviceIO) Submit(io *tiers.IO) {
	if x.d.Free {
		io.End(nil)
		return
	}
	io.Begun = x.d.clock.Now()
	r := request{io, x.d.submit(x.op, int64(io.N))}
	if x.outstanding = append(x.outstanding, r); len(x.outstanding) == 1 {
		x.d.clock.At(r.at, x.complete)
	}
}

// complete ends the first request, whose owner may submit the next one, and then looks to the
// second.
func (x *deviceIO) complete() {
	first := x.outstanding[0]
	first.io.Ended = first.at
	first.io.End(nil)
	x.outstanding = append(x.outstanding[:0], x.outstanding[1:]...)
	if len(x.outstanding) > 0 {
		x.d.clock.At(x.outstanding[0].at, x.complete)
	}
}

// Commit flushes what was written.
func (x *deviceIO) Commit(ctx context.Context) error {
	if x.d.Free || x.d.model.Flush == 0 {
		return nil
	}
	return x.d.clock.Sleep(ctx, x.d.model.Flush)
}

func (*deviceIO) Abort() error { return nil }
func (*deviceIO) Close() error { return nil }
