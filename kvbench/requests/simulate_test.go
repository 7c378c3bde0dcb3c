package requests

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/iotrace"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// optionOne is MLPerf's first option with the given window.
func optionOne(t testing.TB, window time.Duration) runConfig {
	t.Helper()
	model, err := model.Find("llama3.1-8b", nil)
	require.NoError(t, err)
	return usersConfig(model, 200, window)
}

// usersConfig is a load of synthetic users as the MLPerf options have them.
func usersConfig(mdl model.Model, population int, window time.Duration) runConfig {
	p := users.Default()
	sizer := model.NewSizer(mdl, 1, model.TPEngine)
	return runConfig{engine{
		Info: record.Info{
			Result: result.Result{
				Benchmark: "Test", Division: result.DivisionOpen, Count: 1, Ranks: 1, Seed: 42,
				Model: result.Model{Key: mdl.Key, Name: mdl.Name,
					BytesPerToken: mdl.BytesPerToken()},
				Workload: result.Workload{Users: population},
			},
			Sizer: sizer, QoS: p.QoS,
		},
		Storage: kvbench.StorageConfig{Use: buffer.Use{Chunk: 1 << 20, Depth: 1, MaxWriters: 16,
			Workers: population}},
	}, Config{
		Source: func() (workloads.Source, error) {
			return users.New(users.Config{
				Profile: p, Users: users.Population(p, 42, population, false), Seed: 42,
				MultiTurn: true, PrefixCaching: true,
			}), nil
		},
		Planner: workloads.Planner{Sizer: sizer, DecodeBatch: p.DecodeBatch, Batched: true},
		Workers: population, Phase: kvbench.Phase{Window: window},
	}}
}

// simulateTrace runs a configuration and returns its I/O trace.
func simulateTrace(t testing.TB, cfg runConfig, sim kvbench.SimConfig) (string, *result.Result) {
	t.Helper()
	var out bytes.Buffer
	sim.Trace = iotrace.NewWriter(&out)
	res, err := simulateLoad(t.Context(), cfg, sim)
	require.NoError(t, err)
	require.NoError(t, sim.Trace.Close(true))
	return out.String(), res
}

// Every row is possible, given the rows before it: a shadow of the three tiers
// follows the trace and knows nothing of the cache.
func TestSimulatedTraceIsConsistent(t *testing.T) {
	tiertest.OneThread(t)
	cfg := optionOne(t, 5*time.Second)
	cfg.Storage.GPUBytes, cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 20<<30, 40<<30, 200<<30
	text, res := simulateTrace(t, cfg, kvbench.SimConfig{Deletes: true})
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, strings.Split(iotrace.Header, ","), rows[0])
	assert.EqualValues(t, len(rows)-1, res.Simulation.TraceRows)

	capacity := []int64{cfg.Storage.GPUBytes, cfg.Storage.CPUBytes, cfg.Storage.StorageBytes}
	held := []map[string]int64{{}, {}, {}}
	used := make([]int64, 3)
	last, counts := "", map[string]int64{}
	for _, r := range rows[1:] {
		assert.GreaterOrEqual(t, r[0], last, "time goes on")
		last = r[0]
		tier := int(r[3][len("Tier-")] - '0')
		var size int64
		_, err := fmt.Sscan(r[2], &size)
		require.NoError(t, err)
		counts[r[1]+" "+r[3]+" "+r[5]]++
		switch r[1] {
		case "Write":
			require.NotContains(t, held[tier], r[4], "written twice")
			held[tier][r[4]] = size
			used[tier] += size
			require.LessOrEqual(t, used[tier], capacity[tier])
		case "Read":
			require.Equal(t, held[tier][r[4]], size, "%v is read and not there", r)
		case "Delete":
			require.Equal(t, held[tier][r[4]], size, "%v is deleted and not there", r)
			delete(held[tier], r[4])
			used[tier] -= size
		}
	}
	var reads, demoted int64
	for _, tr := range res.Tiers {
		reads += tr.Read.Operations
		demoted += tr.DemotedIn.Entries
		assert.Positive(t, tr.PeakBytes)
	}
	assert.Equal(t, reads, counts["Read Tier-0 Decode"]+counts["Read Tier-1 Decode"]+
		counts["Read Tier-2 Decode"])
	assert.Positive(t, demoted)
	assert.Equal(t, demoted, counts["Write Tier-1 Evict"]+counts["Write Tier-2 Evict"])
	assert.Equal(t, demoted, counts["Read Tier-0 Evict"]+counts["Read Tier-1 Evict"])
	for l := range tiers.NumKinds {
		assert.Equal(t, res.Tiers[l].UsedBytes, used[l], "%v", tiers.Kind(l))
	}
	assert.Positive(t, counts["Delete Tier-2 Evict"])

	// Without a device it leaves no work behind, and says that it is a simulation.
	total := res.Load["total"]
	assert.Zero(t, total.Queued+total.InFlight)
	assert.Equal(t, total.Offered, total.Completed)
	assert.Equal(t, []any{result.EndedByDeadline, result.StatusComplete, int64(5 * time.Second)},
		[]any{res.EndedBy, res.Status, res.WindowNS})
	assert.Contains(t, res.Notice, "simulated")
	assert.Contains(t, report.LogLines(res)[0], "simulated")
	assert.Nil(t, res.Harness.CPUNSPerByte)
}

// What a simulation holds depends on the users and the cache, not on how long
// it lasts.
func TestSimulationMemoryDoesNotDependOnItsLength(t *testing.T) {
	tiertest.OneThread(t)
	heap := func(window time.Duration) uint64 {
		cfg := optionOne(t, window)
		cfg.Storage.StorageBytes = 1 << 38
		var m runtime.MemStats
		sim := kvbench.SimConfig{Trace: iotrace.NewWriter(io.Discard)}
		cfg.OnDispatch = func(r *workloads.Request, _ []workloads.Op) {
			if m.HeapAlloc == 0 && r.Arrival > window*9/10 {
				runtime.GC()
				runtime.ReadMemStats(&m)
			}
		}
		_, err := simulateLoad(t.Context(), cfg, sim)
		require.NoError(t, err)
		return m.HeapAlloc
	}
	short, long := heap(5*time.Second), heap(20*time.Second)
	assert.Less(t, float64(long), 1.1*float64(short)+float64(1<<20), "%d and %d bytes", short, long)
}

const queueUsers = 1000

// queueEntry is the mean size in bytes of what prefillOnly writes.
func queueEntry() (mean float64) {
	for _, u := range users.Population(users.Default(), 7, queueUsers, false) {
		mean += float64(max(1, u.Context/4)+u.Context) / 2 / queueUsers * 131072
	}
	return mean
}

// prefillOnly is a load of single writes that come as a Poisson process.
func prefillOnly(t *testing.T, rate float64, window time.Duration) runConfig {
	t.Helper()
	model, err := model.Find("llama3.1-8b", nil)
	require.NoError(t, err)
	p := users.Default()
	cfg := usersConfig(model, queueUsers, window)
	cfg.Source = func() (workloads.Source, error) {
		return users.New(users.Config{
			Profile: p, Users: users.Population(p, 7, queueUsers, false), Seed: 7,
			PrefillOnly: true, Rate: rate, Overtaking: true,
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
	tiertest.OneThread(t)
	const bandwidth, rho = 7 << 30, 0.7
	service := queueEntry() / bandwidth
	cfg := prefillOnly(t, rho/service, 200*time.Second)
	res, err := simulateLoad(t.Context(), cfg,
		kvbench.SimConfig{Device: &tiers.DeviceModel{Read: bandwidth, Write: bandwidth,
			Parallelism: 1 << 16}})
	require.NoError(t, err)
	want := service / (1 - rho) * 1e3
	t.Logf("mean latency: %.1f ms predicted by theory, %.1f ms simulated, %d requests", want,
		*res.Latency.Request.EndToEnd.Mean/1e6, res.Requests.Completed)
	assert.InEpsilon(t, want, *res.Latency.Request.EndToEnd.Mean/1e6, 0.1)
	assert.InEpsilon(t, rho, *res.Simulation.DeviceBusyShare, 0.03)
	assert.InEpsilon(t, want/1e3*rho/service, *res.Outstanding(), 0.15, "Little's law")
	assert.True(t, res.KeptUp(queueUsers))
}

// Twice as much as the device can do: half of it is served and the queue grows by the other half.
func TestSimulatedOverloadIsReported(t *testing.T) {
	tiertest.OneThread(t)
	const bandwidth = 7 << 30
	capacity := bandwidth / queueEntry()
	cfg := prefillOnly(t, 2*capacity, 150*time.Second)
	res, err := simulateLoad(t.Context(), cfg,
		kvbench.SimConfig{Device: &tiers.DeviceModel{Read: bandwidth, Write: bandwidth,
			Parallelism: 128}})
	require.NoError(t, err)
	assert.InEpsilon(t, float64(bandwidth), *res.Tiers[0].Write.BytesPerSecond, 0.02)
	assert.InEpsilon(t, 0.5, *res.Load["total"].ServedRatio, 0.15)
	assert.False(t, res.KeptUp(queueUsers))
	assert.InEpsilon(t, capacity, *res.Simulation.QueueGrowth, 0.15)
	assert.Equal(t, result.StorageLimited, res.Harness.Verdict.Kind)
}

// BenchmarkSimulate is option 1 through queue, plan, cache and trace writer
// (plain CSV): ops/s is what the specification wants above a million.
func BenchmarkSimulate(b *testing.B) {
	for _, c := range []struct {
		name     string
		capacity int64
		traced   bool
	}{{"storage=unlimited/trace=csv", 0, true}, {"storage=1TiB/trace=csv", 1 << 40, true},
		{"storage=1TiB/trace=none", 1 << 40, false}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			ops, start := int64(0), time.Now()
			for b.Loop() {
				cfg := optionOne(b, 300*time.Second)
				cfg.Storage.StorageBytes = c.capacity
				sim := kvbench.SimConfig{}
				if c.traced {
					sim.Trace = iotrace.NewWriter(io.Discard)
				}
				res, err := simulateLoad(b.Context(), cfg, sim)
				require.NoError(b, err)
				ops += res.Requests.Operations
			}
			b.ReportMetric(float64(ops)/time.Since(start).Seconds(), "ops/s")
			b.ReportMetric(float64(ops)/float64(b.N), "ops/op")
		})
	}
}
