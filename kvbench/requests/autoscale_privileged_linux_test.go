package requests

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/profile"
	"kvbench/workloads/users"
)

// limitedUsers is a load of single writes of 0.5 to 2 MiB, every 100 ms by each
// user, on a device that writes 40 MiB/s: more than three users fill it.
func limitedUsers(t *testing.T, population int, window time.Duration) runConfig {
	t.Helper()
	fs := privtest.LoopFS(t, 160, privtest.LoopOptions{DirectIO: true})
	rates := privtest.Rates{Read: 40 << 20, Write: 40 << 20}
	privtest.ThrottleLoop(t, fs, rates).Add(t, os.Getpid())
	p := profile.Default()
	for i := range p.Templates {
		p.Templates[i].Context, p.Templates[i].Think = [2]int{2048, 2048}, [2]float64{0.1, 0.1}
	}
	model := model.Model{Key: "mini", Layers: 2, Hidden: 128, Heads: 1, KVHeads: 1,
		Attention: model.MHA}
	cfg := usersConfig(model, population, window)
	cfg.Source = func() (workloads.Source, error) {
		return users.New(users.Config{Profile: p, Users: users.Population(p, 42, population, false),
			Seed: 42, PrefillOnly: true}), nil
	}
	cfg.Storage = kvbench.StorageConfig{CacheDir: fs.Dir + "/cache", StorageBytes: 128 << 20,
		Direct: true, Use: buffer.Use{Chunk: 256 << 10, Depth: 1, Workers: 64}}
	return cfg
}

// Each user writes 1.25 MiB on average every 100 ms: 3.2 of them are 40 MiB/s.
// The search goes 2, 7, 12, 17: 7 fill the device, 12 and 17 add nothing. Rounds
// are long beside the 100 ms in which the kernel hands out the bandwidth.
func TestCapacityModeFindsTheLimitOfADevice(t *testing.T) {
	tiertest.DevicePace(t)
	cfg := limitedUsers(t, 2, time.Minute)
	cfg.Autoscale = &Autoscale{Mode: result.AutoscaleCapacity, Interval: 2 * time.Second}
	r := mustRun(t, cfg)
	s := r.Autoscaler
	require.NotNil(t, s)
	rounds := r.Rounds()
	require.NotEmpty(t, rounds)
	for _, x := range rounds {
		t.Logf("%4.1f s: %2d users, %2d workers, %3d goroutines, %.1f MiB/s, %s", x.AtS, x.Users,
			x.Workers, x.Goroutines, x.BytesPerSecond/(1<<20), x.Decision)
	}
	assert.Equal(t, result.EndedByCapacity, r.EndedBy)
	assert.Less(t, r.WindowNS, int64(time.Minute))
	assert.True(t, s.Found)
	assert.InEpsilon(t, 40<<20, s.PeakRate, 0.15)
	assert.InDelta(t, 7, s.SustainedUsers, minStep, "within one step")
	first, last := rounds[0], rounds[len(rounds)-1]
	assert.Equal(t, 2, first.Workers)
	assert.Equal(t, last.Users, last.Workers)
}

// Forty users are far too many for a tenth of the device: they leave, their
// workers end, and nothing of what they had asked for is lost from the counts.
func TestQoSModeTakesUsersAway(t *testing.T) {
	tiertest.DevicePace(t)
	cfg := limitedUsers(t, 40, 8*time.Second)
	cfg.Autoscale = &Autoscale{Mode: result.AutoscaleQoS, Target: 0.1,
		Interval: 300 * time.Millisecond}
	r := mustRun(t, cfg)
	s := r.Autoscaler
	require.NotNil(t, s)
	rounds := r.Rounds()
	require.NotEmpty(t, rounds)
	first, last := rounds[0], rounds[len(rounds)-1]
	t.Logf("%d users, %d workers, %d goroutines in the first round, %d, %d, %d in the last",
		first.Users, first.Workers, first.Goroutines, last.Users, last.Workers, last.Goroutines)
	assert.Equal(t, 40, first.Users)
	assert.LessOrEqual(t, s.FinalUsers, 32, "× 0.8 once at least")
	assert.GreaterOrEqual(t, last.Workers, last.Users, "who leaves ends its request first")
	assert.Less(t, last.Workers, first.Workers)
}
