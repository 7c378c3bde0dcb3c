package requests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/sim"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/profile"
	"kvbench/workloads/traces"
	"kvbench/workloads/users"
)

// aDrive is what both runs of a load are on.
var aDrive = tiers.DeviceModel{Read: 1 << 30, Write: 1 << 29, ReadLatency: 80 * time.Microsecond,
	WriteLatency: 20 * time.Microsecond, Parallelism: 4}

// drivenLevels are the tiers of a simulation on aDrive, for a run in wall time.
func drivenLevels(t *testing.T, c kvbench.StorageConfig, wall clock.Clock) []cache.Level {
	t.Helper()
	levels := instantLevels(c)
	for i := range levels {
		switch levels[i].Kind {
		case tiers.GPU:
			link, err := sim.NewLink(c.GPUBandwidth, wall)
			require.NoError(t, err)
			levels[i].Tier = link
		case tiers.Storage:
			levels[i].Tier = sim.NewDevice(aDrive, "a drive", wall)
		}
	}
	return levels
}

// turns are a closed loop of ordered turns by one worker, of which the load has 300.
func turns(t *testing.T) runConfig {
	cfg := optionOne(t, 0)
	cfg.EndedBy, cfg.Workers = result.EndedByMaxRequests, 1
	cfg.Source = func() (workloads.Source, error) {
		p := profile.Default()
		return users.New(users.Config{Profile: p, Users: users.Population(p, 42, 20, false),
			Seed: 42, MultiTurn: true, PrefixCaching: true, ClosedLoop: true,
			MaxRequests: 300}), nil
	}
	cfg.Storage.StorageBytes = 30 << 30
	return cfg
}

// One load on one device is the same run and simulated: the same plans in the same order, hits,
// bytes, evictions, even times. On a real disk all but the times holds for users who do not pause
// (see TestARunOnALimitedDeviceAndItsSimulationAreTheSame). Others arrive a drawn time after their
// last request ended: where the disk ends one a little later than its model, two arrivals may
// change places, and with them what is evicted. The plan of each request stays.
func TestARunAndItsSimulationAreTheSame(t *testing.T) {
	const threeTiers = "turns over three tiers"
	loads := map[string]func() runConfig{
		"turns": func() runConfig { return turns(t) },
		threeTiers: func() runConfig {
			cfg := turns(t)
			cfg.Storage.GPUBytes, cfg.Storage.GPUBandwidth = 4<<30, 8<<30
			cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 8<<30, 15<<30
			cfg.TokenTime = 2 * time.Millisecond
			return cfg
		},
		"documents": func() runConfig {
			cfg := ragConfig(10, 3, 300)
			cfg.Workers, cfg.Storage.StorageBytes = 1, 1<<30
			cfg.Window, cfg.EndedBy = 0, result.EndedByMaxRequests
			return cfg
		},
		"decode only": func() runConfig {
			cfg := turns(t)
			cfg.Source = func() (workloads.Source, error) {
				p := profile.Default()
				return users.New(users.Config{Profile: p, Users: users.Population(p, 1, 5, false),
					Seed: 1, DecodeOnly: true, ClosedLoop: true, MaxRequests: 300}), nil
			}
			cfg.Population = Population{Entries: 50, Tokens: 2048}
			return cfg
		},
		"blocks": func() runConfig {
			cfg := blockConfig(smallTrace, 1)
			cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 30*512*128, 50*512*128
			return cfg
		},
		"a count of requests": func() runConfig {
			cfg := turns(t)
			cfg.Limit, cfg.EndedBy = 100, ""
			return cfg
		},
		"a deadline": func() runConfig {
			cfg := turns(t)
			cfg.Window = 40*time.Second + 1 // when nothing else happens
			return cfg
		},
	}
	endings := map[string]bool{}
	for name, load := range loads {
		t.Run(name, func(t *testing.T) {
			if name != threeTiers { // one of them is enough for the one worker
				tiertest.OneThread(t)
			}
			var real, simulated watchedLoad
			synctest.Test(t, func(t *testing.T) {
				cfg := real.watch(load())
				cfg.Clock = clock.NewWall()
				cfg.Storage.Simulated = true // no tier holds bytes
				cfg.Storage.Levels = drivenLevels(t, cfg.Storage, cfg.Clock)
				res, err := runLoad(t.Context(), cfg)
				require.NoError(t, err)
				real.keep(t, res)
				endings[res.EndedBy] = true
				assert.Positive(t, res.WindowNS)
			})
			res, err := simulateLoad(t.Context(), simulated.watch(load()),
				kvbench.SimConfig{Device: &aDrive})
			require.NoError(t, err)
			simulated.keep(t, res)
			assert.NotEmpty(t, real.plans)
			assert.Equal(t, real.plans, simulated.plans)
			assert.Equal(t, real.hits, simulated.hits)
			assert.Equal(t, real.counts, simulated.counts)
		})
	}
	if !tiertest.Race {
		assert.Equal(t, map[string]bool{result.EndedByMaxRequests: true, result.EndedByInput: true,
			result.EndedByCount: true, result.EndedByDeadline: true}, endings)
	}
}

// Where how fast the storage is decides which requests are served, and in which order, what each of
// them asks for is the same all the same.
func TestPlansDoNotDependOnTheDevice(t *testing.T) {
	type request struct {
		user int
		seq  int64
	}
	plans := func(cfg runConfig, run func(runConfig)) map[request]string {
		var w watchedLoad
		var asked []request
		cfg = w.watch(cfg)
		note := cfg.OnDispatch
		cfg.OnDispatch = func(r *workloads.Request, plan []workloads.Op) {
			asked = append(asked, request{r.User, r.Seq})
			copied := *r
			if cfg.Autoscale == nil && r.User < 0 {
				copied.Arrival = 0 // as fast as possible: it arrives when it is taken
			}
			note(&copied, plan)
		}
		run(cfg)
		all := make(map[request]string)
		for i, q := range asked {
			all[q] = w.plans[i]
		}
		return all
	}
	trace := func(format formats.Format, path string, speedup float64) func() runConfig {
		return func() runConfig {
			cfg := optionOne(t, time.Minute)
			cfg.EndedBy, cfg.Workers = result.EndedByInput, 4
			cfg.Source = func() (workloads.Source, error) {
				return traces.New(format, traces.Config{Paths: []string{path}, Speedup: speedup,
					Cycles: 3, Seed: 42, Profile: profile.Default(), MultiTurn: true,
					PrefixCaching: true})
			}
			return cfg
		}
	}
	for name, load := range map[string]func() runConfig{
		"users in an open loop": func() runConfig { return optionOne(t, 10*time.Second) },
		"BurstGPT":              trace(formats.BurstGPT, "../../testdata/burstgpt-v3-small.csv", 20),
		"BurstGPT, fast":        trace(formats.BurstGPT, "../../testdata/burstgpt-v3-small.csv", 0),
		"blocks":                func() runConfig { return blockConfig(smallTrace, 4) },
	} {
		t.Run(name, func(t *testing.T) {
			var real map[request]string
			synctest.Test(t, func(t *testing.T) {
				real = plans(load(), func(cfg runConfig) {
					cfg.Storage.Simulated, cfg.Storage.Levels = true, instantLevels(cfg.Storage)
					_, err := runLoad(t.Context(), cfg)
					require.NoError(t, err)
				})
			})
			simulated := plans(load(), func(cfg runConfig) {
				_, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: &aDrive})
				require.NoError(t, err)
			})
			both := 0
			for q, plan := range simulated {
				if other, ok := real[q]; ok {
					both++
					require.Equal(t, other, plan)
				}
			}
			assert.GreaterOrEqual(t, both, min(20, len(real)))
		})
	}
}
