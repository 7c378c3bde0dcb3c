package requests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
)

func TestAFourTurnConversationMakesSixLookups(t *testing.T) {
	r := mustRun(t, testConfig(plenty(),
		newScript(conversation(1, 4, 10, workloads.PrefillDecode)...), 1).finite())
	assert.EqualValues(t, 4, r.Requests.Completed)
	assert.Equal(t, result.EndedByInput, r.EndedBy)
	assert.EqualValues(t, 6, r.Lookups.ByKind["multi_turn"].Hits)
	assert.EqualValues(t, 6, r.Lookups.Hits+r.Lookups.Misses+r.Lookups.NotYetWritten,
		"what a request reads of its own was never in doubt")
	assert.EqualValues(t, 10, r.Python().Summary.CacheStats.CacheHits, "the Python benchmark counts it")
	assert.Zero(t, r.Lookups.Misses)

	s := r.Tiers[0]
	assert.EqualValues(t, 4, s.Write.Operations)
	assert.EqualValues(t, 10, s.Read.Operations)
	assert.EqualValues(t, 4*10*unit, s.Write.Bytes)
	assert.EqualValues(t, 10*10*unit, s.Read.Bytes)
	assert.EqualValues(t, 4, r.FirstReads.Operations, "each entry is first read by its own probe")
	assert.EqualValues(t, 6, r.ReReads.Operations)
	assert.EqualValues(t, 4, s.Entries)
	assert.EqualValues(t, 40, r.Requests.ContextTokens)
}

func TestBatchedReReadsAreOperationsAndNoLookups(t *testing.T) {
	turns := conversation(1, 4, 10, workloads.PrefillDecode)
	for _, q := range turns {
		q.GenerateTokens = 100 // four batches of 32
	}
	cfg := testConfig(plenty(), newScript(turns...), 1).finite()
	cfg.Planner.Batched = true
	r := mustRun(t, cfg)
	assert.EqualValues(t, 6, r.Lookups.Hits+r.Lookups.Misses)
	assert.EqualValues(t, 6+4+16, r.Tiers[0].Read.Operations)
	assert.EqualValues(t, 4, r.FirstReads.Operations)
	assert.EqualValues(t, 4*10*unit, r.FirstReads.Bytes)
	assert.EqualValues(t, 26, r.Python().Summary.CacheStats.CacheHits,
		"the Python benchmark counts re-reads as hits")
	assert.EqualValues(t, 400, r.Requests.GeneratedTokens)
}

// The worked example of the waterfall: 3.5 entries fit, so turns 5 and 6 find
// their oldest history gone, and reading it in order keeps the rest.
func TestTheWorkedExampleThroughTheEngine(t *testing.T) {
	levels := storage(tiertest.NewNull(), 7*10*unit/2)
	r := mustRun(t, testConfig(levels, newScript(conversation(1, 6, 10, workloads.PrefillOnly)...),
		1).finite())
	history := r.Lookups.ByKind["multi_turn"]
	assert.EqualValues(t, 12, history.Hits)
	assert.EqualValues(t, 3, history.Misses)
	assert.EqualValues(t, 3, r.Tiers[0].Evicted.Entries)
	assert.EqualValues(t, 3, r.Tiers[0].Deleted.Entries)
	assert.EqualValues(t, 3, r.Tiers[0].Entries)
	assert.EqualValues(t, 3*10*unit, r.Tiers[0].PeakBytes, "never more than 3 entries")
	assert.EqualValues(t, 12, r.Tiers[0].Read.Operations, "a miss costs no I/O")
}

func TestDecodeOnlyMissesCountAndNothingElseHappens(t *testing.T) {
	var all []*workloads.Request
	for n := range 7 {
		all = append(all, &workloads.Request{
			Kind: workloads.DecodeOnly, SystemPrompt: -1, GenerateTokens: 320,
			Own: workloads.Entry{Key: workloads.PopulationKey(n), Tokens: 8},
		})
	}
	cfg := testConfig(plenty(), newScript(all...), 3).finite()
	cfg.Planner.Batched = true
	cfg.Population = Population{Entries: 5, Tokens: 8}
	r := mustRun(t, cfg)
	assert.EqualValues(t, 5, r.Lookups.ByKind["user"].Hits)
	assert.EqualValues(t, 2, r.Lookups.ByKind["user"].Misses)
	assert.EqualValues(t, 5*11, r.Tiers[0].Read.Operations, "a missing entry is not re-read either")
	assert.Zero(t, r.Tiers[0].Write.Operations,
		"the population is written outside the window, a miss not at all")
	assert.Zero(t, r.Tiers[0].Write.Bytes)
	assert.EqualValues(t, 5, r.FirstReads.Operations)
	assert.EqualValues(t, 7, r.Requests.Completed)
	assert.EqualValues(t, 5, r.Tiers[0].Entries)
}

func TestAPrefixIsWrittenOnceAndThenRead(t *testing.T) {
	for _, workers := range []int{1, 8} {
		all := singles(50, 4)
		for _, q := range all {
			q.SystemPrompt, q.SystemPromptTokens = 1, 9
		}
		r := mustRun(t, testConfig(plenty(), newScript(all...), workers).finite())
		system := r.Lookups.ByKind["system"]
		assert.EqualValues(t, 1, system.Misses)
		assert.EqualValues(t, 49, system.Hits, "waiting for the one that writes it is a hit")
		assert.EqualValues(t, 49, r.Latency.PrefixRead.Count)
		assert.EqualValues(t, 49, r.Python().Summary.CacheStats.SystemPromptHits)
		assert.EqualValues(t, 51, r.Tiers[0].Write.Operations)
		assert.EqualValues(t, (50*4+9)*unit, r.Tiers[0].Write.Bytes,
			"its tokens are not written with the requests")
	}
}

func TestAPrefixThatWasEvictedIsAMissAndWrittenAgain(t *testing.T) {
	first, other, last := singles(1, 4)[0], conversation(8, 1, 5, workloads.PrefillOnly)[0],
		conversation(9, 1, 4, workloads.PrefillOnly)[0]
	for _, q := range []*workloads.Request{first, last} {
		q.SystemPrompt, q.SystemPromptTokens = 0, 2
	}
	// Ten tokens fit: the other's five push out the prefix, which is the oldest.
	r := mustRun(t, testConfig(storage(tiertest.NewNull(), 10*unit), newScript(first, other, last),
		1).finite())
	assert.EqualValues(t, 2, r.Lookups.ByKind["system"].Misses)
	assert.Zero(t, r.Lookups.ByKind["system"].Hits)
	assert.EqualValues(t, 5, r.Tiers[0].Write.Operations)
}

// Turn 2 arrives while turn 1 is being written.
func TestOvertakingIsNeitherHitNorMissAndWaitingIsAHit(t *testing.T) {
	for _, overtaking := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			wall := clock.NewWall()
			cfg := testConfig(slow(wall, 1<<40),
				newScript(conversation(1, 2, 2, workloads.PrefillOnly)...), 2).finite()
			cfg.Clock, cfg.Overtaking = wall, overtaking
			cfg.Storage.Policy = kvbench.PolicyOf("waterfall", "never", "fifo")
			r := mustRun(t, cfg)
			history := r.Lookups.ByKind["multi_turn"]
			assert.Zero(t, history.Misses)
			if overtaking {
				assert.Nil(t, r.Policy.Compared, "nothing to compare policies by")
				assert.EqualValues(t, 1, r.Lookups.NotYetWritten)
				assert.Zero(t, history.Hits)
				assert.Equal(t, result.PromptTokens{Tokens: 2, NotYetWritten: 2,
					HitRatio: new(0.0)}, r.Prompt.ByKind["multi_turn"], "asked for and not found")
				assert.Equal(t, int64(4*time.Second), r.WindowNS,
					"two writes of two seconds share the link")
				return
			}
			assert.Equal(t, &result.Comparison{Lookups: 1, Hits: 1, WaterfallHits: 1},
				r.Policy.Compared)
			assert.EqualValues(t, 1, history.Hits)
			assert.EqualValues(t, 1, history.Pending)
			assert.EqualValues(t, 1, r.Latency.PendingWait.Count)
			assert.Equal(t, int64(6*time.Second), r.WindowNS, "write, read it, write")
		})
	}
}

func TestARequestThatWritesTwiceJoinsTheFirstWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		same := []*workloads.Request{singles(1, 3)[0], singles(1, 3)[0]}
		same[1].Kind = workloads.PrefillDecode
		cfg := testConfig(slow(wall, 1<<40), newScript(same...), 2).finite()
		cfg.Clock = wall
		r := mustRun(t, cfg)
		assert.EqualValues(t, 1, r.Tiers[0].Write.Operations)
		assert.EqualValues(t, 1, r.Tiers[0].Read.Operations)
		assert.EqualValues(t, 1, r.Python().Summary.CacheStats.UserCacheHits)
		assert.Zero(t, r.Lookups.Hits)
		assert.Equal(t, int64(6*time.Second), r.WindowNS)
	})
}

func TestTokenGenerationTakesItsTimeOutsideOfStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := conversation(1, 2, 1, workloads.PrefillDecode)
		turns[0].GenerateTokens, turns[1].GenerateTokens = 100, 50
		prefill := singles(1, 1)[0]
		prefill.GenerateTokens = 1000 // a prefill has no answer to wait for
		cfg := testConfig(plenty(), newScript(append(turns, prefill)...), 1).finite()
		cfg.TokenTime = 30 * time.Millisecond
		r := mustRun(t, cfg)
		assert.Equal(t, int64(4500*time.Millisecond), r.WindowNS)
		assert.Equal(t, int64(4500*time.Millisecond), r.Requests.GenerationLatencyNS)
		assert.Zero(t, r.Requests.StorageLatencyNS)
	})
}
