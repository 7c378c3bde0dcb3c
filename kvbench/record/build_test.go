package record

import (
	"encoding/json"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tools/golden"
	"kvbench/workloads"
	"kvbench/workloads/users"
)

// Compressed bytes may differ between Go versions; TestHistogramEncoding reads them.
func TestResultGolden(t *testing.T) {
	for name, r := range map[string]result.Result{"result.json": *fixtureResult(),
		"result_parts.json": *partsResult()} {
		r.Histograms = maps.Clone(r.Histograms)
		for name, h := range r.Histograms {
			h.Data = "…"
			r.Histograms[name] = h
		}
		got, err := json.MarshalIndent(r, "", " ")
		require.NoError(t, err)
		golden.Check(t, name, string(got)+"\n")
	}
}

// The same samples in two shards and in one.
func TestShardsAddUp(t *testing.T) {
	two, one := fixtureResult(), partsResult()
	assert.Equal(t, two.Requests, one.Requests)
	assert.Equal(t, two.Tiers, one.Tiers)
	assert.Equal(t, two.Latency, one.Latency)
	timeline := *one.Timeline
	timeline.Blocks, timeline.BlockHits, timeline.BlockIdeal = nil, nil, nil // not of the recorder
	assert.Equal(t, *two.Timeline, timeline)
}

// The trials of a run share the sections of their Info: Build leaves no count in them.
func TestBuildChangesNoInfo(t *testing.T) {
	info, rec := fixtureInfo(), fixtureRecorder(1)
	want, err := Build(info, rec).Encode()
	require.NoError(t, err)
	got, err := Build(info, rec).Encode()
	require.NoError(t, err)
	assert.JSONEq(t, string(want), string(got))
}

func TestSLACountsWhatHasMissedIt(t *testing.T) {
	info := Info{QoS: users.Default().QoS}
	info.Load = map[string]result.ClassOutcome{"batch": {Offered: 7, Queued: 7},
		"interactive": {Offered: 10, InFlight: 9, Late: 3}}
	rec := openRecorder(1, time.Second)
	rec.Request(RequestSample{Class: workloads.Interactive,
		Time: result.RequestTime{EndToEnd: 10e6}})
	r := Build(info, rec)
	classes := func() map[string]any { return python(t, r, "summary")["qos_metrics"].(map[string]any) }
	sla := func(class string) map[string]any {
		return classes()[class].(map[string]any)["sla"].(map[string]any)
	}
	assert.Equal(t, true, classes()["batch"].(map[string]any)["no_data"])
	assert.EqualValues(t, 0, sla("batch")["compliance"])
	assert.InDelta(t, 0.25, sla("interactive")["compliance"], 1e-9,
		"one in time, three too late already, of six nothing is known")
	assert.Equal(t, map[string]any{"no_data": true}, classes()["responsive"])
	assert.Equal(t, false, sla("interactive")["met"])
	info.Load = nil
	r = Build(info, rec)
	assert.Equal(t, true, sla("interactive")["met"])
}

// infoOf is r of a trial on memory and storage.
func infoOf(r result.Result) Info {
	r.Tiers = []result.Tier{{Level: "cpu"}, {Level: "storage"}}
	return Info{Result: r}
}

// openRecorder returns one whose window is [0, window].
func openRecorder(shards int, window time.Duration) *Recorder {
	r := New(shards)
	r.Open(0, window)
	return r
}

func TestNothingCompletedHasTheVerdict(t *testing.T) {
	workers := func(h result.Harness) Info { return infoOf(result.Result{Harness: h}) }
	rec := openRecorder(1, time.Second)
	rec.Operation(OpSample{At: 2 * time.Second, Partial: true, Level: tiers.Storage,
		Op: tiers.Write, Bytes: 1 << 30,
		Timing: tiers.Timing{Device: 200 * time.Millisecond}, Space: 700 * time.Millisecond,
		Room: [tiers.NumKinds]time.Duration{tiers.Storage: 700 * time.Millisecond}})
	for name, c := range map[string]struct {
		info Info
		rec  *Recorder
		want string
	}{
		"capacity": {workers(result.Harness{WorkerBusyNS: 9e8}), rec, "workers waited for capacity for 77.8 %"},
		"computing": {workers(result.Harness{WorkerBusyNS: 1e9, Busy: result.BusyTime{ThinkingNS: 1e9}}),
			openRecorder(1, time.Second), "waited for a GPU"},
		"load": {workers(result.Harness{WorkerIdleNS: 1e9}), openRecorder(1, time.Second),
			"workers had no request for 100 % of the time"},
		"never": {Info{}, New(1), "there was no window in which anything was measured; use a longer window"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Build(c.info, c.rec)
			assert.Equal(t, result.StatusFailed, r.Status)
			assert.Contains(t, r.Error, c.want)
			_, err := json.Marshal(r)
			require.NoError(t, err)
			for _, m := range r.Metrics() {
				assert.False(t, m.Unit == "ns/op" || math.IsInf(m.Value, 0) || math.IsNaN(m.Value),
					m)
			}
		})
	}
	interrupted := Build(Info{Result: result.Result{Status: result.StatusIncomplete,
		EndedBy: result.EndedBySignal}}, rec)
	assert.Equal(t, result.StatusIncomplete, interrupted.Status)
	assert.NotEmpty(t, interrupted.Error)
}

func TestFailuresDecideTheStatus(t *testing.T) {
	run := func(division string, good, bad int, fatal bool) *result.Result {
		rec := openRecorder(1, time.Second)
		for range good {
			rec.Operation(OpSample{Level: tiers.Storage, Op: tiers.Read, Bytes: 1,
				Timing: tiers.Timing{Device: 1}})
			rec.Request(RequestSample{})
		}
		for range bad {
			rec.Failure(0, result.ErrorSample{Tier: "storage", Operation: "write", Errno: "EIO",
				Key: "u1/c0/t1", Offset: new(int64(4096)), Message: "closed", Fatal: fatal})
		}
		return Build(infoOf(result.Result{Division: division}), rec)
	}
	few := run(result.DivisionOpen, 100, 1, false)
	assert.Equal(t, result.StatusComplete, few.Status)
	assert.Contains(t, few.Warnings[0], "storage write: EIO")
	many := run(result.DivisionOpen, 100, 20, false)
	assert.Equal(t, result.StatusFailed, many.Status)
	assert.Len(t, many.ErrorSamples, maxFailureSample)
	assert.Equal(t, result.StatusFailed, run(result.DivisionClosed, 100, 1, false).Status)
	fatal := run(result.DivisionOpen, 100, 1, true)
	assert.Equal(t, result.StatusFailed, fatal.Status)
	assert.Equal(t, result.NoVerdict, fatal.Harness.Verdict.Kind)
	assert.Equal(t, "the trial failed", fatal.Harness.Verdict.Reason)
	assert.Contains(t, fatal.Error, "u1/c0/t1 at offset 4096")
	assert.Equal(t, "u1", result.ErrorSample{Key: "u1"}.Where())
}

// Failures are compared with the operations of their own time: failures of a long warm-up neither hide
// behind nor spoil a short window. Demotions and deletions are operations.
func TestFailuresAreComparedWithTheirLike(t *testing.T) {
	for _, c := range []struct {
		warmup                     int64 // operations before the window that succeeded
		failedBefore, failedInside int
		moved                      int // entries demoted and deleted in the window
		status, text               string
	}{
		{100000, 12, 0, 0, result.StatusComplete, ""},
		{100000, 0, 12, 0, result.StatusFailed, "12 of 512 operations of the window failed"},
		{100, 2, 0, 0, result.StatusFailed,
			"2 of 102 operations before and after the window failed"},
		{0, 0, 12, 500, result.StatusComplete, ""},
	} {
		rec := openRecorder(1, time.Second)
		for range 500 {
			rec.Operation(OpSample{Level: tiers.Storage, Op: tiers.Read, Bytes: 1,
				Timing: tiers.Timing{Device: 1}})
			rec.Request(RequestSample{})
		}
		rec.Succeeded(2*time.Second, c.warmup)
		for range c.failedBefore {
			rec.Failure(2*time.Second, result.ErrorSample{Tier: "storage", Operation: "write"})
		}
		for range c.failedInside {
			rec.Failure(0, result.ErrorSample{Tier: "storage", Operation: "write"})
		}
		for range c.moved {
			rec.Delete(0, 0, tiers.Storage, 1, 1)
			rec.Demote(0, 0, tiers.CPU, tiers.Storage, 1)
		}
		r := Build(infoOf(result.Result{Division: result.DivisionOpen}), rec)
		assert.Equal(t, c.status, r.Status)
		assert.Contains(t, r.Error, c.text)
		assert.EqualValues(t, []int{c.failedBefore + c.failedInside, c.failedInside},
			[]int{int(r.Requests.FailedOperations), int(r.Requests.FailedInWindow)})
	}
}

func TestTheClosedDivisionGivesNoAdviceThatItRefuses(t *testing.T) {
	info := infoOf(result.Result{Division: result.DivisionClosed})
	r := Build(info, openRecorder(1, time.Second))
	assert.Equal(t, result.ClosedNotice, r.Notice)
	assert.Contains(t, r.Error, "completed in the window of ")
	assert.Contains(t, r.Error,
		"; the closed division fixes all but the window of a rehearsal (-benchtime)")
	assert.NotContains(t, r.Error, "fewer users", "which it refuses")
}

func TestMetricsLine(t *testing.T) {
	var units []string
	values := map[string]float64{}
	for _, m := range fixtureResult().Metrics() {
		units = append(units, m.Unit)
		values[m.Unit] = m.Value
	}
	assert.Equal(t, strings.Fields(
		`ns/op req/s tok/s storage-tok/s read-B/s write-B/s
		read-p50-ns read-p95-ns read-p99-ns write-p95-ns
		read-io-p50-ns read-io-p99-ns write-io-p50-ns read-ns/MiB e2e-p95-ns
		hit-ratio ttft-mean-ns ttft-p50-ns ttft-p95-ns served-ratio ttft-saved-ratio cpu-ns/B peak-RSS-bytes device-read-ratio ceiling-ratio`), units)
	assert.InDelta(t, float64(fixtureWindow)/1200, values["ns/op"], 1e-6)
	assert.InDelta(t, 40, values["req/s"], 1e-9)
	assert.InDelta(t, 600<<20, values["peak-RSS-bytes"], 0)

	r := *fixtureResult()
	r.CeilingRatio, r.DeviceCounters = nil, result.DeviceCounters{Reason: "tmpfs"}
	for _, m := range r.Metrics() {
		assert.NotContains(t, []string{"device-read-ratio", "ceiling-ratio"}, m.Unit,
			"absent when unknown")
	}
}

func BenchmarkBuildResult(b *testing.B) {
	rec := fixtureRecorder(8)
	info := fixtureInfo()
	for b.Loop() {
		if _, err := json.Marshal(Build(info, rec)); err != nil {
			b.Fatal(err)
		}
	}
}
