package kvbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kvbench/tiers"
)

// DeviceModel is a drive that one does not have, as a queueing model.
//
// The device has Parallelism places. A request (one chunk of an entry; every
// operation keeps up to the I/O depth of them outstanding) takes the place that
// is free first, waits there for its access latency, in parallel with the other
// places, and then passes the medium, which it shares with all others in the
// order of their coming: n bytes occupy the medium for n ÷ bandwidth of their
// direction, and where IOPS are given no shorter than 1 ÷ IOPS. Reads and writes
// share one medium (a drive that reads 14 and writes 7 GiB/s does half of each
// when its time is divided evenly); with Duplex each direction has its own. A
// request leaves its place when its bytes have passed.
//
// So one request at a time takes latency + size ÷ bandwidth, many at a time reach
// the bandwidth or the IOPS, whichever is less, and between them throughput grows
// with the number outstanding up to Parallelism.
//
// A limiter in front of a faster drive (the kernel's for cgroups, those of many
// clouds) hands out its bandwidth in slices of time: what fits into a slice passes
// at once when it begins, the rest waits for the next one. With Slice a request is
// complete not when its bytes would have passed but at the beginning of the slice
// in which that falls. The first slice begins with the first request after a rest
// of at least one.
//
// Flushes, deletions, the filesystem, the CPU and the wear of the
// drive cost nothing.
type DeviceModel struct {
	Read         float64       `json:"read_bytes_per_s"`
	Write        float64       `json:"write_bytes_per_s"`
	ReadIOPS     float64       `json:"read_iops"`  // requests/s, 0 = no bound
	WriteIOPS    float64       `json:"write_iops"` //
	ReadLatency  time.Duration `json:"read_latency_ns"`
	WriteLatency time.Duration `json:"write_latency_ns"`
	Parallelism  int           `json:"parallelism"`
	Duplex       bool          `json:"duplex"`
	Slice        time.Duration `json:"slice_ns"` // 0: the medium passes requests one by one
}

func (m *DeviceModel) validate() error {
	if m == nil {
		return nil
	}
	var errs []error
	if !(m.Read > 0) || !(m.Write > 0) {
		errs = append(errs, fmt.Errorf("simulated device: bandwidths %g and %g bytes/s must be positive", m.Read, m.Write))
	}
	if !(m.ReadIOPS >= 0) || !(m.WriteIOPS >= 0) {
		errs = append(errs, fmt.Errorf("simulated device: %g and %g requests/s must not be negative", m.ReadIOPS, m.WriteIOPS))
	}
	if m.ReadLatency < 0 || m.WriteLatency < 0 {
		errs = append(errs, fmt.Errorf("simulated device: latencies %v and %v must not be negative", m.ReadLatency, m.WriteLatency))
	}
	if m.Slice < 0 {
		errs = append(errs, fmt.Errorf("simulated device: slices of %v must not be negative", m.Slice))
	}
	if m.Parallelism < 1 {
		errs = append(errs, fmt.Errorf("simulated device: parallelism %d must be at least 1", m.Parallelism))
	}
	return errors.Join(errs...)
}

// String describes the model for people.
func (m *DeviceModel) String() string {
	medium := "one medium for both"
	if m.Duplex {
		medium = "full duplex"
	}
	if m.Slice > 0 {
		medium += fmt.Sprintf(", in slices of %v", m.Slice)
	}
	iops := func(n float64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(" and %.0f requests/s", n)
	}
	return fmt.Sprintf("simulated device (reads %s%s after %v, writes %s%s after %v, %d at a time, %s)",
		rate(&m.Read), iops(m.ReadIOPS), m.ReadLatency, rate(&m.Write), iops(m.WriteIOPS), m.WriteLatency, m.Parallelism, medium)
}

// passing is how long a request occupies the medium: its bytes at the bandwidth,
// and no shorter than the requests/s allow.
func (m *DeviceModel) passing(op tiers.Op, bytes int64) time.Duration {
	rate, iops := m.Read, m.ReadIOPS
	if op == tiers.Write {
		rate, iops = m.Write, m.WriteIOPS
	}
	seconds := float64(bytes) / rate
	if iops > 0 {
		seconds = max(seconds, 1/iops)
	}
	return time.Duration(seconds * float64(time.Second))
}

// simDevice is a tier that takes the time of a DeviceModel and holds no bytes.
type simDevice struct {
	model  DeviceModel
	time   *virtualTime
	chunk  int64
	depth  int
	places placeHeap            // when each place is free again
	medium [tiers.NumOps]medium // without Duplex only the first counts
	busy   time.Duration        // time for which the medium was in use, both directions
	free   bool                 // nothing takes time: filling before the load
	traits tiers.Traits
}

var _ tiers.Tier = (*simDevice)(nil)

func newSimDevice(m DeviceModel, v *virtualTime, chunk int64, depth int) *simDevice {
	return &simDevice{
		model: m, time: v, chunk: chunk, depth: depth, places: make(placeHeap, m.Parallelism),
		traits: tiers.Traits{NoData: true, Align: 1, Description: m.String()},
	}
}

func (d *simDevice) Traits() tiers.Traits { return d.traits }

func (d *simDevice) Create(context.Context, tiers.Object) (tiers.Writer, error) {
	return &simIO{d, tiers.Write}, nil
}

func (d *simDevice) Open(context.Context, tiers.Object) (tiers.Reader, error) {
	return &simIO{d, tiers.Read}, nil
}

func (d *simDevice) Remove(context.Context, tiers.Object) error { return nil }
func (d *simDevice) Close() error                               { return nil }

// submit puts one request into the device and returns when it will be complete.
// Requests are served in the order of submission, so that this is known at once.
func (d *simDevice) submit(op tiers.Op, bytes int64) time.Duration {
	latency, medium := d.model.ReadLatency, &d.medium[tiers.Read]
	if op == tiers.Write {
		latency = d.model.WriteLatency
		if d.model.Duplex {
			medium = &d.medium[tiers.Write]
		}
	}
	start := max(d.time.now, d.places[0])
	pass := d.model.passing(op, bytes)
	d.busy += pass
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
	d  *simDevice
	op tiers.Op
}

var _ tiers.Pacer = (*simIO)(nil)

// Pace submits the chunks of n bytes, up to the depth at a time, and waits for
// the last of them.
func (io *simIO) Pace(ctx context.Context, n int64, done func(bytes int64)) error {
	d := io.d
	if d.free {
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
		if err := d.time.queueUntil(ctx, first.at); err != nil {
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
