package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/tiers/clock"
	"kvbench/tiers/transfer"
)

// stream moves one object of the given size through a device repeatedly.
type stream struct {
	op    tiers.Op
	size  int64
	bytes int64 // moved
}

// runStreams runs streams concurrently for a virtual second, and returns how long the media moved bytes in its second half.
func runStreams(t *testing.T, m tiers.DeviceModel, chunk int64, depth int, streams ...*stream) (busy [tiers.NumOps]time.Duration) {
	t.Helper()
	v := clock.NewVirtual()
	d := NewDevice(m, "a model", v)
	x := transfer.New(d, &transfer.Settings{Chunk: int(chunk), Depth: depth, Clock: v})
	ctx, cancel := context.WithCancel(t.Context())
	for _, s := range streams {
		v.Go(func() {
			for ctx.Err() == nil {
				c := tiers.Call{Observe: func(c tiers.Chunk) { s.bytes += c.Bytes }}
				objs := []tiers.Object{{Key: "k", Size: s.size}}
				if s.op == tiers.Write {
					_ = x.Put(ctx, &c, objs, nil)
				} else {
					_ = x.Get(ctx, &c, objs, nil)
				}
			}
		})
	}
	require.NoError(t, v.Sleep(ctx, time.Second/2))
	before := d.Busy(v.Now())
	require.NoError(t, v.Sleep(ctx, time.Second/2))
	assert.Equal(t, time.Second, v.Now())
	for op, after := range d.Busy(v.Now()) {
		busy[op] = after - before[op]
	}
	cancel()
	v.Wait()
	return busy
}

// The medium is busy for the bytes that it has moved, and not for those that wait for it.
func TestBusy(t *testing.T) {
	m := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 29, Parallelism: 64}
	queue := func() (all []*stream) {
		for range 32 {
			all = append(all, &stream{op: tiers.Read, size: 16 << 20}, &stream{op: tiers.Write, size: 16 << 20})
		}
		return all
	}
	const half = time.Second / 2
	assert.Equal(t, [tiers.NumOps]time.Duration{tiers.Read: half}, runStreams(t, m, 1<<20, 8, queue()...))
	m.Duplex = true
	busy := runStreams(t, m, 1<<20, 8, queue()...)
	assert.Equal(t, half, busy[tiers.Write], "reads wait for the slower writes")
	assert.Less(t, busy[tiers.Read], half)
	m.ReadLatency = 3 * time.Second / 1024 // three times the time of a chunk: a quarter of the time for each
	busy = runStreams(t, m, 1<<20, 1, &stream{op: tiers.Read, size: 1 << 20})
	assert.InDelta(t, half/4, busy[tiers.Read], float64(4*time.Millisecond))
}

func TestDeviceModelGivesWhatItsFormulaSays(t *testing.T) {
	m := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 29, ReadLatency: time.Millisecond,
		WriteLatency: 2 * time.Millisecond, Parallelism: 4}
	const chunk = 1 << 20
	pass := time.Second / 1024 // of a chunk that is read
	one := float64(chunk) / (m.ReadLatency + pass).Seconds()
	rate := func(bytes int64) float64 { return float64(bytes) }

	a := &stream{op: tiers.Read, size: chunk}
	runStreams(t, m, chunk, 1, a)
	assert.InEpsilon(t, one, rate(a.bytes), 0.01, "one at a time: latency + size ÷ bandwidth")

	b := &stream{op: tiers.Read, size: chunk}
	runStreams(t, m, chunk, 1, a2(a), b)
	assert.InEpsilon(t, 1<<30, rate(b.bytes)*2, 0.02,
		"two of them fill the medium: each takes it for half of the time")

	deep := &stream{op: tiers.Read, size: 64 << 20}
	runStreams(t, m, chunk, 8, deep)
	assert.InEpsilon(t, 1<<30, rate(deep.bytes), 0.02, "one with depth reaches the bandwidth")

	w := &stream{op: tiers.Write, size: 64 << 20}
	runStreams(t, m, chunk, 8, w)
	assert.InEpsilon(t, 1<<29, rate(w.bytes), 0.02, "each entry waits for its latency once")

	slow := m
	slow.ReadLatency, slow.Parallelism = 10*time.Millisecond, 4
	var many []*stream
	for range 64 {
		many = append(many, &stream{op: tiers.Read, size: 4096})
	}
	runStreams(t, slow, chunk, 1, many...)
	var sum int64
	for _, s := range many {
		sum += s.bytes
	}
	assert.InEpsilon(t, 4*4096/0.010, rate(sum), 0.02,
		"small reads: places ÷ latency, however many wait")
}

// Small requests reach the limit of requests/s and large ones the limit of bytes/s, separately for
// each direction.
func TestDeviceModelCountsRequests(t *testing.T) {
	m := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, ReadIOPS: 1000, WriteIOPS: 500,
		Parallelism: 128, Duplex: true}
	for _, c := range []struct {
		chunk       int64
		read, write float64
	}{{64 << 10, 1000 * 64 << 10, 500 * 64 << 10}, {4 << 20, 1 << 30, 1 << 30},
		{3 << 19, 1 << 30, 500 * 3 << 19}} {
		r, w := &stream{op: tiers.Read, size: 16 * c.chunk},
			&stream{op: tiers.Write, size: 16 * c.chunk}
		runStreams(t, m, c.chunk, 4, r, w)
		assert.InEpsilon(t, c.read, float64(r.bytes), 0.02, "%d", c.chunk)
		assert.InEpsilon(t, c.write, float64(w.bytes), 0.02, "%d", c.chunk)
	}
	m.Duplex = false
	r, w := &stream{op: tiers.Read, size: 1 << 20}, &stream{op: tiers.Write, size: 1 << 20}
	runStreams(t, m, 64<<10, 4, r, w)
	assert.InEpsilon(t, 1, float64(r.bytes)/(1000*64<<10)+float64(w.bytes)/(500*64<<10), 0.02,
		"one medium shares its time")
}

// Bytes that fit into a slice pass at once, the rest waits for the next slice. The average rate is the
// same.
func TestDeviceModelHandsOutSlices(t *testing.T) {
	const ms = time.Millisecond
	m := medium{}
	var done []time.Duration
	for range 5 { // 100 ms hold four of them
		done = append(done, m.take(1000*ms, 25*ms, 100*ms))
	}
	assert.Equal(t, []time.Duration{1000 * ms, 1000 * ms, 1000 * ms, 1100 * ms, 1100 * ms}, done,
		"the fourth is through when the slice is over")
	assert.Equal(t, 1150*ms, m.take(1150*ms, 25*ms, 100*ms), "in a slice with room")
	assert.Equal(t, 1260*ms, m.take(1260*ms, 25*ms, 100*ms), "after a rest a new slice begins")
	assert.Equal(t, 1260*ms, m.take(1260*ms, 70*ms, 100*ms))
	assert.Equal(t, 1360*ms, m.take(1260*ms, 10*ms, 100*ms))

	d := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, Parallelism: 128, Slice: 20 * ms}
	r := &stream{op: tiers.Read, size: 3 << 20}
	runStreams(t, d, 1<<20, 1, r)
	assert.InEpsilon(t, 1<<30, float64(r.bytes), 0.03)

	var many []*stream
	for range 8 {
		many = append(many, &stream{op: tiers.Read, size: 16 << 20})
	}
	runStreams(t, d, 1<<20, 1, many...)
	for _, s := range many {
		assert.InEpsilon(t, 1<<27, float64(s.bytes), 0.1, "each stream gets its share of the slices")
	}
}

func a2(s *stream) *stream { return &stream{op: s.op, size: s.size} }

// Requests queue in the device and not before it: their latency grows with the number in flight,
// according to Little's law.
func TestTheLatencyOfARequestIsItsTimeAtTheDevice(t *testing.T) {
	const chunk = 1 << 20
	m := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, ReadLatency: time.Millisecond,
		WriteLatency: 2 * time.Millisecond, Parallelism: 1}
	pass := time.Second / 1024 // of a chunk
	for depth, want := range map[int][]time.Duration{
		1: {m.ReadLatency + pass, m.ReadLatency + pass, m.ReadLatency + pass},
		2: {m.ReadLatency + pass, 2 * (m.ReadLatency + pass), 2 * (m.ReadLatency + pass)},
	} {
		v := clock.NewVirtual()
		x := transfer.New(NewDevice(m, "a model", v),
			&transfer.Settings{Chunk: chunk, Depth: depth, Clock: v})
		var got []time.Duration
		v.Go(func() {
			call := tiers.Call{Observe: func(c tiers.Chunk) {
				assert.Equal(t, c.Submitted, c.Begun)
				assert.Equal(t, c.Ended, c.Completed)
				got = append(got, c.Ended-c.Begun)
			}}
			assert.NoError(t, x.Get(t.Context(), &call,
				[]tiers.Object{{Key: "k", Size: 3 * chunk}}, nil))
		})
		v.Wait()
		assert.Equal(t, want, got, "depth %d", depth)
	}
}

// A write includes its flush. Requests of a reader pass during the flush, and filling before the load
// takes no time.
func TestAFlushIsPartOfTheWrite(t *testing.T) {
	const chunk = 1 << 20
	m := tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, Parallelism: 1,
		Flush: 5 * time.Millisecond}
	pass := time.Second / 1024 // of a chunk
	write := func(free bool, also func(*Device, *clock.Virtual)) time.Duration {
		v := clock.NewVirtual()
		d := NewDevice(m, "a model", v)
		d.Free = free
		var took time.Duration
		v.Go(func() {
			w, err := d.Create(t.Context(), tiers.Object{Key: "k", Size: chunk})
			assert.NoError(t, err)
			done := v.NewEvent()
			w.Submit(&tiers.IO{N: chunk, Done: func(*tiers.IO) { done.Fire() }})
			assert.NoError(t, done.Wait(t.Context()))
			assert.NoError(t, w.Commit(t.Context()))
			took = v.Now()
		})
		also(d, v)
		v.Wait()
		return took
	}
	alone := func(*Device, *clock.Virtual) {}
	assert.Equal(t, pass+m.Flush, write(false, alone))
	assert.Zero(t, write(true, alone))
	assert.Equal(t, pass+m.Flush, write(false, func(d *Device, v *clock.Virtual) {
		v.Go(func() {
			assert.NoError(t, v.Sleep(t.Context(), 2*pass)) // into the flush
			x := transfer.New(d, &transfer.Settings{Chunk: chunk, Depth: 1, Clock: v})
			call := tiers.Call{Observe: func(c tiers.Chunk) {
				assert.Equal(t, pass, c.Ended-c.Begun)
			}}
			assert.NoError(t, x.Get(t.Context(), &call,
				[]tiers.Object{{Key: "other", Size: chunk}}, nil))
		})
	}))
}
