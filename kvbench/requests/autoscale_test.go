package requests

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
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

const ms = time.Millisecond

// TestSearches runs the script testdata/autoscale. A command is a mode and the number of users at the
// start; a line is a round: its bytes/s and the p95 of its reads and writes in ms per 100 MiB. The
// output is the decision after each round, and what the search found. Rewrite it with -rewrite.
func TestSearches(t *testing.T) {
	datadriven.RunTest(t, "testdata/autoscale", func(t *testing.T, d *datadriven.TestData) string {
		cfg, noise := Autoscale{Mode: d.Cmd, Target: 0.8, Users: 10}, 0.0
		d.MaybeScanArgs(t, "users", &cfg.Users)
		d.MaybeScanArgs(t, "min", &cfg.MinUsers)
		d.MaybeScanArgs(t, "max", &cfg.MaxUsers)
		d.MaybeScanArgs(t, "noise", &noise)
		a := newAutoscaler(cfg)
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			var rate, read, write float64
			_, err := fmt.Sscan(line, &rate, &read, &write)
			require.NoError(t, err, line)
			_, over := a.end(result.Round{BytesPerSecond: rate, Noise: noise, ReadP95: &read,
				WriteP95: &write})
			r := a.kept[len(a.kept)-1]
			fmt.Fprintf(&out, "%d users: %s", r.NextUsers, r.Decision)
			if r.Saturation != nil && d.Cmd == result.AutoscaleQoS {
				fmt.Fprintf(&out, ", saturation %.4g", *r.Saturation)
			}
			out.WriteString(map[bool]string{true: ", the end"}[over] + "\n")
		}
		s := a.summary
		fmt.Fprintf(&out, "found %t, sustained %d, peak %d, %g bytes/s\n", s.Found, s.SustainedUsers,
			s.PeakUsers, s.PeakRate)
		return out.String()
	})
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
	cfg.Autoscale = &Autoscale{Mode: result.AutoscaleCapacity, Interval: 60 * time.Second,
		Users: 20}
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
	first := res.Autoscaler.History[0]
	last := res.Autoscaler.History[len(res.Autoscaler.History)-1]
	assert.Equal(t, 20, first.Workers)
	assert.Equal(t, last.Users, last.Workers, "workers follow the users")
	assert.NotNil(t, last.WriteP95)
}

// Users and workers start and stop in both modes, on a storage that takes no time.
func TestAutoscalersStartAndStopUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := users.Default()
		for i := range p.Templates {
			p.Templates[i].Context, p.Templates[i].Generate, p.Templates[i].Think = [2]int{16, 64},
				[2]int{4, 40}, [2]float64{0.01, 0.02}
		}
		for _, mode := range []string{result.AutoscaleQoS, result.AutoscaleCapacity} {
			cfg := usersConfig(model.Model{}, 2, 600*ms)
			cfg.Source = func() (workloads.Source, error) {
				return users.New(users.Config{Profile: p, Users: users.Population(p, 42, 2, false),
					Seed: 42, MultiTurn: true}), nil
			}
			cfg.Planner.Sizer, cfg.Storage.Levels = testSizer, plenty()
			cfg.Autoscale = &Autoscale{Mode: mode, Target: 0.8, Interval: 50 * ms, Users: 2, MaxUsers: 8}
			res, err := runLoad(t.Context(), cfg)
			require.NoError(t, err)
			s := res.Autoscaler
			rounds, most := res.Autoscaler.History, 0
			require.NotEmpty(t, rounds)
			for _, r := range rounds {
				most = max(most, r.Workers)
				assert.LessOrEqual(t, r.Workers, r.Users, "no more workers than users")
				assert.GreaterOrEqual(t, r.Goroutines, r.Workers)
				assert.GreaterOrEqual(t, r.NextUsers, 1)
			}
			assert.Equal(t, 2, rounds[0].Workers)
			assert.Greater(t, most, 2, "%s: workers were added in %+v", mode, rounds)
			capacity := mode == result.AutoscaleCapacity
			assert.Equal(t, capacity, s.Found)
			assert.Equal(t, 8, s.PeakUsers)
			assert.Equal(t, capacity, res.EndedBy == result.EndedByCapacity, res.EndedBy)
			assert.GreaterOrEqual(t, res.Workload.Workers, most, "CPU time is compared with all that ran")
			assert.LessOrEqual(t, res.Workload.Workers, 8)
			idle, busy := res.Harness.WorkerIdleNS, res.Harness.WorkerBusyNS
			assert.Greater(t, idle+busy, 2*res.WindowNS, "the time of those who came counts")
			checkLoad(t, res)

			// A fixed number stays, also one that equals the users at the start.
			cfg.Autoscale.FixedWorkers, cfg.Storage.Levels = true, plenty()
			res, err = runLoad(t.Context(), cfg)
			require.NoError(t, err)
			assert.Equal(t, 2, res.Workload.Workers)
			for _, r := range res.Autoscaler.History {
				assert.Equal(t, 2, r.Workers)
			}
			assert.Greater(t, res.Autoscaler.PeakUsers, 2)
		}
	})
}

// A round that ends with the window, or after it, is in no result. The race detector checks it.
func TestARoundMayEndWithTheWindow(t *testing.T) {
	a := newAutoscaler(Autoscale{Mode: result.AutoscaleQoS, Target: 0.8, Users: 4})
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
