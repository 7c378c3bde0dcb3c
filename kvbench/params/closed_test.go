package params

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

func TestClosedIsTheOptionAndNothingElse(t *testing.T) {
	v := good(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-division=closed")
	assert.Equal(t, []any{Window{Length: 300 * time.Second}, 3, "llama3.1-8b", 200, 16, int64(42),
		90 * time.Second, 1, "mlperf", "buffered", "open-loop", "overtaking", "batched"},
		[]any{v.Window, v.Count, v.Model.Key, v.Users, v.MaxConcurrentAllocs, v.Seed, v.Settle,
			v.IODepth, v.TPRule, v.IO, v.Arrival, v.Turns, v.DecodeReads})
	assert.True(t, v.CPythonPopulation())
	assert.Nil(t, v.Differences())
	assert.Equal(t, "MLPerf Storage v3.0 parameters, not an MLPerf result", v.Notice())
	assert.Equal(t, result.RehearsalNotice, good(t, Inputs{Bench: bench(t, "MaxStorageStress")},
		"-division=closed", "-rehearse").Notice())
}

// TestClosedNeeds: nine trials of eight minutes and two pauses.
func TestClosedNeeds(t *testing.T) {
	var plans []*Values
	for _, name := range []string{"MaxStorageStress", "StorageThroughput", "LargeModel"} {
		plans = append(plans, good(t, Inputs{Bench: bench(t, name)}, "-division=closed"))
	}
	assert.Contains(t, ClosedNeeds(plans), "needs 1h15m0s for 3 options, plus setup time; ")
	assert.Empty(t, ClosedNeeds([]*Values{good(t, Inputs{Bench: bench(t, "LargeModel")},
		"-division=open")}))
}

func TestOpenListsWhatDiffersFromClosed(t *testing.T) {
	d := good(t, Inputs{Bench: bench(t, "DataGen")}, "-division=open").Differences()
	assert.Equal(t, result.Difference{Name: "benchmark",
		Closed: "MaxStorageStress, StorageThroughput, LargeModel, Checkpoint", Value: "DataGen"}, d[0])
	// What is left open with checkpoints is no difference.
	v := good(t, Inputs{Bench: bench(t, "Checkpoint")}, "-division=open", "-io=buffered",
		"-checkpoint-scale=1/64")
	assert.Equal(t, []result.Difference{{Name: "benchtime", Closed: "300s", Value: "30s"},
		{Name: "checkpoint-scale", Closed: "1", Value: "1/64"}}, slices.DeleteFunc(v.Differences(),
		func(d result.Difference) bool { return !v.Applies(d.Name) }))
}

// TestClosedCheckpoint: a model as a whole, once, by the rules of its workload.
func TestClosedCheckpoint(t *testing.T) {
	in := Inputs{Bench: bench(t, "Checkpoint")}
	closed := func(more ...string) []string {
		return append([]string{"-division=closed", "-checkpoint-accelerator-type=b200"}, more...)
	}
	v := good(t, in, closed()...)
	spec, err := v.CheckpointSpec()
	require.NoError(t, err)
	writes, reads, within := v.CheckpointRuns()
	assert.Equal(t, []any{"", 8, int64(1), 10, 10, time.Duration(0), 5 * time.Second, "none", 0, 1,
		time.Duration(0), true, "auto", "sample", int64(42)}, []any{v.Skip(), spec.Accelerators,
		spec.Scale, writes, reads, within, v.Checkpoint.Pause, v.Checkpoint.Flush,
		v.Checkpoint.Keep, v.Count, v.Settle, v.Direct(), v.IOEngine, v.Verify, v.Seed})
	assert.Nil(t, v.Differences())
	// A time is none of its own: what is required of options may be spelled out.
	in.BenchTime = "300s"
	writes, reads, within = good(t, in, closed()...).CheckpointRuns()
	assert.Equal(t, []any{10, 10, time.Duration(0)}, []any{writes, reads, within})
	in.BenchTime = ""
	// Ranks that do not know how many are on their host find out when they meet.
	pmi := in
	pmi.Env = environment("PMI_RANK", "0", "PMI_SIZE", "2")
	for local, want := range map[int]int{1: 1, 2: 0} {
		_, bad := good(t, pmi, closed()...).Meet(local)
		assert.Len(t, bad, want)
	}
}
