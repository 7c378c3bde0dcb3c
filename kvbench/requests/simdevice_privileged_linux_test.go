package requests

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/privtest"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/profile"
	"kvbench/workloads/users"
)

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
