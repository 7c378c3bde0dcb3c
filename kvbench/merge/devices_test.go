package merge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// client is a rank that shares the device of its host.
func client(rank int, host string) *result.Result {
	return &result.Result{Name: "X", Benchmark: "X", Rank: rank, Ranks: 4, WindowNS: 10e9,
		Status: result.StatusComplete, StartTime: "2026-01-02T03:04:05Z", ClockOffsetNS: new(int64(0)),
		Environment: result.Environment{Hostname: host}, Limits: result.Limits{Cores: 2},
		DeviceWitness: result.Witness{Device: "vda", ReadBytes: new(int64(400)),
			WriteBytes: new(int64(40)), AppReadBytes: 100, AppWriteBytes: 10},
		Harness: result.Harness{CPUNS: 4e9, PeakRSSBytes: new(int64(7)),
			Verdict: result.Verdict{Kind: result.StorageLimited, Reason: "the device was busy"}}}
}

// TestADeviceCountsOnce: four ranks, two on each of two hosts.
func TestADeviceCountsOnce(t *testing.T) {
	ranks := []*result.Result{client(0, "a"), client(1, "a"), client(2, "b"), client(3, "b")}
	out, err := Ranks(ranks, &result.Clients{})
	require.NoError(t, err)
	w := out.DeviceWitness
	assert.Equal(t, []int64{800, 80, 400, 40}, []int64{*w.ReadBytes, *w.WriteBytes, w.AppReadBytes,
		w.AppWriteBytes})
	assert.Equal(t, []float64{2, 2}, []float64{*w.ReadRatio, *w.WriteRatio})
	assert.False(t, *w.ServedFromCache)
	// Two ranks' bytes are twice those of the ranks of a host: somebody else was there.
	assert.Equal(t, []string{"the device read 800 B where the application read 400 B (ratio 2): " +
		"somebody else used it in the window, or the filesystem read more than it was asked for; " +
		"either way it had less for this load"}, out.Warnings)
	assert.Equal(t, []int64{28, 10e9}, []int64{*out.Clients.PeakRSSBytes, out.Clients.MeanWindowNS})
	assert.EqualValues(t, 7, *out.Harness.PeakRSSBytes)
	// Ranks that nobody started together had windows of their own.
	ranks[1].ClockOffsetNS = nil
	out, err = Ranks(ranks, nil)
	require.NoError(t, err)
	assert.Nil(t, out.DeviceWitness.ReadRatio)
	ranks[1].ClockOffsetNS, ranks[3].DeviceWitness.Device = new(int64(0)), ""
	out, err = Ranks(ranks, nil)
	require.NoError(t, err)
	assert.Nil(t, out.DeviceWitness.ReadRatio, "of one nobody knows the device")
}

// TestADeviceIsAKernels: containers of one machine have several names and one device, and two
// machines with one name have two.
func TestADeviceIsAKernels(t *testing.T) {
	ranks := []*result.Result{client(0, "pod-0"), client(1, "pod-1"), client(2, "pod-0"),
		client(3, "pod-1")}
	for i, boot := range []string{"x", "x", "y", "y"} {
		ranks[i].Environment.BootID = boot
	}
	out, err := Ranks(ranks, &result.Clients{})
	require.NoError(t, err)
	w := out.DeviceWitness
	assert.Equal(t, []int64{800, 80}, []int64{*w.ReadBytes, *w.WriteBytes})
	// Ranks that were not started together share it, too.
	ranks[0].ClockOffsetNS = nil
	out, err = Ranks(ranks, nil)
	require.NoError(t, err)
	assert.Nil(t, out.DeviceWitness.ReadBytes)
	assert.Contains(t, out.DeviceWitness.Reason, "ranks share the device")
	// Two that have one name and one device's name each.
	ranks = []*result.Result{client(0, "a"), client(1, "a")}
	for i, r := range ranks {
		r.Ranks, r.Environment.BootID = 2, []string{"x", "y"}[i]
	}
	out, err = Ranks(ranks, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 800, *out.DeviceWitness.ReadBytes)
}

// TestTheProcessorsOfSeveral: their share is known where they are on one host.
func TestTheProcessorsOfSeveral(t *testing.T) {
	share := func(hosts ...string) *float64 {
		var ranks []*result.Result
		for i, name := range hosts {
			r := client(i, name)
			r.Ranks, r.Harness.CPUNS = len(hosts), 5e9
			r.Limits.MemoryAvailable = int64(i + 1) // never alike
			ranks = append(ranks, r)
		}
		out, err := Ranks(ranks, &result.Clients{})
		require.NoError(t, err)
		assert.Equal(t, result.Limits{Cores: 2, MemoryAvailable: 1}, out.Limits)
		return out.Harness.Verdict.CPUShare
	}
	require.NotNil(t, share("a", "a"))
	assert.InDelta(t, 0.5, *share("a", "a"), 1e-9, "twice a quarter of 2 cores")
	assert.Nil(t, share("a", "b"))
	assert.Nil(t, share("a", "a", "a", "a", "a"), "more than there are: each has a quota")
}

func TestTheVerdictOfSeveral(t *testing.T) {
	for _, c := range []struct {
		change     func(ranks []*result.Result)
		kind, says string
	}{
		{func([]*result.Result) {}, result.StorageLimited,
			"4 of 4 ranks are storage-limited; rank 0: the device was busy"},
		{func(r []*result.Result) { r[3].Harness.Verdict.Kind = result.LoadLimited },
			result.StorageLimited, "3 of 4 ranks are storage-limited, 1 of 4 ranks are load-limited; " +
				"rank 0: the device was busy"},
		{func(r []*result.Result) {
			r[0].Harness.Verdict.Kind, r[1].Harness.Verdict.Kind = result.LoadLimited,
				result.LoadLimited
		}, result.Undecided, "2 of 4 ranks are load-limited, 2 of 4 ranks are storage-limited; rank " +
			"0: the device was busy"},
		// 0.86 cores each, which neither of them may notice, are 1.72 of two.
		{func(r []*result.Result) { r[2].Harness.CPUNS, r[3].Harness.CPUNS = 8.6e9, 8.6e9 },
			result.HarnessLimited, "the 2 ranks on b together used 1.72 of its 2 cores (limit 85 %): " +
				"more cores would move more bytes; 4 of 4 ranks are storage-limited; rank 0: the " +
				"device was busy"},
	} {
		ranks := []*result.Result{client(0, "a"), client(1, "a"), client(2, "b"), client(3, "b")}
		c.change(ranks)
		out, err := Ranks(ranks, &result.Clients{})
		require.NoError(t, err)
		assert.Equal(t, []string{c.kind, c.says}, []string{out.Harness.Verdict.Kind,
			out.Harness.Verdict.Reason})
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
	out, err := Ranks(ranks, &result.Clients{})
	require.NoError(t, err)
	values := map[string]float64{}
	for _, m := range out.Metrics() {
		values[m.Unit] = m.Value
	}
	assert.Equal(t, []float64{5e8, 4}, []float64{values["ns/op"], values["found-tok/s"]})
}
