package requests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

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
	cfg := prefillOnly(t, 2*capacity, 250*time.Second)
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

func TestDeviceModelRefusesNonsense(t *testing.T) {
	for _, m := range []tiers.DeviceModel{{}, {Read: 1, Write: 1},
		{Read: 1, Write: -1, Parallelism: 1}, {Read: 1, Write: 1, Parallelism: 1, ReadLatency: -1},
		{Read: 1, Write: 1, Parallelism: 1, WriteIOPS: -1},
		{Read: 1, Write: 1, Parallelism: 1, Slice: -1}} {
		_, err := simulateLoad(t.Context(), optionOne(t, time.Second),
			kvbench.SimConfig{Device: &m})
		require.ErrorContains(t, err, "simulated device")
	}
}
