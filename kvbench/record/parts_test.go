package record

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads/model"
)

// partsResult has every section that only some benchmarks have. It is built once, for tests that only
// read it.
var partsResult = sync.OnceValue(func() *result.Result {
	info := fixtureInfo()
	info.Workload.Users, info.Precondition, info.Ceiling = 20, nil, nil
	info.Simulation = &result.Simulation{
		Device: &result.SimulatedDevice{Read: 2 << 30, Write: 1 << 30,
			ReadLatency: 80 * time.Microsecond, WriteLatency: 20 * time.Microsecond,
			Parallelism: 128},
		TraceRows: 12345, WallNS: 250e6,
	}
	info.MediumBusy = fixtureWindow / 2
	info.Autoscaler = &result.Autoscaler{AutoscaleSummary: result.AutoscaleSummary{
		Mode: result.AutoscaleCapacity, InitialUsers: 10, FinalUsers: 48, SustainedUsers: 40,
		PeakUsers: 48, PeakRate: 2 << 30, SustainedRate: 1500, Rounds: 20, Found: true}}
	for i := range 20 {
		r := result.Round{AtS: float64(10 * (i + 1)), Users: 10 + 2*i, Workers: 10 + 2*i,
			Goroutines: 18 + 2*i, BytesPerSecond: float64(i+1) * 1e8,
			NextUsers: 12 + 2*i, Decision: "throughput grew", Action: result.ScaleUp,
			TokensPerSecond: float64(100 * i)}
		if i > 1 {
			r.ReadP95, r.WriteP95, r.Saturation = new(20.5), new(31.25), new(0.5)
			r.ReadSoFarMS, r.WriteSoFarMS = new(40.5), new(61.25)
		}
		switch i {
		case 18:
			r.Action, r.NextUsers, r.Decision = result.ScaleHold, r.Users, "no growth, 1 of 2"
		case 19:
			r.Action, r.NextUsers, r.Decision = result.ScaleStop, r.Users, "no growth, 2 of 2"
		}
		info.Autoscaler.History = append(info.Autoscaler.History, r)
	}
	info.Replay = &result.Replay{Rows: 5000, Skipped: 10, Reads: 3000, Writes: 1500, Deletes: 2,
		EvictedReads: 400, UnwrittenReads: 5, Overwrites: 7, TooLarge: 1, Evictions: 900,
		LateNS: 2e6}
	info.Recording = &result.Recording{Trace: "/data/recorded.json", Requests: 200, Malformed: 1,
		HitRate:        result.Check{Recorded: new(0.80)},
		ReadWriteRatio: result.Check{Recorded: new(2.0)},
		Stats: result.RecordedStats{Requests: 200, CacheHitRate: 0.80, ReadWriteRatio: 2,
			ContextMean: 1500, GenerationMean: 120}}
	r := Build(info, fixtureRecorder(1))
	r.BlockCache = &result.BlockCache{Requests: 100, Blocks: 1000, Hits: 600, Pending: 3,
		Unreachable: 20,
		Written:     380, HitRatio: new(0.6), IdealHits: new(int64(700)),
		IdealHitRatio: new(0.7), PrefixHitRatio: new(0.44), TokenHitRatio: new(0.65),
		BytesSaved: 5 << 30,
		Reads:      result.BlockMoves{Operations: 150, Blocks: 597},
		Writes:     result.BlockMoves{Operations: 95, Blocks: 380}}
	r.Timeline.Blocks, r.Timeline.BlockHits, r.Timeline.BlockIdeal = nil, nil, nil
	for i := range 20 {
		r.Timeline.Blocks, r.Timeline.BlockHits = append(r.Timeline.Blocks, 50),
			append(r.Timeline.BlockHits, int64(2*i))
		r.Timeline.BlockIdeal = append(r.Timeline.BlockIdeal, new(int64(min(50, 3*i))))
	}
	r.Timeline.BlockIdeal[19] = nil // not known from here on
	r.Recording.HitRate = result.NewCheck(new(0.80), new(0.82))
	r.Recording.ReadWriteRatio = result.NewCheck(new(2.0), new(2.5))
	return r
})

// What a prompt loads of a hybrid model: all objects of the first group, a window and a state of
// the others.
func TestLoadsOfGroups(t *testing.T) {
	in := Info{Sizer: model.Sizer{BytesPerToken: 3}}
	assert.EqualValues(t, 3000, in.loads(1000))
	in.ObjectTokens, in.Tails = 100, tiers.Tails{0, 2, 1}
	assert.EqualValues(t, 10*100+2*100+100, in.loads(1000))
}
