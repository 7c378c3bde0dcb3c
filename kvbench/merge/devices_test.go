package merge

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// client is a rank that shares the device of its host.
func client(rank int, host string) *result.Result {
	return &result.Result{Name: "X", Benchmark: "X", Rank: rank, Ranks: 4, WindowNS: 10e9,
		Status: result.StatusComplete, StartTime: "2026-01-02T03:04:05Z", ClockOffsetNS: new(int64(0)),
		Environment: result.Environment{Hostname: host}, Limits: result.Limits{Cores: 2},
		DeviceCounters: result.DeviceCounters{Device: "vda", ReadBytes: new(int64(400)),
			WriteBytes: new(int64(40)), AppReadBytes: 100, AppWriteBytes: 10},
		Harness: result.Harness{CPUNS: 4e9, PeakRSSBytes: new(int64(7)),
			Verdict: result.Verdict{Kind: result.StorageLimited, Reason: "the device was busy"}}}
}

// TestADeviceCountsOnce: four ranks, two on each of two hosts.
func TestADeviceCountsOnce(t *testing.T) {
	ranks := []*result.Result{client(0, "a"), client(1, "a"), client(2, "b"), client(3, "b")}
	out := Ranks(ranks, &result.Clients{})
	w := out.DeviceCounters
	assert.Equal(t, []int64{800, 80, 400, 40}, []int64{*w.ReadBytes, *w.WriteBytes, w.AppReadBytes,
		w.AppWriteBytes})
	assert.Equal(t, []float64{2, 2}, []float64{*w.ReadRatio, *w.WriteRatio})
	assert.False(t, *w.ServedFromCache)
	// Two ranks' bytes are twice those of the ranks of a host: another process used the device.
	assert.Equal(t, []string{"the device read 800 B where the application read 400 B (ratio 2): " +
		"another process used it in the window, or the filesystem read more than was requested; " +
		"this load had less of the device"}, out.Warnings)
	assert.Equal(t, []int64{28, 10e9}, []int64{*out.Clients.PeakRSSBytes, out.Clients.MeanWindowNS})
	assert.EqualValues(t, 7, *out.Harness.PeakRSSBytes)
	// Ranks that were not started together had windows of their own.
	ranks[1].ClockOffsetNS = nil
	out = Ranks(ranks, nil)
	assert.Nil(t, out.DeviceCounters.ReadRatio)
	// The counters of the longest window count: rank 0's ended after 6 s of 10.
	ranks = []*result.Result{client(0, "a"), client(1, "a")}
	ranks[0].WindowNS, ranks[0].DeviceCounters.ReadBytes = 6e9, new(int64(120))
	out = Ranks(ranks, nil)
	assert.EqualValues(t, 400, *out.DeviceCounters.ReadBytes)
	assert.Equal(t, 2.0, *out.DeviceCounters.ReadRatio, "0.6 would blame a cache")
	// No window covers both.
	ranks[1].StartTime = "2026-01-02T03:04:06Z"
	ranks[0].WindowNS = 9e9
	out = Ranks(ranks, nil)
	assert.Nil(t, out.DeviceCounters.ReadBytes)
	assert.Contains(t, out.DeviceCounters.Reason, "no rank's window covers the windows of all")
	ranks = []*result.Result{client(0, "a"), client(1, "a"), client(2, "b"), client(3, "b")}
	ranks[1].ClockOffsetNS, ranks[3].DeviceCounters.Device = new(int64(0)), ""
	out = Ranks(ranks, nil)
	assert.Nil(t, out.DeviceCounters.ReadRatio, "the device of one rank is unknown")
}

// TestADeviceIsAKernels: containers of one machine have several names and one device, and two
// machines with one name have two.
func TestADeviceIsAKernels(t *testing.T) {
	ranks := []*result.Result{client(0, "pod-0"), client(1, "pod-1"), client(2, "pod-0"),
		client(3, "pod-1")}
	for i, boot := range []string{"x", "x", "y", "y"} {
		ranks[i].Environment.BootID = boot
	}
	out := Ranks(ranks, &result.Clients{})
	w := out.DeviceCounters
	assert.Equal(t, []int64{800, 80}, []int64{*w.ReadBytes, *w.WriteBytes})
	// Ranks that were not started together share it, too.
	ranks[0].ClockOffsetNS = nil
	out = Ranks(ranks, nil)
	assert.Nil(t, out.DeviceCounters.ReadBytes)
	assert.Contains(t, out.DeviceCounters.Reason, "ranks share the device")
	// Two that have one name and one device's name each.
	ranks = []*result.Result{client(0, "a"), client(1, "a")}
	for i, r := range ranks {
		r.Ranks, r.Environment.BootID = 2, []string{"x", "y"}[i]
	}
	out = Ranks(ranks, nil)
	assert.EqualValues(t, 800, *out.DeviceCounters.ReadBytes)
}

// loaded is a client that measured all the time, whose requests took four times as long as single
// ones. Rank 0 measured those.
func loaded(rank int, host string) *result.Result {
	r := client(rank, host)
	r.Tiers = []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: 10e9,
		Requests: 10e3, Operations: 10e3, InFlightNS: 40e9, MeanInFlight: new(4.0), BytesPerSecond: new(1e9)}}}
	r.Harness.WorkerBusyNS, r.Harness.Busy.StorageNS, r.Workload.Workers = 40e9, 40e9, 4
	h := result.NewHistogram(units.Nanoseconds)
	for range 10_000 {
		h.Record(4e6)
	}
	data := h.Encode()
	r.Histograms = map[string]result.HistogramData{"storage_read_request": data}
	r.Harness.Unloaded.Reason = "rank 0 measures it for all ranks"
	if rank == 0 {
		r.Harness.Unloaded = result.Unloaded{Read: []result.UnloadedLatency{{NS: 1e6,
			RequestBytes: 1e6, Requests: 70}}}
	}
	r.DeviceCounters = result.DeviceCounters{Reason: "unknown"}
	return r
}

// TestTheVerdictOfSeveral: it is judged from the sums, with the processors of the busiest host.
func TestTheVerdictOfSeveral(t *testing.T) {
	for _, c := range []struct {
		change     func(ranks []*result.Result)
		kind, says string
		cpu        float64
	}{
		{func([]*result.Result) {}, result.StorageLimited, "the run moved 3.73 GiB/s with 16 I/O " +
			"requests in flight: an I/O request took 4 ms, 4 times the 1 ms at queue depth 1", 0.4},
		{func(r []*result.Result) {
			for _, one := range r {
				one.Harness.WorkerIdleNS = 40e9
			}
		}, result.LoadLimited, "workers had no request for 50 % of the time", 0.4},
		// 0.86 cores each, which neither of them may notice, are 1.72 of two.
		{func(r []*result.Result) { r[2].Harness.CPUNS, r[3].Harness.CPUNS = 8.6e9, 8.6e9 },
			result.CPULimited, "the ranks of a host used 86 % of the 2 cores that their workers " +
				"can use (limit 85 %)", 0.86},
		// More than the host has: each has a quota of its own.
		{func(r []*result.Result) { r[2].Harness.CPUNS, r[3].Harness.CPUNS = 13e9, 13e9 },
			result.StorageLimited, "waited in the storage", 0.65},
		{func(r []*result.Result) { r[0].Harness.Unloaded = result.Unloaded{Reason: "so"} },
			result.Undecided, "the latency at queue depth 1 before the window is missing: so",
			0.4},
	} {
		ranks := []*result.Result{loaded(0, "a"), loaded(1, "a"), loaded(2, "b"),
			loaded(3, "b")}
		c.change(ranks)
		out := Ranks(ranks, &result.Clients{})
		v := out.Harness.Verdict
		assert.Equal(t, c.kind, v.Kind)
		assert.Contains(t, v.Reason, c.says)
		assert.InDelta(t, c.cpu, *v.CPUShare, 1e-9)
		assert.Equal(t, 2.0, out.Limits.Cores)
	}
}

// TestRatesOfSeveralClientsHaveOneWindow: windows of 20 and 25 s, in which 45 requests found 90
// tokens: 0.5 s for each request, and 4 tokens a second.
func TestRatesOfSeveralClientsHaveOneWindow(t *testing.T) {
	var ranks []*result.Result
	for rank, seconds := range []int64{20, 25} {
		r := client(rank, "a")
		r.Ranks, r.WindowNS, r.Benchmark = 2, seconds*1e9, result.BenchmarkEngines
		r.Requests.Completed = seconds
		r.BlockCache = &result.BlockCache{Tokens: 1000, HitTokens: 2 * seconds}
		ranks = append(ranks, r)
	}
	out := Ranks(ranks, &result.Clients{})
	values := map[string]float64{}
	for _, m := range out.Metrics() {
		values[m.Unit] = m.Value
	}
	assert.Equal(t, []float64{5e8, 4}, []float64{values["ns/op"], values["found-tok/s"]})
}
