package requests

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// evictions records which entries leave a tier, in their order.
type evictions struct {
	tiers.Files
	mu   sync.Mutex
	keys []string
}

func (e *evictions) Remove(ctx context.Context, objs ...tiers.Object) error {
	e.mu.Lock()
	for _, o := range objs {
		e.keys = append(e.keys, o.Key)
	}
	e.mu.Unlock()
	return e.Files.Remove(ctx, objs...)
}

func TestPreconditioningReportsAndLeavesTheFirstVictims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		seen := &evictions{Files: slow(wall, 1)[0].Files()}
		src := newScript(singles(7, 2)...)
		cfg := testConfig(storage(seen, 10*unit), src, 1).finite()
		cfg.Clock = wall
		cfg.Storage.MaxWriters = 1 // bounds the load, not the preconditioning
		cfg.Precondition = Precondition{Bytes: 20 * unit, Threads: 4, Tokens: 1}
		var stages []string
		var last kvbench.Snapshot
		cfg.Progress = func(s kvbench.Snapshot) {
			if s.Stage == "preconditioning" {
				last = s
			}
			if !slices.Contains(stages, s.Stage) {
				stages = append(stages, s.Stage)
			}
		}
		r := mustRun(t, cfg)
		p := r.Precondition
		require.NotNil(t, p)
		assert.EqualValues(t, 20*unit, p.Bytes)
		assert.Equal(t, int64(20*time.Second), p.DurationNS)
		assert.Equal(t, 4, p.Writers)
		require.Len(t, p.LastRates, 4)
		for _, rate := range p.LastRates {
			assert.InDelta(t, unit, rate, unit/20, "the rate of the tier")
		}
		assert.Less(t, p.Spread, 0.05)
		assert.Equal(t, []string{"preconditioning", "running"}, stages)
		assert.EqualValues(t, 20*unit, last.Of)
		assert.Greater(t, last.Done, int64(15*unit))

		// Ten of its entries stayed, and go before any of the load's.
		require.Len(t, seen.keys, 20+2)
		for i, key := range seen.keys[:20] {
			assert.Contains(t, key, "pre/", "victim %d", i)
		}
		assert.Equal(t, []string{"u0/c1/t1", "u1/c1/t1"}, seen.keys[20:])
		assert.EqualValues(t, 12, r.Tiers[0].Evicted.Entries, "of the window alone")
		assert.EqualValues(t, 7, r.Tiers[0].Write.Operations)
		assert.EqualValues(t, 7*2*unit, r.Tiers[0].Write.Bytes)
	})
}

func TestDefaultsOfPreconditioning(t *testing.T) {
	cfg := testConfig(storage(tiertest.NewNull(), 100*2048*unit), newScript(singles(1, 1)...),
		1).finite()
	cfg.Precondition = Precondition{Bytes: 10*2048*unit - 1}
	r := mustRun(t, cfg)
	assert.EqualValues(t, 10*2048*unit, r.Precondition.Bytes, "whole entries of 2048 tokens")
	assert.EqualValues(t, 10+1, r.Tiers[0].Entries)
}

func TestAFailureWhileFillingEndsTheRun(t *testing.T) {
	for want, c := range map[string]struct {
		error
		Population
		Precondition
	}{
		"filling":                               {syscall.EACCES, Population{100, 8}, Precondition{}},
		"preconditioning filled the disk after": {syscall.ENOSPC, Population{}, Precondition{Bytes: 2 << 30}},
	} {
		cfg, tier := faulty(nil, 100)
		cfg.Population, cfg.Precondition = c.Population, c.Precondition
		tier.SetHook(faults.On(faults.Commit, 2, c.error))
		r, gauges, err := usage(t.Context(), t, cfg)
		require.ErrorIs(t, err, c.error)
		assert.ErrorContains(t, err, want)
		assert.Contains(t, r.Error, want)
		assert.Equal(t, result.StatusFailed, r.Status)
		assert.Equal(t, c.Precondition.Bytes > 0, r.Precondition != nil)
		checkUsage(t, tier, gauges)
	}
}

func ragConfig(documents, keep int, population int64) runConfig {
	p := users.Default()
	p.RAG.MaxDocuments = keep
	p.Templates = []users.Template{{Name: "t", Context: [2]int{8, 64}, Generate: [2]int{1, 9},
		Think: [2]float64{0, 0}}}
	corpus := users.NewCorpus(p.RAG, documents, model.Model{}, smallTokens, 42)
	return runConfig{engine{
		Info: record.Info{Result: result.Result{Benchmark: "RAG"}, Sizer: smallTokens, QoS: p.QoS},
		Storage: kvbench.StorageConfig{Use: buffer.Use{Chunk: 256 << 10, Depth: 1, Workers: 4},
			Verify: content.VerifyFull},
	}, Config{
		Planner: workloads.Planner{Sizer: smallTokens}, Workers: 4, Corpus: corpus,
		Phase: kvbench.Phase{Window: time.Second},
		Source: func() (workloads.Source, error) {
			return users.WithRAG(users.New(users.Config{Profile: p,
				Users: users.Population(p, 42, 8, false), Seed: 42,
				MultiTurn: true, MaxRequests: population}), corpus), nil
		},
	}}
}

// Documents are written before the window and found inside it.
func TestDocumentsAreIngestedAndRetrieved(t *testing.T) {
	for _, keep := range []int{0, 3} {
		cfg := ragConfig(10, keep, 60)
		cfg.Window, cfg.EndedBy = 0, result.EndedByInput
		if keep == 0 {
			directory(t, 1<<30)(&cfg)
		} else {
			nullTiers(1 << 30)(&cfg)
		}
		ops := 0
		cfg.OnDispatch = func(_ *workloads.Request, plan []workloads.Op) {
			for _, op := range plan {
				if op.Purpose == workloads.ForRetrieval {
					ops++
				}
			}
		}
		res, err := runLoad(t.Context(), cfg)
		require.NoError(t, err)
		rag := res.Lookups.ByKind["rag"]
		assert.Positive(t, rag.Hits)
		assert.Zero(t, rag.Misses, "keep %d", keep)
		assert.GreaterOrEqual(t, int64(ops), rag.Hits)
		assert.Zero(t, res.Tiers[0].Evicted.Entries, "what leaves on purpose is no eviction")
		var chunks int64
		n, first := cfg.Corpus.Documents()
		for doc := first; doc < n; doc++ {
			chunks += int64(len(cfg.Corpus.Chunks(nil, doc)))
		}
		assert.GreaterOrEqual(t, res.Tiers[0].Entries, chunks)
		assert.Less(t, res.Tiers[0].Entries, chunks+res.Requests.Completed+10)
		total := res.Load["total"]
		assert.Equal(t, total.Offered, total.Completed+total.Failed+total.InFlight+total.Queued)
	}
}

func TestDocumentsThatDoNotFitAreRefused(t *testing.T) {
	cfg := ragConfig(100, 0, 0)
	nullTiers(10 << 20)(&cfg)
	res, err := runLoad(t.Context(), cfg)
	require.ErrorIs(t, err, cache.ErrTooLarge)
	assert.ErrorContains(t, err, "about -rag-num-docs")
	assert.Equal(t, result.EndedByCapacity, res.EndedBy)
}
