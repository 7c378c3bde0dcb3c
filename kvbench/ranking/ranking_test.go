package ranking

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// trial is a result that found so many tokens in a second.
func trial(name string, n int, found int64) *result.Result {
	return &result.Result{Benchmark: result.BenchmarkEngines, Name: name, Trial: n, WindowNS: 1e9,
		Status: result.StatusComplete, EndedBy: result.EndedByInput,
		BlockCache: &result.BlockCache{Tokens: 1 << 39, HitTokens: found},
		Prompt: &result.Prompt{PromptTokens: result.PromptTokens{Tokens: 1 << 40,
			Found: found}}}
}

// run are the trials of lines that have each its mean, in rounds that are slower by a tenth each,
// with a noise of a few per cent.
func run(r *rand.Rand, rounds int, noise float64, means map[string]float64) (all []*result.Result) {
	for n := range rounds {
		for _, name := range slices.Sorted(maps.Keys(means)) {
			v := means[name] * (1 - 0.1*float64(n/2)) * (1 + noise*r.NormFloat64())
			all = append(all, trial("Engines/engine="+name, n, int64(v)))
		}
	}
	return all
}

// placesOf are the places that the trials leave open, by name.
func placesOf(k *Ranking) map[string]string {
	m := map[string]string{}
	for _, row := range k.Rows {
		m[row.Name] = places(row)
	}
	return m
}

func TestPlacesAreThoseThatAreShown(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	all := run(r, 8, 0.02, map[string]float64{"a": 300e3, "b": 200e3, "c": 200e3, "d": 100e3})
	list := Rank(all)
	require.Len(t, list, 1)
	k := list[0]
	assert.Equal(t, map[string]string{"engine=a": "1", "engine=b": "2–3", "engine=c": "2–3",
		"engine=d": "4"}, placesOf(k), "what drifts from turn to turn hides nothing")
	assert.Equal(t, "engine=a", k.Rows[0].Name)
	assert.Equal(t, 8, k.Rows[0].Ahead)
	second, third := k.Rows[1].Name, k.Rows[2].Name
	assert.Regexp(t, third+", 0.9. of "+second+", no difference shown: ", k.String())
	assert.Regexp(t, second+", 0.6. of engine=a: ", k.String())
	assert.NotContains(t, k.String(), "could")
}

// However far rows are apart: three trials of each show nothing, and the table says so.
func TestFewTrialsShowNoDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	k := Rank(run(r, 3, 0.01, map[string]float64{"a": 900, "b": 600, "c": 100}))[0]
	assert.Equal(t, map[string]string{"engine=a": "1–3", "engine=b": "1–3", "engine=c": "1–3"},
		placesOf(k))
	assert.Equal(t, []int{3, 3}, []int{k.Same, k.Rounds})
	assert.Contains(t, k.String(), "No difference is shown: 3 trials of each cannot show any between "+
		"3 rows, however large it is; -count 6 could")
	all := Rank(run(r, k.Needed, 0.01, map[string]float64{"a": 900, "b": 600, "c": 100}))[0]
	assert.Equal(t, map[string]string{"engine=a": "1", "engine=b": "2", "engine=c": "3"},
		placesOf(all), "what could show it does")
}

// A row that nearly always failed takes nothing from what the others have shown.
func TestARowOfFewTrialsHidesNoDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	all := run(r, 8, 0.01, map[string]float64{"a": 900, "b": 600, "c": 100, "d": 50})
	for _, res := range all {
		if res.Name == "Engines/engine=d" && res.Trial > 0 {
			res.Status = result.StatusFailed
		}
	}
	k := Rank(all)[0]
	assert.Equal(t, map[string]string{"engine=a": "1–2", "engine=b": "2–3", "engine=c": "3–4",
		"engine=d": "1–4"}, placesOf(k))
	text := k.String()
	assert.NotContains(t, text, "No difference is shown")
	assert.Contains(t, text, "the median of 1–8 trials")
	assert.Regexp(t, `engine=b, 0\.6\d of engine=a: `, text)
	assert.Regexp(t, `engine=d, 0\.[56]\d of engine=c, no difference shown: `, text)
}

// Rows that found nothing have no ratio.
func TestNothingIsAsLittleAsNothing(t *testing.T) {
	k := Rank([]*result.Result{trial("Engines/layout=a", 0, 0), trial("Engines/layout=b", 0, 0)})[0]
	assert.Contains(t, k.String(), "layout=b, as little as layout=a, nothing: ")
}

// Of runs whose rows are all the same, one in twenty at most may show any difference.
func TestEqualRowsAreRarelyTold(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	const runs = 300
	told := 0
	for range runs {
		k := Rank(run(r, 8, 0.1, map[string]float64{"a": 1e6, "b": 1e6, "c": 1e6, "d": 1e6}))[0]
		for _, row := range k.Rows {
			if row.First > 1 || row.Last < len(k.Rows) {
				told++
				break
			}
		}
	}
	// Twenty of 300 are the 5 % and a standard deviation.
	assert.LessOrEqual(t, told, 20)
	t.Logf("%d of %d", told, runs)
}

func TestRowsOfDifferentPlacesInASweepAreNotRanked(t *testing.T) {
	var all []*result.Result
	for _, users := range []int{8, 16} {
		for i, e := range []string{"vllm", "lmcache"} {
			all = append(all, trial(fmt.Sprintf("Engines/engine=%s/num-users=%d", e, users), 0,
				int64(100*(i+1)+users)))
		}
	}
	all = append(all, &result.Result{Benchmark: "BlockTrace", Name: "BlockTrace"})
	list := Rank(all)
	require.Len(t, list, 2)
	for i, where := range []string{"num-users=8", "num-users=16"} {
		assert.Equal(t, where, list[i].Where)
		assert.Equal(t, "engine=lmcache", list[i].Rows[0].Name)
		assert.True(t, strings.HasPrefix(list[i].String(), "at          "+where+"\n"))
	}
	assert.Empty(t, Rank(all[:1]), "one row has no place")
}

func TestATrialThatFailedIsTold(t *testing.T) {
	all := []*result.Result{trial("Engines/layout=block", 0, 5), trial("Engines/layout=slots", 0, 9),
		trial("Engines/layout=slots", 1, 9), trial("Engines/layout=vllm-fs", 0, 9)}
	all[2].Status, all[3].Status = result.StatusFailed, result.StatusFailed
	k := Rank(all)[0]
	require.Len(t, k.Rows, 2)
	text := k.String()
	assert.Contains(t, text, "layout=slots: 1 of 2 trials gave no numbers")
	assert.Contains(t, text, "layout=vllm-fs: 1 of 1 trials gave no numbers")
}

func TestWhatTheRowsDoNotShareIsTold(t *testing.T) {
	all := []*result.Result{trial("Engines/layout=a", 0, 5), trial("Engines/layout=b", 0, 9)}
	all[0].EndedBy, all[0].Input = result.EndedByDeadline, &result.Input{}
	all[1].Parameters = []result.Parameter{{Name: "trace-speedup", Value: 2.5}}
	text := Rank(all)[0].String()
	assert.Contains(t, text, "1 of 2 rows were stopped before the trace ended")
	assert.Contains(t, text, "set the pace (-trace-speedup 2.50)")

	// All are at the same request after a number of them.
	all[0].EndedBy = result.EndedByMaxRequests
	assert.NotContains(t, Rank(all)[0].String(), "before the trace ended")
}

// Facts are summed before they are divided, and told where they differ by much.
func TestDifferences(t *testing.T) {
	of := func(lookup, requests, deviceReads, devRead int64, verdict string) facts {
		r := trial("", 0, 1<<39)
		r.Model.RankBytesPerToken = 1024
		r.Parameters = []result.Parameter{{Name: "object-tokens", Value: 16}}
		r.Requests.Time.EndToEnd, r.Requests.Time.Queue, r.Requests.Time.Lookup = 150, 50, lookup
		r.Tiers = []result.Tier{{Level: "storage", Read: result.TierTraffic{Bytes: 64 << 20,
			Requests: requests, InFlightNS: 25e8}}}
		r.DeviceWitness = result.Witness{ReadBytes: new(devRead), ReadIOs: new(deviceReads),
			AppReadBytes: 64 << 20, QueueNS: new(int64(1e9))}
		r.Harness.Verdict.Kind = verdict
		return factsOf([]*result.Result{r, r})
	}
	a := of(10, 64, 64, 64<<20, "storage-limited")
	assert.Empty(t, differences(a, of(11, 64, 64, 64<<20, "storage-limited")))
	assert.Equal(t, []string{"requests of 1 MiB (64 KiB)", "device reads of 1 MiB (512 KiB)",
		"looking up took 10 % (40 %)", "memory answered 0 % of the reads (50 %)",
		"storage-limited (harness-limited)"},
		differences(a, of(40, 1024, 64, 32<<20, "harness-limited")))
	assert.InDelta(t, 16384, *a.object, 0)
	assert.InDelta(t, 2.5, *a.inFlight, 0)
	assert.InDelta(t, 0.5, *a.found, 0)
}

// What a device counted of another process is not a row's.
func TestADeviceThatAnotherProcessUsed(t *testing.T) {
	all := []*result.Result{trial("Engines/engine=a", 0, 5), trial("Engines/engine=b", 0, 9)}
	for i, r := range all {
		r.DeviceWitness = result.Witness{ReadBytes: new(int64(60 << 20)), ReadIOs: new(int64(60)),
			WriteBytes: new(int64(i+1) * 100 << 20), AppReadBytes: 60 << 20,
			AppWriteBytes: 100 << 20, FlushIOs: new(int64(22)), QueueNS: new(int64(1e9))}
	}
	k := Rank(all)[0]
	assert.Contains(t, k.String(), "engine=b: the device moved 1.62 times the bytes of this load, so "+
		"another process used it: what the device counted is left out")
	assert.NotContains(t, k.String(), "engine=a: ")
	for _, row := range k.Rows {
		assert.Equal(t, row.Name == "engine=a", row.facts.flushes != nil, row.Name)
	}
}

// Flushes have no owner: where the page cache has the writes they are somebody else's.
func TestFlushesOfOthers(t *testing.T) {
	of := func(wrote int64) *float64 {
		r := trial("", 0, 1)
		r.DeviceWitness = result.Witness{ReadBytes: new(int64), ReadIOs: new(int64),
			WriteBytes: &wrote, AppWriteBytes: 64 << 20, FlushIOs: new(int64(40))}
		return factsOf([]*result.Result{r}).flushes
	}
	assert.Nil(t, of(1<<20))
	assert.Equal(t, new(40.0), of(60<<20))
}
