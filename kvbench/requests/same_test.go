package requests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
	"kvbench/workloads/profile"
	"kvbench/workloads/users"
)

// watchedLoad is what a load did, however its time passed.
type watchedLoad struct {
	plans  []string
	hits   []int
	counts string
}

// watch notes plans and decisions of a configuration's run.
func (w *watchedLoad) watch(cfg runConfig) runConfig {
	cfg.OnDispatch = func(r *workloads.Request, plan []workloads.Op) {
		var b strings.Builder
		fmt.Fprintf(&b, "%d %v %s", r.User, r.Arrival, r.Own.Key)
		for _, op := range plan {
			fmt.Fprintf(&b, " %s %s %s %d x%d", op.Kind, op.Purpose, op.Key, op.Bytes, op.Times)
		}
		w.plans = append(w.plans, b.String())
	}
	cfg.OnBlocks = func(_ *workloads.Request, s record.BlockSample) {
		w.hits = append(w.hits, int(s.Hits))
	}
	return cfg
}

// keep notes the counts of a result: hits, operations, bytes, evictions, counts.
func (w *watchedLoad) keep(t *testing.T, r *result.Result) {
	t.Helper()
	checkLoad(t, r)
	for i := range r.Tiers {
		r.Tiers[i].Description = ""
	}
	// gauges of the edges' very moments may be read before or after what else happens then; what
	// takes no time has no times over time
	if r.Timeline != nil {
		r.Timeline.TimesUS = nil
		r.Timeline.Queued, r.Timeline.InFlight, r.Timeline.TierUsedBytes = nil, nil, nil
	}
	out, err := json.MarshalIndent([]any{
		r.EndedBy, r.WindowNS, r.Requests, r.Load, r.Lookups, r.BlockCache, r.Tiers,
		r.FirstReads.Bytes, r.ReReads.Bytes,
		r.EntrySizes.Write, r.Harness.WorkerIdleNS, r.Harness.WorkerBusyNS, r.Timeline,
	}, "", " ")
	require.NoError(t, err)
	w.counts = string(out)
}

// instantLevels are the tiers of a simulation without a device.
func instantLevels(c kvbench.StorageConfig) (levels []cache.Level) {
	for kind, capacity := range []int64{c.GPUBytes, c.CPUBytes, cmp.Or(c.StorageBytes, 1<<60)} {
		if capacity > 0 {
			levels = append(levels, cache.Level{Kind: tiers.Kind(kind), Capacity: capacity})
		}
	}
	return levels
}

// One load over tiers that take no time is the same in wall time and in virtual time: the
// same plans in the same order, hits, operations and counts. There is one loop; this keeps it so.
func TestWallAndVirtualTimeRunTheSameLoad(t *testing.T) {
	waterfall := func(c *runConfig) {
		c.Storage.GPUBytes, c.Storage.CPUBytes, c.Storage.StorageBytes = 5<<30, 10<<30, 30<<30
	}
	loads := map[string]func() runConfig{
		"users": func() runConfig {
			cfg := optionOne(t, 5*time.Second)
			waterfall(&cfg)
			return cfg
		},
		"few workers that generate, warm-up": func() runConfig {
			cfg := optionOne(t, 5*time.Second)
			waterfall(&cfg)
			cfg.TokenTime, cfg.Workers, cfg.Warmup = 5*time.Millisecond, 30, 1500*time.Millisecond
			return cfg
		},
		"a count of requests": func() runConfig {
			cfg := optionOne(t, 0)
			cfg.Limit = 500
			return cfg
		},
		"decode only": func() runConfig {
			cfg := optionOne(t, 5*time.Second)
			cfg.Source = func() (workloads.Source, error) {
				p := profile.Default()
				return users.New(users.Config{Profile: p, Users: users.Population(p, 1, 10, false),
					Seed: 1, DecodeOnly: true}), nil
			}
			cfg.Population = Population{Entries: 100, Tokens: 2048}
			return cfg
		},
		"documents": func() runConfig {
			cfg := ragConfig(10, 3, 200)
			cfg.Workers = 1 // all comes at once
			cfg.Storage.StorageBytes = 1 << 30
			cfg.Window, cfg.EndedBy = 0, result.EndedByMaxRequests
			return cfg
		},
		"blocks": func() runConfig {
			cfg := blockConfig(smallTrace, 1)
			cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 30*512*128, 50*512*128
			return cfg
		},
	}
	for name, load := range loads {
		t.Run(name, func(t *testing.T) {
			var wall, virtual watchedLoad
			synctest.Test(t, func(t *testing.T) {
				cfg := wall.watch(load())
				cfg.Storage.Simulated, cfg.Storage.Levels = true, instantLevels(cfg.Storage)
				res, err := runLoad(t.Context(), cfg)
				require.NoError(t, err)
				wall.keep(t, res)
			})
			res, err := simulateLoad(t.Context(), virtual.watch(load()), kvbench.SimConfig{})
			require.NoError(t, err)
			virtual.keep(t, res)
			assert.NotEmpty(t, wall.plans)
			assert.Equal(t, wall.plans, virtual.plans)
			assert.Equal(t, wall.hits, virtual.hits)
			assert.Equal(t, wall.counts, virtual.counts)
		})
	}
}

// What is wrong with an input fails a simulation as it fails a run: where it is opened, and also
// where it is found when thousands of requests have been served.
func TestABrokenInputFailsASimulation(t *testing.T) {
	broken, good := strings.Repeat("nonsense\n", 100), ""
	for i := range 2000 {
		good += fmt.Sprintf(`{"timestamp": %d, "input_length": 600, "output_length": 10, `+
			`"hash_ids": [0, %d]}`+"\n", i, i+1)
	}
	for name, c := range map[string]struct {
		text   string
		served int64
	}{"at once": {broken + good, 0}, "late": {good + broken, 2000}} {
		path := filepath.Join(t.TempDir(), "broken.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o666))
		res, err := simulateLoad(t.Context(), blockConfig(path, 16), kvbench.SimConfig{})
		require.ErrorContains(t, err, "malformed", name)
		assert.Equal(t, result.StatusFailed, res.Status, name)
		assert.Equal(t, result.EndedByError, res.EndedBy, name)
		assert.Equal(t, c.served, res.Requests.Completed, name)
	}
}

// Documents are in the trace of a simulation before the first request.
func TestASimulationIngestsDocuments(t *testing.T) {
	cfg := ragConfig(4, 0, 200)
	cfg.Window, cfg.EndedBy = 0, result.EndedByMaxRequests
	text, res := simulateTrace(t, cfg, kvbench.SimConfig{Device: &tiers.DeviceModel{Read: 1 << 30,
		Write: 1 << 30, Parallelism: 1}})
	rag := res.Lookups.ByKind["rag"]
	assert.Positive(t, rag.Hits)
	assert.Zero(t, rag.Misses)
	var chunks int
	n, _ := cfg.Corpus.Documents()
	for doc := range n {
		chunks += len(cfg.Corpus.Chunks(nil, doc))
	}
	before, _, _ := strings.Cut(text, ",u") // the first entry of a user
	assert.GreaterOrEqual(t, strings.Count(before, "Write"), chunks)
}
