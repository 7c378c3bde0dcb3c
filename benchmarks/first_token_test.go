package benchmarks

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tiers/tiertest"
)

// resolved returns the values of a benchmark's command line, which may be refused.
func resolved(t *testing.T, name string, args ...string) (*params.Values, error) {
	t.Helper()
	bench, ok := params.Benchmark(name)
	require.True(t, ok)
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	set := params.Register(fs)
	require.NoError(t, fs.Parse(args))
	dir, err := os.Getwd()
	require.NoError(t, err)
	return set.Resolve(params.Inputs{Bench: bench, Base: dir, BenchTime: "600s"})
}

// simulated runs a benchmark as its command would.
func simulated(t *testing.T, name, args string) *result.Result {
	t.Helper()
	v, err := resolved(t, name, strings.Fields(args)...)
	require.NoError(t, err)
	storage, err := storageConfig(v)
	require.NoError(t, err)
	cfg, err := trialConfig(v, storage, 0)
	require.NoError(t, err)
	cfg.Publish = func(*result.Result) error { return nil }
	load, err := requestLoad(v, cfg.Storage, 0)
	require.NoError(t, err)
	r, err := simulate(t.Context(), v, cfg, load)
	require.NoError(t, err)
	return r
}

// Once a miss costs something, a larger cache is no slower. That is how capacities compare. A number
// of requests in an open loop are the same requests, whatever the cache. In a closed loop a faster
// server gets further into conversations, whose prompts are longer, so that the median may rise. The
// mean does not: users who wait less for each answer ask more often, as Little's law has it.
func TestALargerCacheIsNoSlower(t *testing.T) {
	tiertest.OneThread(t)
	for _, c := range []struct{ bench, args, sizes string }{ // sizes in GiB, the smallest first
		{"MultiTurn", "-model tiny-1b -num-users 8 -prefill-rate 10000 -max-requests 600",
			"4 16 64"},
		{"MaxStorageStress", "-num-users 16 -prefill-rate 2000 -max-requests 150", "4 12 24"},
		{"MultiTurn", "-model tiny-1b -num-users 8 -prefill-rate 10000 -arrival closed-loop",
			"4 16 64"},
		{"MaxStorageStress", "-num-users 16 -prefill-rate 2000 -arrival closed-loop", "4 12 24"},
	} {
		var first, before *result.Result
		for size := range strings.FieldsSeq(c.sizes) {
			r := simulated(t, c.bench, c.args+" -division open -simulate-device "+
				"read=2GiB/s,write=2GiB/s,read-latency=80us,write-latency=20us "+
				"-chunk-size 16MiB -storage-capacity-gb "+size) // large chunks: few events
			f := r.FirstToken
			require.NotNil(t, f)
			if before == nil {
				first, before = r, r
			}
			why := c.bench + " " + c.args + ", GiB: " + size
			assert.LessOrEqual(t, *f.TTFT.Mean, *before.FirstToken.TTFT.Mean, why)
			assert.GreaterOrEqual(t, *r.Requests.RequestsPerSecond,
				*before.Requests.RequestsPerSecond, why)
			assert.GreaterOrEqual(t, *r.Prompt.HitRatio, *before.Prompt.HitRatio, why)
			assert.GreaterOrEqual(t, *f.ComputeSavedRatio, *before.FirstToken.ComputeSavedRatio, why)
			if strings.Contains(c.args, "-max-requests") {
				assert.Equal(t, first.Prompt.Tokens, r.Prompt.Tokens, "the same requests")
				assert.Equal(t, first.Requests.Completed, r.Requests.Completed)
			}
			before = r
		}
		assert.Less(t, *before.FirstToken.TTFT.Mean, *first.FirstToken.TTFT.Mean)
		assert.Positive(t, *before.FirstToken.SavedRatio)
	}
}
