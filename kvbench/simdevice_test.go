package kvbench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers"
	"kvbench/workloads"
)

// stream moves one object of the given size through a device again and again.
type stream struct {
	op    tiers.Op
	size  int64
	bytes int64 // moved
}

// runStreams lets streams run side by side for a virtual second.
func runStreams(t *testing.T, m DeviceModel, chunk int64, depth int, streams ...*stream) {
	t.Helper()
	v := newVirtualTime()
	v.horizon = time.Second
	d := newSimDevice(m, "a model", v, chunk, depth)
	ctx, cancel := context.WithCancel(t.Context())
	for _, s := range streams {
		v.spawn(func() {
			for ctx.Err() == nil {
				_ = (&simIO{d, s.op}).Pace(ctx, s.size, func(n int64) { s.bytes += n })
			}
		})
	}
	for v.step() {
	}
	assert.Equal(t, time.Second, v.now)
	cancel()
	v.finish()
}

func TestDeviceModelGivesWhatItsFormulaSays(t *testing.T) {
	m := DeviceModel{Read: 1 << 30, Write: 1 << 29, ReadLatency: time.Millisecond, WriteLatency: 2 * time.Millisecond, Parallelism: 4}
	const chunk = 1 << 20
	pass := time.Second / 1024 // of a chunk that is read
	one := float64(chunk) / (m.ReadLatency + pass).Seconds()
	rate := func(bytes int64) float64 { return float64(bytes) }

	a := &stream{op: tiers.Read, size: chunk}
	runStreams(t, m, chunk, 1, a)
	assert.InEpsilon(t, one, rate(a.bytes), 0.01, "one at a time: latency + size ÷ bandwidth")

	b := &stream{op: tiers.Read, size: chunk}
	runStreams(t, m, chunk, 1, a2(a), b)
	assert.InEpsilon(t, 1<<30, rate(b.bytes)*2, 0.02, "two of them fill the medium: each takes it for half of the time")

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
	assert.InEpsilon(t, 4*4096/0.010, rate(sum), 0.02, "small reads: places ÷ latency, however many wait")
}

// Small requests meet the bound of requests/s, large ones that of bytes/s, each
// direction its own.
func TestDeviceModelCountsRequests(t *testing.T) {
	m := DeviceModel{Read: 1 << 30, Write: 1 << 30, ReadIOPS: 1000, WriteIOPS: 500, Parallelism: 128, Duplex: true}
	for _, c := range []struct {
		chunk       int64
		read, write float64
	}{{64 << 10, 1000 * 64 << 10, 500 * 64 << 10}, {4 << 20, 1 << 30, 1 << 30}, {3 << 19, 1 << 30, 500 * 3 << 19}} {
		r, w := &stream{op: tiers.Read, size: 16 * c.chunk}, &stream{op: tiers.Write, size: 16 * c.chunk}
		runStreams(t, m, c.chunk, 4, r, w)
		assert.InEpsilon(t, c.read, float64(r.bytes), 0.02, "%d", c.chunk)
		assert.InEpsilon(t, c.write, float64(w.bytes), 0.02, "%d", c.chunk)
	}
	m.Duplex = false
	r, w := &stream{op: tiers.Read, size: 1 << 20}, &stream{op: tiers.Write, size: 1 << 20}
	runStreams(t, m, 64<<10, 4, r, w)
	assert.InEpsilon(t, 1, float64(r.bytes)/(1000*64<<10)+float64(w.bytes)/(500*64<<10), 0.02, "one medium shares its time")
}

// What fits into a slice passes at once, the rest waits for the next; in the long
// run the rate is the same.
func TestDeviceModelHandsOutSlices(t *testing.T) {
	const ms = time.Millisecond
	m := medium{}
	var done []time.Duration
	for range 5 { // 100 ms hold four of them
		done = append(done, m.take(1000*ms, 25*ms, 100*ms))
	}
	assert.Equal(t, []time.Duration{1000 * ms, 1000 * ms, 1000 * ms, 1100 * ms, 1100 * ms}, done, "the fourth is through when the slice is over")
	assert.Equal(t, 1150*ms, m.take(1150*ms, 25*ms, 100*ms), "in a slice with room")
	assert.Equal(t, 1260*ms, m.take(1260*ms, 25*ms, 100*ms), "after a rest a new slice begins")
	assert.Equal(t, 1260*ms, m.take(1260*ms, 70*ms, 100*ms))
	assert.Equal(t, 1360*ms, m.take(1260*ms, 10*ms, 100*ms))

	d := DeviceModel{Read: 1 << 30, Write: 1 << 30, Parallelism: 128, Slice: 20 * ms}
	r := &stream{op: tiers.Read, size: 3 << 20}
	runStreams(t, d, 1<<20, 1, r)
	assert.InEpsilon(t, 1<<30, float64(r.bytes), 0.03)

	var many []*stream
	for range 8 {
		many = append(many, &stream{op: tiers.Read, size: 16 << 20})
	}
	runStreams(t, d, 1<<20, 1, many...)
	for _, s := range many {
		assert.InEpsilon(t, 1<<27, float64(s.bytes), 0.1, "nobody takes a slice for himself")
	}
}

func a2(s *stream) *stream { return &stream{op: s.op, size: s.size} }

func TestDeviceModelSharesItsMediumUnlessDuplex(t *testing.T) {
	m := DeviceModel{Read: 1 << 30, Write: 1 << 29, Parallelism: 128}
	for _, duplex := range []bool{false, true} {
		m.Duplex = duplex
		r, w := &stream{op: tiers.Read, size: 64 << 20}, &stream{op: tiers.Write, size: 64 << 20}
		runStreams(t, m, 1<<20, 8, r, w)
		used := float64(r.bytes)/m.Read + float64(w.bytes)/m.Write
		if duplex {
			assert.InEpsilon(t, 2, used, 0.02)
		} else {
			assert.InEpsilon(t, 1, used, 0.02)
			assert.InEpsilon(t, float64(w.bytes), float64(r.bytes), 0.05, "equal requests in turn")
		}
	}
}

// prefillOnly is a load of single writes that come as a Poisson process.
func prefillOnly(t *testing.T, users int, rate float64, window time.Duration) Config {
	t.Helper()
	model, err := workloads.FindModel("llama3.1-8b", nil)
	require.NoError(t, err)
	p := workloads.DefaultProfile()
	cfg := usersConfig(model, users, window)
	cfg.Source = func() (workloads.Source, error) {
		return workloads.NewUsers(workloads.UsersConfig{
			Profile: p, Users: workloads.Population(p, 7, users, false), Seed: 7, PrefillOnly: true, Rate: rate, Overtaking: true,
		}), nil
	}
	cfg.Overtaking = true
	cfg.Workers, cfg.Storage.MaxWriters, cfg.Storage.Chunk = 500, 0, 16<<20
	return cfg
}

// Chunks of all writes take turns on the medium, which shares it evenly: an M/G/1
// queue with processor sharing, whose mean response time is E[S] ÷ (1 - ρ)
// whatever the distribution of sizes.
func TestSimulatedLatencyIsThatOfTheQueue(t *testing.T) {
	oneThread(t)
	const bandwidth, rho = 7 << 30, 0.7
	mean := 0.0
	const users = 1000
	for _, u := range workloads.Population(workloads.DefaultProfile(), 7, users, false) {
		low := max(1, u.Context/4)
		mean += float64(low+u.Context) / 2 / users
	}
	service := mean * 131072 / bandwidth
	cfg := prefillOnly(t, users, rho/service, 1000*time.Second)
	res, err := Simulate(t.Context(), cfg, SimConfig{Device: &DeviceModel{Read: bandwidth, Write: bandwidth, Parallelism: 1 << 16}})
	require.NoError(t, err)
	want := service / (1 - rho) * 1e3
	t.Logf("mean latency: %.1f ms predicted by theory, %.1f ms simulated, %d requests", want, *res.Summary.EndToEndLatency.Mean, res.RequestsCompleted)
	assert.InEpsilon(t, want, *res.Summary.EndToEndLatency.Mean, 0.1)
	assert.InEpsilon(t, rho, *res.Simulation.DeviceBusyShare, 0.03)
	assert.InDelta(t, users, *res.Simulation.SustainedUsers, 2)
}

// Twice as much as the device can do: half of the users are sustained and the
// queue grows by the other half.
func TestSimulatedOverloadIsReported(t *testing.T) {
	oneThread(t)
	const bandwidth = 7 << 30
	const users = 1000
	mean := 0.0
	for _, u := range workloads.Population(workloads.DefaultProfile(), 7, users, false) {
		mean += float64(max(1, u.Context/4)+u.Context) / 2 / users
	}
	capacity := bandwidth / (mean * 131072)
	cfg := prefillOnly(t, users, 2*capacity, 400*time.Second)
	res, err := Simulate(t.Context(), cfg, SimConfig{Device: &DeviceModel{Read: bandwidth, Write: bandwidth, Parallelism: 128}})
	require.NoError(t, err)
	assert.InEpsilon(t, float64(bandwidth), *res.Tiers[0].Write.BytesPerSecond, 0.02)
	assert.InEpsilon(t, users/2, *res.Simulation.SustainedUsers, 0.15)
	assert.InEpsilon(t, capacity, *res.Simulation.QueueGrowth, 0.15)
	assert.Equal(t, StorageLimited, res.Harness.Verdict.Kind)
}

func TestDeviceModelRefusesNonsense(t *testing.T) {
	for _, m := range []DeviceModel{{}, {Read: 1, Write: 1}, {Read: 1, Write: -1, Parallelism: 1}, {Read: 1, Write: 1, Parallelism: 1, ReadLatency: -1},
		{Read: 1, Write: 1, Parallelism: 1, WriteIOPS: -1}, {Read: 1, Write: 1, Parallelism: 1, Slice: -1}} {
		_, err := Simulate(t.Context(), optionOne(t, time.Second), SimConfig{Device: &m})
		require.ErrorContains(t, err, "simulated device")
	}
}
