package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
)

// BenchmarkCheckpoint writes checkpoints of a model, a set of files per simulated accelerator, and
// reads them back: MLPerf Storage's checkpoint workload. Writing and reading have a line and a
// result each.
func BenchmarkCheckpoint(b *testing.B) { run(b) }

// BenchmarkCheckpointStream writes one large file, and reads it back: a producer, buffers and a
// writer whose memory does not grow with it, and the waiting times of each.
func BenchmarkCheckpointStream(b *testing.B) { run(b) }

// TestAFilesystemHasRoomForItsRanks: each host of its own needs what its ranks write, a shared one
// all of it. Of two copies of the parameters the first ranks write one, with their optimizers'
// states; the others those alone.
func TestAFilesystemHasRoomForItsRanks(t *testing.T) {
	v := &params.Values{Ranks: 4, LocalRanks: 1}
	v.Checkpoint.Model, v.Checkpoint.Accelerators, v.Checkpoint.Scale = "405b", 512, 1
	spec, err := v.CheckpointSpec()
	require.NoError(t, err)
	_, all := spec.Totals()
	dir, most := t.TempDir(), int64(0)
	for a := range 512 / 4 {
		for _, f := range spec.Files(a) {
			most += f.Bytes
		}
	}
	require.Greater(t, most, all/4)
	assert.Equal(t, most, checkpointRoom(v, spec, dir))
	v.FilesystemShares = []int{4}
	assert.Equal(t, all, checkpointRoom(v, spec, dir))
	v.FilesystemShares, v.Ranks = nil, 1
	assert.Equal(t, all, checkpointRoom(v, spec, dir))
}
