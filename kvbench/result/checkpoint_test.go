package result

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Accelerators of 1 to 8 s: the checkpoint took as long as the slowest of them, its throughput is
// all bytes ÷ that, and the slowest is named.
func TestACheckpointTakesAsLongAsItsSlowestAccelerator(t *testing.T) {
	var took []time.Duration
	for _, s := range []int{3, 1, 8, 2, 7, 5, 6, 4} {
		took = append(took, time.Duration(s)*time.Second)
	}
	r := NewCheckpointRun(2, time.Unix(0, 0), 16<<30, 8, took)
	assert.Equal(t, CheckpointRun{Index: 2, Start: "1970-01-01T00:00:00Z", DurationNS: 8e9,
		MinNS: 1e9, Slowest: 10, Bytes: 16 << 30}, r)
	assert.InDelta(t, 2<<30, r.Rate(), 1e-6)
}

// The numbers by hand: 1, 2 and 3 s of 6 GiB each are 6, 3 and 2 GiB/s.
func TestCheckpointsAreMeansAndPopulationDeviations(t *testing.T) {
	var runs []CheckpointRun
	for _, s := range []int64{1, 2, 3} {
		runs = append(runs, CheckpointRun{DurationNS: s * 1e9, Bytes: 6 << 30})
	}
	s := Sum(runs)
	assert.Equal(t, 3, s.Count)
	assert.InDelta(t, 2e9, s.Duration, 1)
	assert.InDelta(t, 816496580.9, s.DurationStdev, 1) // √(2/3)
	assert.InDelta(t, 11.0/3, s.Rate/(1<<30), 1e-9)
	assert.InDelta(t, 1.699673, s.RateStdev/(1<<30), 1e-6)
	assert.InDelta(t, 2, s.RateWorst/(1<<30), 1e-9)
	assert.Equal(t, CheckpointRuns{}, Sum(nil))

	c := &Checkpoint{Writes: runs, FlushP95NS: new(int64(7))}
	r := &Result{Checkpoint: c, CompletionUnit: UnitOperation}
	assert.Equal(t, []Metric{{"ns/op", 2e9}, {"write-B/s", s.Rate},
		{"slowest-write-B/s", s.RateWorst}, {"flush-p95-ns", 7}}, r.Metrics())
}

func TestAReadIsColdAsFarAsItIsKnown(t *testing.T) {
	for _, c := range []struct {
		cached, device *int64
		want           *bool
	}{
		{new(int64(10)), new(int64(950)), new(true)},
		{new(int64(11)), new(int64(1000)), new(false)},
		{new(int64(0)), new(int64(949)), new(false)},
		{new(int64(0)), nil, new(true)},
		{nil, new(int64(950)), new(true)},
		{nil, new(int64(0)), new(false)},
		{nil, nil, nil},
	} {
		r := CheckpointRun{Bytes: 1000, CachedBytes: c.cached, DeviceBytes: c.device}
		r.JudgeCold()
		assert.Equal(t, c.want, r.Cold)
	}
	half := &Checkpoint{Reads: []CheckpointRun{{Bytes: 10, DeviceBytes: new(int64(5))},
		{Bytes: 10, DeviceBytes: new(int64(10))}}}
	assert.InDelta(t, 0.75, *half.DeviceRatio(), 1e-9)
	half.Reads[1].DeviceBytes = nil
	assert.Nil(t, half.DeviceRatio(), "warm and cold are not averaged, and neither is the unknown")
}

// The mean of a read from memory and one from the device says nothing of either.
func TestWarmReadsAreNotAveragedWithOthers(t *testing.T) {
	run := func(seconds int64, cold *bool) CheckpointRun {
		return CheckpointRun{DurationNS: seconds * 1e9, Bytes: 8 << 30, Cold: cold,
			DeviceBytes: new(int64(8 << 30))}
	}
	warm, cold := new(false), new(true)
	for _, c := range []struct {
		reads []CheckpointRun
		rate  float64 // GiB/s
		apart int
	}{
		{[]CheckpointRun{run(1, warm), run(4, cold), run(4, nil)}, 2, 1},
		{[]CheckpointRun{run(1, warm), run(1, warm)}, 8, 0},
		{[]CheckpointRun{run(4, cold)}, 2, 0},
	} {
		r := &Result{Checkpoint: &Checkpoint{Reads: c.reads}, CompletionUnit: UnitOperation}
		_, apart := r.Checkpoint.Reading()
		assert.Len(t, apart, c.apart)
		assert.InDelta(t, c.rate*(1<<30), r.Metrics()[1].Value, 1)
		metric := r.CheckpointSummary()["metric"].(map[string]any)
		assert.InDelta(t, c.rate, metric["load_checkpoint_io_mean_GB_per_second"], 1e-9)
	}
}

func TestPipelineRatios(t *testing.T) {
	p := Pipeline{Producers: 2, GenerationNS: 8e9, GenerationWallNS: 5e9, IONS: 9e9, TotalNS: 10e9,
		ProducerWaitNS: 3, WriterWaitNS: 2}
	p.Derive()
	assert.InDelta(t, 2.25, *p.Ratio, 1e-9)
	assert.InDelta(t, 0.1, *p.Overhead, 1e-9)
	assert.Equal(t, BottleneckIO, p.Bottleneck)
	p.WriterWaitNS = 4
	p.Derive()
	assert.Equal(t, BottleneckGeneration, p.Bottleneck)
	p.Before, p.GenerationWallNS = true, 20e9
	p.Derive()
	assert.InDelta(t, 0.1, *p.Overhead, 1e-9)
	assert.Equal(t, BottleneckIO, p.Bottleneck)
}

// TestTheReferencesStream: the numbers by hand. 8 GiB twice, which two producers made in 4 s each
// and which was written in 10 of 11 s.
func TestTheReferencesStream(t *testing.T) {
	c := &Checkpoint{Model: "stream", Bytes: 8 << 30, Writes: make([]CheckpointRun, 2),
		Stages: &Pipeline{Producers: 2, GenerationNS: 8e9, GenerationWallNS: 5e9, IONS: 10e9,
			CloseNS: 1e9, TotalNS: 11e9, Chunks: 512}}
	c.Stages.Derive()
	s := c.StreamSummary()
	assert.InDelta(t, 100.0/11, s["pipeline_overhead_pct"], 1e-9)
	delete(s, "pipeline_overhead_pct")
	delete(s, "notice")
	assert.Equal(t, map[string]any{"gen_time": 4.0, "io_time": 10.0, "close_time": 1.0,
		"total_time": 11.0, "gen_throughput_gbps": new(4.0), "io_throughput_gbps": new(1.6),
		"throughput_ratio": new(2.5), "total_bytes": int64(16 << 30), "chunks": int64(512),
		"bottleneck": BottleneckIO}, s)
	c.Stages.Before = true
	assert.Equal(t, 16.0, c.StreamSummary()["total_time"])
	c.Model = "llama3-8b"
	assert.Nil(t, c.StreamSummary())
}

// TestTheReferencesSummary: GiB and seconds, and keys of what was done alone.
func TestTheReferencesSummary(t *testing.T) {
	r := &Result{StartTime: "2026-11-22T10:00:00Z", WindowNS: 5e9,
		Environment: Environment{MemoryBytes: 24 << 30},
		Checkpoint: &Checkpoint{Accelerators: 8, Bytes: 6 << 30, Reads: []CheckpointRun{
			{DurationNS: 1e9, Bytes: 6 << 30}, {DurationNS: 3e9, Bytes: 6 << 30}}}}
	text, err := json.Marshal(r.CheckpointSummary())
	require.NoError(t, err)
	assert.JSONEq(t, `{"num_accelerators": 8, "num_hosts": 1, "host_memory_GB": [24],
		"start": "2026-11-22T10:00:00Z", "end": "2026-11-22T10:00:05Z",
		"metric": {"checkpoint_size_GB": 6, "load_checkpoint_io_mean_GB_per_second": 4,
			"load_checkpoint_io_stdev_GB_per_second": 2,
			"load_checkpoint_duration_mean_seconds": 2,
			"load_checkpoint_duration_stdev_seconds": 1},
		"notice": "made by kvbench in the form of DLIO's summary.json: no MLPerf result"}`,
		string(text))
}
