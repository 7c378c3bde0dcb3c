package sim

import (
	"context"
	"slices"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Device is a tier without bytes that takes the time of a DeviceModel.
type Device struct {
	bare
	model  tiers.DeviceModel
	clock  clock.Clock
	places []time.Duration      // when each of the Parallelism servers becomes free, sorted
	medium [tiers.NumOps]medium // without Duplex only the first is used
	Busy   time.Duration        // busy time of the medium, both directions
	Free   bool                 // requests take no time: for filling before the load
	traits tiers.Traits
}

var _ tiers.Files = (*Device)(nil)

// NewDevice returns an idle device. All its users share the thread of a virtual clock.
func NewDevice(m tiers.DeviceModel, description string, c clock.Clock) *Device {
	return &Device{
		model: m, clock: c, places: make([]time.Duration, m.Parallelism),
		traits: tiers.Traits{Align: 1, Description: description},
	}
}

// Traits returns traits of a tier without bytes, with requests of the run's chunk size.
func (d *Device) Traits() tiers.Traits { return d.traits }

// Create begins an object.
func (d *Device) Create(context.Context, ...tiers.Object) (tiers.Writer, error) {
	return &deviceIO{d: d, op: tiers.Write}, nil
}

// Open begins reading an object. It assumes that the object exists.
func (d *Device) Open(context.Context, ...tiers.Object) (tiers.Reader, error) {
	return &deviceIO{d: d, op: tiers.Read}, nil
}

// Remove takes no time.
func (d *Device) Remove(context.Context, ...tiers.Object) error { return nil }

// submit submits one request and returns when it will complete. The device executes requests in FIFO
// order, so that the time is known at once.
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
	// Requests complete nearly in FIFO order, so that the index is near the end.
	i, _ := slices.BinarySearch(d.places[1:], done)
	copy(d.places, d.places[1:i+1])
	d.places[i] = done
	return done
}

// medium is the shared resource that the bytes of one direction, or of both, occupy.
type medium struct {
	free  time.Duration // when it becomes idle
	begun time.Duration // the begin of a slice
}

// take adds a request that reaches the medium at the time comes and occupies it for pass. It returns
// when the request completes.
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
	outstanding []request // in the order of submission and completion
}

// request is a request in flight.
type request struct {
	io *tiers.IO
	at time.Duration // when it completes
}

// Submit submits a request. Only an operation's first outstanding request is an event of the clock:
// many requests complete at the begin of a slice, and the operations alternate then.
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

// complete completes the first request, whose Done may submit another one, and schedules the next.
func (x *deviceIO) complete() {
	first := x.outstanding[0]
	first.io.Ended = first.at
	first.io.End(nil)
	x.outstanding = append(x.outstanding[:0], x.outstanding[1:]...)
	if len(x.outstanding) > 0 {
		x.d.clock.At(x.outstanding[0].at, x.complete)
	}
}

// Commit takes the time of the model's flush.
func (x *deviceIO) Commit(ctx context.Context) error {
	if x.d.Free || x.d.model.Flush == 0 {
		return nil
	}
	return x.d.clock.Sleep(ctx, x.d.model.Flush)
}

func (*deviceIO) Abort() error { return nil }
func (*deviceIO) Close() error { return nil }
