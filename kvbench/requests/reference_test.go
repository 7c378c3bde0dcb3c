package requests

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/tiertest"
	"kvbench/tiers/transfer"
	"kvbench/workloads"
	"kvbench/workloads/model"
)

// talks are turns of twelve users, some of which dominate the order, each with a common prompt:
// some repeated requests find their entry, and some do not.
func talks() (all []*workloads.Request) {
	rng := rand.New(rand.NewPCG(1, 2))
	turns := make([][]*workloads.Request, 12)
	for user := range turns {
		turns[user] = conversation(user, 40, rng.IntN(90)+10, workloads.PrefillDecode)
	}
	for len(all) < 200 {
		user := min(rng.IntN(12), rng.IntN(12))
		if len(turns[user]) > 0 {
			r := turns[user][0]
			r.History = r.History[max(0, len(r.History)-3):]
			r.SystemPrompt, r.SystemPromptTokens = user%3, 20
			all, turns[user] = append(all, r), turns[user][1:]
		}
	}
	return all
}

// The reported hits of the waterfall equal those of a run of the same requests with the waterfall,
// whatever policy the run has; and the run's hits equal its lookups.
func TestWhatAPolicyCosts(t *testing.T) {
	tiertest.OneThread(t)
	run := func(p kvbench.Policy, corpus bool) (lookups, hits int64,
		compared *comparison) {
		src := newScript(talks()...)
		src.ordered = true
		cfg := testConfig([]cache.Level{
			{Kind: tiers.CPU, Tier: transfer.New(tiertest.NewNull(), nil), Capacity: 600 * unit},
			{Kind: tiers.Storage, Tier: transfer.New(tiertest.NewNull(), nil), Capacity: 1500 * unit},
		}, src, 1).finite()
		if corpus { // written before the window, some of it removed again
			rag := ragConfig(12, 5, 80)
			rag.Storage.Levels = []cache.Level{
				{Kind: tiers.CPU, Tier: transfer.New(tiertest.NewNull(), nil), Capacity: 4 << 20},
				{Kind: tiers.Storage, Tier: transfer.New(tiertest.NewNull(), nil), Capacity: 256 << 20},
			}
			rag.Window, rag.Workers = 0, 1
			cfg = rag.finite()
		}
		cfg.Storage.Policy = p
		r := mustRun(t, cfg)
		require.NotNil(t, r.Policy)
		for _, n := range r.Lookups.ByKind {
			lookups, hits = lookups+n.Hits+n.Misses, hits+n.Hits
		}
		if c := r.Policy.Compared; c != nil {
			compared = &comparison{c.Lookups, c.Hits, c.WaterfallHits}
		}
		return lookups, hits, compared
	}
	for _, corpus := range []bool{false, true} {
		all, usual, none := run(kvbench.PolicyOf("waterfall", "never", "lru"), corpus)
		assert.Nil(t, none, "there is nothing to compare")
		assert.Positive(t, usual)
		selective := kvbench.PolicyOf("selective", "on-hit", "lru")
		selective.After = 2
		differs := corpus // with room for most the policies cost nothing
		for _, p := range []kvbench.Policy{
			kvbench.PolicyOf("write-through", "never", "lru"),
			kvbench.PolicyOf("write-back", "on-hit", "lru"),
			selective,
			kvbench.PolicyOf("waterfall", "never", "fifo"),
		} {
			lookups, hits, c := run(p, corpus)
			require.NotNil(t, c)
			assert.Equal(t, &comparison{lookups, hits, usual}, c)
			assert.Equal(t, all, lookups)
			differs = differs || hits < usual
		}
		assert.True(t, differs, "a policy costs something here")
	}
}

type comparison struct{ lookups, hits, waterfall int64 }

// TestTheReferenceDelaysNoRequest: workers that wait in the run's cache hold nothing in the reference. With pins held there the
// workers waited for each other, until nothing moved any more.
func TestTheReferenceDelaysNoRequest(t *testing.T) {
	tiny, err := model.Find("tiny-1b", nil)
	require.NoError(t, err)
	for _, place := range []string{"write-through", "write-back"} {
		cfg := usersConfig(tiny, 20, 20*time.Second)
		cfg.Storage.Policy = kvbench.PolicyOf(place, "never", "lru")
		cfg.Storage.CPUBytes, cfg.Storage.StorageBytes = 1<<29, 2<<30
		res, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: sumsDevice})
		require.NoError(t, err, place)
		assert.Equal(t, result.EndedByDeadline, res.EndedBy, place)
	}
}
