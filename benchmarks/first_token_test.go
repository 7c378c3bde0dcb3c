package benchmarks

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tiers/tiertest"
)

// simulated runs a benchmark as its command would.
func simulated(t *testing.T, name, args string) *result.Result {
	t.Helper()
	bench, ok := params.Benchmark(name)
	require.True(t, ok)
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	set := params.Register(fs)
	require.NoError(t, fs.Parse(strings.Fields(args)))
	v, err := set.Resolve(params.Inputs{Bench: bench, Base: t.TempDir(), BenchTime: "600s"})
	require.NoError(t, err)
	storage, err := storageConfig(v)
	require.NoError(t, err)
	cfg, err := trialConfig(v, storage, 0)
	require.NoError(t, err)
	cfg.Publish = func(*result.Result) error { return nil }
	load, err := requestLoad(v, cfg.Storage)
	require.NoError(t, err)
	r, err := simulate(t.Context(), v, cfg, load)
	require.NoError(t, err)
	return r
}

// capacities simulates a load with caches of each size in GiB, the smallest first.
func capacities(t *testing.T, bench, args, sizes string) (all []*result.Result) {
	t.Helper()
	for gib := range strings.FieldsSeq(sizes) {
		r := simulated(t, bench, args+" -division open -simulate-device "+
			"read=2GiB/s,write=2GiB/s,read-latency=80us,write-latency=20us "+
			"-chunk-size 16MiB -storage-capacity-gb "+gib) // large chunks: few events
		f := r.FirstToken
		require.NotNil(t, f)
		t.Logf("%s %s, %s GiB: mean %v, %d requests in %v, found %.3f, saved %.3f", bench, args,
			gib, time.Duration(*f.TTFT.Mean), r.Requests.Completed, time.Duration(r.WindowNS),
			*r.Prompt.HitRatio, *f.SavedRatio)
		all = append(all, r)
	}
	return all
}

// noSlower demands that first tokens come no later on average with a larger cache, that requests
// per second do not fall, and that no less is found, computed or saved.
func noSlower(t *testing.T, all []*result.Result) {
	t.Helper()
	for i, r := range all[1:] {
		before, f := all[i].FirstToken, r.FirstToken
		assert.LessOrEqual(t, *f.TTFT.Mean, *before.TTFT.Mean)
		assert.GreaterOrEqual(t, *r.Requests.RequestsPerSecond, *all[i].Requests.RequestsPerSecond)
		assert.GreaterOrEqual(t, *r.Prompt.HitRatio, *all[i].Prompt.HitRatio)
		assert.GreaterOrEqual(t, *f.ComputeSavedRatio, *before.ComputeSavedRatio)
	}
	first, last := all[0].FirstToken, all[len(all)-1].FirstToken
	assert.Less(t, *last.TTFT.Mean, *first.TTFT.Mean)
	assert.Positive(t, *last.SavedRatio)
}

// Once a miss costs something, a larger cache is no slower. That is how capacities compare. A number
// of requests in an open loop are the same requests, whatever the cache. In a closed loop a faster
// server gets further into conversations, whose prompts are longer, so that the median may rise. The
// mean does not: users who wait less for each answer ask more often, as Little's law has it.
func TestALargerCacheIsNoSlower(t *testing.T) {
	tiertest.OneThread(t)
	for _, c := range []struct{ bench, args, sizes string }{
		{"MultiTurn", "-model tiny-1b -num-users 8 -prefill-rate 10000 -max-requests 600",
			"4 16 64"},
		{"MaxStorageStress", "-num-users 16 -prefill-rate 2000 -max-requests 150", "4 12 24"},
		{"MultiTurn", "-model tiny-1b -num-users 8 -prefill-rate 10000 -arrival closed-loop",
			"4 16 64"},
		{"MaxStorageStress", "-num-users 16 -prefill-rate 2000 -arrival closed-loop", "4 12 24"},
	} {
		all := capacities(t, c.bench, c.args, c.sizes)
		noSlower(t, all)
		for _, r := range all {
			if strings.Contains(c.args, "-max-requests") {
				assert.Equal(t, all[0].Prompt.Tokens, r.Prompt.Tokens, "the same requests")
				assert.Equal(t, all[0].Requests.Completed, r.Requests.Completed)
			}
		}
	}
}
