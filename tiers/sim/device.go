package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// Device is a tier without bytes that takes the time of a DeviceModel: a drive, or a GPU's memory behind
// its link to the host. It assumes that all objects exist: the cache knows its objects.
type Device struct {
	model  tiers.DeviceModel
	clock  clock.Clock
	traits tiers.Traits
	Free   bool // requests take no time: for filling before the load, in virtual time only

	mu     sync.Locker
	places []time.Duration      // when each of the Parallelism servers becomes free, sorted
	medium [tiers.NumOps]medium // without Duplex only the first is used
}

var _ tiers.Files = (*Device)(nil)

// oneThread is the lock of a drive, which only the thread of a virtual clock uses.
type oneThread struct{}

func (oneThread) Lock()   {}
func (oneThread) Unlock() {}

// NewDevice returns an idle drive with requests of the run's chunk size. All its users share the thread
// of a virtual clock.
func NewDevice(m tiers.DeviceModel, description string, c clock.Clock) *Device {
	return &Device{
		model: m, clock: c, mu: oneThread{}, places: make([]time.Duration, m.Parallelism),
		traits: tiers.Traits{Align: 1, Description: description},
	}
}

// NewLink returns a GPU's memory behind a link with a bandwidth in bytes/s in each direction. All
// transfers of a direction share its bandwidth in FIFO order. An object is one request. The cache manages
// the capacity.
func NewLink(bandwidth float64, c clock.Clock) *Device {
	return &Device{
		model: tiers.DeviceModel{Read: bandwidth, Write: bandwidth, Duplex: true}, clock: c,
		mu: new(sync.Mutex),
		traits: tiers.Traits{Chunk: math.MaxInt, Align: 1,
			Description: fmt.Sprintf("simulated, %.1f GiB/s each way", bandwidth/(1<<30))},
	}
}

// Traits returns traits of a tier without bytes.
func (d *Device) Traits() tiers.Traits { return d.traits }

// Close does nothing.
func (d *Device) Close() error { return nil }

// Create begins an object.
func (d *Device) Create(context.Context, ...tiers.Object) (tiers.Writer, error) {
	return &deviceIO{d: d, op: tiers.Write}, nil
}

// Open begins reading an object.
func (d *Device) Open(context.Context, ...tiers.Object) (tiers.Reader, error) {
	return &deviceIO{d: d, op: tiers.Read}, nil
}

// Remove takes no time.
func (d *Device) Remove(context.Context, ...tiers.Object) error { return nil }

// submit submits one request and returns when it will complete. The device executes requests in FIFO
// order, so that the time is known at once. Callers hold mu.
func (d *Device) submit(op tiers.Op, now time.Duration, bytes int64) time.Duration {
	latency, medium := d.model.ReadLatency, &d.medium[tiers.Read]
	if op == tiers.Write {
		latency = d.model.WriteLatency
		if d.model.Duplex {
			medium = &d.medium[tiers.Write]
		}
	}
	pass := d.model.Passing(op, bytes)
	if len(d.places) == 0 { // a link
		return medium.take(now+latency, pass, d.model.Slice)
	}
	done := medium.take(max(now, d.places[0])+latency, pass, d.model.Slice)
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
	moves time.Duration // the time of all bytes so far, also of those that wait for it
}

// Busy returns how long the medium of each direction has moved bytes until now. Without Duplex only the first is used.
func (d *Device) Busy(now time.Duration) (busy [tiers.NumOps]time.Duration) {
	for op, m := range d.medium {
		busy[op] = m.moves - max(0, m.free-now)
	}
	return busy
}

// take adds a request that reaches the medium at the time comes and occupies it for pass. It returns
// when the request completes.
func (m *medium) take(comes, pass, slice time.Duration) time.Duration {
	if slice > 0 && m.free <= comes && comes-m.begun >= slice {
		m.begun = comes
	}
	m.free, m.moves = max(m.free, comes)+pass, m.moves+pass
	if slice == 0 {
		return m.free
	}
	return max(comes, m.begun+(m.free-m.begun)/slice*slice)
}

// deviceIO is one operation.
type deviceIO struct {
	tiers.OneObject
	d           *Device
	op          tiers.Op
	outstanding []request // in the order of submission and completion; guarded by Device.mu
}

// request is a request in flight.
type request struct {
	io *tiers.IO
	at time.Duration // when it completes
}

// Submit submits a request. The time in the queue of a link counts as service time. Only an operation's
// first outstanding request is an event of the clock: many requests complete at the begin of a slice,
// and the operations alternate then.
func (x *deviceIO) Submit(io *tiers.IO) {
	if x.d.Free {
		io.End(nil)
		return
	}
	io.Begun = x.d.clock.Now()
	x.d.mu.Lock()
	r := request{io, x.d.submit(x.op, io.Begun, int64(io.N))}
	x.outstanding = append(x.outstanding, r)
	first := len(x.outstanding) == 1
	x.d.mu.Unlock()
	if first {
		x.d.clock.At(r.at, x.complete)
	}
}

// complete completes the first request, whose Done may submit another one, and schedules the next.
func (x *deviceIO) complete() {
	x.d.mu.Lock()
	first := x.outstanding[0]
	x.d.mu.Unlock()
	first.io.Ended = first.at
	first.io.End(nil)
	x.d.mu.Lock()
	defer x.d.mu.Unlock()
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
