package report

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/golden"
)

// fixture reads a result that package record made and compares.
func fixture(t *testing.T, name string) *result.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "record", "testdata", name))
	require.NoError(t, err)
	r, err := result.Parse(text)
	require.NoError(t, err)
	return r
}

func summaryOf(t *testing.T, r *result.Result) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, WriteSummary(&b, r))
	assert.NotContains(t, b.String(), "%!")
	return b.String()
}

func TestSummaryGolden(t *testing.T) {
	text := summaryOf(t, fixture(t, "result.json"))
	assert.LessOrEqual(t, strings.Count(text, "\n"), 85)
	assert.NotContains(t, text, "P95 <",
		"the Python benchmark's storage health is in the JSON alone")
	golden.Check(t, "summary.txt", text)
}

func TestSummaryOfTheParts(t *testing.T) {
	text := summaryOf(t, fixture(t, "result_parts.json"))
	golden.Check(t, "summary_parts.txt", text)
	first, _, _ := strings.Cut(text, "\n")
	assert.Contains(t, first, "SIMULATED", "the first line has to say it")
}

// stored is a run on an object store, which package objects made and compares.
func stored(t *testing.T) *result.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "tools", "golden", "testdata",
		"objects.json"))
	require.NoError(t, err)
	r, err := result.Parse(text)
	require.NoError(t, err)
	return r
}

func TestSummaryOfAnObjectStore(t *testing.T) {
	golden.Check(t, "summary_objects.txt", summaryOf(t, stored(t)))
}

// The kernel's counts cannot be in a golden file: TestTheNetworkOfTheWindow reads real ones.
func TestSummaryOfTheNetwork(t *testing.T) {
	r := stored(t)
	r.Network = &result.Network{ReceivedBytes: new(int64(155_000_000)),
		AckedBytes: new(int64(154_000_000)), Retransmits: new(int64(1)),
		MinRTTNS: new(int64(25_000))}
	r.Network.Derive(r.DeviceWitness.AppReadBytes)
	text := summaryOf(t, r)
	assert.Contains(t, text, "\nnetwork     1.01 bytes received per byte read, 147 MiB acknowledged, "+
		"1 segment sent again")
	r.Network.Derive(0)
	assert.Contains(t, summaryOf(t, r), "\nnetwork     148 MiB received, ")
}

// Of hundreds of endpoints those are listed that failed most.
func TestSummaryOfManyEndpoints(t *testing.T) {
	r := stored(t)
	for i := range 100 {
		e := r.Endpoints[0]
		e.URL, e.Failed = "http://10.1.0."+strings.Repeat("9", i%3+1), int64(i)
		r.Endpoints = append(r.Endpoints, e)
	}
	r.Endpoints[50].URL, r.Endpoints[50].Failed = "http://bad", 1000
	text := summaryOf(t, r)
	assert.Contains(t, text, "endpoints ")
	assert.Contains(t, text, "http://bad ")
	assert.Contains(t, text, "and 94 more in the JSON")
	assert.LessOrEqual(t, strings.Count(text, "\n"), 85)
}

func TestSummaryOfTheClosedDivision(t *testing.T) {
	r := fixture(t, "result.json")
	r.Notice = result.ClosedNotice
	assert.Contains(t, summaryOf(t, r), "MLPerf Storage v3.0 parameters, not an MLPerf result")
}

// A benchmark of single operations has no requests, no load and no lookups.
func TestSummaryOfOperations(t *testing.T) {
	text := summaryOf(t, &result.Result{
		Benchmark: "Tier", CompletionUnit: result.UnitOperation, WindowNS: 1e9,
		Requests:      result.RequestTotals{Operations: 30},
		DeviceWitness: result.Witness{Reason: "tmpfs has no device"},
	})
	assert.Contains(t, text, "30 operations")
	assert.Contains(t, text, "no byte counts: tmpfs has no device")
	assert.NotContains(t, text, "requests/s")
}

// After a signal the result does not wait for operations, so their number is unknown and not 0.
func TestSummaryOfAnInterruption(t *testing.T) {
	r := fixture(t, "result.json")
	assert.Contains(t, summaryOf(t, r), "cut off at the end")
	r.EndedBy = result.EndedBySignal
	text := summaryOf(t, r)
	assert.NotContains(t, text, "cut off at the end")
	assert.Contains(t, text, "operations that were in flight when it was interrupted are not counted")
}

// One trial of several shows its own numbers and doubts, and nothing that is common to all.
func TestShortSummary(t *testing.T) {
	r := fixture(t, "result.json")
	var b strings.Builder
	require.NoError(t, WriteShort(&b, r))
	golden.Check(t, "short.txt", b.String())
	for _, w := range r.Warnings {
		assert.Contains(t, strings.Join(strings.Fields(b.String()), " "), w)
	}
	b.Reset()
	require.NoError(t, WriteShort(&b, &result.Result{Error: "no request arrived"}))
	assert.Contains(t, b.String(), "no request arrived")
}

func TestSummaryOfNothing(t *testing.T) {
	r := &result.Result{Error: "no request arrived\nand no answer"}
	r.Harness.Verdict.Kind, r.Harness.Verdict.Reason = result.NoVerdict, "there was no window"
	assert.Contains(t, summaryOf(t, r), "error       no request arrived\n            and no answer\n")
	assert.Contains(t, LogLines(r), "no verdict, because there was no window")
	r.Parameters = []result.Parameter{{Name: "engine", Value: "mooncake", Origin: "flag"},
		{Name: "read-threads", Value: "0", Origin: "layout mooncake-bucket"}}
	assert.Contains(t, summaryOf(t, r), "engine      mooncake: read-threads one per request\n")
}

func TestValidationWithoutANumberIsNotJudged(t *testing.T) {
	r := fixture(t, "result_parts.json")
	r.Recording.ReadWriteRatio = result.NewCheck(nil, new(2.5))
	assert.Regexp(t, `read/write ratio\s+2.50\s+–\s+–\s+not judged`, summaryOf(t, r))
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestSummaryTellsWriteErrors(t *testing.T) {
	require.ErrorContains(t, WriteSummary(brokenWriter{}, fixture(t, "result.json")),
		"no space left")
}

// Sections that a removal lacks leave no empty lines, and the log reports the removal.
func TestSummaryOfARemoval(t *testing.T) {
	r := &result.Result{Benchmark: "StorageCeiling", CompletionUnit: result.UnitOperation,
		Status: result.StatusComplete, WindowNS: 4e7, PlainIO: &result.PlainIO{FileBytes: 16 << 20},
		Tiers: []result.Tier{{Level: "storage"}},
		Removal: &result.Removal{Files: 64, Bytes: 1 << 30, UnlinkNS: 3e7, QuietNS: 4e7,
			FilesPerSecond: new(1600.0), BytesPerSecond: new(float64(25 << 30))}}
	text, says := summaryOf(t, r), "64 files, 1 GiB in all, were removed: 1600 files/s, 25 GiB/s "+
		"freed; the last was gone after 30 ms, discarded after 40 ms"
	assert.Contains(t, text, "removal     "+says+"\n\nharness")
	assert.NotContains(t, text, "\n\n\n")
	assert.Contains(t, LogLines(r), says)
	assert.NotContains(t, strings.Join(LogLines(r), "\n"), "storage moved")
}

func TestSummaryOfRequestsInsideFiles(t *testing.T) {
	r := &result.Result{Benchmark: "BlockIO", CompletionUnit: result.UnitOperation,
		Status: result.StatusComplete, WindowNS: 2e9, PlainIO: &result.PlainIO{FileBytes: 64 << 20,
			FootprintBytes: 8 << 30, BlockBytes: 16 << 10, RequestsPerSecond: new(52345.6),
			CPUNSPerRequest: new(1234.0)},
		Workload: result.Workload{Workers: 32}, IO: result.IO{Engine: "uring"},
		Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Requests: 104691,
			MeanInFlight: new(31.9), BytesPerSecond: new(857630310.0)}}},
		Latency: result.Latency{Levels: map[string]result.LevelLatency{"storage": {
			Read: result.OpLatency{Request: result.Distribution{Mean: new(610e3),
				P50: new(int64(600e3)), P99: new(int64(900e3))}}}}}}
	text := summaryOf(t, r)
	assert.Contains(t, text, "plain I/O   requests of 16 KiB at random places in files of 64 MiB, "+
		"8 GiB in all, without flushes\n")
	assert.Regexp(t, `(?m)^block I/O +size +asked for +in flight +requests/s +rate +mean +p50 +`+
		`p99 +p99\.9 +CPU\n +read +16 KiB +32 +31\.9 +52346 +818 MiB/s +610 µs +600 µs +900 µs +– `+
		`+1\.23 µs$`, text)
	tables := Tables(r)
	require.Len(t, tables, 1)
	assert.Equal(t, "Block I/O", tables[0].Sheet)
}

// A tier's entries, the space reserved by writes and the free space add up to its capacity,
// whatever is left of the entries that are evicted for the writes.
func TestTiersAddUpToTheirCapacity(t *testing.T) {
	const mib = 1 << 20
	row := func(l result.Tier) string {
		_, text, _ := strings.Cut(tiers(&result.Result{Tiers: []result.Tier{l}}).String(), "\n")
		return strings.Join(strings.Fields(text), " ")
	}
	l := result.Tier{Level: "storage", Entries: 2, CapacityBytes: new(int64(8000 * mib)),
		UsedBytes: 7000 * mib, LeavingBytes: 5900 * mib, ClaimedBytes: 6700 * mib}
	assert.Equal(t, "storage 2 1.07 GiB 6.54 GiB 0.195 GiB 7.81 GiB 5.76 GiB", row(l))
	l.CapacityBytes = nil
	assert.Equal(t, "storage 2 1.07 GiB 6.54 GiB unlimited – 5.76 GiB", row(l))
}

// The time of loading includes waits; the time that is compared with computing does not.
func TestLoadingIsShownWithAndWithoutWaiting(t *testing.T) {
	r := fixture(t, "result.json")
	f := r.FirstToken
	f.Sums.LoadWaits = f.Sums.Load * 3 / 4
	text := summaryOf(t, r)
	assert.Contains(t, text, "and took 25 ms of I/O to load, 100 ms with waiting; the GPU was busy")
	f.Found.LoadBytesPerS = new(2 * *f.Found.NeededBytesPerS)
	assert.Contains(t, summaryOf(t, r), "loading was worth it: a request loaded at 78.1 MiB/s, and "+
		"from 39.1 MiB/s on loading takes less time than computing; of 720 completed requests")
	f.ComputeSavedRatio = nil
	f.Sums = result.FirstTokenTime{ComputeAll: 22e6, Compute: 22e6, Load: 176}
	r.Derive()
	assert.Zero(t, *f.SavedRatio, "looking up saves nothing, and costs nothing")
}

// First requests are in no cache, however large: only the rest shows anything about the size of
// this one. All parts add up to the prompts.
func TestWhatWasRequestedForTheFirstTimeIsNoFaultOfTheCache(t *testing.T) {
	prompt := func(requests int64) *result.Prompt {
		return &result.Prompt{Requests: requests, PromptTokens: result.PromptTokens{Tokens: 1000,
			Found: 400}, ByKind: map[string]result.PromptTokens{"new": {Tokens: 100},
			"block": {Tokens: 900, Found: 400}}}
	}
	blocks := func(ideal int64) *result.BlockCache {
		return &result.BlockCache{Requests: 5, Blocks: 90, Hits: 40, IdealHits: &ideal, Tokens: 900,
			HitTokens: 400}
	}
	for _, c := range []struct {
		completed, evicted int64
		blocks             *result.BlockCache
		want               string
	}{
		{5, 0, blocks(40), "50 % were requested for the first time\n"},
		{3, 0, blocks(40), "50 % were requested for the first time\n"},
		{5, 7, blocks(60), "30 % were requested for the first time, 20 % were evicted or not yet " +
			"written\n"},
		{5, 0, blocks(60), "30 % were requested for the first time, 20 % were not yet written\n"},
		{3, 7, blocks(60), "the other 50 % were not found\n"}, // ideal of others than completed
		{5, 7, nil, "the other 50 % were not found\n"},
	} {
		r := fixture(t, "result.json")
		r.Prompt, r.BlockCache = prompt(c.completed), c.blocks
		r.Requests.Time.Release = r.Requests.Time.EndToEnd / 10
		for i := range r.Tiers {
			r.Tiers[i].Evicted.Entries = c.evicted
		}
		text := summaryOf(t, r)
		assert.Contains(t, text, "10 % are new, "+c.want)
		assert.Equal(t, c.evicted > 0, strings.Contains(text, "deleting what was evicted"))
	}
}

func TestWithoutLoadsNoLengthIsNamed(t *testing.T) {
	f := &result.FirstToken{}
	assert.Equal(t, "from which length on loading beats computing is unknown: too few requests "+
		"found most of their prompt in the storage; measure for longer, or with fewer users or "+
		"less memory above it", worth(f))
	f.Loading = []result.LoadingTime{{Tokens: 1500}, {Tokens: 3000.5}}
	f.BreakEven.P50 = &result.BreakEven{Answer: result.LoadFrom, Tokens: new(int64(90)),
		Extrapolated: true}
	assert.Equal(t, "loading beats computing from 90 tokens on (extrapolated from 1,500–3,000 "+
		"tokens) at its median, and its p95 is unknown (too few loads)", worth(f))
	f.Loading[1].P95NS, f.BreakEven.P95 = new(1e6), f.BreakEven.P50
	assert.Contains(t, worth(f), ", beats computing from 90 tokens on (extrapolated from 3,000 "+
		"tokens) at its p95")
}

// A directory may have any name, and the summary has a line for it.
func TestANameOfTwoLinesTakesOne(t *testing.T) {
	var text strings.Builder
	require.NoError(t, WriteSummary(&text, &result.Result{IO: result.IO{CacheDir: "a\nb"}}))
	assert.Contains(t, text.String(), `a\nb`)
}
