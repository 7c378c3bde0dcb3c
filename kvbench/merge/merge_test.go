package merge

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
)

// TestEveryFieldHasARule: a new field of a result is merged once its tag says how.
func TestEveryFieldHasARule(t *testing.T) {
	met := map[reflect.Type]bool{}
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		if met[of] {
			return
		}
		met[of] = true
		require.Equal(t, reflect.Struct, of.Kind(), "%v cannot be merged", of)
		for field := range of.Fields() {
			rule, keys, _ := strings.Cut(field.Tag.Get("merge"), "=")
			of := field.Type
			for of.Kind() == reflect.Pointer || of.Kind() == reflect.Map || of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			number := of.Kind() >= reflect.Int && of.Kind() <= reflect.Float64
			switch rule {
			case "-", "drop", "same":
			case "", "any", "sum":
				if !number {
					visit(of)
				} else if rule == "" || rule == "sum" && of.Kind() >= reflect.Uint && of.Kind() <= reflect.Uintptr {
					t.Errorf("%v.%s has no rule", of, field.Name)
				}
			case "list":
				assert.Equal(t, reflect.Slice, field.Type.Kind(), "%v.%s", of, field.Name)
			case "key":
				for key := range strings.SplitSeq(keys, ",") {
					_, ok := of.FieldByName(key)
					assert.True(t, ok, "%v.%s: entries have no %s", of, field.Name, key)
				}
				visit(of)
			case "max", "min":
				assert.True(t, number || of.Kind() == reflect.Bool || of.Kind() == reflect.String,
					"%v.%s has no %s", of, field.Name, rule)
			default:
				t.Errorf("%v.%s: %q is no rule", of, field.Name, rule)
			}
		}
	}
	visit(reflect.TypeFor[result.Result]())
	visit(reflect.TypeFor[result.Checkpoint]())    // in checkpoint.go
	visit(reflect.TypeFor[result.CheckpointRun]()) // by its index, also there
	visit(reflect.TypeFor[result.Timeline]())      // in timeline.go
}

// real are results of real runs of a second or less on tmpfs: users, with and without a cost of
// computing, blocks of mooncake-small.jsonl, plain I/O in both directions, and a simulated device.
func real(t *testing.T) map[string]*result.Result {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]*result.Result{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		r, err := result.Parse(data)
		require.NoError(t, err, name)
		all[name] = r
	}
	return all
}

func jsonOf(t *testing.T, r *result.Result) string {
	data, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	return string(data)
}

// TestOneRankIsItself: what is made anew of sums and histograms is what the run made of them.
func TestOneRankIsItself(t *testing.T) {
	for name, r := range real(t) {
		r.Ranks, r.Rank = 1, 0
		out := Ranks([]*result.Result{r}, nil)
		want, have := strings.Split(jsonOf(t, r), "\n"), strings.Split(jsonOf(t, out), "\n")
		for i := range want {
			if !assert.Equal(t, want[i], have[i], "%s, line %d", name, i) {
				break
			}
		}
	}
}

// random fills every number, text and truth of a value with something.
func random(rng *rand.Rand, v reflect.Value, depth int) {
	switch {
	case depth > 12:
	case v.CanInt():
		v.SetInt(rng.Int64N(1000))
	case v.CanUint():
		v.SetUint(rng.Uint64N(1000))
	case v.CanFloat():
		v.SetFloat(float64(rng.IntN(1000)))
	case v.Kind() == reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprint("text", rng.IntN(2)))
	case v.Kind() == reflect.Pointer && rng.IntN(3) > 0:
		v.Set(reflect.New(v.Type().Elem()))
		random(rng, v.Elem(), depth+1)
	case v.Kind() == reflect.Struct:
		for _, field := range v.Fields() {
			random(rng, field, depth+1)
		}
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range rng.IntN(3) {
			one := reflect.New(v.Type().Elem()).Elem()
			random(rng, one, depth+1)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", rng.IntN(3))), one)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		for range rng.IntN(3) {
			one := reflect.New(v.Type().Elem()).Elem()
			random(rng, one, depth+1)
			v.Set(reflect.Append(v, one))
		}
	}
}

// made are ranks of one trial with any numbers, and with histograms that can be read.
func made(rng *rand.Rand, n int) (ranks []*result.Result) {
	for rank := range n {
		r := &result.Result{}
		random(rng, reflect.ValueOf(r).Elem(), 0)
		r.Benchmark, r.Name, r.Trial, r.Rank, r.Ranks = "B", "B/x", 1, rank, n
		r.StartTime = fmt.Sprintf("2026-01-02T03:04:05.%03dZ", rng.IntN(1000))
		r.Timeline, r.Parameters, r.DeviceLatencyTracing = nil, nil, nil
		r.Histograms = map[string]result.HistogramData{}
		for _, name := range []string{"storage_read", "storage_read_device", "request_end_to_end"} {
			h := result.NewHistogram(units.Nanoseconds)
			for range rng.IntN(300) + 1 {
				h.Record(rng.Int64N(1e9))
			}
			r.Histograms[name] = h.Encode()
		}
		ranks = append(ranks, r)
	}
	return ranks
}

func TestTheOrderOfRanksDoesNotMatter(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		ranks := made(rng, 2+rng.IntN(3))
		before := jsonOf(t, ranks[0])
		one := Ranks(ranks, nil)
		first := jsonOf(t, one)
		rng.Shuffle(len(ranks), func(i, k int) { ranks[i], ranks[k] = ranks[k], ranks[i] })
		other := Ranks(ranks, nil)
		require.Equal(t, first, jsonOf(t, other), "seed %d", seed)
		for _, r := range ranks {
			if r.Rank == 0 {
				require.Equal(t, before, jsonOf(t, r), "merging has changed a rank, seed %d", seed)
			}
		}
	}
}

// TestHistogramsAreThoseOfTheUnion: percentiles are those of all values together.
func TestHistogramsAreThoseOfTheUnion(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	ranks, union := made(rng, 3), result.NewHistogram(units.Nanoseconds)
	for _, r := range ranks {
		r.Tiers = []result.Tier{{Level: "storage"}}
		h := result.NewHistogram(units.Nanoseconds)
		for range 500 {
			v := rng.Int64N(1e9) * int64(1+10*r.Rank)
			h.Record(v)
			union.Record(v)
		}
		r.Histograms["storage_read_device"] = h.Encode()
	}
	out := Ranks(ranks, nil)
	want := result.NewDistribution(units.Nanoseconds, union)
	assert.Equal(t, want, out.Latency.Levels["storage"].Read.Device)
	back, err := out.Histograms["storage_read_device"].Decode()
	require.NoError(t, err)
	assert.Equal(t, want, result.NewDistribution(units.Nanoseconds, back))
	assert.InDelta(t, *union.InterpolatedMS(0.95),
		out.Python().Number("summary.cache_stats.storage_read_device_p95_ms"), 1e-9)
}

// TestByHand: two ranks, each number by its rule.
func TestByHand(t *testing.T) {
	a, b := &result.Result{Rank: 0}, &result.Result{Rank: 1}
	for i, r := range []*result.Result{a, b} {
		k := int64(i + 1)
		r.Ranks, r.Status, r.Benchmark, r.Seed = 2, result.StatusComplete, "B", uint64(42+i)
		r.WindowNS, r.Harness.PeakRSSBytes = 10e9+k, new(100*k)
		r.IO.Mode, r.IO.CacheDir = "direct", fmt.Sprint("/mnt/rank_", i)
		r.Requests.Completed, r.Lookups.Hits, r.Lookups.Misses = 10*k, 3*k, 7
		r.Requests.GeneratedTokens, r.Requests.StorageLatencyNS = 100*k, 1e9
		r.Derive()
		r.Load = map[string]result.ClassOutcome{"total": {Completed: 10 * k, Queued: 5,
			OldestQueuedAgeS: new(float64(k))}}
		r.Tiers = []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: 1000 * k,
			BytesPerSecond: new(100 * float64(k)), DeviceNS: 10 * k, EntryBytes: 1 << (20 + i)}}}
		r.IO.Roots = []result.Root{{Directory: "/mnt/a", Entries: k, DeviceReadBytes: new(9 * k)},
			{Directory: "/mnt/b", Read: result.RootTraffic{Requests: k, RequestNS: 6}}}
		r.Autoscaler = &result.Autoscaler{}
		r.CeilingRatio = new(0.5)
		r.Warnings = []string{"both", fmt.Sprint("own ", i)}
		r.Harness.CPUNS = 30
		r.DeviceCounters = result.DeviceCounters{Device: "nvme0n1", ReadBytes: new(int64(3000)),
			AppReadBytes: 1000 * k}
	}
	b.Harness.Verdict.Kind = "storage-limited"
	out := Ranks([]*result.Result{b, a}, nil)
	assert.Equal(t, result.StatusComplete, out.Status)
	assert.Equal(t, []int{0, 1}, out.MergedRanks)
	assert.Equal(t, uint64(42), out.Seed)
	assert.Equal(t, int64(10e9+2), out.WindowNS, "the longest window")
	assert.Equal(t, int64(200), *out.Harness.PeakRSSBytes, "of the largest process")
	assert.Equal(t, "direct", out.IO.Mode)
	assert.Empty(t, out.IO.CacheDir, "the ranks differ")
	assert.Equal(t, []result.Root{{Directory: "/mnt/a", Entries: 3}, {Directory: "/mnt/b",
		Read: result.RootTraffic{Requests: 3, RequestNS: 12, MeanRequestNS: new(4.0)}}},
		out.IO.Roots, "of a device that ranks share each has counted all")
	assert.Empty(t, out.Harness.Verdict.Kind, "one of them has none")
	assert.Equal(t, int64(30), out.Requests.Completed)
	assert.InDelta(t, 100, *a.Requests.StorageTokensPerSecond, 1e-12)
	assert.InDelta(t, 300.0/2, *out.Requests.StorageTokensPerSecond, 1e-12, "tokens ÷ storage time, not 100 + 200")
	assert.InDelta(t, 9.0/23, *out.Lookups.HitRate, 1e-12, "not the mean of 3/10 and 6/13")
	assert.InDelta(t, 30.0/40, *out.Load["total"].ServedRatio, 1e-12)
	assert.InDelta(t, 2, *out.Load["total"].OldestQueuedAgeS, 0)
	assert.InDelta(t, 300, *out.Tiers[0].Read.BytesPerSecond, 0, "rates add")
	assert.InDelta(t, 10, *out.Tiers[0].Read.NSPerMiB, 0, "30 ns for 3 MiB")
	assert.InDelta(t, 60.0/3000, *out.Harness.CPUNSPerByte, 1e-12)
	assert.Nil(t, out.Autoscaler, "each rank has scaled by itself")
	assert.Nil(t, out.CeilingRatio)
	assert.Equal(t, []string{"both", "rank 0: own 0", "rank 1: own 1"}, out.Warnings)
	assert.Nil(t, out.DeviceCounters.ReadBytes, "both have counted the same device")
	assert.Contains(t, out.DeviceCounters.Reason, "share the device")
	assert.Equal(t, int64(3000), out.DeviceCounters.AppReadBytes)

	// Of a sum of which one part is unknown nothing is known.
	b.Tiers[0].Read.BytesPerSecond = nil
	b.Environment.Hostname = "other"
	out = Ranks([]*result.Result{a, b}, nil)
	assert.Nil(t, out.Tiers[0].Read.BytesPerSecond)
	assert.Equal(t, int64(6000), *out.DeviceCounters.ReadBytes, "of two devices")
}

func TestAMissingOrFailedRankIsNamed(t *testing.T) {
	ranks := made(rand.New(rand.NewPCG(1, 2)), 4)
	for _, r := range ranks {
		r.Status, r.Error = result.StatusComplete, ""
	}
	out := Ranks(ranks[1:3], nil)
	assert.Equal(t, []int{0, 3}, Missing(out))
	assert.Equal(t, "incomplete: ranks 0, 3 of 4 are missing", out.Status+": "+out.Error)
	ranks[2].Status, ranks[2].Error = result.StatusFailed, "the disk is full"
	out = Ranks(ranks[:3], nil)
	assert.Equal(t, "failed: rank 2: the disk is full; rank 3 of 4 is missing",
		out.Status+": "+out.Error)
	ranks[0].Status, ranks[0].Error = result.StatusIncomplete, "the disk is full"
	out = Ranks(ranks[:3], nil)
	assert.Equal(t, "failed: ranks 0, 2: the disk is full; rank 3 of 4 is missing",
		out.Status+": "+out.Error, "once")
}

// TestTimelinesStandOnOneAxis: the second rank starts two intervals later and ends one later.
func TestTimelinesStandOnOneAxis(t *testing.T) {
	ranks := made(rand.New(rand.NewPCG(3, 3)), 2)
	for i, r := range ranks {
		// The clock of the second one's host is three seconds ahead.
		r.StartTime = fmt.Sprintf("2026-01-02T03:04:%02d.1Z", 5+2*i+3*i)
		r.ClockOffsetNS = new(int64(i) * 3e9)
		r.WindowNS = 4e9 - int64(i)*1e9
		n := 4 - i
		tl := &result.Timeline{IntervalNS: 1e9, LastNS: 1e9, Requests: make([]int64, n),
			Queued: make([]*int64, n), ReadBytes: map[string][]int64{"storage": nil}}
		for k := range n {
			tl.Requests[k], tl.Queued[k] = int64(1+k), new(int64(10))
			tl.ReadBytes["storage"] = append(tl.ReadBytes["storage"], 1<<30)
		}
		tl.TimesUS = map[string]tracing.Series{"storage_read": {Counts: make([]tracing.Counts, n),
			From: []float64{math.Exp2(float64(n)), math.Exp2(float64(n) + 0.5)}}}
		for k := range n {
			tl.TimesUS["storage_read"].Counts[k] = tracing.Counts{int64(k), 1}
		}
		r.Timeline = tl
	}
	out := Ranks(ranks, nil)
	assert.Equal(t, []int64{1, 2, 3 + 1, 4 + 2, 3}, out.Timeline.Requests)
	assert.Equal(t, []int64{1 << 30, 1 << 30, 2 << 30, 2 << 30, 1 << 30},
		out.Timeline.ReadBytes["storage"])
	assert.Equal(t, []*int64{nil, nil, new(int64(20)), new(int64(20)), nil}, out.Timeline.Queued)
	times := out.Timeline.TimesUS["storage_read"]
	assert.InDeltaSlice(t, []float64{8, 8 * math.Sqrt2, 16, 16 * math.Sqrt2}, times.From, 1e-9)
	assert.Equal(t, []tracing.Counts{{0, 0, 0, 1}, {0, 0, 1, 1}, {0, 1, 2, 1}, {1, 1, 3, 1},
		{2, 1}}, times.Counts)
	w := CommonWindow(ranks)
	assert.Equal(t, &Window{StartSkewS: 2, DurationS: 2, ReadBandwidth: 2}, w)

	ranks[1].StartTime = "2026-01-02T03:05:00Z" // never at the same time
	out = Ranks(ranks, nil)
	assert.Nil(t, out.Timeline)
	assert.Contains(t, out.Warnings[len(out.Warnings)-1], "the ranks' timelines are not merged")
	assert.Nil(t, CommonWindow(ranks))
	// Windows that end by count: one reached the length at which an interval doubles.
	ranks[1].StartTime, ranks[1].Timeline.IntervalNS = ranks[0].StartTime, 2e9
	out = Ranks(ranks, nil)
	assert.Nil(t, out.Timeline)
	assert.Contains(t, out.Warnings[len(out.Warnings)-1], "their intervals differ in length")
}
