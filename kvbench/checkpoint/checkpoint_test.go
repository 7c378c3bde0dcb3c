package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/content"
	"kvbench/tiers/faults"
	"kvbench/tiers/transfer"
	files "kvbench/workloads/checkpoint"
)

// runs are trials on one directory, small enough for a unit test: of two accelerators of 70b, with
// files of some pages.
type runs struct {
	dir  string
	spec files.Spec
	with func(*kvbench.Config, *Config)
	hook faults.Hook
}

// hooked is a load whose tier has a hook.
type hooked struct {
	*Load
	hook faults.Hook
}

func (h hooked) Prepare(ctx context.Context, e *kvbench.Env) error {
	e.Levels = slices.Clone(e.Levels)
	for i := range e.Levels {
		e.Levels[i].Tier = transfer.New(faults.Wrap(e.Levels[i].Files(), h.hook), e.Transfer)
	}
	return h.Load.Prepare(ctx, e)
}

func newRuns(t *testing.T) *runs {
	return &runs{dir: t.TempDir(), spec: specOf(t, "70b", 2, 16384)}
}

// run executes a trial of a direction.
func (r *runs) run(t *testing.T, op tiers.Op, number int, stay bool) (*result.Result, error) {
	t.Helper()
	c := Config{Facts: Facts{Spec: r.spec, Op: op, Verify: content.VerifyFull, Flush: FlushNone,
		Writes: 2, Reads: 2},
		Number: number, Count: r.spec.Accelerators, Chunk: testChunk, Buffers: 4, Producers: 2,
		Writers: 2, Depth: 2, Stay: stay, Nonce: [16]byte{1, byte(number)}}
	cfg := kvbench.Config{
		Info: record.Info{Result: result.Result{Benchmark: "Checkpoint",
			Division: result.DivisionOpen, Count: 1, Ranks: 1}},
		Storage: kvbench.StorageConfig{Roots: []kvbench.Root{{Dir: r.dir}}, StorageBytes: 1 << 30,
			Use:    buffer.Use{Chunk: testChunk, Depth: 2, Workers: 2, Exactly: 8},
			Layout: tiers.Layout{Kind: tiers.LayoutNamed}, Verify: content.VerifyFull},
	}
	cfg.Storage.KeepFiles = op == tiers.Read && stay
	if r.with != nil {
		r.with(&cfg, &c)
	}
	cfg.Storage.Folder = Folder(r.spec, c.Nonce, op == tiers.Read, 0)
	load := New(c)
	if r.hook != nil {
		return kvbench.Run(t.Context(), cfg, hooked{load, r.hook})
	}
	return kvbench.Run(t.Context(), cfg, load)
}

// TestAllFilesAreMadeBeforeTheFirstByte: the reads of a filesystem that allocates blocks would
// otherwise wait behind the bytes of earlier files.
func TestAllFilesAreMadeBeforeTheFirstByte(t *testing.T) {
	r := newRuns(t)
	count := 0
	for a := range r.spec.Accelerators {
		count += len(r.spec.Files(a))
	}
	var mu sync.Mutex
	made, early := 0, 0
	r.hook = func(_ context.Context, e faults.Event) error {
		mu.Lock()
		defer mu.Unlock()
		switch e.Call {
		case faults.Create:
			made++
		case faults.Write:
			if made%count != 0 {
				early++
			}
		}
		return nil
	}
	_, err := r.run(t, tiers.Write, 2, true)
	require.NoError(t, err)
	assert.Equal(t, 2*count, made)
	assert.Zero(t, early, "writes before the last file of a checkpoint was made")
}

// TestAFileThatCannotBeMade: the others are not written, and none stays.
func TestAFileThatCannotBeMade(t *testing.T) {
	r := newRuns(t)
	full := faults.On(faults.Create, 3, syscall.ENOSPC)
	var wrote atomic.Bool
	r.hook = func(ctx context.Context, e faults.Event) error {
		wrote.Store(wrote.Load() || e.Call == faults.Write)
		return full(ctx, e)
	}
	_, err := r.run(t, tiers.Write, 1, false)
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.False(t, wrote.Load(), "another file was written although one could not be created")
	assert.Empty(t, r.tree(t))
}

// tree lists what lies in the directory, but the marker: name and size.
func (r *runs) tree(t *testing.T) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	require.NoError(t, filepath.Walk(r.dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && path != r.marker() {
			name, _ := filepath.Rel(r.dir, path)
			found[name] = info.Size()
		}
		return err
	}))
	return found
}

func (r *runs) marker() string { return filepath.Join(r.dir, r.spec.Folder(), ".kvbench.json") }

// wanted is the expected files after that many checkpoints, without the first ones.
func (r *runs) wanted(from, to int) map[string]int64 {
	list := map[string]int64{}
	for step := from; step <= to; step++ {
		for a := range r.spec.Accelerators {
			for _, f := range r.spec.Files(a) {
				list[filepath.Join(r.spec.Folder(), files.Step(step), f.Name)] = f.Bytes
			}
		}
	}
	return list
}

func TestWhatWasWrittenIsReadBack(t *testing.T) {
	r := newRuns(t)
	r.writtenIsReadBack(t, 8)
	// Generated before, each chunk of a checkpoint has a buffer.
	before := Config{Facts: Facts{Spec: r.spec}, Chunk: testChunk, Before: true}
	buffers := before.BuffersOf(0) + before.BuffersOf(1)
	r.with = func(cfg *kvbench.Config, c *Config) {
		c.Before, cfg.Storage.Use.Exactly = true, buffers
	}
	r.writtenIsReadBack(t, buffers)
}

func (r *runs) writtenIsReadBack(t *testing.T, buffers int) {
	t.Helper()
	written, err := r.run(t, tiers.Write, 2, true)
	require.NoError(t, err)
	assert.Equal(t, result.StatusComplete, written.Status)
	assert.Equal(t, result.EndedByCount, written.EndedBy)
	assert.Equal(t, r.wanted(1, 2), r.tree(t))
	assert.FileExists(t, r.marker())

	w := written.Checkpoint
	_, bytes := r.spec.Totals()
	require.Len(t, w.Writes, 2)
	assert.Equal(t, 2, w.Writes[1].Index)
	assert.Equal(t, bytes, w.Writes[0].Bytes)
	assert.GreaterOrEqual(t, w.Writes[0].DurationNS, w.Writes[0].MinNS)
	assert.Equal(t, 2*bytes, written.Tiers[0].Write.Bytes)
	assert.EqualValues(t, 8, written.Requests.Operations)
	chunks := int64(0)
	for _, n := range r.wanted(1, 2) {
		chunks += (n + testChunk - 1) / testChunk
	}
	assert.Equal(t, chunks, w.Stages.Chunks)
	assert.EqualValues(t, buffers*testChunk, w.Stages.BufferBytes)
	assert.GreaterOrEqual(t, w.Stages.TotalNS, w.Stages.IONS)
	for _, run := range w.Writes {
		assert.Positive(t, *run.FlushNS)
		assert.LessOrEqual(t, *run.FlushNS, *w.FlushMaxNS)
		assert.LessOrEqual(t, *run.FlushNS, run.DurationNS)
	}

	// Repeatable, until the files are removed.
	for _, stay := range []bool{true, false} {
		read, err := r.run(t, tiers.Read, 2, stay)
		require.NoError(t, err)
		c := read.Checkpoint
		require.Len(t, c.Reads, 2)
		assert.Equal(t, 2*bytes, read.Tiers[0].Read.Bytes)
		assert.Equal(t, bytes, c.Reads[1].VerifiedBytes)
		assert.GreaterOrEqual(t, *c.GapNS, int64(0))
		assert.Equal(t, *c.GapNS+*c.FlushNS+c.Reads[0].DurationNS, *c.RecoveryNS)
		assert.GreaterOrEqual(t, *c.TotalNS, *c.RecoveryNS)
	}
	assert.Empty(t, r.tree(t))
	assert.NoFileExists(t, r.marker())
}

// Each accelerator reads what another one has written: the bytes that are compared are those of the
// file.
func TestTheNewestCheckpointsAreKept(t *testing.T) {
	r := newRuns(t)
	r.with = func(_ *kvbench.Config, c *Config) { c.Keep, c.Shift = 2, 1 }
	_, err := r.run(t, tiers.Write, 5, true)
	require.NoError(t, err)
	assert.Equal(t, r.wanted(4, 5), r.tree(t))
	read, err := r.run(t, tiers.Read, 2, false)
	require.NoError(t, err)
	assert.Equal(t, 4, read.Checkpoint.Reads[0].Index, "oldest first")
	assert.Empty(t, r.tree(t))
}

// Foreign files stay at any place.
func TestForeignFilesStay(t *testing.T) {
	own := Folder(specOf(t, "70b", 2, 16384), [16]byte{}, false, 0).Files
	const name = "zero_pp_rank_0_mp_rank_0_optim_states.pt"
	assert.True(t, own.Match("global_epoch1_step1/"+name))
	for _, foreign := range []string{"global_epoch1_step1/notes.txt", "global_epoch1_step1/x" + name,
		"global_epoch1_step1/" + name + ".old", "global_step7/" + name, "global_epoch1_step01/" + name,
		"global_epoch1_step1/deeper/" + name, "x/global_epoch1_step1/" + name} {
		assert.False(t, own.Match(foreign), foreign)
	}
}

// A read that finds another checkpoint than requested fails before it reads anything, and changes
// nothing.
func TestReadsFindWhatTheyAskFor(t *testing.T) {
	r := newRuns(t)
	_, err := r.run(t, tiers.Read, 1, false)
	assert.ErrorContains(t, err, "there is no checkpoint to read")
	assert.Empty(t, r.tree(t))

	_, err = r.run(t, tiers.Write, 2, true)
	require.NoError(t, err)
	before := r.tree(t)
	other := *r
	other.spec = specOf(t, "70b", 2, 8192)
	_, err = other.run(t, tiers.Read, 2, false)
	assert.ErrorContains(t, err, "there are checkpoints of 70b on 2 accelerators at a scale of "+
		"1/16384, not of 70b on 2 accelerators at a scale of 1/8192: give the same parameters")
	streams := contents{Model: files.StreamKey, Stream: 5}
	assert.ErrorContains(t, streams.check([]byte(`{"model": "stream", "stream": 777}`)),
		"there are checkpoints of a stream of 777 bytes, not of a stream of 5 bytes")
	_, err = r.run(t, tiers.Read, 3, true)
	assert.ErrorContains(t, err, "-checkpoint-reads: at most 2")
	assert.Equal(t, before, r.tree(t))

	name := filepath.Join(r.dir, r.spec.Folder(), files.Step(2), r.spec.Files(1)[0].Name)
	require.NoError(t, os.Truncate(name, 5000))
	_, err = r.run(t, tiers.Read, 2, true)
	assert.ErrorContains(t, err, "the file has 5000 bytes, it should have")
}

// One wrong byte fails the trial, whose files then go.
func TestAMismatchFailsTheTrial(t *testing.T) {
	r := newRuns(t)
	_, err := r.run(t, tiers.Write, 1, true)
	require.NoError(t, err)
	f := r.spec.Files(1)[0]
	name := filepath.Join(r.dir, r.spec.Folder(), files.Step(1), f.Name)
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte("wrong"), f.Bytes-77)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	res, err := r.run(t, tiers.Read, 1, false)
	assert.ErrorContains(t, err, "wrong data in entry global_epoch1_step1/"+f.Name)
	assert.Equal(t, result.StatusFailed, res.Status)
	assert.Empty(t, r.tree(t))
}

// A time lets no checkpoint begin after it, and reads are of as many as there are.
func TestATimeEndsThePhase(t *testing.T) {
	r := newRuns(t)
	r.with = func(_ *kvbench.Config, c *Config) { c.Within = time.Nanosecond }
	res, err := r.run(t, tiers.Write, 5, true)
	require.NoError(t, err)
	assert.Len(t, res.Checkpoint.Writes, 1)
	res, err = r.run(t, tiers.Read, 5, false)
	require.NoError(t, err)
	assert.Len(t, res.Checkpoint.Reads, 1)
}

// TestTheGapEndsWithTheProcessThatReads: in two invocations what the second one takes to begin is
// no part of the recovery. With one it ends where reading begins.
func TestTheGapEndsWithTheProcessThatReads(t *testing.T) {
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		process time.Duration // after the last write
		gap     time.Duration
	}{{-time.Hour, 9 * time.Second}, {4 * time.Second, 4 * time.Second}} {
		l := New(Config{})
		l.mark.Ended, l.flush, l.process = &ended, time.Second, ended.Add(c.process)
		found := &result.Checkpoint{Reads: []result.CheckpointRun{{DurationNS: 2e9,
			Start: ended.Add(10 * time.Second).Format(time.RFC3339Nano)}}}
		l.recovery(found)
		assert.Equal(t, int64(c.gap), *found.GapNS)
		assert.Equal(t, int64(c.gap+3*time.Second), *found.RecoveryNS)
	}
}

// A trial that ends before it has prepared anything has a result, too.
func TestATrialThatEndsAtOnce(t *testing.T) {
	spec := specOf(t, "70b", 2, 16384)
	for _, op := range []tiers.Op{tiers.Write, tiers.Read} {
		in := &record.Info{}
		New(Config{Facts: Facts{Spec: spec, Op: op}, Count: 2, Chunk: testChunk}).Report(in)
		_, bytes := spec.Totals()
		assert.Equal(t, bytes, in.Result.Checkpoint.Bytes)
		assert.Empty(t, in.Result.Checkpoint.Writes)
		assert.Empty(t, in.Result.Checkpoint.Reads)
	}
}
