package benchmarks

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

// enginesTrial is a result that found so many tokens in a second.
func enginesTrial(name string, n int, found int64) *result.Result {
	return &result.Result{Benchmark: result.BenchmarkEngines, Name: "Engines/" + name, Trial: n,
		WindowNS: 1e9, Status: result.StatusComplete, EndedBy: result.EndedByInput,
		BlockCache: &result.BlockCache{Tokens: 1 << 20, HitTokens: found},
		Prompt: &result.Prompt{PromptTokens: result.PromptTokens{Tokens: 1 << 20,
			Found: found}}}
}

// Rows are in the order of their medians, each with the interval that six trials give, and what the
// typical trial did.
func TestRankingByMedians(t *testing.T) {
	var all []*result.Result
	for n := range int64(6) {
		slow := enginesTrial("engine=a", int(n), 1000+n)
		slow.Tiers = []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: 64 << 20,
			Requests: 64 * (1 + n%2*3), InFlightNS: 25e8}}}
		slow.DeviceCounters = result.DeviceCounters{ReadBytes: new(int64(32 << 20)), AppReadBytes: 64 << 20}
		slow.Harness.Verdict.Kind = []string{"storage-limited", "undecided"}[n%2]
		all = append(all, slow, enginesTrial("engine=b", int(n), 4000+n))
	}
	assert.Equal(t, `
ranking               found tok/s     interval  of the first  trials     found  read size  in flight  from memory                     verdict
            engine=b        4,002  4,000–4,005         100 %       6   0.381 %          –          0            –
            engine=a        1,002  1,000–1,005          25 %       6  0.0954 %      1 MiB       2.50         50 %  storage-limited, undecided
            median of the trials, and its 95 % interval, which needs 6 trials (-count 6); differences with p values: benchstat -col /engine
`, ranking(all))
}

// Each point of what else was swept has a table of its own; one row is none.
func TestRankingsOfASweep(t *testing.T) {
	var all []*result.Result
	for _, users := range []int{8, 16} {
		for i, e := range []string{"vllm", "lmcache"} {
			all = append(all, enginesTrial(fmt.Sprintf("engine=%s/num-users=%d", e, users), 0,
				int64(100*(i+1)+users)))
		}
	}
	all = append(all, &result.Result{Benchmark: "BlockTrace", Name: "BlockTrace"})
	assert.Regexp(t, `(?s)^\nat          num-users=8\nranking.*lmcache +208 .*vllm +108 .*`+
		`\nat          num-users=16\n.*lmcache +216`, ranking(all))
	assert.Empty(t, ranking(all[:1]))
}

func TestWhatMakesRowsIncomparableIsReported(t *testing.T) {
	all := []*result.Result{enginesTrial("layout=a", 0, 5), enginesTrial("layout=b", 0, 9),
		enginesTrial("layout=b", 1, 9), enginesTrial("layout=c", 0, 9)}
	all[0].EndedBy, all[0].Input = result.EndedByDeadline, &result.Input{}
	all[1].Parameters = []result.Parameter{{Name: "trace-speedup", Value: 2.5}}
	all[2].Status, all[3].Status = result.StatusFailed, result.StatusFailed
	text := ranking(all)
	for _, want := range []string{"layout=b: 1 of 2 trials gave no numbers",
		"layout=c: 1 of 1 trials gave no numbers", "benchstat -col /layout",
		"1 of 2 rows were stopped before the trace ended",
		"set the pace (-trace-speedup 2.50)"} {
		assert.Contains(t, text, want)
	}
	// All are at the same request after a number of them.
	all[0].EndedBy = result.EndedByMaxRequests
	assert.NotContains(t, ranking(all), "before the trace ended")
	assert.NotContains(t, ranking([]*result.Result{enginesTrial("layout=a", 0, 0),
		enginesTrial("layout=b", 0, 0)}), "NaN", "rows that found nothing have no ratio")
	all[0].Status = result.StatusFailed
	assert.Empty(t, ranking(all), "one row that has numbers")
}
