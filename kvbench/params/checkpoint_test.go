package params

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads/checkpoint"
)

// benchOf is a benchmark of a name, in the open division.
func benchOf(t *testing.T, name string, env ...string) Inputs {
	return Inputs{Bench: bench(t, name),
		Env: environment(append(env, "KVBENCH_DIVISION", "open")...)}
}

// TestShiftByHost: an accelerator that reads what another host wrote is shifted by the accelerators of a host.
func TestShiftByHost(t *testing.T) {
	slurm := []string{"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "4",
		"SLURM_STEP_TASKS_PER_NODE", "2(x2)", "SLURM_NODEID", "0"}
	in := benchOf(t, "Checkpoint", slurm...)
	for arg, want := range map[string]int{"host": 4, "3": 3, "0": 0} {
		v := good(t, in, "-checkpoint-shift="+arg)
		spec, err := v.CheckpointSpec()
		require.NoError(t, err)
		assert.Equal(t, want, v.CheckpointShift(spec))
		assert.Equal(t, arg, v.Text("checkpoint-shift"))
		first, count := v.CheckpointShare(spec)
		assert.Equal(t, [2]int{2, 2}, [2]int{first, count})
	}
	assert.Equal(t, []string{"-checkpoint-shift: must be a number where all ranks are on one host, " +
		"as far as is known (-local-ranks): there is no other whose files could be read, given " +
		"host (flag)"}, wrong(t, benchOf(t, "Checkpoint"), "-checkpoint-shift=host"))
	uneven := benchOf(t, "Checkpoint", "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "4",
		"SLURM_STEP_TASKS_PER_NODE", "3,1", "SLURM_NODEID", "0")
	assert.Contains(t, wrong(t, uneven, "-checkpoint-shift=host")[0], "must be a number where "+
		"hosts have different numbers of ranks")
	assert.Contains(t, wrong(t, in, "-checkpoint-shift=hosts")[0], "-checkpoint-shift: must be "+
		"host or a whole number")
}

// TestShiftNeedsOneFilesystem: what another host has written has to be seen.
func TestShiftNeedsOneFilesystem(t *testing.T) {
	in := benchOf(t, "Checkpoint", "PMI_RANK", "0", "PMI_SIZE", "4", "PMI_LOCAL_SIZE", "2")
	for arg, refused := range map[string]bool{"0": false, "2": true, "host": true} {
		v := good(t, in, "-checkpoint-shift="+arg)
		v.Filesystems = 1
		require.NoError(t, v.CheckFilesystems())
		v.Filesystems = 2
		if err := v.CheckFilesystems(); refused {
			assert.EqualError(t, err, "-checkpoint-shift: must be 0 where ranks work on 2 "+
				"filesystems, whose files the others cannot read, given "+arg)
		} else {
			assert.NoError(t, err)
		}
	}
}

// TestReaders: each has the buffers of a range of a file, and one for a request for an object.
func TestReaders(t *testing.T) {
	in := benchOf(t, "Checkpoint")
	v := good(t, in, "-stream-readers=2")
	assert.Equal(t, 8, v.StreamDepth())
	assert.EqualValues(t, 32<<20, v.StreamRange())
	assert.Equal(t, []string{"-stream-readers: must be at most 2: each has 4 of 8 -stream-buffers, " +
		"given 3 (flag)"}, wrong(t, in, "-stream-readers=3"))
	v = good(t, benchOf(t, "CheckpointStream"))
	assert.Equal(t, 32, v.StreamDepth())
	spec, err := v.CheckpointSpec()
	require.NoError(t, err)
	assert.Equal(t, checkpoint.StreamKey, spec.Key)
	objects := []string{"-cache-dir=s3://bench/k", "-s3-endpoint=http://127.0.0.1:1", "-s3-anonymous"}
	v = good(t, in, append(objects, "-stream-readers=8", "-stream-range=1GiB")...)
	assert.Equal(t, 8, v.StreamDepth())
	assert.Equal(t, []string{"-stream-readers: must be at most 8: each has 1 of 8 -stream-buffers, " +
		"given 9 (flag)"}, wrong(t, in, append(objects, "-stream-readers=9")...))
}
