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
	cfg, err := trialConfig(v, 0)
	require.NoError(t, err)
	cfg.Publish = func(*result.Result) error { return nil }
	load, err := requestLoad(v, cfg.Storage)
	require.NoError(t, err)
	r, err := simulate(t.Context(), v, cfg, load)
	require.NoError(t, err)
	return r
}

// A larger cache looks no slower, once a miss costs something: the time to the first token falls
// with it, requests per second do not, and more is found and less computed.
func TestALargerCacheIsNoSlower(t *testing.T) {
	const device = " -division open -arrival closed-loop -simulate-device " +
		"read=2GiB/s,write=2GiB/s,read-latency=80us,write-latency=20us"
	for _, c := range []struct{ bench, args, capacities string }{
		{"MultiTurn", "-model tiny-1b -num-users 8 -prefill-rate 10000", "4 8 16 64 256"},
		{"MaxStorageStress", "-num-users 16 -prefill-rate 2000", "4 8 16 24"},
	} {
		var last *result.Result
		for gib := range strings.FieldsSeq(c.capacities) {
			r := simulated(t, c.bench, c.args+device+" -storage-capacity-gb "+gib)
			f := r.FirstToken
			require.NotNil(t, f)
			t.Logf("%s, %s GiB: p50 %v, mean %v, %d requests, found %.3f", c.bench, gib,
				time.Duration(*f.TTFT.P50), time.Duration(*f.TTFT.Mean), r.Requests.Completed,
				*r.Prompt.HitRatio)
			if last != nil {
				before := last.FirstToken
				assert.LessOrEqual(t, *f.TTFT.P50, *before.TTFT.P50, gib)
				assert.LessOrEqual(t, *f.TTFT.Mean, *before.TTFT.Mean, gib)
				assert.GreaterOrEqual(t, r.Requests.Completed, last.Requests.Completed, gib)
				assert.GreaterOrEqual(t, *r.Prompt.HitRatio, *last.Prompt.HitRatio, gib)
				assert.GreaterOrEqual(t, *f.SavedRatio, *before.SavedRatio, gib)
			}
			last = r
		}
		assert.Greater(t, *last.Prompt.HitRatio, 0.4, "the largest holds much")
	}
}
