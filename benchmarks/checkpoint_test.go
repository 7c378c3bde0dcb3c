package benchmarks

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/checkpoint"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// BenchmarkCheckpoint writes checkpoints of a model, a set of files per simulated accelerator, and
// reads them back: MLPerf Storage's checkpoint workload. Writing and reading have a line and a
// result each.
func BenchmarkCheckpoint(b *testing.B) { checkpoints(b, "Checkpoint") }

// BenchmarkCheckpointStream writes one large file, and reads it back: a producer, buffers and a
// writer whose memory does not grow with it, and who waited for whom.
func BenchmarkCheckpointStream(b *testing.B) { checkpoints(b, "CheckpointStream") }

// checkpoints is the body of both.
func checkpoints(b *testing.B, name string) {
	each(b, name, func(b *testing.B, v *params.Values, part string) {
		number, suffix := current.trial(b.Name())
		name := strings.TrimPrefix(b.Name(), "Benchmark") + suffix
		checkpointTrial(b, v, name, number, part).tell(b)
	})
}

// checkpointTrial runs a trial of one direction. What is written is read at once: all trials of a
// line come before those of the next, and with several the files of the last alone would be left to
// read, late. So the outcome of the reads waits for the turn of their line.
func checkpointTrial(b *testing.B, v *params.Values, name string, number int, part string) outcome {
	s := current
	if o, ran := s.waited(name, number); ran {
		return o
	}
	writes, reads, _ := v.CheckpointRuns()
	writing := strings.Replace(name, opRead, opWrite, 1)
	reading := strings.Replace(name, opWrite, opRead, 1)
	// A line that was not chosen is no reason to leave out what it belongs to: who reads needs what
	// is written first.
	read := reads > 0 && (name == reading || s.chosen(v, strings.Replace(part, opWrite, opRead, 1)))
	var written outcome
	if writes > 0 {
		written = s.measure(b, v, writing, number, checkpointBody(v, tiers.Write,
			read || reads == 0))
	}
	switch {
	case !read:
		return written
	case written.err != nil:
		s.waiting[trialName(reading, number)] = outcome{err: errors.New("nothing was read, because the " +
			"checkpoints could not be written")}
	default:
		s.waiting[trialName(reading, number)] = s.measure(b, v, reading, number,
			checkpointBody(v, tiers.Read, writes == 0))
	}
	if name == writing {
		return written
	}
	o, _ := s.waited(reading, number)
	return o
}

// checkpointBody is a trial of one direction. Stay: its files are for somebody else to read.
func checkpointBody(v *params.Values, op tiers.Op, stay bool) trialBody {
	return func(ctx context.Context, cfg kvbench.Config) (*result.Result, error) {
		load, err := askFor(ctx, v, cfg.Progress, func() (*checkpoint.Load, error) {
			return checkpointLoad(v, &cfg, op, stay)
		})
		if err != nil {
			return nil, err
		}
		return kvbench.Run(ctx, cfg, load)
	}
}

// TestFilesOfACheckpointAreOpenAtOnce: 405b has 512 accelerators of three files each, and 8 more.
func TestFilesOfACheckpointAreOpenAtOnce(t *testing.T) {
	v := &params.Values{Ranks: 1}
	v.Checkpoint.Model, v.Checkpoint.Accelerators, v.Checkpoint.Scale = "405b", 0, 1
	spec, err := v.CheckpointSpec()
	require.NoError(t, err)
	assert.Equal(t, params.Violations{"-checkpoint-accelerators: 512 have up to 1,608 files open " +
		"while they write, and this process may have 1024 (ulimit -n); raise that limit, share the " +
		"accelerators out to more -ranks, or give fewer of them"}, checkpointFiles(v, spec, 1024))
	assert.Empty(t, checkpointFiles(v, spec, 1608))
	v.Ranks, v.Rank = 2, 1
	assert.Empty(t, checkpointFiles(v, spec, 1024), "whose part is smaller")
}

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
