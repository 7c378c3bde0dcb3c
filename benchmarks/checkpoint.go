package benchmarks

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"kvbench/kvbench"
	"kvbench/kvbench/checkpoint"
	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/filetier"
	"kvbench/tiers/workdir"
	"kvbench/tracing/host"
	files "kvbench/workloads/checkpoint"
)

// checkpointParts returns the parts of a checkpoint benchmark, write and read. Each has a line and a
// result.
func checkpointParts(v *params.Values) (list []part) {
	model := "model=" + v.Checkpoint.Model + "/"
	// The name of the point contains the model, or the benchmark has no model.
	if strings.Contains(v.Point, "checkpoint-model=") || v.Bench.Name != "Checkpoint" {
		model = ""
	}
	direction := func(op tiers.Op, follows bool) {
		list = append(list, part{name: model + "op=" + op.String(), follows: follows,
			load: func(_ *session, t *trial, cfg *kvbench.Config) (kvbench.Workload, error) {
				return checkpointLoad(v, cfg, op, len(t.group) > 1)
			}})
	}
	writes, reads, _ := v.CheckpointRuns()
	if writes > 0 {
		direction(tiers.Write, false)
	}
	if reads > 0 {
		direction(tiers.Read, writes > 0)
	}
	return list
}

// checkpointStorage sets the storage of checkpoints: files with the checkpoints' own names, and the
// capacity of as many checkpoints as are kept at a time.
func checkpointStorage(v *params.Values, c *kvbench.StorageConfig) error {
	spec, err := v.CheckpointSpec()
	if err != nil {
		return err
	}
	_, bytes := spec.Totals()
	c.StorageBytes, c.Nonce = bytes*int64(checkpointsKept(v)), v.TrialNonce()
	c.Roots = []kvbench.Root{{Dir: cacheDir(v)}}
	c.Layout.Kind = tiers.LayoutNamed
	c.Advice = map[string]filetier.Advice{"none": filetier.AdviseNothing,
		"sequential": filetier.AdviseSequential}[v.Fadvise]
	if c.Bucket, err = bucketConfig(v); c.Bucket != nil {
		// A multipart part is one chunk, sent from its buffer. RangeSize is the bytes that one GET
		// reads.
		b := c.Bucket
		b.MultipartAbove, b.PartSize, b.RangeSize = v.Stream.Chunk, v.Stream.Chunk, v.StreamRange()
		b.Store.Connections = max(v.Stream.Writers, v.StreamDepth())*spec.Accelerators + 8
	}
	first, count := v.CheckpointShare(spec)
	c.Use = buffer.Use{Chunk: int(v.Stream.Chunk), Depth: v.Stream.Writers, Workers: count}
	own := checkpoint.Config{Facts: checkpoint.Facts{Spec: spec}, Chunk: v.Stream.Chunk,
		Buffers: v.Stream.Buffers, Before: v.Stream.Generate == "before"}
	for a := range count {
		c.Use.Exactly += own.BuffersOf(first + a)
	}
	return err
}

// checkpointsKept returns the largest number of checkpoints that exist at a time. If the run only
// reads, it needs no free space, and its result shows this capacity as the size of the tier.
func checkpointsKept(v *params.Values) int {
	writes, reads, _ := v.CheckpointRuns()
	kept := max(writes, reads)
	if n := v.Checkpoint.Keep; n > 0 {
		kept = min(kept, n)
	}
	return kept
}

// checkpointRoom returns how many bytes of a checkpoint the filesystem of dir has to hold: the sum over
// the ranks that share it. Ranks write different amounts, so it counts the ranks that write most.
func checkpointRoom(v *params.Values, spec files.Spec, dir string) int64 {
	count := spec.Accelerators / max(1, v.Ranks)
	each := make([]int64, max(1, v.Ranks))
	for a := range count * len(each) {
		for _, f := range spec.Files(a) {
			each[a/count] += f.Bytes
		}
	}
	slices.Sort(each)
	sum := int64(0)
	for _, bytes := range each[max(0, len(each)-sharers(v, []string{dir})[0]):] {
		sum += bytes
	}
	return sum
}

// checkpointFeasible checks what depends on this machine: the free space for the checkpoints, and the
// memory for the buffers.
func checkpointFeasible(v *params.Values, c kvbench.StorageConfig, err error) (bad params.Violations) {
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if err != nil {
		return params.Violations{err.Error()}
	}
	spec, _ := v.CheckpointSpec()
	memory := params.EstimateMemory(c.Use.Bytes(), 0, kvbench.Shards())
	cure := "fewer -stream-buffers, or a smaller -stream-chunk"
	if v.Stream.Generate == "before" {
		cure = "-stream-generate during, or a smaller -checkpoint-scale or -stream-size-gb"
	}
	if err := params.CheckMemory(memory, cure, v.LocalRanks, host.ReadLimits()); err != nil {
		say("%v", err)
	}
	bad = append(bad, threadsFit(v, c.Use)...)
	if c.Bucket != nil { // an object store reports no free space
		return bad
	}
	// Add one percent for the filesystem's metadata: a disk that is full in the last file costs the
	// whole run.
	writes, _, _ := v.CheckpointRuns()
	dir := cacheDir(v)
	need := checkpointRoom(v, spec, dir) * int64(checkpointsKept(v))
	need += need / 100
	fs, err := host.FilesystemOf(dir)
	folder := checkpoint.Folder(spec, c.Nonce, writes == 0, v.Rank)
	fs.Free += workdir.Reclaimable(workdir.Options{CacheDir: dir, Rank: v.Rank, Folder: folder}).Freed
	bad = append(bad, startable(v, folder)...)
	switch {
	case err != nil:
		say("-cache-dir: %v", err)
	// A run that only reads needs no free space.
	case writes > 0 && need > fs.Free:
		say("-cache-dir: must have room for the checkpoints, %s with 1 %% for the filesystem, and "+
			"%s has %s free; give fewer -checkpoint-writes, -checkpoint-keep, or a smaller "+
			"-checkpoint-scale", units.Bytes.Text(need), dir, units.Bytes.Text(fs.Free))
	}
	// Refuse this now, not after an hour of writing.
	if v.Checkpoint.Flush == "drop" && os.Geteuid() != 0 {
		say("-checkpoint-flush: must be none or fadvise for who is not root, given drop: only " +
			"root may empty the page cache of the machine")
	}
	return append(bad, resultsApart(v)...)
}

// checkpointLoad is one trial of a direction, of both in turns or of one alone.
func checkpointLoad(v *params.Values, cfg *kvbench.Config, op tiers.Op, both bool) (
	*checkpoint.Load, error) {
	spec, err := v.CheckpointSpec()
	if err != nil {
		return nil, err
	}
	writes, reads, within := v.CheckpointRuns()
	first, count := v.CheckpointShare(spec)
	stay := both || reads == 0 // for another trial, or another run
	if op == tiers.Read {
		stay = writes == 0
	}
	c := checkpoint.Config{Facts: checkpoint.Facts{Spec: spec, Op: op, Verify: cfg.Storage.Verify,
		Flush: checkpoint.Flush(v.Checkpoint.Flush), Writes: writes, Reads: reads,
		PerHost: count * max(1, v.LocalRanks), Objects: v.OnObjects(),
		Apart:  v.OnObjects() || !host.SameFilesystem(cacheDir(v), v.ResultsDir),
		Memory: v.AcceleratorMemory(), Buffered: !v.Direct() && !v.OnObjects()},
		Number: writes, Within: within, Pause: v.Checkpoint.Pause, First: first, Count: count,
		Chunk: v.Stream.Chunk, Buffers: v.Stream.Buffers, Producers: v.StreamProducers(),
		Before:  v.Stream.Generate == "before",
		Writers: v.Stream.Writers, Depth: v.StreamDepth(), Readers: v.Stream.Readers,
		Keep: v.Checkpoint.Keep, Stay: stay, Shift: v.CheckpointShift(spec),
		Nonce: cfg.Storage.Nonce}
	c.HostMemory, _ = host.ReadLimits().Available()
	if op == tiers.Read {
		c.Number, cfg.Storage.Use.Exactly = reads, c.Buffers*count
		cfg.Storage.Depth = c.Depth // also the number of requests in flight per object
		// Keep the files of another run in any case.
		cfg.Storage.KeepFiles = cfg.Storage.KeepFiles || stay
	}
	cfg.Storage.Folder = checkpoint.Folder(spec, cfg.Storage.Nonce, op == tiers.Read,
		v.Rank)
	// Nothing was removed before a read, so waiting for discards would only lengthen the gap.
	cfg.AwaitDiscards = op == tiers.Write
	return checkpoint.New(c), nil
}
