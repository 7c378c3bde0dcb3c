package checkpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/content"
	files "kvbench/workloads/checkpoint"
)

// Config describes one trial: it writes checkpoints, or reads existing ones.
type Config struct {
	Facts
	// Number of checkpoints, at least 1. Within > 0: none begins later than Within after the first.
	Number int
	Within time.Duration
	Pause  time.Duration // before each, not timed
	// First and Count are the accelerators of this client.
	First, Count int

	Chunk     int64 // bytes of a request, a multiple of 4096
	Buffers   int   // of each accelerator, at least 2
	Producers int   // of all
	Writers   int   // chunks of a file in flight
	Depth     int   // the same for reading, at most Buffers: of all Readers
	Readers   int   // ranges of a file that are read concurrently, 0 = one

	// Keep is the largest number of checkpoints, the newest, that exist while more are written; 0 =
	// all.
	Keep int
	// Stay keeps the files of a run that has written all of them. A run that reads another run's
	// files keeps them from the start, see StorageConfig.KeepFiles.
	Stay bool
	// Shift: accelerator a reads the files of accelerator (a + Shift) mod all.
	Shift int

	Nonce [16]byte // of the bytes that are written
}

// Flush is how the page cache is emptied between writing and reading.
type Flush string

// Not at all, file by file, or the machine's whole cache, which needs root.
const (
	FlushNone    Flush = "none"
	FlushFadvise Flush = "fadvise"
	FlushDrop    Flush = "drop"
)

// sampleEvery: sampled verification checks one 4 KiB block of so many bytes.
const sampleEvery = 1 << 20

// Load is the workload: one trial of writes or of reads. It is for one trial.
type Load struct {
	Config

	env     *kvbench.Env
	folder  kvbench.Folder
	tier    tiers.Tier
	content *content.Content
	mark    contents
	buffers [][]tiers.Buffer // of each accelerator that writes
	files   [][]files.File   // of each of all accelerators

	// The outcome. The lock is for reports during the trial.
	mu      sync.Mutex
	runs    []result.CheckpointRun
	flushes *result.Histogram // of files, or completions of objects, ns
	longest *int64            // of the flushes of this checkpoint
	flush   time.Duration     // of the page cache
	process time.Time         // when it began
	worked  time.Duration     // of accelerators, summed
	waited  time.Duration     // for the slowest of this client's, also summed
	ended   time.Time         // the last one
	times   times
}

var _ kvbench.Workload = (*Load)(nil)

// New makes a workload. The fields that a result reports are set from now on: a trial may end
// before Prepare.
func New(cfg Config) *Load {
	l := &Load{Config: cfg, process: processBegun, flushes: result.NewHistogram("ns")}
	for a := range l.Spec.Accelerators {
		l.files = append(l.files, l.Spec.Files(a))
	}
	return l
}

// adopter is a tier that takes over another run's files.
type adopter interface {
	Adopt(ctx context.Context, o tiers.Object) error
}

// Phase implements kvbench.Workload: it ends with the last checkpoint. Clients meet before each
// checkpoint, not before the phase.
func (l *Load) Phase() kvbench.Phase { return kvbench.Phase{} }

// Prepare implements kvbench.Workload: it gives each accelerator its buffers, or finds the files to
// read and empties the page cache.
func (l *Load) Prepare(ctx context.Context, e *kvbench.Env) error {
	l.env = e
	// The last trial's garbage would be memory of this one, once per rank.
	debug.FreeOSMemory()
	level, err := e.Level(tiers.Storage)
	if l.folder = e.Folder(); err != nil || l.folder == nil {
		return errors.New("a checkpoint needs a storage tier with a folder")
	}
	l.tier = level.Tier
	if err := json.Unmarshal(l.folder.Contents(), &l.mark); err != nil {
		return fmt.Errorf("the marker in %s: %w", l.folder.Path(), err)
	}
	if err := e.Rest(ctx); err != nil {
		return err
	}
	defer e.Showing("preparing", 0)()
	if l.Op == tiers.Read {
		return l.prepareReads(ctx)
	}
	l.content = content.New(l.Nonce, 0)
	for range l.Count {
		bufs, err := e.Pool.Get(ctx, l.Buffers, nil)
		if err != nil {
			return err
		}
		for i := range bufs {
			bufs[i].B = bufs[i].B[:l.Chunk]
		}
		l.buffers = append(l.buffers, bufs)
	}
	return nil
}

// Run implements kvbench.Workload.
func (l *Load) Run(ctx context.Context, e *kvbench.Env) error {
	begun := time.Now()
	one := l.write
	if l.Op == tiers.Read {
		one = l.read
	}
	from := e.Clock.Now()
	for n := range l.Number {
		// At least one: an empty phase is no result.
		if l.Within > 0 && n > 0 && e.Clock.Now()-from >= l.Within {
			break
		}
		// The reference sleeps here, too: a training run computes between its checkpoints, and the
		// device may use the time.
		if err := e.Clock.Sleep(ctx, l.Pause); err != nil {
			return err
		}
		step := n + 1
		if l.Op == tiers.Read {
			step += l.oldest() - 1
		}
		run, err := one(ctx, step)
		if err != nil {
			return fmt.Errorf("%s checkpoint %d: %w", l.Op, step, err)
		}
		l.mu.Lock()
		l.runs, l.ended = append(l.runs, run), time.Now()
		l.mu.Unlock()
	}
	// A checkpoint is complete when all clients have written their part. The marker's end is later
	// than the last of them by some round trips of messages.
	if e.Group.Size() > 1 {
		if err := e.Group.Barrier(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		l.ended = time.Now()
		l.mu.Unlock()
	}
	// Only now may a run read them: a marker without an end belongs to a run that was killed.
	if l.Op == tiers.Write && !l.folder.Joined() {
		kept := len(l.runs)
		if l.Keep > 0 {
			kept = min(kept, l.Keep)
		}
		l.mark.Last, l.mark.Kept = len(l.runs), kept
		l.mark.Begun, l.mark.Ended = &begun, &l.ended
		text, err := json.Marshal(l.mark)
		if err == nil {
			err = l.folder.SetContents(text)
		}
		if err != nil {
			return err
		}
	}
	// A run that fails before leaves nothing: half a checkpoint is useless.
	if l.Stay {
		l.folder.Stay()
	}
	e.End(result.EndedByCount)
	return nil
}

// start waits at the group's barrier and returns the moment at which all accelerators of all
// clients begin, and its wall-clock time. The windows of the clients open there.
func (l *Load) start(ctx context.Context) (time.Duration, time.Time, error) {
	err := l.env.Group.Barrier(ctx)
	since, wall := l.env.Clock.Now(), time.Now()
	if err == nil {
		l.env.Group.Opened()
	}
	return since, wall, err
}

// all runs do for all accelerators of this client concurrently. The first failure ends all of them
// and is returned: a checkpoint needs the files of all.
func (l *Load) all(ctx context.Context, do func(ctx context.Context, i int) error) error {
	all, each := errgroup.WithContext(ctx)
	for i := range l.Count {
		all.Go(func() error { return do(each, i) })
	}
	return cmp.Or(all.Wait(), context.Cause(ctx))
}

// timed is all, with each accelerator's time since a moment.
func (l *Load) timed(ctx context.Context, since time.Duration,
	do func(ctx context.Context, i int) error) ([]time.Duration, error) {
	took := make([]time.Duration, l.Count)
	err := l.all(ctx, func(ctx context.Context, i int) error {
		err := do(ctx, i)
		took[i] = l.env.Clock.Now() - since
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range took {
		l.worked += d
		l.waited += slices.Max(took) - d
	}
	return took, err
}

// bytes is the size of the files of this client's accelerators.
func (l *Load) bytes() (n int64) {
	for _, o := range l.of(0) {
		n += o.Size
	}
	return n
}

// source is the accelerator whose files accelerator i of this client moves.
func (l *Load) source(i int) int {
	a := l.First + i
	if l.Op == tiers.Read {
		a += l.Shift
	}
	return a % l.Spec.Accelerators
}

// path is the path of a file.
func (l *Load) path(o tiers.Object) string { return filepath.Join(l.folder.Path(), o.Key) }

// moved counts a file that was written or read: an operation with its times.
func (l *Load) moved(a int, o tiers.Object, tm tiers.Timing) {
	// An operation without a request, like plain I/O's: its time is its file's.
	now := l.env.Clock.Now()
	l.env.Rec.Request(
		record.RequestSample{At: now, Shard: a, Storage: tm.IO(),
			Time: result.RequestTime{EndToEnd: int64(tm.IO())}},
		record.PlainOp(now, a, tiers.Storage, l.Op, o, tm))
}

// chunk counts a request.
func (l *Load) chunk(a int, c tiers.Chunk) {
	l.env.Rec.Chunk(a, tiers.Storage, record.PlainPhase(c.Op), c)
}

// verified returns the bytes of a file that are compared when it is read.
func (l *Load) verified(size int64) int64 {
	switch l.Verify {
	case content.VerifyNone:
		return 0
	case content.VerifyFull:
		return size
	}
	const block = 4096
	// Like the transfer: a block in each part of a chunk, and a chunk is no larger than a part.
	every := min(sampleEvery, l.Chunk)
	return size/every*block + min(block, size%every)
}

// Report implements kvbench.Workload.
func (l *Load) Report(in *record.Info) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.Spec
	c := &result.Checkpoint{Model: s.Name, Scale: s.Scale, Accelerators: s.Accelerators,
		Mode: "full", Zero: s.Zero, Tensor: s.Tensor, Pipeline: s.Pipeline, Data: s.Data()}
	if s.Subset() {
		c.Mode = "subset"
	}
	c.Files, c.Bytes = s.Totals()
	// Accelerators move files from the start of a checkpoint to their last one, and then wait for
	// the slowest. Pauses between checkpoints are neither work nor wait.
	in.CompletionUnit, in.Workload.Workers = result.UnitOperation, l.Count
	in.Harness.WorkerBusyNS, in.Harness.WorkerIdleNS = int64(l.worked), int64(l.waited)
	if l.Count < s.Accelerators {
		c.First, c.Count = new(l.First), new(l.Count)
	}
	in.IO.ChunkBytes, in.IO.Depth = int(l.Chunk), l.Writers
	runs := append([]result.CheckpointRun{}, l.runs...)
	// An interrupted trial reports its data so far: its workers may still run.
	facts := l.Facts
	facts.Runs = runs
	if l.Op == tiers.Write {
		c.Writes = runs
		c.Flushes(l.flushes)
		in.Times = result.Histograms{result.CheckpointFlushes: l.flushes}
		c.Stages = l.times.report()
		c.Stages.ChunkBytes, c.Stages.Buffers = l.Chunk, l.Buffers
		// Threads that generate content concurrently share its time.
		alone := float64(c.Stages.GenerationNS) / 1e9 / float64(max(1, l.times.producers))
		if rate := float64(l.bytes()) * float64(len(runs)) / alone; !math.IsInf(rate, 0) &&
			!math.IsNaN(rate) {
			c.Stages.GenerationRate = &rate
		}
	} else {
		in.IO.Depth = l.Depth
		c.Reads, c.Flush = runs, string(cmp.Or(l.Flush, FlushNone))
		l.recovery(c)
		facts.Gap = c.GapNS
	}
	c.Rules, c.Notes = facts.Rules(), facts.Notes()
	in.Warnings = append(in.Warnings, facts.Warnings()...)
	in.Result.Checkpoint = c
}

// processBegun is the start of this process, within some milliseconds.
var processBegun = time.Now()

// flushed notes how long a flush took.
func (l *Load) flushed(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushes.Record(int64(d))
	if l.longest == nil || int64(d) > *l.longest {
		l.longest = new(int64(d))
	}
}

// recovery is the time from the last write to the end of the first read.
func (l *Load) recovery(c *result.Checkpoint) {
	if len(c.Reads) == 0 || l.mark.Ended == nil {
		return
	}
	begun, err := time.Parse(time.RFC3339Nano, c.Reads[0].Start)
	if err != nil { // it was made here
		return
	}
	// The two times may come from two processes, and so from the wall clock: if it was set in
	// between, the gap is wrong, and a negative one shows it. A run that reads another process's
	// files counts from its own start: the time of starting, meeting the other clients and finding
	// the files is the suite's, and a training run would not have it.
	c.FlushNS = new(int64(l.flush))
	if c.GapNS = new(int64(begun.Sub(*l.mark.Ended) - l.flush)); l.mark.Ended.Before(l.process) {
		c.GapNS = new(int64(l.process.Sub(*l.mark.Ended)))
	}
	c.RecoveryNS = new(*c.GapNS + *c.FlushNS + c.Reads[0].DurationNS)
	if l.mark.Begun != nil {
		c.TotalNS = new(int64(l.ended.Sub(*l.mark.Begun)))
	}
}

// Close frees the load's buffers, except those whose request the device has not completed.
func (l *Load) Close() error {
	for _, bufs := range l.buffers {
		l.env.Pool.Put(bufs...)
	}
	l.buffers = nil
	return nil
}
