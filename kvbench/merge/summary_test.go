package merge

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
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
		"storage_read": m.p95 + 700, "request_storage": m.p95 + 1000} {
		h := result.NewHistogram(units.Nanoseconds)
		h.Record(int64(ms * 1e6))
		r.Histograms[name] = h.Encode()
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
	r.Histograms["storage_read_device"] = h.Encode()
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

// run6 writes the results of the example that change returns true for, after it changed them.
func run6(t *testing.T, change func(r *result.Result) (written bool)) string {
	dir := t.TempDir()
	for trial := range example {
		for rank, m := range example[trial] {
			r := res(trial, rank, m)
			if change == nil || change(r) {
				write(t, dir, r)
			}
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

func TestTwoRanksThreeTrialsByHand(t *testing.T) {
	s := aggregated(t, run6(t, nil))
	o := s.Options["1"]
	assert.InDelta(t, 5.0, o.ReadBandwidth, 1e-12)
	assert.InDelta(t, 2.0, o.WriteBandwidth, 1e-12)
	assert.InDelta(t, 320, o.AvgThroughput, 1e-12)
	assert.InDelta(t, 32, o.StorageThroughput, 1e-12)
	assert.InDelta(t, 570, o.ReadP95MS, 0.6)
	assert.Equal(t, 190.0, o.WriteP95MS)
	assert.Equal(t, 790.0, o.StorageReadP95MS, "the published one: the largest storage_read_p95_ms")
	assert.Equal(t, []any{2, 3, false, true},
		[]any{o.RankCount, o.TrialCount, o.PartialFailure, o.Valid})
	assert.Empty(t, o.MissingFiles)
	assert.Empty(t, o.CPUTierRanks)
	assert.Equal(t, []any{2, 1, 2, 3, "20260908_120000"},
		[]any{*s.HostCount, *s.NPerNode, s.TotalRanks, s.TrialsPerOption, s.RunDatetime})
	// Rank 1 starts 2 s after rank 0, so 8 of 10 s are common, and in them the bandwidths do add
	// up.
	assert.InDelta(t, 8, o.Window.DurationS, 1e-9)
	assert.InDelta(t, 2, o.Window.StartSkewS, 1e-9)
	assert.InDelta(t, 5.0, o.Window.ReadBandwidth, 1e-6)
}

// changes are what a line of the script testdata/summaries can change of a result.
var changes = map[string]func(r *result.Result, value string){
	"status": func(r *result.Result, v string) { r.Status, r.Error = v, "no space left on device" },
	"unit":   func(r *result.Result, v string) { r.CompletionUnit = v },
	"level": func(r *result.Result, v string) { // a level without entries
		r.Tiers[0].Level, r.Tiers[0].Entries = v, 0
	},
	"wrote":        func(r *result.Result, _ string) { r.Tiers[0].Write.Bytes = 1 << 30 },
	"io-used":      func(r *result.Result, v string) { r.IO.Mode = v },
	"decode-reads": func(r *result.Result, v string) { r.Workload.DecodeReads = v },
	"model":        func(r *result.Result, v string) { r.Model.Key = v },
	"division":     func(r *result.Result, v string) { r.Division = v },
	"write-device": func(r *result.Result, v string) { r.IO.WriteDevice = v },
	"simulated": func(r *result.Result, v string) {
		r.Simulation = &result.Simulation{}
		if v == "device" {
			r.Simulation.Device = &result.SimulatedDevice{}
		}
	},
	"checkpoint": func(r *result.Result, _ string) { // of 4 GiB for each rank, in 1 and 2 s
		r.Checkpoint = &result.Checkpoint{Accelerators: 8, First: new(4 * r.Rank), Count: new(4),
			Writes: []result.CheckpointRun{{Index: 1, Start: r.StartTime, Bytes: 4 << 30,
				DurationNS: int64(1+r.Rank) * 1e9}}}
	},
}

// TestSummaries runs the script testdata/summaries: a command sums up the example after the changes
// of its lines, of all results or of one trial or rank; the word missing removes them. The output is
// the text, what failed, and whether all is good. Rewrite it with -rewrite.
func TestSummaries(t *testing.T) {
	datadriven.RunTest(t, "testdata/summaries", func(t *testing.T, d *datadriven.TestData) string {
		dir := run6(t, func(r *result.Result) bool {
			for line := range strings.Lines(d.Input) {
				words := strings.Fields(line)
				for len(words) > 0 && (words[0] == fmt.Sprint("rank=", r.Rank) ||
					words[0] == fmt.Sprint("trial=", r.Trial)) {
					words = words[1:]
				}
				for _, word := range words {
					name, value, _ := strings.Cut(word, "=")
					if name == "rank" || name == "trial" {
						break // of another one
					}
					if name == "missing" {
						return false
					}
					require.Contains(t, changes, name)
					changes[name](r, value)
				}
			}
			return true
		})
		s := aggregated(t, dir)
		var text, doc, again bytes.Buffer
		require.NoError(t, s.WriteText(&text, "DIR/summary.json"))
		require.NoError(t, s.WriteJSON(&doc))
		require.NoError(t, aggregated(t, dir).WriteJSON(&again))
		assert.Equal(t, doc.String(), again.String())
		if d.HasArg("json") {
			golden.Check(t, "summary.golden", doc.String())
		}
		for _, group := range slices.Sorted(maps.Keys(s.TrialFailures)) {
			fmt.Fprintf(&text, "failed of %s: %v\n", group, s.TrialFailures[group])
		}
		fmt.Fprintln(&text, "good:", s.Good())
		return text.String()
	})
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
