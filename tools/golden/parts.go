package golden

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/tiers"
)

// Parts writes results that have what only some benchmarks have, one file each, and returns their paths: a simulated
// autoscaled run, the measured one beside it, a block trace with its validation, and a replay.
func Parts(t testing.TB) []string {
	t.Helper()
	return []string{
		result(t, "AutoscaleCapacity", "AutoscaleCapacity", true, autoscaled),
		result(t, "AutoscaleCapacity", "AutoscaleCapacity", false, autoscaled),
		result(t, "BlockTrace", "BlockTrace/layout=slots", false, blocks),
		result(t, "IOTraceReplay", "IOTraceReplay", false, func(in *kvbench.RunInfo, _ *kvbench.Result) {
			in.Replay = &kvbench.ReplayResult{Rows: 5000, Skipped: 10, Reads: 3000, Writes: 1500, EvictedReads: 400, UnwrittenReads: 5, Evictions: 900, LateNS: 2e6}
		}),
	}
}

func result(t testing.TB, bench, name string, simulated bool, part func(*kvbench.RunInfo, *kvbench.Result)) string {
	t.Helper()
	const window = 40 * time.Second
	rec := kvbench.NewRecorder(1)
	rec.Open(0, window)
	for i := range 40 {
		at := time.Duration(i) * time.Second
		rec.Chunk(at, 0, tiers.Storage, tiers.Write, tiers.Prefill, 1<<20)
		rec.Operation(kvbench.OpSample{At: at, Level: tiers.Storage, Op: tiers.Write, Bytes: 1 << 20, Device: time.Millisecond})
	}
	info := kvbench.RunInfo{Benchmark: bench, Division: kvbench.DivisionOpen, Count: 1, Ranks: 1, Users: 10, Workers: 10, Window: window, IO: "direct",
		DecodeReads: "once", CountOperations: true, Start: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	if simulated {
		info.IO = "simulated"
		info.Simulation = &kvbench.SimulationInfo{Device: &kvbench.DeviceModel{Read: 2 << 30, Write: 1 << 30, ReadLatency: 80 * time.Microsecond,
			WriteLatency: 20 * time.Microsecond, Parallelism: 128}, Busy: window / 2, Rows: 12345, Wall: 250 * time.Millisecond}
	}
	after := &kvbench.Result{}
	part(&info, after)
	r := kvbench.BuildResult(info, rec)
	r.Name, r.BlockCache, r.Validation = name, after.BlockCache, after.Validation
	if tl := after.Timeline; tl != nil {
		r.Timeline.Blocks, r.Timeline.BlockHits, r.Timeline.BlockIdeal = tl.Blocks, tl.BlockHits, tl.BlockIdeal
	}
	path := filepath.Join(t.TempDir(), "kvcache_results_1.json")
	require.NoError(t, r.WriteJSON(path))
	return path
}

func autoscaled(in *kvbench.RunInfo, _ *kvbench.Result) {
	in.Parameters = []kvbench.Parameter{{Name: "target-saturation", Value: "0.8", Origin: "default"}}
	in.Autoscale = &kvbench.AutoscaleSummary{Mode: kvbench.AutoscaleCapacity, InitialUsers: 10, FinalUsers: 25, SustainedUsers: 20, PeakUsers: 25,
		PeakRate: 2 << 30, Rounds: 4, Found: true}
	for i := range 4 {
		r := kvbench.Round{AtS: float64(10 * (i + 1)), Users: 10 + 5*i, Workers: 9 + 5*i, Goroutines: 17 + 5*i, BytesPerSecond: float64(i+1) * (512 << 20),
			NextUsers: 15 + 5*i, Decision: "throughput grew", WriteP95: new(31.25)}
		if i > 1 {
			r.ReadP95, r.Saturation = new(20.5), new(0.25*float64(i))
		}
		in.Rounds = append(in.Rounds, r)
	}
	in.Rounds[3].NextUsers, in.Rounds[3].Decision = 25, "no growth, 2 of 2"
}

func blocks(_ *kvbench.RunInfo, r *kvbench.Result) {
	r.BlockCache = &kvbench.BlockCache{Requests: 100, Blocks: 1000, Hits: 600, Pending: 3, Kept: 20, Written: 380, HitRatio: new(0.6),
		IdealHits: new(int64(700)), IdealHitRatio: new(0.7), PrefixHitRatio: new(0.44), TokenHitRatio: new(0.65), BytesSaved: 5 << 30}
	r.Timeline = &kvbench.Timeline{}
	for i := range 40 {
		r.Timeline.Blocks, r.Timeline.BlockHits = append(r.Timeline.Blocks, 25), append(r.Timeline.BlockHits, int64(min(25, i)))
		r.Timeline.BlockIdeal = append(r.Timeline.BlockIdeal, new(int64(min(25, 2*i))))
	}
	r.Validation = &kvbench.ValidationReport{Trace: "/data/recorded.json", Requests: 200, Malformed: 1, Tolerance: 0.05,
		HitRate:        kvbench.ValidationCheck{Recorded: new(0.80), Measured: new(0.82), Difference: new(0.025), Passed: new(true)},
		ReadWriteRatio: kvbench.ValidationCheck{Recorded: new(2.0), Measured: new(2.5), Difference: new(0.25), Passed: new(false)}}
}
