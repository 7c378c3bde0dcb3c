package checkpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
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
	Buffers   int   // per accelerator, at least 2; writes with Before have one for each chunk
	Before    bool  // a checkpoint is generated before its time starts, not while it is written
	Producers int   // threads that generate content, for all accelerators of this client
	Writers   int   // chunks of a file in flight while it is written
	Depth     int   // chunks of a file in flight while it is read, over all Readers; at most Buffers
	Readers   int   // ranges of a file that are read concurrently, 0 = 1

	// Keep is the number of checkpoints that stay while more are written. The oldest is removed first. 0
	// = all.
	Keep int
	// Stay: keep the files after all checkpoints are written. A run that only reads keeps the files by
	// StorageConfig.KeepFiles.
	Stay bool
	// Shift: accelerator a reads the files of accelerator (a + Shift) mod Spec.Accelerators.
	Shift int

	Nonce [16]byte // seed of the written bytes
}

// Flush is the method to empty the page cache between writes and reads.
type Flush string

// FlushNone empties nothing. FlushFadvise empties file by file. FlushDrop empties the whole page cache
// of the machine, which needs root.
const (
	FlushNone    Flush = "none"
	FlushFadvise Flush = "fadvise"
	FlushDrop    Flush = "drop"
)

// sampleEvery: sampled verification checks one block of 4 KiB in every sampleEvery bytes.
const sampleEvery = 1 << 20

// Load is the workload of one trial, which writes or reads checkpoints.
type Load struct {
	Config

	env     *kvbench.Env
	folder  kvbench.Folder
	tier    tiers.Tier
	content *content.Content
	mark    contents
	pipe    *pipeline      // of writes
	files   [][]files.File // per accelerator of all clients

	// The outcome. mu guards it, because Report may run during the trial.
	mu      sync.Mutex
	runs    []result.CheckpointRun
	flushes *result.Histogram // times of file flushes or object completions, ns
	longest *int64            // ns of the longest flush of this checkpoint
	flush   time.Duration     // time to empty the page cache
	process time.Time         // start of the process
	worked  time.Duration     // busy time of the accelerators, summed
	waited  time.Duration     // waits for the client's slowest accelerator, summed
	ended   time.Time         // end of the last checkpoint
}

var _ kvbench.Workload = (*Load)(nil)

// New returns a workload. Report works also if the trial ends before Prepare.
func New(cfg Config) *Load {
	l := &Load{Config: cfg, process: processBegun, flushes: result.NewHistogram("ns"),
		pipe: &pipeline{chunk: cfg.Chunk, producers: cfg.Producers, writers: cfg.Writers,
			before: cfg.Before}}
	for a := range l.Spec.Accelerators {
		l.files = append(l.files, l.Spec.Files(a))
	}
	return l
}

// adopter is a tier that takes over another run's files.
type adopter interface {
	Adopt(ctx context.Context, o tiers.Object) error
}

// Phase implements kvbench.Workload. The window has no limit: it ends with the last checkpoint.
func (l *Load) Phase() kvbench.Phase { return kvbench.Phase{} }

// Forecast implements Workload. The load ends with the bytes of the last checkpoint.
func (l *Load) Forecast() kvbench.Forecast {
	f := kvbench.Forecast{Search: time.Duration(l.Number) * l.Pause, Moves: int64(l.Number) * l.bytes()}
	if l.Op == tiers.Write {
		f.WriteShare = 1
	}
	return f
}

// Prepare implements kvbench.Workload. Before writes it gets the buffers of each accelerator. Before
// reads it finds the files and empties the page cache.
func (l *Load) Prepare(ctx context.Context, e *kvbench.Env) error {
	l.env = e
	// Garbage of the last trial would add to the memory of this trial, in every rank.
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
	l.pipe.clock, l.pipe.fill = e.Clock, l.content.Fill
	for i := range l.Count {
		bufs, err := e.Pool.Get(ctx, l.BuffersOf(l.First+i), nil)
		if err != nil {
			return err
		}
		l.pipe.add(bufs)
	}
	return nil
}

// BuffersOf returns the number of buffers of an accelerator while checkpoints are written.
func (c *Config) BuffersOf(accelerator int) (n int) {
	if !c.Before {
		return c.Buffers
	}
	for _, f := range c.Spec.Files(accelerator) {
		n += int(Chunks(f.Bytes, c.Chunk))
	}
	return n
}

// Run implements kvbench.Workload.
func (l *Load) Run(ctx context.Context, e *kvbench.Env) error {
	begun := time.Now()
	one := l.write
	if l.Op == tiers.Read {
		one = l.read
	}
	from := e.Clock.Now()
	e.Suspend()
	for n := range l.Number {
		// The first checkpoint has no time limit.
		if l.Within > 0 && n > 0 && e.Clock.Now()-from >= l.Within {
			break
		}
		// MLPerf Storage also sleeps here. A training run computes between its checkpoints, and the
		// device may use that time for its own work.
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
	// A checkpoint is complete when all clients have written their parts. The end in the marker is late
	// by the time of the barrier.
	if e.Group.Size() > 1 {
		if err := e.Group.Barrier(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		l.ended = time.Now()
		l.mu.Unlock()
	}
	// The end in the marker allows other runs to read the checkpoints. A marker of a killed run has no
	// end.
	if l.Op == tiers.Write && !l.folder.Joined() {
		l.mark.Last, l.mark.Kept = len(l.runs), min(len(l.runs), cmp.Or(l.Keep, len(l.runs)))
		l.mark.Begun, l.mark.Ended = &begun, &l.ended
		text, err := json.Marshal(l.mark)
		if err == nil {
			err = l.folder.SetContents(text)
		}
		if err != nil {
			return err
		}
	}
	// A run that failed before removes its files, because an incomplete checkpoint is useless.
	if l.Stay {
		l.folder.Stay()
	}
	e.End(result.EndedByCount)
	return nil
}

// timed starts all accelerators of all clients at once and returns the run of this client's. They go
// through the phases together. The first error cancels the phase.
func (l *Load) timed(ctx context.Context, step int,
	phases ...func(ctx context.Context, i int) error) (run result.CheckpointRun, err error) {
	if err := l.env.Group.Barrier(ctx); err != nil {
		return run, err
	}
	since, wall := l.env.Clock.Now(), time.Now()
	l.env.Group.Opened()
	l.env.Resume()
	defer l.env.Suspend()
	before := l.env.DeviceStat() // nil: only the page cache shows whether reads are cold
	took := make([]time.Duration, l.Count)
	for _, phase := range phases {
		group, each := errgroup.WithContext(ctx)
		for i := range took {
			group.Go(func() error {
				defer func() { took[i] = l.env.Clock.Now() - since }()
				return phase(each, i)
			})
		}
		if err = cmp.Or(group.Wait(), context.Cause(ctx)); err != nil {
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range took {
		l.worked += d
		l.waited += slices.Max(took) - d
	}
	run = result.NewCheckpointRun(step, wall, l.bytes(), l.First, took)
	// Other processes add to the count, so it proves only a lower bound of our reads.
	if after := l.env.DeviceStat(); before != nil && after != nil {
		moved := after.Sub(before)
		run.DeviceBytes = &moved.ReadBytes
		if l.Op == tiers.Write {
			run.DeviceBytes = &moved.WriteBytes
		}
	}
	run.FlushNS, l.longest = l.longest, nil
	return run, err
}

// bytes returns the total size of a checkpoint's files of this client.
func (l *Load) bytes() (n int64) {
	for _, o := range l.objects(0) {
		n += o.Size
	}
	return n
}

// source returns the accelerator whose files accelerator i of this client writes or reads.
func (l *Load) source(i int) int {
	a := l.First + i
	if l.Op == tiers.Read {
		a += l.Shift
	}
	return a % l.Spec.Accelerators
}

// path returns the path of a file.
func (l *Load) path(o tiers.Object) string { return filepath.Join(l.folder.Path(), o.Key) }

// moved records a file that was written or read as an operation.
func (l *Load) moved(a int, o tiers.Object, tm tiers.Timing) {
	// As in plain I/O, the operation also counts as a request with the same time.
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

// verified returns the number of bytes that a read of a file of this size verifies.
func (l *Load) verified(size int64) int64 {
	switch l.Verify {
	case content.VerifyNone:
		return 0
	case content.VerifyFull:
		return size
	}
	const block = 4096
	// The transfer verifies one block in each sample, and at least one block in each chunk.
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
	// An accelerator is busy from the start of a checkpoint to the end of its last file. Then it waits for
	// the slowest accelerator. Pauses between checkpoints count as neither.
	in.CompletionUnit, in.Workload.Workers = result.UnitOperation, l.Count
	in.Harness.WorkerBusyNS, in.Harness.WorkerIdleNS = int64(l.worked), int64(l.waited)
	if l.Count < s.Accelerators {
		c.First, c.Count = new(l.First), new(l.Count)
	}
	in.IO.ChunkBytes, in.IO.Depth = int(l.Chunk), l.Writers
	// Copy the runs: after an interruption workers may still run.
	runs := append([]result.CheckpointRun{}, l.runs...)
	facts := l.Facts
	facts.Runs = runs
	if l.Op == tiers.Write {
		c.Writes = runs
		c.Flushes(l.flushes)
		in.Times = result.Histograms{result.CheckpointFlushes: l.flushes}
		c.Stages = l.pipe.report(l.Count)
		for i := range l.Count {
			n := l.BuffersOf(l.First + i)
			c.Stages.Buffers = max(c.Stages.Buffers, n)
			c.Stages.BufferBytes += int64(n) * l.Chunk
		}
		// Threads that generate content concurrently share its time.
		alone := float64(c.Stages.GenerationNS) / 1e9 / float64(l.Producers)
		c.Stages.GenerationRate = units.Ratio(float64(l.bytes())*float64(len(runs)), alone)
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

// processBegun is the start time of this process, exact to some milliseconds.
var processBegun = time.Now()

// flushed records the time of a flush.
func (l *Load) flushed(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushes.Record(int64(d))
	if l.longest == nil || int64(d) > *l.longest {
		l.longest = new(int64(d))
	}
}

// recovery sets the times from the end of the last write to the end of the first read.
func (l *Load) recovery(c *result.Checkpoint) {
	if len(c.Reads) == 0 || l.mark.Ended == nil {
		return
	}
	begun, err := time.Parse(time.RFC3339Nano, c.Reads[0].Start)
	if err != nil { // impossible: this program formatted the time
		return
	}
	// The two times may come from two processes, so they are wall-clock times. If the clock was set in
	// between, the gap is wrong and may be negative. For files of an earlier process the gap ends at the
	// start of this process. The time to start, to meet the other clients and to find the files does not
	// count, because a training run would not have it.
	c.FlushNS = new(int64(l.flush))
	if c.GapNS = new(int64(begun.Sub(*l.mark.Ended) - l.flush)); l.mark.Ended.Before(l.process) {
		c.GapNS = new(int64(l.process.Sub(*l.mark.Ended)))
	}
	c.RecoveryNS = new(*c.GapNS + *c.FlushNS + c.Reads[0].DurationNS)
	if l.mark.Begun != nil {
		c.TotalNS = new(int64(l.ended.Sub(*l.mark.Begun)))
	}
}

// Close returns the buffers to the pool, except buffers with a request in flight, which the tier owns.
func (l *Load) Close() error {
	for _, n := range l.pipe.lines {
		for _, b := range n.slots {
			if !b.stuck {
				l.env.Pool.Put(b.buf)
			}
		}
	}
	l.pipe.lines = nil
	return nil
}
