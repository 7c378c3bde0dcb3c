package params

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

func TestClosedIsTheOptionAndNothingElse(t *testing.T) {
	v := good(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-division=closed")
	assert.Equal(t, Window{Length: 300 * time.Second}, v.Window)
	assert.Equal(t, 3, v.Count)
	assert.Equal(t, []any{"llama3.1-8b", 200, 16, int64(42)},
		[]any{v.Model.Key, v.Users, v.MaxConcurrentAllocs, v.Seed})
	assert.Equal(t, 90*time.Second, v.Settle)
	assert.Equal(t, 1, v.IODepth)
	assert.Equal(t, "mlperf", v.TPRule)
	assert.False(t, v.Direct())
	assert.False(t, v.ClosedLoop())
	assert.True(t, v.Overtaking())
	assert.True(t, v.Batched())
	assert.True(t, v.CPythonPopulation())
	assert.Nil(t, v.Differences())
	assert.Equal(t, "MLPerf Storage v3.0 parameters, not an MLPerf result", v.Notice())
	v = good(t, Inputs{Bench: bench(t, "LargeModel")}, "-division=closed")
	assert.Equal(t, []any{"llama3.1-70b-instruct", 70, 4},
		[]any{v.Model.Key, v.Users, v.MaxConcurrentAllocs})
}

// TestRehearsal: a rehearsal is the closed division but for its windows and rests.
func TestRehearsal(t *testing.T) {
	in := Inputs{Bench: bench(t, "MaxStorageStress")}
	v := good(t, in, "-division=closed", "-rehearse")
	assert.Equal(t, []any{30 * time.Second, time.Duration(0), 200},
		[]any{v.Window.Length, v.Settle, v.Users})
	assert.Equal(t, result.RehearsalNotice, v.Notice())
	in.BenchTime = "7s"
	v = good(t, in, "-division=closed", "-rehearse", "-settle=1s")
	assert.Equal(t, []time.Duration{7 * time.Second, time.Second},
		[]time.Duration{v.Window.Length, v.Settle})
	assert.Equal(t, []string{"-num-users: must be 200 in the closed division (option 1), " +
		"given 8 (flag)"}, wrong(t, in, "-division=closed", "-rehearse", "-num-users=8"))
	assert.Equal(t, []string{"-rehearse: must be false in the open division, whose windows may " +
		"be short (it goes with -division closed), given true (flag)"}, wrong(t, in, "-division=open", "-rehearse"))
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

// TestOptions has the three workloads as MLPerf Storage v3.0 gives them.
func TestOptions(t *testing.T) {
	for name, want := range map[string]struct {
		option, users, allocs int
		cpu, perToken         int64
	}{"MaxStorageStress": {1, 200, 16, 0, 131072},
		"StorageThroughput": {2, 100, 16, 4 * units.GiB, 131072},
		"LargeModel":        {3, 70, 4, 0, 327680},
	} {
		v := good(t, Inputs{Bench: bench(t, name)}, "-division=closed")
		assert.Equal(t, []int{want.option, want.users, want.allocs},
			[]int{v.Bench.Option, v.Users, v.MaxConcurrentAllocs}, name)
		assert.Equal(t, []int64{want.cpu, 0, want.perToken},
			[]int64{v.CPUBytes, v.GPUBytes, v.Model.BytesPerToken()}, name)
		assert.Equal(t, 300.0, v.Window.Length.Seconds())
	}
}

func TestClosedLeavesPlacesFree(t *testing.T) {
	v := good(t, Inputs{Bench: bench(t, "MaxStorageStress")},
		"-division=closed", "-cache-dir=/mnt/kv", "-results-dir=out", "-storage-capacity-gb=500",
		"-progress=none", "-keep-files", "-rank=1", "-ranks=4", "-local-ranks=2")
	assert.Equal(t, uint64(43), v.StreamSeed())
}

func TestClosedAcceptsTheRequiredValueSpelledOut(t *testing.T) {
	good(t, Inputs{Bench: bench(t, "MaxStorageStress"), BenchTime: "5m", Count: "3"},
		"-division=closed", "-num-users=200", "-seed=42", "-settle=1m30s", "-io=buffered",
		"-chunk-size=1024KiB", "-cpu-mem-gb=0.0")
}

func TestClosedRefusesOverridesByName(t *testing.T) {
	in := Inputs{Bench: bench(t, "StorageThroughput"), BenchTime: "60s", Count: "1",
		Env: environment("KVBENCH_SEED", "43")}
	assert.Equal(t, []string{
		"-benchtime: must be 300s in the closed division (option 2), or another with -rehearse, given 60s (flag)",
		"-count: must be 3 in the closed division (option 2), given 1 (flag)",
		"-num-users: must be 100 in the closed division (option 2), given 5 (flag)",
		"-turns: must be overtaking in the closed division (option 2), given ordered (flag)",
		"-seed: must be 42 in the closed division (option 2), given 43 (environment KVBENCH_SEED)",
		"-cpu-mem-gb: must be 4 in the closed division (option 2), given 8 (flag)",
		"-settle: must be 90s in the closed division (option 2), or another with -rehearse, given 0s (flag)",
		"-sweep: must be absent in the closed division (option 2), given io-depth=1 (flag)",
		"-verify: must be none in the closed division (option 2), given full (flag)",
	}, wrong(t, in, "-division=closed", "-num-users=5", "-turns=ordered", "-cpu-mem-gb=8",
		"-settle=0s", "-verify=full", "-sweep=io-depth=1"))
	assert.Contains(t, wrong(t, Inputs{Bench: bench(t, "LargeModel"), BenchTime: "500x"},
		"-division=closed")[0], "given 500x")
}

func TestClosedTakesNoConfigurationFile(t *testing.T) {
	file := writeFile(t, "c.yaml", "nonsense: 1\n")
	assert.Equal(t, []string{"-config: must be absent: the closed division takes no " +
		"configuration file, given " + file + " (flag)"},
		wrong(t, Inputs{}, "-division=closed", "-config="+file))
	file = writeFile(t, "d.yaml", "parameters: {division: closed}\n")
	assert.Len(t, wrong(t, Inputs{}, "-config="+file), 1)
}

func TestClosedWithoutAnOptionChecksWhatAllOptionsShare(t *testing.T) {
	good(t, Inputs{}, "-division=closed", "-num-users=100")
	assert.Equal(t, []string{"-seed: must be 42 in the closed division, given 1 (flag)"},
		wrong(t, Inputs{}, "-division=closed", "-num-users=100", "-seed=1"))
}

func TestOpenListsWhatDiffersFromClosed(t *testing.T) {
	file := writeFile(t, "c.yaml", "decode: {batch_size: 16}\n")
	v := good(t, Inputs{Bench: bench(t, "MaxStorageStress"), BenchTime: "5m", Count: "3"},
		"-division=open", "-num-users=32",
		"-turns=overtaking", "-io=buffered", "-io-depth=1", "-settle=90s", "-config="+file)
	assert.Equal(t, []result.Difference{
		{Name: "num-users", Closed: "200", Value: "32"},
		{Name: "tp-rule", Closed: "mlperf", Value: "engine"},
		{Name: "io-engine", Closed: "psync", Value: "auto"},
		{Name: "population", Closed: "drawn as CPython does", Value: "drawn from per-user streams"},
		{Name: "decode.batch_size", Closed: "default", Value: "16"},
	}, v.Differences())
	d := good(t, Inputs{Bench: bench(t, "DataGen")}, "-division=open").Differences()
	assert.Equal(t, result.Difference{Name: "benchmark",
		Closed: "MaxStorageStress, StorageThroughput, LargeModel, Checkpoint", Value: "DataGen"}, d[0])
	// What is left open with checkpoints is no difference.
	v = good(t, Inputs{Bench: bench(t, "Checkpoint")}, "-division=open", "-io=buffered",
		"-checkpoint-scale=1/64")
	assert.Equal(t, []result.Difference{{Name: "benchtime", Closed: "300s", Value: "30s"},
		{Name: "checkpoint-scale", Closed: "1", Value: "1/64"}}, slices.DeleteFunc(v.Differences(),
		func(d result.Difference) bool { return !v.Hears(d.Name) }))
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
	v = good(t, in, closed("-checkpoint-model=70b", "-checkpoint-accelerator-type=mi355",
		"-checkpoint-accelerators=64", "-io=buffered", "-fadvise=none", "-io-engine=psync",
		"-checkpoint-flush=fadvise", "-checkpoint-shift=8", "-verify=full", "-checkpoint-writes=0",
		"-checkpoint-scale=1", "-seed=42", "-ranks=4")...)
	assert.Empty(t, v.Skip())
	// A time is none of its own: what is required of options may be spelled out.
	in.BenchTime = "300s"
	writes, reads, within = good(t, in, closed()...).CheckpointRuns()
	assert.Equal(t, []any{10, 10, time.Duration(0)}, []any{writes, reads, within})
	good(t, in, closed("-cache-dir=s3://bench/k", "-s3-endpoint=http://127.0.0.1:1",
		"-s3-anonymous")...)

	in.BenchTime, in.Count = "5x", "3"
	const no = " in the closed division, given "
	assert.Equal(t, []string{
		"-checkpoint-accelerators: must be 0 or 8, which is as many as llama3-8b has," + no +
			"4 (flag)",
		"-checkpoint-writes: must be 10, or 0 in one of two runs," + no + "5 (flag)",
		"-checkpoint-reads: must be 10, or 0 in one of two runs," + no + "2 (flag)",
		"-checkpoint-accelerator-type: must be b200 or mi355" + no + "h100 (flag)",
		"-verify: must be sample or full" + no + "none (flag)",
		"-benchtime: must be absent, because 10 checkpoints are written and read, however long " +
			"that takes," + no + "5x (flag)",
		"-count: must be 1" + no + "3 (flag)",
		"-settle: must be 0s" + no + "90s (flag)",
		"-checkpoint-scale: must be 1" + no + "1/64 (flag)",
		"-checkpoint-pause: must be 5s" + no + "0s (flag)",
		"-checkpoint-keep: must be 0" + no + "5 (flag)",
		"-stream-buffers: must be 8" + no + "16 (flag)",
	}, wrong(t, in, closed("-checkpoint-accelerator-type=h100", "-checkpoint-accelerators=4",
		"-checkpoint-scale=1/64", "-checkpoint-writes=5", "-checkpoint-reads=2",
		"-checkpoint-pause=0s", "-checkpoint-keep=5", "-stream-buffers=16", "-verify=none",
		"-settle=90s")...))
	in.BenchTime, in.Count = "", ""
	assert.Equal(t, []string{"-ranks: must be on so few hosts that each has more than 4 " +
		"accelerators in the closed division, where this one has 4, given 2 (flag)"},
		wrong(t, in, closed("-hosts=a,b", "-ranks=2")...))
	// Ranks of which nobody says where they are find that out when they meet.
	pmi := in
	pmi.Env = environment("PMI_RANK", "0", "PMI_SIZE", "2")
	for local, want := range map[int]int{1: 1, 2: 0} {
		_, bad := good(t, pmi, closed()...).Meet(local)
		assert.Len(t, bad, want)
	}
	// Without that which it asks for it skips, and says so; the stream has no rules.
	v = good(t, in, "-division=closed", "-seed=42", "-settle=90s")
	assert.Equal(t, "needs -checkpoint-accelerator-type in the closed division (b200 or mi355)",
		v.Skip())
	assert.Contains(t, good(t, Inputs{Bench: bench(t, "CheckpointStream")}, closed("-io=direct")...).
		Skip(), "not in the closed division")
}
