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
	"kvbench/tracing/host"
	"kvbench/workloads"
	files "kvbench/workloads/checkpoint"
)

// Config says what one trial does: it writes checkpoints, or reads those that are there.
type Config struct {
	Spec files.Spec
	Op   tiers.Op
	// Number of checkpoints, at least 1. Within > 0: none begins later than so long after the
	// first.
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

	// Keep is how many checkpoints, the newest, there are at most while more are written; 0 = all.
	Keep int
	// Stay leaves the files of a run that has written them all where they are. A run that reads
	// another run's keeps them from the start, see StorageConfig.KeepFiles.
	Stay bool
	// Shift: accelerator a reads what (a + Shift) mod all of them wrote.
	Shift int
	Flush Flush // before the first read

	Verify content.Verify
	Nonce  [16]byte // of the bytes that are written

	// Rules are what is known of the closed division's before the trial; see Facts.
	Rules Facts
}

// Flush says how the page cache is emptied between writing and reading.
type Flush string

// The ways: not at all, file by file, or all of the machine's, which root alone may.
const (
	FlushNone    Flush = "none"
	FlushFadvise Flush = "fadvise"
	FlushDrop    Flush = "drop"
)

// sampleEvery is in how many bytes sampled verification looks at one 4 KiB block.
const sampleEvery = 1 << 20

// Load is the workload: one trial of writes or of reads. It is for one trial.
type Load struct {
	Config

	env     *kvbench.Env
	folder  kvbench.Folder
	tier    tiers.Tier
	content *content.Content
	device  host.Device
	mark    contents
	buffers [][]tiers.Buffer // of each accelerator that writes
	files   [][]files.File   // of each of all accelerators

	// What came of it. The lock is for reports while it goes on.
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

// New makes a workload. What a result reports is there from now on: a trial may end before anything
// was prepared.
func New(cfg Config) *Load {
	l := &Load{Config: cfg, process: processBegun, flushes: result.NewHistogram("ns")}
	for a := range l.Spec.Accelerators {
		l.files = append(l.files, l.Spec.Files(a))
	}
	return l
}

// adopter is a tier that takes over what another run left in it.
type adopter interface {
	Adopt(ctx context.Context, o tiers.Object) error
}

// Phase implements kvbench.Workload: it ends when all is done. Clients meet before each
// checkpoint, not before the phase.
func (l *Load) Phase() kvbench.Phase { return kvbench.Phase{Name: "checkpoint"} }

// Prepare implements kvbench.Workload: it gives each accelerator its buffers, or finds the files to
// read and empties the page cache.
func (l *Load) Prepare(ctx context.Context, e *kvbench.Env) error {
	l.env = e
	// What the trial before has left would be memory of this one: many ranks have it many times.
	debug.FreeOSMemory()
	i := 0
	for i < len(e.Levels) && e.Levels[i].Kind != tiers.Storage {
		i++
	}
	if l.folder = e.Folder(); i == len(e.Levels) || l.folder == nil {
		return errors.New("a checkpoint needs a storage tier with a folder")
	}
	l.tier = e.Levels[i].Tier
	// Without one there is a reason, which the result reports with the device counters: reads are
	// then judged by the page cache alone.
	if e.Dir != nil {
		l.device, _ = host.BackingDevice(e.Dir.Path())
	}
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
		// At least one: a phase of nothing is no result.
		if l.Within > 0 && n > 0 && e.Clock.Now()-from >= l.Within {
			break
		}
		// The reference sleeps here, too: a training run computes between its checkpoints, and the
		// device may use the time as it likes.
		if err := e.Clock.Sleep(ctx, l.Pause); err != nil {
			return err
		}
		step := n + 1
		if l.Op == tiers.Read {
			step += l.oldest() - 1
		}
		run, err := one(ctx, step)
		if err != nil {
			return fmt.Errorf("%s checkpoint %d: %w", verb(l.Op), step, err)
		}
		l.mu.Lock()
		l.runs, l.ended = append(l.runs, run), time.Now()
		l.mu.Unlock()
	}
	// A checkpoint is there when all clients have written their part. What the marker has for the
	// end is later than the last of them by some round trips of messages.
	if e.Group.Size() > 1 {
		if _, err := e.Group.Barrier(ctx, "the end of all ranks"); err != nil {
			return err
		}
		l.mu.Lock()
		l.ended = time.Now()
		l.mu.Unlock()
	}
	// Only now may a run read them: a marker without an end is that of a run that was killed.
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
	// A run that fails before leaves nothing: half a checkpoint is of no use.
	if l.Stay {
		l.folder.Stay()
	}
	e.End(result.EndedByCount)
	return nil
}

// verb names a direction, in errors and in the names of barriers.
func verb(op tiers.Op) string {
	if op == tiers.Read {
		return "read"
	}
	return "write"
}

// start is the moment at which all accelerators of all clients begin together, and its reading of
// the wall clock: the hook between preparation and window.
func (l *Load) start(ctx context.Context, step int) (time.Duration, time.Time, error) {
	_, err := l.env.Group.Barrier(ctx, fmt.Sprintf("%s checkpoint %d", verb(l.Op), step))
	since, wall := l.env.Clock.Now(), time.Now()
	if err == nil {
		l.env.Group.Opened()
	}
	return since, wall, err
}

// each runs do for all accelerators of this client concurrently and returns how long each took
// since a moment. The first failure ends all of them, and is returned: there is no checkpoint
// without the files of all.
func (l *Load) each(ctx context.Context, since time.Duration,
	do func(ctx context.Context, i int) error) ([]time.Duration, error) {
	took := make([]time.Duration, l.Count)
	all, each := errgroup.WithContext(ctx)
	for i := range l.Count {
		all.Go(func() error {
			err := do(each, i)
			took[i] = l.env.Clock.Now() - since
			return err
		})
	}
	err := cmp.Or(all.Wait(), context.Cause(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range took {
		l.worked += d
		l.waited += slices.Max(took) - d
	}
	return took, err
}

// bytes are those of this client's accelerators.
func (l *Load) bytes() (n int64) {
	for _, o := range l.of(0) {
		n += o.Size
	}
	return n
}

// source is whose files accelerator i of this client moves.
func (l *Load) source(i int) int {
	a := l.First + i
	if l.Op == tiers.Read {
		a += l.Shift
	}
	return a % l.Spec.Accelerators
}

// path is where a file lies.
func (l *Load) path(o tiers.Object) string { return filepath.Join(l.folder.Path(), o.Key) }

// stat reads the counters of the device, nil where there are none.
func (l *Load) stat() *host.BlockStat {
	if l.device.Name == "" || l.device.Reason != "" {
		return nil
	}
	s, err := l.device.ReadStat()
	if err != nil {
		return nil
	}
	return &s
}

// moved counts a file that was written or read: an operation with its times.
func (l *Load) moved(a int, o tiers.Object, tm tiers.Timing) {
	phase, purpose := tiers.Prefill, workloads.ForPrefill
	if l.Op == tiers.Read {
		phase, purpose = tiers.Decode, workloads.ForDecodeRead
	}
	// An operation without a request, as those of plain I/O are: its time is that of its file.
	now := l.env.Clock.Now()
	l.env.Rec.Request(
		record.RequestSample{At: now, Shard: a, Storage: tm.IO(),
			Time: result.RequestTime{EndToEnd: int64(tm.IO())}},
		record.OpSample{At: now, Shard: a, Level: tiers.Storage, Op: l.Op, Phase: phase,
			Purpose: purpose, Bytes: o.Size, First: l.Op == tiers.Read, Timing: tm})
}

// chunk counts a request.
func (l *Load) chunk(a int, c tiers.Chunk) {
	phase := tiers.Prefill
	if c.Op == tiers.Read {
		phase = tiers.Decode
	}
	l.env.Rec.Chunk(a, tiers.Storage, phase, c)
}

// verified is how many of a file's bytes are compared when it is read.
func (l *Load) verified(size int64) int64 {
	switch l.Verify {
	case content.VerifyNone:
		return 0
	case content.VerifyFull:
		return size
	}
	const block = 4096
	// As the transfer does it: a block in each part of a chunk, a chunk being no larger than one.
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
	// Accelerators have files to move from the start of a checkpoint to the last of them, and wait
	// for the slowest one then. Pauses between checkpoints are neither work nor wait.
	in.CompletionUnit, in.Workload.Workers = result.UnitOperation, l.Count
	in.Harness.WorkerBusyNS, in.Harness.WorkerIdleNS = int64(l.worked), int64(l.waited)
	if l.Count < s.Accelerators {
		c.First, c.Count = new(l.First), new(l.Count)
	}
	in.IO.ChunkBytes, in.IO.Depth = int(l.Chunk), l.Writers
	runs := append([]result.CheckpointRun{}, l.runs...)
	// An interrupted trial reports what it had: its workers may still be at it.
	facts := l.Rules
	facts.Spec, facts.Op, facts.Runs, facts.Verify = s, l.Op, runs, l.Verify
	if l.Op == tiers.Write {
		c.Writes = runs
		c.Flushes(l.flushes)
		in.Times = result.Histograms{result.CheckpointFlushes: l.flushes}
		c.Stages = l.times.report()
		c.Stages.ChunkBytes, c.Stages.Buffers = l.Chunk, l.Buffers
		// Threads that make content concurrently share the time that it takes.
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

// processBegun is when this process did, within some milliseconds.
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

// recovery is what passed between the last write and the end of the first read.
func (l *Load) recovery(c *result.Checkpoint) {
	if len(c.Reads) == 0 || l.mark.Ended == nil {
		return
	}
	begun, err := time.Parse(time.RFC3339Nano, c.Reads[0].Start)
	if err != nil { // it was made here
		return
	}
	// The two times come from two processes, perhaps, and so from the wall clock: with one that was
	// set in between, the gap is wrong, and a negative one says so. A run that reads what another
	// process wrote has begun with its own: what it takes to start, to meet the other clients and
	// to look for the files is the suite's time, and no training run waits for it.
	c.FlushNS = new(int64(l.flush))
	if c.GapNS = new(int64(begun.Sub(*l.mark.Ended) - l.flush)); l.mark.Ended.Before(l.process) {
		c.GapNS = new(int64(l.process.Sub(*l.mark.Ended)))
	}
	c.RecoveryNS = new(*c.GapNS + *c.FlushNS + c.Reads[0].DurationNS)
	if l.mark.Begun != nil {
		c.TotalNS = new(int64(l.ended.Sub(*l.mark.Begun)))
	}
}

// Close gives back the load's buffers: not one whose request the device has not completed.
func (l *Load) Close() error {
	for _, bufs := range l.buffers {
		l.env.Pool.Put(bufs...)
	}
	l.buffers = nil
	return nil
}
