package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tools/golden"
)

const (
	kib, mib = 1 << 10, 1 << 20
	gib      = 1 << 30
)

// TestSections: sections of made situations, as text.
func TestSections(t *testing.T) {
	var b strings.Builder
	show := func(name string, sections ...Section) {
		fmt.Fprintf(&b, "== %s\n%s", name, join(sections...))
	}
	of := func(r *result.Result, change func(*result.Result)) *result.Result {
		change(r)
		return r
	}

	read := func(change func(*result.Checkpoint)) Section {
		c := checkpoint(false)
		change(c)
		return Section{Lines: checkpoints(&result.Result{Checkpoint: c}).Lines[1:3]}
	}
	show("a checkpoint that was written", checkpoints(&result.Result{Checkpoint: checkpoint(true)}))
	show("read", read(func(*result.Checkpoint) {}))
	show("clocks that differ",
		read(func(c *result.Checkpoint) { c.GapNS = new(int64(-3600e9)) }))
	show("not provably cold", read(func(c *result.Checkpoint) { c.Reads[1].Cold = nil }))
	show("one of two warm", read(func(c *result.Checkpoint) { c.Reads[0].Cold = new(false) }))
	show("both warm", read(func(c *result.Checkpoint) {
		c.Reads[0].Cold, c.Reads[1].Cold = new(false), new(false)
	}))
	show("from a store", Section{Lines: checkpoints(&result.Result{Checkpoint: checkpoint(false),
		Network: &result.Network{ReadRatio: new(1.0004)}}).Lines[1:2]})

	show("a knee", knee(kneeOf(8)))
	show("a knee at the edge", Section{Lines: knee(kneeOf(5)).Lines[1:2]})
	show("of writes", Section{Lines: knee(of(kneeOf(8), func(r *result.Result) {
		r.Tiers[0].Read.Requests = 0
	})).Lines[7:9]})
	for _, ended := range []string{result.KneeTime, result.KneeInterrupted} {
		show("a grid ended by "+ended, Section{Lines: knee(of(kneeOf(8),
			func(r *result.Result) { r.PlainIO.Knee.EndedBy = ended })).Lines})
	}

	show("a removal", verdict(removal()), plain(removal()))
	requests := blockRequests()
	show("requests inside files", plain(requests), blockIO(requests))

	// Entries, the space reserved by writes and the free space add up to the capacity, whatever
	// is left of the entries that are evicted for the writes.
	l := result.Tier{Level: "storage", Entries: 2, CapacityBytes: new(int64(8000 * mib)),
		UsedBytes: 7000 * mib, LeavingBytes: 5900 * mib, ClaimedBytes: 6700 * mib}
	show("a tier that evicts", tiers(&result.Result{Tiers: []result.Tier{l}}))
	l.CapacityBytes = nil
	show("without a limit", tiers(&result.Result{Tiers: []result.Tier{l}}))

	show("directories", roots(twoRoots(4, 1000)))
	for name, r := range map[string]*result.Result{
		"67 % are less than 1.5 × 50 %": twoRoots(2, 1000), "too few": twoRoots(4, 299),
		"its requests are four times as large": of(twoRoots(4, 1000),
			func(r *result.Result) { r.IO.Roots[1].Read.Bytes *= 4 }),
		"it is the same device": of(twoRoots(4, 1000),
			func(r *result.Result) { r.IO.Roots[1].Device = r.IO.Roots[0].Device })} {
		assert.Empty(t, laggard(r), name)
	}

	loaded := fixture(t, "result.json")
	f := loaded.FirstToken
	f.Sums.LoadWaits, f.Found.LoadBytesPerS = f.Sums.Load*3/4, new(2**f.Found.NeededBytesPerS)
	show("loading with waiting, and worth it", firstTokens(loaded))
	f.Loading = []result.LoadingTime{{Tokens: 1500}, {Tokens: 3000.5}}
	f.BreakEven.P50 = &result.BreakEven{Answer: result.LoadFrom, Tokens: new(int64(90)),
		Extrapolated: true}
	f.BreakEven.P95 = nil
	b.WriteString(worth(f) + "\n")
	f.Loading[1].P95NS, f.BreakEven.P95 = new(1e6), f.BreakEven.P50
	b.WriteString(worth(f) + "\n" + worth(&result.FirstToken{}) + "\n")
	f.ComputeSavedRatio = nil
	f.Sums = result.FirstTokenTime{ComputeAll: 22e6, Compute: 22e6, Load: 176}
	loaded.Derive()
	assert.Zero(t, *f.SavedRatio, "looking up saves nothing, and costs nothing")

	store := stored(t)
	store.Network = &result.Network{ReceivedBytes: new(int64(155_000_000)),
		AckedBytes: new(int64(154_000_000)), Retransmits: new(int64(1)),
		MinRTTNS: new(int64(25_000))}
	store.Network.Derive(store.DeviceCounters.AppReadBytes)
	show("the network of a store", kernel(store))
	store.Network.Derive(0)
	show("without reads", kernel(store))
	for i := range 100 {
		e := store.Endpoints[0]
		e.URL, e.Failed = "http://10.1.0."+strings.Repeat("9", i%3+1), int64(i)
		store.Endpoints = append(store.Endpoints, e)
	}
	store.Endpoints[50].URL, store.Endpoints[50].Failed = "http://bad", 1000
	show("many endpoints", endpoints(store))

	r := fixture(t, "result_parts.json")
	r.Recording.ReadWriteRatio = result.NewCheck(nil, new(2.5))
	show("a number that was not recorded", validation(r))
	show("a device without counters", kernel(&result.Result{
		DeviceCounters: result.DeviceCounters{Reason: "tmpfs has no device"}}))
	golden.Check(t, "sections.txt", b.String())
}

func checkpoint(write bool) *result.Checkpoint {
	run := func(i int, ns, bytes int64) result.CheckpointRun {
		return result.CheckpointRun{Index: i, DurationNS: ns, MinNS: ns / 2, Slowest: 3,
			Bytes: bytes, CachedBytes: new(int64(0)), DeviceBytes: new(bytes), Cold: new(true)}
	}
	c := &result.Checkpoint{Model: "llama3-8b", Scale: 64, Accelerators: 8, Zero: 3, Tensor: 1,
		Pipeline: 1, Data: 8, Files: 16, Bytes: 2 * gib,
		Rules: []result.CheckpointRule{{Name: "scale", Required: "1", Found: "1/64",
			OK: new(false)}, {Name: "flush", Found: "fsync per file", OK: new(true)}},
		Notes: []string{"a note"}}
	runs := []result.CheckpointRun{run(1, 1e9, 2*gib), run(2, 2e9, 2*gib)}
	if write {
		c.Writes, c.FlushMaxNS = runs, new(int64(41e6))
		c.Stages = &result.Pipeline{TotalNS: 3e9, ProducerWaitNS: 2.4e9, WriterWaitNS: 3e8,
			GenerationRate: new(10.0 * gib), Ratio: new(5.0), Overhead: new(0.014),
			Bottleneck: result.BottleneckIO}
		return c
	}
	c.Reads, c.Flush, c.FlushNS = runs, "drop", new(int64(5e8))
	c.GapNS, c.RecoveryNS = new(int64(2e8)), new(int64(17e8))
	return c
}

// kneeOf has the first n of eight cells.
func kneeOf(n int) *result.Result {
	point := func(size int64, n int, rate float64) result.KneePoint {
		return result.KneePoint{RequestBytes: size, InFlight: n, Rate: rate * gib,
			Min: (rate - 0.1) * gib, Max: (rate + 0.1) * gib, Rounds: 3}
	}
	return &result.Result{PlainIO: &result.PlainIO{Knee: &result.Knee{RequestBytes: 256 * kib,
		InFlight: 8, Rate: 3.95 * gib, Best: 4 * gib, P99NS: new(int64(700e3)),
		EndedBy: result.KneeGrid, NS: 27e9, OrderSeed: 42,
		Points: []result.KneePoint{point(64*kib, 8, 1), point(64*kib, 16, 2),
			point(256*kib, 4, 3), point(64*kib, 32, 1.9), point(256*kib, 8, 3.95),
			point(mib, 2, 3.79), point(mib, 4, 3.81), point(mib, 8, 3.6)}[:n]}},
		Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Requests: 1,
			BytesPerSecond: new(4.43 * gib)}}}}
}

// The list of the cells names the knee in words; an unknown knee is none, also on the line.
func TestCellsOfAKnee(t *testing.T) {
	for _, c := range []struct{ ended, mark string }{{result.KneeGrid, "knee"},
		{result.KneeTime, "best so far"}, {result.KneeInterrupted, "best so far"}} {
		r := kneeOf(8)
		r.PlainIO.Knee.EndedBy = c.ended
		var marks []any
		for _, row := range knee(r).Rows {
			marks = append(marks, row[8])
		}
		assert.Equal(t, []any{"", "", "", "", c.mark, "equal within the spread",
			"equal within the spread", ""}, marks)
		line := false
		for _, m := range r.Metrics() {
			line = line || m.Unit == "knee-bytes"
		}
		assert.Equal(t, c.ended == result.KneeGrid, line)
	}
}

func removal() *result.Result {
	return &result.Result{Benchmark: "StorageCeiling", CompletionUnit: result.UnitOperation,
		Status: result.StatusComplete, WindowNS: 4e7, PlainIO: &result.PlainIO{FileBytes: 16 << 20},
		Tiers: []result.Tier{{Level: "storage"}},
		Removal: &result.Removal{Files: 64, Bytes: 1 << 30, UnlinkNS: 3e7, QuietNS: 4e7,
			FilesPerSecond: new(1600.0), BytesPerSecond: new(float64(25 << 30))}}
}

func blockRequests() *result.Result {
	return &result.Result{PlainIO: &result.PlainIO{FileBytes: 64 << 20, FootprintBytes: 8 << 30,
		BlockBytes: 16 << 10, RequestsPerSecond: new(52345.6), CPUNSPerRequest: new(1234.0)},
		Workload: result.Workload{Workers: 32}, IO: result.IO{Engine: "uring"},
		Tiers: []result.Tier{{Level: "storage", Read: result.TierTraffic{Requests: 104691,
			MeanInFlight: new(31.9), BytesPerSecond: new(857630310.0)}}},
		Latency: result.Latency{Levels: map[string]result.LevelLatency{"storage": {
			Read: result.OpLatency{Request: result.Distribution{Mean: new(610e3),
				P50: new(int64(600e3)), P99: new(int64(900e3))}}}}}}
}

// twoRoots are two directories; a read of the second takes that many times as long.
func twoRoots(times float64, requests int64) *result.Result {
	r := &result.Result{WindowNS: 1e9, Benchmark: "MultiTurn"}
	for i, dir := range []string{"/mnt/a/kv", "/mnt/b/kv"} {
		took := int64(2e6)
		if i == 1 {
			took = int64(2e6 * times)
		}
		r.IO.Roots = append(r.IO.Roots, result.Root{Directory: dir, Filesystem: "xfs",
			Device: "nvme" + string(rune('0'+i)) + "n1", RoomBytes: 1 << 40, Entries: 10,
			UsedBytes: 1 << 30, Elsewhere: int64(i), DeviceReadBytes: new(int64(1 << 28)),
			DeviceWriteBytes: new(int64(0)), DeviceBusyShare: new(0.5),
			Read: result.RootTraffic{Bytes: 1 << 28, BytesPerSecond: new(float64(1 << 28)),
				Requests: requests, RequestNS: requests * took, MeanInFlight: new(times)}})
	}
	r.DeviceCounters.ReadBytes, r.DeviceCounters.WriteBytes = new(int64(1<<29)), new(int64(0))
	r.Derive()
	return r
}

// First requests are in no cache, however large: only the rest shows anything about the size of
// this one. All parts add up to the prompts.
func TestFirstRequestsAreNoFaultOfTheCache(t *testing.T) {
	for _, c := range []struct {
		completed, evicted, ideal int64 // ideal hits; 0: no block trace
		want                      string
	}{
		{5, 0, 40, "50 % were requested for the first time\n"},
		{3, 0, 40, "50 % were requested for the first time\n"},
		{5, 7, 60, "30 % were requested for the first time, 20 % were evicted or not yet written\n"},
		{5, 0, 60, "30 % were requested for the first time, 20 % were not yet written\n"},
		{3, 7, 60, "the other 50 % were not found\n"}, // ideal of others than completed
		{5, 7, 0, "the other 50 % were not found\n"},
	} {
		r := fixture(t, "result.json")
		r.Prompt = &result.Prompt{Requests: c.completed,
			PromptTokens: result.PromptTokens{Tokens: 1000, Found: 400},
			ByKind: map[string]result.PromptTokens{"new": {Tokens: 100},
				"block": {Tokens: 900, Found: 400}}}
		if r.BlockCache = nil; c.ideal > 0 {
			r.BlockCache = &result.BlockCache{Requests: 5, Blocks: 90, Hits: 40,
				IdealHits: &c.ideal, Tokens: 900, HitTokens: 400}
		}
		r.Requests.Time.Release = r.Requests.Time.EndToEnd / 10
		for i := range r.Tiers {
			r.Tiers[i].Evicted.Entries = c.evicted
		}
		assert.Contains(t, prompts(r).String(), "10 % are new, "+c.want)
		assert.Equal(t, c.evicted > 0,
			strings.Contains(requestTime(r).String(), "deleting what was evicted"))
	}
}

func TestShownKeepsTheEnds(t *testing.T) {
	for _, c := range []struct {
		n, most int
		want    string
	}{{0, 9, "[]"}, {1, 9, "[0]"}, {3, 9, "[0 1 2]"}, {20, 5, "[0 4 9 14 19]"}, {2, 1, "[0]"}} {
		rows := make([]int, c.n)
		for i := range rows {
			rows[i] = i
		}
		assert.Equal(t, c.want, fmt.Sprint(shown(rows, c.most)))
	}
}

// The order of reading holds for results that have other sections.
func TestTitles(t *testing.T) {
	titles := Titles([][]Section{Sections(stored(t)), nil, Sections(fixture(t, "result_parts.json"))})
	want := "Simulation Autoscaling Settings Replay Verdict Objects Endpoints Tiers Harness"
	assert.Equal(t, strings.Fields(want), slices.DeleteFunc(titles, func(s string) bool {
		return !strings.Contains(want, s) || strings.Contains(s, " ")
	}))
}
