package requests

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/profile"
	"kvbench/workloads/users"
)

// The model predicts a drive: its parameters come from plain sequential I/O, and
// then many users with entries of another size do what it says. The kernel limits
// the drive in slices of 100 ms, each direction alone; with 64 entries at a time a
// read takes ten of them. testdata/device-model.sh does the same at full size.
func TestDeviceModelPredictsALimitedDevice(t *testing.T) {
	tiertest.DevicePace(t)
	fs := privtest.LoopFS(t, 640, privtest.LoopOptions{DirectIO: true})
	throttle := privtest.ThrottleLoop(t, fs, privtest.Rates{Read: 100 << 20, Write: 50 << 20})
	throttle.Add(t, os.Getpid())
	storage := kvbench.StorageConfig{CacheDir: fs.Dir + "/cache", StorageBytes: 512 << 20,
		Direct: true, Use: buffer.Use{Chunk: 1 << 20, Depth: 1, Workers: 4}}
	plain := func(readShare float64) *result.Result {
		routine := plainio.New(
			plainio.Config{Workers: 4, Phase: kvbench.Phase{Window: 2 * time.Second}},
			&plainio.Ceiling{ReadShare: readShare, InFlight: 4, Footprint: 128 << 20})
		r, err := kvbench.Run(t.Context(), kvbench.Config{Storage: storage}, routine)
		require.NoError(t, err)
		return r
	}
	mdl := tiers.DeviceModel{Read: *plain(1).Tiers[0].Read.BytesPerSecond,
		Write: *plain(0).Tiers[0].Write.BytesPerSecond, Parallelism: 128, Duplex: true}

	p := profile.Default()
	for i := range p.Templates {
		p.Templates[i].Context, p.Templates[i].Think = [2]int{2048, 4096}, [2]float64{0.1, 0.3}
	}
	tokens := model.Model{Key: "mini", Layers: 2, Hidden: 128, Heads: 1, KVHeads: 1,
		Attention: model.MHA}
	const population = 64
	cfg := usersConfig(tokens, population, 10*time.Second)
	cfg.Source = func() (workloads.Source, error) {
		return users.New(users.Config{
			Profile: p, Users: users.Population(p, 42, population, false), Seed: 42,
			MultiTurn: true, ClosedLoop: true,
		}), nil
	}
	cfg.Storage = storage
	cfg.Storage.Chunk, cfg.Storage.Workers = 256<<10, population

	predicted, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: &mdl})
	require.NoError(t, err)
	reads := func(r *result.Result) (rate, p95 float64) {
		d := r.Latency.Levels["storage"].Read.Device
		require.NotNil(t, d.P95, "%d reads are too few", d.Count)
		return *r.Tiers[0].Read.BytesPerSecond, float64(*d.P95)
	}
	wantRate, wantP95 := reads(predicted)
	off := math.Inf(1)
	for range 3 { // others may hold the processor for seconds
		rate, p95 := reads(mustRun(t, cfg))
		t.Logf("%s: reads of %.1f MiB/s, p95 %.0f ms predicted; %.1f MiB/s, %.0f ms real",
			result.SimulatedDevice(mdl).String(),
			wantRate/(1<<20), wantP95/1e6, rate/(1<<20), p95/1e6)
		if off = min(off, max(math.Abs(wantRate/rate-1), math.Abs(wantP95/p95-1))); off < 0.15 {
			break
		}
	}
	assert.Less(t, off, 0.15)
}

// served is what the requests of a load asked for, and what it moved.
type served struct {
	order []string          // which requests, as they were taken
	plans map[string]string // of each, what it is and does
	moved string            // hits, bytes, evictions
}

// note keeps the plans of a run to come, without their instants, which are the device's.
func (s *served) note(cfg runConfig) runConfig {
	s.plans = map[string]string{}
	cfg.OnDispatch = func(r *workloads.Request, plan []workloads.Op) {
		request := fmt.Sprintf("user %d, %d, query %t", r.User, r.Seq, r.Query)
		s.order = append(s.order, request)
		s.plans[request] = fmt.Sprint(r.Own, r.History, r.Retrieved, r.GenerateTokens, plan)
	}
	return cfg
}

func (s *served) end(t *testing.T, r *result.Result) {
	t.Helper()
	type part struct {
		Read, Write      int64
		Evicted, Deleted result.EntryCount
	}
	var tiers []part
	for _, t := range r.Tiers {
		tiers = append(tiers, part{t.Read.Bytes, t.Write.Bytes, t.Evicted, t.Deleted})
	}
	text, err := json.Marshal([]any{r.EndedBy, r.Requests.Completed, r.Lookups, tiers})
	require.NoError(t, err)
	s.moved = string(text)
}

// A closed loop of several users, turns in order and documents among them, by one worker on a
// limited device, and simulated with times that are not that device's: where users do not pause,
// the same requests in the same order with the same hits, bytes and evictions. A user who pauses
// comes back a drawn time after its last request has ended, so that who is first is for the device
// to say; what each request is stays.
func TestARunOnALimitedDeviceAndItsSimulationAreTheSame(t *testing.T) {
	tiertest.DevicePace(t)
	if tiertest.Race {
		t.Skip("one worker: the race detector has nothing to find here")
	}
	for _, pause := range []float64{0, 0.02} { // seconds
		disk := privtest.LoopFS(t, 128, privtest.LoopOptions{DirectIO: true, NoJournal: true})
		rates := privtest.Rates{Read: 100 << 20, Write: 100 << 20}
		privtest.ThrottleLoop(t, disk, rates).Add(t, os.Getpid())
		cfg := ragConfig(10, 3, 300)
		cfg.Workers, cfg.Window, cfg.EndedBy = 1, 0, result.EndedByMaxRequests
		cfg.Storage.StorageBytes, cfg.Storage.CacheDir = 12<<20, disk.Dir+"/cache"
		cfg.Storage.Direct, cfg.Storage.Chunk, cfg.Storage.Workers = true, 64<<10, 1
		p := profile.Default()
		p.Templates = []profile.Template{{Name: "t", Context: [2]int{256, 2048},
			Generate: [2]int{1, 9}, Think: [2]float64{pause / 2, pause}}}
		cfg.Source = func() (workloads.Source, error) {
			return users.WithRAG(users.New(users.Config{Profile: p,
				Users: users.Population(p, 42, 8, false), Seed: 42, MultiTurn: true,
				PrefixCaching: true, ClosedLoop: true, MaxRequests: 300}), cfg.Corpus), nil
		}
		var real, simulated served
		real.end(t, mustRun(t, real.note(cfg)))
		r, err := simulateLoad(t.Context(), simulated.note(cfg), kvbench.SimConfig{
			Device: &tiers.DeviceModel{Read: 1 << 30, Write: 1 << 30, Parallelism: 1}})
		require.NoError(t, err)
		simulated.end(t, r)
		assert.Positive(t, r.Tiers[0].Evicted.Entries)
		assert.Positive(t, r.Lookups.ByKind["rag"].Hits)
		both, places := 0, 0
		for request, plan := range simulated.plans {
			if other, ok := real.plans[request]; ok {
				both++
				assert.Equal(t, other, plan, request)
			}
		}
		for i := range min(len(real.order), len(simulated.order)) {
			if real.order[i] == simulated.order[i] {
				places++
			}
		}
		t.Logf("pauses up to %v s: %d requests run, %d simulated; %d in both, %d in the same place",
			pause, len(real.order), len(simulated.order), both, places)
		assert.Greater(t, both, 100, "users come back")
		if pause == 0 {
			assert.Equal(t, real.order, simulated.order)
			assert.Equal(t, real.moved, simulated.moved)
		}
	}
}
