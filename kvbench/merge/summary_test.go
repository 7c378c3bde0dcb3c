package merge

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/golden"
)

// The hand-computed example: 2 ranks × 3 trials of option 1.
//
//	          rank 0                        rank 1                       sum
//	          read write tok/s stor p95     read write tok/s stor p95    read write tok/s stor
//	trial 0   2.0  1.0   100   10   20      3.0  1.5   200   20   30     5.0  2.5   300   30
//	trial 1   2.5  1.0   110   11   21      3.5  1.5   210   21   90     6.0  2.5   320   32
//	trial 2   1.5  0.5   120   12   22      2.5  0.5   220   22   32     4.0  1.0   340   34
//	mean over the trials                                                 5.0  2.0   320   32
//	maximum p95 of writes: p95 + 100, so 190; of reads that of rank 1's 2…600 ms, so 570
var example = [3][2]measured{
	{{2.0, 1.0, 100, 10, 20}, {3.0, 1.5, 200, 20, 30}},
	{{2.5, 1.0, 110, 11, 21}, {3.5, 1.5, 210, 21, 90}},
	{{1.5, 0.5, 120, 12, 22}, {2.5, 0.5, 220, 22, 32}},
}

type measured struct{ read, write, tokens, storage, p95 float64 }

var begin = time.Date(2026, 9, 8, 12, 0, 0, 0, time.UTC)

// res is one rank's: a window of ten seconds whose bytes flow evenly; rank 1 starts two seconds
// later.
func res(trial, rank int, m measured) *result.Result {
	r := &result.Result{
		SchemaVersion: result.SchemaVersion, Status: result.StatusComplete,
		Benchmark: "MaxStorageStress", Name: "MaxStorageStress",
		Option: new(1), Division: result.DivisionOpen, Trial: trial, Count: 3, Rank: rank,
		Ranks: 2, Nonce: fmt.Sprintf("%d%d", trial, rank),
		StartTime: begin.Add(time.Duration(trial)*time.Minute +
			time.Duration(rank)*2*time.Second).Format(time.RFC3339Nano),
		WindowNS: 10e9, Seed: uint64(42 + rank),
		Model: result.Model{Key: "llama3.1-8b"},
		IO: result.IO{Mode: "direct", WriteDevice: result.WriteDeviceTransfer,
			CacheDir: fmt.Sprintf("/mnt/kv/rank_%d", rank)},
		Workload:    result.Workload{DecodeReads: "batched"},
		Environment: result.Environment{Hostname: fmt.Sprintf("node%d", rank)},
		Histograms:  map[string]result.HistogramData{},
	}
	r.Tiers = []result.Tier{{Level: "storage", Entries: 100,
		Read:  result.TierTraffic{BytesPerSecond: new(m.read * (1 << 30))},
		Write: result.TierTraffic{BytesPerSecond: new(m.write * (1 << 30))}}}
	r.Requests.TokensPerSecond, r.Requests.StorageTokensPerSecond = &m.tokens, &m.storage
	for name, ms := range map[string]float64{"storage_write_device": m.p95 + 100,
		"request_storage": m.p95 + 1000} {
		h := result.NewHistogram(units.Nanoseconds)
		h.Record(int64(ms * 1e6))
		r.Histograms[name], _ = h.Encode()
	}
	tl := &result.Timeline{IntervalNS: 1e9, LastNS: 1e9, ReadBytes: map[string][]int64{},
		WriteBytes: map[string][]int64{}}
	for range 10 {
		tl.ReadBytes["storage"] = append(tl.ReadBytes["storage"], int64(m.read*(1<<30)))
		tl.WriteBytes["storage"] = append(tl.WriteBytes["storage"], int64(m.write*(1<<30)))
	}
	r.Timeline = tl
	h := result.NewHistogram(units.Nanoseconds)
	for i := range 300 {
		h.Record(int64(i+1) * 1e6 * int64(rank+1))
	}
	r.Histograms["storage_read_device"], _ = h.Encode()
	return r
}

// write puts a result where a run would.
func write(t *testing.T, dir string, r *result.Result) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("option_1/trial_%d/rank_%d", r.Trial, r.Rank),
		"kvcache_results_20260908_120000.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, r.WriteJSON(path))
	return path
}

// run6 writes the example, after each result was changed.
func run6(t *testing.T, change func(r *result.Result)) string {
	dir := t.TempDir()
	for trial := range example {
		for rank, m := range example[trial] {
			r := res(trial, rank, m)
			if change != nil {
				change(r)
			}
			write(t, dir, r)
		}
	}
	return dir
}

func aggregated(t *testing.T, dir string) *Summary {
	t.Helper()
	files, err := ReadTree(dir)
	require.NoError(t, err)
	return Aggregate(files)
}

// written is the text and the JSON of a summary.
func written(t *testing.T, s *Summary) (text, doc string) {
	t.Helper()
	var a, b bytes.Buffer
	require.NoError(t, s.WriteText(&a, "DIR/summary.json"))
	require.NoError(t, s.WriteJSON(&b))
	return a.String(), b.String()
}

func TestTwoRanksThreeTrialsByHand(t *testing.T) {
	s := aggregated(t, run6(t, nil))
	o := s.Options["1"]
	assert.InDelta(t, 5.0, o.ReadBandwidth, 1e-12)
	assert.InDelta(t, 2.0, o.WriteBandwidth, 1e-12)
	assert.InDelta(t, 320, o.AvgThroughput, 1e-12)
	assert.InDelta(t, 32, o.StorageThroughput, 1e-12)
	assert.InDelta(t, 570, o.ReadP95MS, 0.6)
	assert.Equal(t, 190.0, o.WriteP95MS)
	assert.Equal(t, []any{2, 3, false, true},
		[]any{o.RankCount, o.TrialCount, o.PartialFailure, o.Valid})
	assert.Empty(t, o.MissingFiles)
	assert.Empty(t, o.CPUTierRanks)
	assert.Equal(t, []any{2, 1, 2, 3, "20260908_120000"},
		[]any{*s.HostCount, *s.NPerNode, s.TotalRanks, s.TrialsPerOption, s.RunDatetime})
	// Reads of the trials are 5, 6 and 4: median 5, standard deviation 1.
	assert.Equal(t, 5.0, o.Spread["read_bandwidth_gbps"].Median)
	assert.InDelta(t, 0.2, *o.Spread["read_bandwidth_gbps"].CV, 1e-12)
	// Rank 1 starts 2 s after rank 0, so 8 of 10 s are common, and in them the bandwidths do add
	// up.
	assert.InDelta(t, 8, o.Window.DurationS, 1e-9)
	assert.InDelta(t, 2, o.Window.StartSkewS, 1e-9)
	assert.InDelta(t, 5.0, o.Window.ReadBandwidth, 1e-6)
	// 300 values of 1…300 ms and as many of 2…600 ms, thrice: half of all lie up to 200 ms.
	m := o.Merged["storage_read_device"]
	assert.EqualValues(t, 1800, m.Count)
	assert.InDelta(t, 200, *m.P50, 1)
	assert.InDelta(t, 600, *m.Max, 0.6)
	assert.NotNil(t, m.P99)
	assert.Nil(t, m.P999, "1,800 samples cannot carry it")
}

// TestCheckpointsHaveTheRateOfTheirRules: 8 GiB of two ranks in 2 s, by the slower of the two; the
// window of 10 s has pauses in it.
func TestCheckpointsHaveTheRateOfTheirRules(t *testing.T) {
	s := aggregated(t, run6(t, func(r *result.Result) {
		r.Checkpoint = &result.Checkpoint{Accelerators: 8, First: new(4 * r.Rank), Count: new(4),
			Writes: []result.CheckpointRun{{Index: 1, Start: r.StartTime, Bytes: 4 << 30,
				DurationNS: int64(1+r.Rank) * 1e9}}}
	}))
	o := s.Options["1"]
	assert.Equal(t, []float64{0, 4}, []float64{o.ReadBandwidth, o.WriteBandwidth})
	assert.Nil(t, o.Window)
}

func TestFailedTrialCountsAsMissing(t *testing.T) {
	dir := run6(t, func(r *result.Result) {
		if r.Trial == 2 && r.Rank == 0 {
			r.Status, r.Error = result.StatusFailed, "no space left on device"
		}
	})
	s := aggregated(t, dir)
	o := s.Options["1"]
	path := "option_1/trial_2/rank_0/kvcache_results_20260908_120000.json"
	assert.Equal(t, []string{path}, o.MissingFiles)
	assert.Equal(t, "failed: no space left on device", o.Failed[path])
	assert.Equal(t, map[string][]TrialFailure{"1": {{Trial: 2,
		Error: "failed: no space left on device"}}}, s.TrialFailures)
	assert.InDelta(t, (5+6+2.5)/3.0, o.ReadBandwidth, 1e-12)
}

func TestRankServedFromMemoryIsListed(t *testing.T) {
	fromMemory := func(ranks ...int) func(r *result.Result) {
		return func(r *result.Result) {
			for _, rank := range ranks {
				if r.Rank == rank {
					r.Tiers[0].Entries = 0
				}
			}
		}
	}
	o := aggregated(t, run6(t, fromMemory(1))).Options["1"]
	assert.Len(t, o.CPUTierRanks, 3, "a file of each trial")
	assert.Equal(t, []int{1}, o.memoryRanks)
	assert.True(t, o.Valid)
	assert.InDelta(t, 5.0, o.ReadBandwidth, 1e-12)

	dir := run6(t, fromMemory(0, 1))
	o = aggregated(t, dir).Options["1"]
	assert.Equal(t, []int{0, 1}, o.memoryRanks)
	assert.False(t, o.Valid)
	plain := run6(t, func(r *result.Result) {
		fromMemory(0, 1)(r)
		r.CompletionUnit = result.UnitOperation
	})
	assert.True(t, aggregated(t, plain).Options["1"].Valid, "plain I/O has no cache at all")
	assert.Contains(t, o.Invalid, "served wholly from memory")
	moved := aggregated(t, run6(t, func(r *result.Result) {
		fromMemory(0, 1)(r)
		r.Tiers = []result.Tier{{Level: "storage", Write: result.TierTraffic{Bytes: 1 << 30}}}
	})).Options["1"]
	assert.True(t, moved.Valid, "a window can end between two entries")
	assert.Empty(t, moved.CPUTierRanks)
	s := aggregated(t, dir)
	assert.False(t, s.Good())
	text, _ := written(t, s)
	assert.Contains(t, text, "INVALID")
}

func TestSummaryIsGoldenAndTheSameAgain(t *testing.T) {
	dir := run6(t, func(r *result.Result) {
		if r.Rank == 1 {
			r.Tiers[0].Entries = 0
		}
	})
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "option_1/trial_2/rank_0")))
	s := aggregated(t, dir)
	assert.False(t, s.Good())
	assert.False(t, s.Options["1"].Valid, "a result is missing")
	assert.Equal(t, 1090.0, *s.Options["1"].P95MS)
	text, doc := written(t, s)
	golden.Check(t, "summary_text.golden", text)
	golden.Check(t, "summary.golden", doc)
	_, again := written(t, aggregated(t, dir))
	assert.Equal(t, doc, again)
}

func TestDifferentMeasurementsAreNotSummed(t *testing.T) {
	for what, change := range map[string]func(*result.Result){
		"io-used=%s direct buffered":   func(r *result.Result) { r.IO.Mode = "buffered" },
		"decode-reads=%s batched once": func(r *result.Result) { r.Workload.DecodeReads = "once" },
		"model=%s llama3.1-8b tiny-1b": func(r *result.Result) { r.Model.Key = "tiny-1b" },
		"division=%s open quick":       func(r *result.Result) { r.Division = result.DivisionQuick },
		"write-device=%s transfer+flush flush": func(r *result.Result) {
			r.IO.WriteDevice = result.WriteDeviceFlush
		},
	} {
		// Ranks that measured different things are no ranks of one trial: each lacks the other.
		s := aggregated(t, run6(t, func(r *result.Result) {
			if r.Rank == 1 {
				change(r)
			}
		}))
		words := strings.Fields(what)
		require.Len(t, s.Options, 2, what)
		for rank, value := range words[1:] {
			o := s.Options["1 ["+fmt.Sprintf(words[0], value)+"]"]
			require.NotNil(t, o, what)
			assert.Len(t, o.MissingFiles, 3, what)
			assert.Equal(t, []int{rank}, o.Trials[0].Ranks, what)
		}
		assert.False(t, s.Good())
	}
}

func TestSimulatedResultsStayAmongThemselves(t *testing.T) {
	s := aggregated(t, run6(t, func(r *result.Result) {
		if r.Trial == 1 {
			r.Simulation = &result.Simulation{Device: &result.SimulatedDevice{}}
		}
	}))
	assert.True(t, s.Options["1 [simulated=on a device model]"].Simulated)
	assert.False(t, s.Options["1 [simulated=no]"].Simulated)

	dir := run6(t, func(r *result.Result) { r.Simulation = &result.Simulation{} })
	s = aggregated(t, dir)
	assert.Equal(t, result.SimulatedNotice, s.Notice)
	assert.True(t, s.Options["1"].Simulated)
	text, _ := written(t, s)
	assert.Contains(t, text, "SIMULATED")
	assert.Contains(t, text, result.SimulatedNotice)
}

func TestSeveralResultsOfOneRank(t *testing.T) {
	dir := run6(t, nil)
	again := res(0, 0, measured{7, 1, 100, 10, 20})
	again.Nonce = "later"
	require.NoError(t, again.WriteJSON(filepath.Join(dir,
		"option_1/trial_0/rank_0/kvcache_results_20260909_120000.json")))
	s := aggregated(t, dir)
	assert.InDelta(t, 10, s.Options["1"].Trials[0].ReadBandwidth, 1e-12, "the newer one counts")
	assert.Contains(t, s.Warnings[0], "newer")
}

func TestSecondResultFromElsewhereIsRefused(t *testing.T) {
	dir := run6(t, nil)
	other := res(0, 0, measured{1, 1, 1, 1, 1})
	other.Nonce = "another run"
	write(t, filepath.Join(dir, "second"), other)
	_, err := ReadTree(dir)
	assert.ErrorContains(t, err, "are both trial 0 of rank 0 of 1")
}

func TestBrokenInputs(t *testing.T) {
	for what, text := range map[string]string{"empty": "",
		"truncated": `{"schema_version": "2.0", "summary": {`, "no result": "{}",
		"past": `{"schema_version":"1.0"}`, "future": `{"schema_version":"3.0"}`} {
		dir := run6(t, nil)
		path := filepath.Join(dir, "option_1/trial_1/rank_0/kvcache_results_20260908_120000.json")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := ReadTree(dir)
		assert.ErrorContains(t, err, path+":1: ", what)
	}
	_, err := ReadTree(t.TempDir())
	assert.ErrorContains(t, err, "no result file")
	_, err = ReadTree(filepath.Join(t.TempDir(), "none"))
	assert.ErrorContains(t, err, "no such file")
}

func TestPythonResults(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		path := filepath.Join(dir, fmt.Sprintf("option_2/trial_0/rank_%d/kvcache_results_x.json",
			rank))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path,
			[]byte(
				`{"requests_completed": 14, "end_to_end_latencies": [3.1], "seed": 42, "summary": {"total_requests": 14,
			"autoscaling_stats": [{"users": "8 to 12", "action": "up"}], "autoscaling_summary": {"mode": 1},
			"avg_throughput_tokens_per_sec": 67.5, "storage_io_latency_ms": {"p95": 463143.6}, "cache_stats": {"storage_entries": 15, "tier_storage_read_bandwidth_gbps": 1.5,
			"tier_storage_write_bandwidth_gbps": 0.25, "storage_read_device_p95_ms": 4933.2}}}`), 0o644))
	}
	s := aggregated(t, dir)
	o := s.Options["2"]
	assert.Equal(t, 3.0, o.ReadBandwidth)
	assert.Equal(t, 0.5, o.WriteBandwidth)
	assert.Equal(t, 4933.2, o.ReadP95MS)
	assert.Equal(t, 463143.6, *o.P95MS)
	assert.Zero(t, o.WriteP95MS)
	assert.Nil(t, o.Window)
	assert.Nil(t, s.HostCount)
	assert.True(t, s.Good())
}
