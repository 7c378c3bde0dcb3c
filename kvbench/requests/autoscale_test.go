package requests

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

const ms = time.Millisecond

func inMS(d time.Duration) *float64 { return new(d.Seconds() * 1e3) }

func TestQoSModeHoldsTheTarget(t *testing.T) {
	a := newAutoscaler(Autoscale{Mode: result.AutoscaleQoS, Target: 0.8}, 10)
	step := func(read time.Duration, rate float64) (int, string) {
		users, over := a.end(result.Round{BytesPerSecond: rate, ReadP95: inMS(read)})
		require.False(t, over)
		return users, a.kept[len(a.kept)-1].Decision
	}
	for range 2 {
		users, why := step(10*ms, 100)
		assert.Equal(t, 10, users)
		assert.Contains(t, why, "too few")
	}
	users, why := step(20*ms, 100)
	assert.Equal(t, 12, users, "below the target: × 1.2")
	assert.Contains(t, why, "below")
	users, _ = step(30*ms, 100)
	assert.Equal(t, 15, users, "14.4 rounds up")
	users, why = step(95*ms, 100)
	assert.Equal(t, 15, users)
	assert.Contains(t, why, "once")
	users, why = step(99*ms, 100)
	assert.Equal(t, 12, users, "above the target twice: × 0.8")
	assert.Contains(t, why, "twice")
	for range holdRounds {
		users, why = step(10*ms, 100)
		assert.Equal(t, 12, users)
		assert.Contains(t, why, "hold after")
	}
	users, why = step(80*ms, 100)
	assert.Equal(t, 12, users, why)
	assert.True(t, a.summary.Found)
	assert.Equal(t, 12, a.summary.SustainedUsers)
	assert.Equal(t, 15, a.summary.PeakUsers)
}

// A search that did not end has no answer.
func TestQoSSaysWhetherItFoundTheUsers(t *testing.T) {
	low, high := 10*ms, 95*ms
	for _, c := range []struct {
		name      string
		read      []time.Duration
		sustained int
		found     bool
	}{
		{"never above", []time.Duration{low, low, low + 1, low + 2}, 12, false},
		{"always above", []time.Duration{high, high + 1, high + 2, high + 3}, 10, false},
		{"below, then above twice", []time.Duration{low, low + 1, low + 2, high, high + 1}, 10,
			true},
		{"above once is noise", []time.Duration{low, low + 1, low + 2, high, low, low + 1}, 15,
			false},
	} {
		a := newAutoscaler(Autoscale{Mode: result.AutoscaleQoS, Target: 0.8}, 10)
		for _, read := range c.read {
			a.end(result.Round{BytesPerSecond: 100, ReadP95: inMS(read)})
		}
		s := a.summary
		assert.Equal(t, c.found, s.Found, c.name)
		assert.Equal(t, c.sustained, s.SustainedUsers, c.name)
	}
}

func TestSaturationIsHalvedUnlessSteadyAndRising(t *testing.T) {
	for name, c := range map[string]struct {
		rates  []float64
		reads  []time.Duration
		writes []time.Duration
		want   float64
	}{
		"steady and rising": {[]float64{100, 101, 99},
			[]time.Duration{10 * ms, 20 * ms, 60 * ms}, nil, 0.6},
		"falling":  {[]float64{100, 101, 99}, []time.Duration{90 * ms, 70 * ms, 60 * ms}, nil, 0.3},
		"unsteady": {[]float64{100, 150, 50}, []time.Duration{10 * ms, 20 * ms, 60 * ms}, nil, 0.3},
		"writes decide": {[]float64{100, 101, 99},
			[]time.Duration{1 * ms, 2 * ms, 3 * ms}, []time.Duration{0, 0, 40 * ms}, 0.8},
		"never above one": {[]float64{100, 101, 99},
			[]time.Duration{1 * ms, 2 * ms, 3000 * ms}, nil, 1},
		"the last round, not all": {[]float64{100, 101, 99, 100},
			[]time.Duration{1 * ms, 2 * ms, 99 * ms, 50 * ms}, nil, 0.5},
	} {
		a := newAutoscaler(Autoscale{Mode: result.AutoscaleQoS, Target: 0.8}, 10)
		for i := range c.rates {
			r := result.Round{BytesPerSecond: c.rates[i], ReadP95: inMS(c.reads[i])}
			if c.writes != nil {
				r.WriteP95 = inMS(c.writes[i])
			}
			a.end(r)
		}
		last := a.kept[len(a.kept)-1].Saturation
		require.NotNil(t, last, name)
		assert.InDelta(t, c.want, *last, 1e-9, name)
	}
}

func TestCapacityModeEndsWhenNothingGrows(t *testing.T) {
	a := newAutoscaler(Autoscale{Mode: result.AutoscaleCapacity}, 100)
	limit := 250 // users that the storage can serve
	var seen []int
	for users, over := 100, false; !over; {
		seen = append(seen, users)
		require.Less(t, len(seen), 50)
		rate := float64(min(users, limit)) * 1000
		users, over = a.end(result.Round{BytesPerSecond: rate, Noise: 500})
	}
	assert.Equal(t, []int{100, 140, 168, 202, 243, 292, 351, 422}, seen, "40 % first, then 20 %")
	s := a.summary
	assert.True(t, s.Found)
	assert.Equal(t, 292, s.SustainedUsers, "within one step of 250")
	assert.Equal(t, 250000.0, s.PeakRate)

	a = newAutoscaler(Autoscale{Mode: result.AutoscaleCapacity}, 3)
	users, _ := a.end(result.Round{BytesPerSecond: 10})
	assert.Equal(t, 8, users, "at least 5 more")
	a = newAutoscaler(Autoscale{Mode: result.AutoscaleCapacity}, 1000)
	users, _ = a.end(result.Round{BytesPerSecond: 10})
	assert.Equal(t, 1100, users, "at most 100 more")
	a = newAutoscaler(Autoscale{Mode: result.AutoscaleCapacity, MaxUsers: 1050}, 1000)
	users, _ = a.end(result.Round{BytesPerSecond: 10})
	assert.Equal(t, 1050, users)
}

// A drive whose saturation is known: users whose single writes it can serve just
// so often are found within one step, in virtual time.
func TestCapacityOfASimulatedDeviceIsFoundWithinOneStep(t *testing.T) {
	tiertest.OneThread(t)
	const bandwidth = 20 << 30
	p := users.Default()
	perUser := func(n int) float64 { // bytes/s of the first n users
		sum := 0.0
		for _, u := range users.Population(p, 42, n, false) {
			sum += float64(max(1, u.Context/4)+u.Context) / 2 / u.Think * 131072
		}
		return sum
	}
	saturated := 1
	for perUser(saturated) < bandwidth {
		saturated++
	}
	model, err := model.Find("llama3.1-8b", nil)
	require.NoError(t, err)
	cfg := usersConfig(model, 20, 20*time.Minute)
	cfg.Source = func() (workloads.Source, error) {
		return users.New(users.Config{Profile: p, Users: users.Population(p, 42, 20, false),
			Seed: 42, PrefillOnly: true, Overtaking: true}), nil
	}
	cfg.Overtaking = true
	cfg.Storage.MaxWriters, cfg.Storage.Chunk = 0, 64<<20
	cfg.Autoscale = &Autoscale{Mode: result.AutoscaleCapacity, Interval: 60 * time.Second}
	res, err := simulateLoad(t.Context(), cfg,
		kvbench.SimConfig{Device: &tiers.DeviceModel{Read: bandwidth, Write: bandwidth,
			Parallelism: 128}})
	require.NoError(t, err)
	assert.Equal(t, result.EndedByCapacity, res.EndedBy)
	assert.Equal(t, result.StatusComplete, res.Status)
	s := res.Autoscaler
	require.NotNil(t, s)
	t.Logf("saturated with %d users, found %+v", saturated, s)
	assert.True(t, s.Found)
	step := max(minStep, 0.2*float64(saturated))
	assert.InDelta(t, saturated, s.SustainedUsers, step+1)
	assert.InEpsilon(t, float64(bandwidth), s.PeakRate, 0.03)
	first := res.Rounds()[0]
	last := res.Rounds()[len(res.Rounds())-1]
	assert.Equal(t, 20, first.Workers)
	assert.Equal(t, last.Users, last.Workers, "workers follow the users")
	assert.NotNil(t, last.WriteP95)
}

// Both modes on a real directory: users and workers really start and stop.
func TestAutoscalersOnARealDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := users.Default()
		for i := range p.Templates {
			p.Templates[i].Context, p.Templates[i].Generate, p.Templates[i].Think = [2]int{16, 64},
				[2]int{4, 40}, [2]float64{0.01, 0.02}
		}
		model := model.Model{Key: "mini", Layers: 2, Hidden: 128, Heads: 1, KVHeads: 1,
			Attention: model.MHA}
		for _, mode := range []string{result.AutoscaleQoS, result.AutoscaleCapacity} {
			cfg := usersConfig(model, 2, 600*ms)
			cfg.Source = func() (workloads.Source, error) {
				return users.New(users.Config{Profile: p, Users: users.Population(p, 42, 2, false),
					Seed: 42, MultiTurn: true}), nil
			}
			cfg.Storage = kvbench.StorageConfig{CacheDir: t.TempDir(), StorageBytes: 64 << 20,
				Use: buffer.Use{Chunk: 64 << 10, Depth: 1, Workers: 64}}
			cfg.Autoscale = &Autoscale{Mode: mode, Target: 0.8, Interval: 50 * ms, MaxUsers: 8}
			res, err := runLoad(t.Context(), cfg)
			require.NoError(t, err)
			s := res.Autoscaler
			require.NotNil(t, s)
			require.NotEmpty(t, res.Rounds())
			rounds := res.Rounds()
			first, most := rounds[0], 0
			for _, r := range rounds {
				most = max(most, r.Workers)
				assert.LessOrEqual(t, r.Workers, r.Users, "no more workers than users")
				assert.GreaterOrEqual(t, r.Goroutines, r.Workers)
				assert.GreaterOrEqual(t, r.NextUsers, 1)
			}
			assert.Equal(t, 2, first.Workers)
			assert.Greater(t, most, 2, "%s: workers were added in %+v", mode, rounds)
			// Files take no time in a bubble, so the largest number of users is served.
			capacity := mode == result.AutoscaleCapacity
			assert.Equal(t, capacity, s.Found)
			assert.Equal(t, 8, s.PeakUsers)
			assert.Equal(t, capacity, res.EndedBy == result.EndedByCapacity, res.EndedBy)
			idle, busy := res.Harness.WorkerIdleNS, res.Harness.WorkerBusyNS
			assert.Greater(t, idle+busy, 2*res.WindowNS, "the time of those who came counts")
			total := res.Load["total"]
			assert.Equal(t, total.Offered,
				total.Completed+total.Failed+total.InFlight+total.Queued)
		}
	})
}

// Shrinking stops users and workers, and what they had waiting leaves with them.
func TestScalingDownStopsUsersAndWorkers(t *testing.T) {
	tiertest.OneThread(t)
	cfg := optionOne(t, 40*time.Second)
	cfg.Autoscale = &Autoscale{Mode: result.AutoscaleQoS, Target: 0.1, Interval: 2 * time.Second}
	cfg.Users, cfg.Workers = 200, 200
	res, err := simulateLoad(t.Context(), cfg,
		kvbench.SimConfig{Device: &tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, ReadLatency: ms,
			Parallelism: 8}})
	require.NoError(t, err)
	s := res.Autoscaler
	assert.Less(t, s.FinalUsers, 200)
	last := res.Rounds()[len(res.Rounds())-1]
	assert.LessOrEqual(t, last.Workers, 200)
	total := res.Load["total"]
	assert.Equal(t, total.Offered, total.Completed+total.Failed+total.InFlight+total.Queued)
	assert.Positive(t, res.Tiers[0].Read.Bytes+res.Tiers[0].Write.Bytes)
	assert.Equal(t, tiers.Storage.String(), res.Tiers[0].Level)
}

// A round that ends with the window, or after it, is in no result. The race detector checks it.
func TestARoundMayEndWithTheWindow(t *testing.T) {
	a := newAutoscaler(Autoscale{Mode: result.AutoscaleQoS, Target: 0.8}, 4)
	var rounds sync.WaitGroup
	rounds.Go(func() {
		for range 1000 {
			a.end(result.Round{BytesPerSecond: 1e6})
		}
	})
	a.stop()
	kept, last := len(a.kept), a.summary.Rounds
	rounds.Wait()
	assert.Equal(t, kept, last)
	assert.Len(t, a.kept, kept, "nothing came after the end")
	_, over := a.end(result.Round{})
	assert.True(t, over)
}
