package record

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// warningsOf are those of a trial of 12 s with these completed requests.
func warningsOf(completed int, in result.Result) string {
	rec := openRecorder(1, 12*time.Second)
	for range completed {
		rec.Request(RequestSample{})
	}
	rec.Chunk(0, tiers.Storage, tiers.Decode, tiers.Chunk{Op: tiers.Read, Bytes: 100 << 20})
	return strings.Join(Build(infoOf(in), rec).Warnings, "\n")
}

func TestWarnings(t *testing.T) {
	cut := func(by string, inFlight int64) result.Result {
		return result.Result{EndedBy: by,
			Load: map[string]result.ClassOutcome{"batch": {InFlight: inFlight}}}
	}
	// A device that read so many MiB while the application read 100.
	device := func(read int64, ranks int) result.Result {
		return result.Result{Ranks: ranks, DeviceCounters: result.DeviceCounters{Device: "vda",
			ReadBytes: new(read << 20), WriteBytes: new(int64(0))}}
	}
	input := func(rows int64) result.Result {
		return result.Result{Input: &result.Input{Rows: rows, Failed: 1, Malformed: 4}}
	}
	// A trace that the window ended before its end, with these parameters.
	part := func(cycles, speedup string) result.Result {
		return result.Result{EndedBy: result.EndedByDeadline, BlockCache: &result.BlockCache{}, Input: &result.Input{Rows: 5},
			Parameters: []result.Parameter{{Name: "replay-cycles", Value: cycles}, {Name: "trace-speedup", Value: speedup}}}
	}
	away := func(backoff time.Duration) result.Result {
		return result.Result{Objects: &result.Objects{BackoffNS: int64(backoff)},
			Harness: result.Harness{WorkerBusyNS: 12e9}}
	}
	// A window of 100 MiB in 12 s after a sweep whose step of as many in flight had that rate.
	sweep := func(rate float64) result.Result {
		return result.Result{Workload: result.Workload{Workers: 8}, PlainIO: &result.PlainIO{Sweep: []result.SweepStep{
			{InFlight: 4, Read: 1}, {InFlight: 8, Read: rate}}}}
	}
	for _, c := range []struct {
		completed int
		in        result.Result
		about     string // words of the warning
		want      string // "": there is none
	}{
		{8, cut(result.EndedByDeadline, 200), "too short", "the window of 12 s is too short for " +
			"this load: 8 requests completed in it and 200 were in flight at its end; one takes " +
			"about 5m0s at this rate"},
		{200, cut(result.EndedByDeadline, 200), "too short", ""},
		{8, cut(result.EndedBySignal, 200), "too short", ""},
		{8, cut(result.EndedByDeadline, 8), "too short", ""},
		{1, device(90, 0), "the device read", "served from a cache"},
		{1, device(96, 0), "the device read", ""},
		{1, device(104, 0), "the device read", ""},
		{1, device(145, 0), "the device read", "the device read 145 MiB where the application " +
			"read 100 MiB (ratio 1.45): another process used it in the window"},
		{1, device(400, 4), "the device", ""}, // the other ranks may be on it
		{1, input(8), "not used", "most of the input is not used: of 8 rows 1 have no answer and " +
			"4 are malformed"},
		{1, input(10), "not used", ""},
		{1, sweep(8 << 20), "sweep", ""},
		{1, sweep(4.1 * (1 << 20)), "", "the queue-depth sweep moved 4.10 MiB/s with 8 in flight, the window 8.33 MiB/s: one of them"},
		{1, sweep(138), "", "the queue-depth sweep moved 138 B/s with 8 in flight"},
		{1, sweep(0), "", "the queue-depth sweep moved 0 B/s with 8 in flight"},
		{1, sweep(17 << 20), "", "the queue-depth sweep moved 17 MiB/s"},
		{1, part("1", "1"), "", "of this part; with -benchtime 10h and no -max-requests the run ends with it, and -trace-speedup 0 leaves"},
		{1, part("0", "1"), "", "of this part; with -replay-cycles 1, -benchtime 10h and no -max-requests the run ends with it, and"},
		{1, part("1", "0"), "-trace-speedup", ""}, // it is 0
		{1, away(0), "next attempt", ""},
		{1, away(100 * time.Millisecond), "next attempt", ""},
		{1, away(3 * time.Second), "next attempt",
			"requests waited 3 s in all for their next attempt (25 % of the workers'"},
	} {
		got := warningsOf(c.completed, c.in)
		if c.want == "" {
			assert.NotContains(t, got, c.about)
		} else {
			assert.Contains(t, got, c.want)
		}
	}
}

func TestABucketThatNeverFilledIsReported(t *testing.T) {
	for bytes, want := range map[int64]bool{0: true, 1 << 20: false} {
		rec := openRecorder(1, 12*time.Second)
		rec.Chunk(0, tiers.Storage, tiers.Prefill,
			tiers.Chunk{Op: tiers.Write, Bytes: bytes, Memory: 1 << 20})
		warnings := strings.Join(Build(infoOf(result.Result{}), rec).Warnings, "\n")
		assert.Equal(t, want, strings.Contains(warnings, "the engine's bucket never filled "+
			"(256 MiB or 500 objects), so that the storage was not touched"))
	}
}

// A rule that only the reads can break fails the trial in the closed division, and is reported in
// other divisions.
func TestCheckpointsOfTheClosedDivision(t *testing.T) {
	for _, c := range []struct {
		division string
		rules    []result.CheckpointRule
		status   string
	}{
		{result.DivisionOpen, []result.CheckpointRule{{Name: "gap", OK: new(false)}},
			result.StatusComplete},
		{result.DivisionClosed, []result.CheckpointRule{{Name: "gap", OK: new(true)},
			{Name: result.RuleCold}}, result.StatusComplete},
		{result.DivisionClosed, []result.CheckpointRule{{Name: "gap", Required: "at most 30 s",
			Found: "31.0 s", OK: new(false)}}, result.StatusFailed},
	} {
		rec := openRecorder(1, 12*time.Second)
		rec.Request(RequestSample{})
		r := Build(infoOf(result.Result{Division: c.division,
			Checkpoint: &result.Checkpoint{Rules: c.rules}}), rec)
		assert.Equal(t, c.status, r.Status, r.Error)
		if c.status == result.StatusFailed {
			assert.Equal(t, "the closed division: gap: must be at most 30 s, found 31.0 s", r.Error)
		}
	}
}

func TestTheCeilingOfAMix(t *testing.T) {
	half := []result.CeilingPoint{{Rate: 1e9}, {ReadShare: 0.5, Rate: 4e9 / 3},
		{ReadShare: 1, Rate: 2e9}}
	duplex := []result.CeilingPoint{{Rate: 1e9}, {ReadShare: 0.497, Rate: 2e9},
		{ReadShare: 1, Rate: 2e9}}
	for _, c := range []struct {
		name   string
		points []result.CeilingPoint
		share  float64
		rate   float64 // 0: unknown
	}{
		{"reads alone", half, 1, 2e9},
		{"writes alone", half, 0, 1e9},
		// 0.8 ns/B of reads at 2 GB/s and 0.2 of writes at 1 are 0.6 ns/B, whatever lies between.
		{"one medium in turn", half, 0.8, 1 / (0.8/2e9 + 0.2/1e9)},
		{"the same without the middle", []result.CeilingPoint{half[0], half[2]}, 0.8,
			1 / (0.8/2e9 + 0.2/1e9)},
		{"measured, nearly", duplex, 0.5, 2e9},
		{"both at once, between the points", duplex, 0.75, 2e9},
		{"both at once, where it is known", duplex, 0.2485, 1 / (0.5/1e9 + 0.5/2e9)},
		{"beyond the last point", duplex[:2], 0.6, 0},
		{"before the first", half[1:], 0.4, 0},
		{"near the first", half[1:], 0.495, 4e9 / 3},
		{"nothing", nil, 0.5, 0},
	} {
		seconds, ok := timePerByte(c.points, c.share)
		if assert.Equal(t, c.rate > 0, ok, c.name); ok {
			assert.InEpsilon(t, 1/c.rate, seconds, 1e-9, c.name)
		}
	}
}

// Each operation at an edge of the window took its time inside of it, too.
func TestOperationsAtAnEdgeAreAccountedFor(t *testing.T) {
	rec := New(1)
	rec.Open(10*time.Second, 20*time.Second)
	op := OpSample{Level: tiers.Storage, Op: tiers.Write, Bytes: 1 << 20,
		Timing: tiers.Timing{Device: 4 * time.Second, Generation: 2 * time.Second}}
	for _, at := range []time.Duration{12, 18, 22} { // 2, 6 and 4 seconds of six
		op.At = at * time.Second
		rec.Operation(op)
	}
	op.At = 23 * time.Second // 3
	assert.False(t, rec.Request(RequestSample{At: op.At}, op))
	op.At = 30 * time.Second // none
	rec.Operation(op)
	b := Build(infoOf(result.Result{}), rec).Harness.Busy
	assert.InDelta(t, 15e9*4/6, b.StorageNS, 10)
	assert.InDelta(t, 15e9*2/6, b.GenerationNS, 10)
}
