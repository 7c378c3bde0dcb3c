package requests

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/workloads"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

func TestAFailureWhileFillingEndsTheRun(t *testing.T) {
	for want, c := range map[string]struct {
		error
		Population
		Precondition
	}{
		"filling":         {syscall.EACCES, Population{100, 8}, Precondition{}},
		"preconditioning": {syscall.ENOSPC, Population{}, Precondition{Bytes: 2 << 30}},
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
			return users.New(users.Config{Profile: p,
				Users: users.Population(p, 42, 8, false), Seed: 42,
				MultiTurn: true, MaxRequests: population, Corpus: corpus}), nil
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
