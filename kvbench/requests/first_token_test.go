package requests

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/compute"
)

// A tier that moves a token per second in each direction: by hand, turn by turn.
func TestWhatAMissCosts(t *testing.T) {
	turns := func(n int) []*workloads.Request {
		return conversation(1, n, 2, workloads.PrefillOnly)
	}
	for _, c := range []struct {
		name     string
		requests []*workloads.Request
		capacity int64 // tokens
		workers  int
		cost     compute.Cost
		// in seconds, summed
		ttft, load, compute, wait, all, window float64
		found                                  result.FoundParts
	}{
		// First tokens at 0.2; 2.2 + 2 + 0.2; 6.4 + 4 + 0.2. All arrive at 0.
		{"load 0, 2, 4, compute 0.2 each, write 2 each", turns(3), 1000, 1,
			compute.Cost{PerToken: 0.1}, 0.2 + 4.4 + 10.6, 6, 0.6, 0, 0.2 + 0.4 + 0.6, 12.6,
			result.FoundParts{Requests: 2, Tokens: 6, Bytes: 6 * unit, LoadNS: 6e9, SavedNS: 0.6e9,
				LostNS: 1.8e9 + 3.6e9}},
		{"load 2 rather than compute 6", turns(2), 1000, 1,
			compute.Cost{PerToken: 3}, 6 + 16, 2, 12, 0, 18, 18,
			result.FoundParts{Requests: 1, Tokens: 2, Bytes: 2 * unit, LoadNS: 2e9, SavedNS: 6e9,
				Worth: 1, WorthTokens: 2}},
		// Turn 4 finds the first gone, which is computed at 0…2, and itself at 6…8:
		// 0.1·(2² + 8² - 6²). First tokens at 0.4; 2.4 + 2 + 1.2; 7.6 + 4 + 2; 15.6 + 4 + 3.2.
		{"what was evicted is computed in its place", turns(4), 5, 1,
			compute.Cost{PerSquare: 0.1}, 0.4 + 5.6 + 13.6 + 22.8, 10, 0.4 + 1.2 + 2 + 3.2, 0,
			0.4 + 1.6 + 3.6 + 6.4, 24.8,
			// 2 tokens for 0.4 s, 4 for 1.6, and the last 4 of 6, with what is new, for 6.4 - 3.2.
			result.FoundParts{Requests: 3, Tokens: 10, Bytes: 10 * unit, LoadNS: 10e9,
				SavedNS: 5.2e9, LostNS: 1.6e9 + 2.4e9 + 0.8e9}},
		{"one server for all: the second waits for the first", singles(2, 3), 1000, 2,
			compute.Cost{PerToken: 1}, 3 + 6, 0, 6, 3, 6, 9, result.FoundParts{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			wall := clock.NewWall()
			src := newScript(c.requests...)
			src.ordered = c.workers == 1
			cfg := testConfig(slow(wall, c.capacity*unit), src, c.workers).finite()
			cfg.Clock, cfg.Cost = wall, c.cost
			r := mustRun(t, cfg)
			f := r.FirstToken
			require.NotNil(t, f, c.name)
			ns := func(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }
			assert.Equal(t, result.FirstTokenTime{TTFT: ns(c.ttft), Load: ns(c.load),
				Compute: ns(c.compute), GPUWait: ns(c.wait), ComputeAll: ns(c.all),
				Queue: ns(c.ttft - c.load - c.compute - c.wait)}, f.Sums, c.name)
			assert.Equal(t, ns(c.window), r.WindowNS, c.name)
			assert.Equal(t, ns(c.compute), r.Requests.Time.Compute)
			assert.Equal(t, ns(c.wait), r.Requests.Time.GPUWait)
			assert.Zero(t, r.Requests.Time.Rest, "the parts are all of it")
			assert.InEpsilon(t, c.compute/c.window, *f.GPUBusyShare, 1e-9)
			assert.InDelta(t, 1-(c.load+c.compute)/c.all, *f.SavedRatio, 1e-12)
			assert.InDelta(t, 1-c.compute/c.all, *f.ComputeSavedRatio, 1e-12)
			if c.found.Requests > 0 {
				c.found.WorthRatio = new(float64(c.found.Worth) / float64(c.found.Requests))
				c.found.WorthTokenRatio = new(float64(c.found.WorthTokens) /
					float64(c.found.Tokens))
				c.found.LoadBytesPerS = new(float64(unit)) // a token a second
				c.found.NeededBytesPerS = new(float64(c.found.Bytes) /
					(float64(c.found.SavedNS) / 1e9))
			}
			assert.Equal(t, c.found, f.Found, c.name)
		})
	}
}

// Hits in the tier above show nothing about the storage and are counted separately: of four turns
// of two tokens the memory, kept at 80 % of 5 tokens, has the last two, and the storage the others.
func TestFoundInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := clock.NewWall()
		memory := cache.Level{Kind: tiers.CPU, Tier: tiertest.NewNull(), Capacity: 5 * unit}
		src := newScript(conversation(1, 5, 2, workloads.PrefillOnly)...)
		src.ordered = true
		cfg := testConfig(append([]cache.Level{memory}, slow(wall, 1000*unit)...), src, 1).finite()
		cfg.Clock, cfg.Cost = wall, compute.Cost{PerToken: 1}
		f := mustRun(t, cfg).FirstToken
		// Turn 2 finds one entry, turn 3 two, both in memory; turn 4 three, one of them below, turn
		// 5 four, two of them below.
		assert.Equal(t, result.FoundAbove{Requests: 3, Tokens: 2 + 4 + 6}, f.FoundAbove)
		assert.EqualValues(t, 1, f.Found.Requests, "half of it from the storage")
		assert.EqualValues(t, 8, f.Found.Tokens)
		assert.Equal(t, int64(4*time.Second), f.Found.LoadNS, "2 entries of 2 tokens")
	})
}

// inLayers is a tier that keeps objects layer by layer.
type inLayers struct {
	tiers.Tier
	layers int
}

func (t inLayers) Traits() tiers.Traits {
	traits := t.Tier.Traits()
	traits.Layers = t.layers
	return traits
}

// Turn 2 loads the 2 tokens of turn 1, a token a second, and computes 2: 4 s one after the other.
// With two layers the first one arrives after 1 s, and a second of computing overlaps the second
// layer: by hand 1 + 1, max(2, 2) + 1. Slower computing hides all loading but the first layer;
// faster computing hides at most a layer of itself.
func TestLayersAreComputedWhileOthersAreLoaded(t *testing.T) {
	for _, c := range []struct {
		perToken               float64
		layers                 int
		first, second, overlap float64 // TTFT of both turns from their beginning, s
	}{
		{1, 0, 2, 2 + 2, 0},
		{1, 2, 2, 3, 1},
		{3, 2, 6, 1 + 6, 1},
		{0.5, 2, 1, 2.5, 0.5},
		{1, 8, 2, 2.25, 1.75},
	} {
		synctest.Test(t, func(t *testing.T) {
			wall := clock.NewWall()
			levels := slow(wall, 1000*unit)
			levels[0].Tier = inLayers{levels[0].Tier, c.layers}
			src := newScript(conversation(1, 2, 2, workloads.PrefillOnly)...)
			src.ordered = true
			cfg := testConfig(levels, src, 1).finite()
			cfg.Clock, cfg.Cost = wall, compute.Cost{PerToken: c.perToken}
			r := mustRun(t, cfg)
			f := r.FirstToken
			require.NotNil(t, f)
			ns := func(seconds float64) int64 { return int64(math.Round(seconds * 1e9)) }
			// The second one has waited for the first to be written, in its queue.
			assert.Equal(t, ns(c.first+c.second), f.Sums.TTFT-f.Sums.Queue, "%+v", c)
			assert.Equal(t, ns(c.overlap), f.Sums.Overlap, "%+v", c)
			assert.Equal(t, ns(2), f.Sums.Load, "%+v", c)
			assert.Equal(t, ns(4*c.perToken), f.Sums.Compute, "of both, whenever")
			assert.Equal(t, ns(4*c.perToken-c.overlap), r.Requests.Time.Compute)
			assert.Zero(t, r.Requests.Time.Rest, "the parts are all of it")
			all := 6 * c.perToken
			assert.InDelta(t, 1-(2+4*c.perToken-c.overlap)/all, *f.SavedRatio, 1e-12)
			assert.Equal(t, ns(c.first+2+c.second+2), r.WindowNS, "both are written in 2 s")
		})
	}
}

// Without a cost there is no time to the first token, and the order of execution is the plan's.
func TestFreeMissesHaveNoFirstToken(t *testing.T) {
	r := mustRun(t, testConfig(plenty(), newScript(conversation(1, 3, 2,
		workloads.PrefillDecode)...), 1).finite())
	assert.Nil(t, r.FirstToken)
	for _, m := range r.Metrics() {
		assert.NotContains(t, []string{"ttft-p50-ns", "ttft-saved-ratio"}, m.Unit)
	}
}

// breakEvenCase is a load whose break-even length is known roughly: prompts of half to twice that
// length are loaded again and again, one after the other, at about rate bytes/s.
type breakEvenCase struct {
	rate float64
	cost compute.Cost
	near int // tokens
}

const breakEvenToken = 64 << 10 // bytes

// newBreakEvenCase returns a cost that grows by 40 % with the length, and that equals loading at
// that time.
func newBreakEvenCase(rate float64, after time.Duration) breakEvenCase {
	perToken := breakEvenToken / rate
	near := after.Seconds() / perToken
	return breakEvenCase{rate, compute.Cost{PerToken: 0.4 * perToken,
		PerSquare: 0.6 * perToken / near}, int(near)}
}

// load writes an entry of each length and loads them 20 times over, in turn.
func (c breakEvenCase) load(storage kvbench.StorageConfig, tokens ...int) runConfig {
	var all []*workloads.Request
	for round := range 21 {
		for i, n := range tokens {
			r := &workloads.Request{SystemPrompt: -1, ContextTokens: n,
				Own: workloads.Entry{Key: workloads.PopulationKey(i), Tokens: n}}
			if r.Kind = workloads.PrefillOnly; round > 0 {
				r.Kind = workloads.DecodeOnly
			}
			all = append(all, r)
		}
	}
	cfg := testConfig(nil, newScript(all...), 1).finite()
	cfg.Planner.Sizer.BytesPerToken = breakEvenToken
	cfg.Cost, cfg.Storage = c.cost, storage
	return cfg
}

// check compares the break-even length that a run reports with the measured one: it times loads of
// several lengths in runs of their own, and finds where they cross the cost.
func (c breakEvenCase) check(t *testing.T, storage kvbench.StorageConfig,
	run func(runConfig) *result.Result) {
	t.Helper()
	reported := run(c.load(storage, c.near/2, c.near*4/5, c.near*5/4, c.near*2)).FirstToken
	require.NotNil(t, reported.BreakEven.P50)
	require.Equal(t, result.LoadFrom, reported.BreakEven.P50.Answer, "%+v", reported)
	require.False(t, reported.BreakEven.P50.Extrapolated)

	var measured float64
	var before compute.Point // by how much computing is slower
	for _, n := range []int{c.near * 7 / 10, c.near * 9 / 10, c.near, c.near * 11 / 10,
		c.near * 13 / 10, c.near * 16 / 10} {
		io := run(c.load(storage, n)).Latency.Levels["storage"].Read.IO
		require.NotNil(t, io.P50)
		now := compute.Point{Tokens: float64(n),
			Seconds: c.cost.Seconds(float64(n)) - float64(*io.P50)/1e9}
		if now.Seconds >= 0 {
			require.NotZero(t, before.Tokens, "loading is faster at %d tokens already", n)
			measured = now.Tokens - now.Seconds*(now.Tokens-before.Tokens)/
				(now.Seconds-before.Seconds)
			break
		}
		before = now
	}
	t.Logf("%.0f MiB/s: reported %d tokens, measured %.1f", c.rate/(1<<20), *reported.BreakEven.P50.Tokens,
		measured)
	require.NotZero(t, measured, "loading is never faster")
	assert.InEpsilon(t, measured, *reported.BreakEven.P50.Tokens, 0.05)
}

func TestBreakEvenOnASimulatedDevice(t *testing.T) {
	tiertest.OneThread(t)
	device := tiers.DeviceModel{Read: 3 << 30, Write: 3 << 30, ReadLatency: 80 * time.Microsecond,
		WriteLatency: 20 * time.Microsecond, Parallelism: 128}
	storage := kvbench.StorageConfig{StorageBytes: 64 << 30,
		Use: buffer.Use{Chunk: 1 << 20, Depth: 4, Workers: 1}}
	for _, after := range []time.Duration{4 * time.Millisecond, 100 * time.Millisecond} {
		newBreakEvenCase(3<<30, after).check(t, storage, func(cfg runConfig) *result.Result {
			r, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Device: &device})
			require.NoError(t, err)
			return r
		})
	}
}
