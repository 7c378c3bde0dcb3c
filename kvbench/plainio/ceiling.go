package plainio

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// Ceiling is plain sequential I/O of the storage tier's files: without cache and queue, and without data
// generation except for a stamp that keeps every 4 KiB block unique. Its rate is the upper bound for the
// rates of other benchmarks, so it does not use their transfer code.
//
// A stream writes or reads whole files chunk by chunk, with one chunk in flight, and flushes each
// written file. The first file of each stream has a different length. So the streams create, write and
// flush at different times, as in the middle of a long run, and a short window has the rate of a long
// window.
type Ceiling struct {
	ReadShare float64 // share of reads in the bytes: 0 = only writes, 1 = only reads
	// Churn: the footprint is full at the start, and each new file replaces the oldest, as in a full
	// cache. Without Churn no file is removed, and the window ends when the footprint is full.
	Churn     bool
	Footprint int64 // maximum bytes in the tier
	// InFlight is the number of streams. 0 = the smallest number that is enough in a sweep with steps of
	// length StepTime.
	InFlight int
	StepTime time.Duration

	fileSet
	*mover
	files int // minimum number of files to read
	steps []result.SweepStep
	doubt string // see result.PlainIO.SweepDoubt
}

var _ Routine = (*Ceiling)(nil)

// filesPerStream is the minimum number of files that each stream has room to write.
const filesPerStream = 4

// The sweep starts with firstDepth requests in flight and doubles them in each step.
const (
	firstDepth  = 4
	searchSteps = 7 // up to 256 in flight, which only a large array needs
	// A step is enough if its rate is at least enoughShare of the fastest step's rate. Two steps without
	// a gain end the sweep.
	enoughShare = 0.95
)

// split divides the footprint into the bytes of the files to read and the capacity for files to write.
func (r *Ceiling) split() (read, write int64) {
	if read = r.Footprint / 2; r.ReadShare == 0 || r.ReadShare == 1 {
		read = int64(r.ReadShare) * r.Footprint
	}
	return read, r.Footprint - read
}

// Forecast: without Churn the window of writes ends when the footprint is full.
func (r *Ceiling) Forecast() kvbench.Forecast {
	read, write := r.split()
	f := kvbench.Forecast{Fill: read, WriteShare: 1 - r.ReadShare, Room: r.Footprint}
	if r.InFlight == 0 {
		f.Search = searchSteps * r.StepTime
		f.Room += write // of the sweep
	}
	if r.Churn {
		f.Fill = r.Footprint
	} else if write > 0 {
		f.Moves = int64(float64(write) / f.WriteShare)
	}
	return f
}

// Prepare writes the files to read, runs the sweep, and gives each stream its buffer.
func (r *Ceiling) Prepare(ctx context.Context, b *Bench) (err error) {
	if r.level, err = b.Level(tiers.Storage); err != nil {
		return err
	}
	if r.mover, err = newMover(b, r.level); err != nil {
		return err
	}
	r.mix.share, r.part = r.ReadShare, r.chunk
	r.move, r.own = r.whole, r.tier.Remove
	if r.plain != nil {
		r.own = r.plain.Remove
	}
	read, write := r.split()
	if read > 0 && read < r.chunk {
		return fmt.Errorf("the footprint leaves %d bytes to read, which is less than a chunk of "+
			"%d: give a larger -ceiling-size-gb or a smaller -chunk-size", read, r.chunk)
	}
	const fillers = 16
	if err := r.equip(ctx, fillers, r.chunk); err != nil {
		return err
	}
	r.size = r.wholeChunks(min(r.largest(), read/int64(max(fillers, r.files))))
	if r.objects, err = r.fill(ctx, b, int(read/r.size), fillers); err != nil {
		return err
	}
	// Each stream needs room for several files. Otherwise most bytes would be in flight at the end of
	// the window, and few requests would complete.
	least := filesPerStream * r.chunk
	if b.Workers = r.InFlight; r.InFlight == 0 {
		if b.Workers, err = r.find(ctx); err != nil {
			return err
		}
		if write > 0 {
			b.Workers = int(max(1, min(int64(b.Workers), write/least)))
		}
	}
	if least *= int64(b.Workers); write > 0 && write < least {
		return fmt.Errorf("writing with %s, each of which needs room for %d files of a chunk at "+
			"least, takes %d bytes, and the footprint leaves %d: give a larger -ceiling-size-gb, "+
			"fewer -workers or a smaller -chunk-size", units.Plural(int64(b.Workers), "stream"),
			filesPerStream, least, write)
	}
	if write > 0 {
		r.size = r.wholeChunks(min(r.largest(), write/int64(filesPerStream*b.Workers)))
	}
	if r.Churn {
		full, err := r.fill(ctx, b, int(write/r.size), fillers)
		if err != nil {
			return err
		}
		r.cycle(len(full), full)
	}
	r.room.Store(write)
	r.states = seedWorkers(b.Seed, 0, b.Workers)
	return r.equip(ctx, b.Workers, r.chunk)
}

// find runs the sweep with the window's mix and returns the smallest number of streams that is enough.
// The files of the sweep are not part of the footprint. They stay until the end of the trial, so that
// the filesystem does not discard them during the window.
func (r *Ceiling) find(ctx context.Context) (streams int, err error) {
	room := min(r.Footprint, r.level.Capacity-r.Footprint)
	c := &sweep{mover: r.mover, inFlight: firstDepth, steps: searchSteps,
		bytes: max(room/searchSteps, r.chunk), time: r.StepTime}
	c.level, c.objects, c.mix.share, c.part = r.level, r.objects, r.ReadShare, r.part
	c.size = r.wholeChunks(min(r.largest(), room/int64(2*c.most())))
	if r.ReadShare == 1 { // reads take no room: time alone ends their steps
		c.size, c.bytes = r.size, math.MaxInt64
	}
	c.room.Store(room)
	request := c.request(c.size)
	r.steps, err = c.run(ctx, func(all []result.SweepStep) bool {
		return all[len(all)-1].Brief(request) || bestStep(all, request) < len(all)-2
	})
	if err != nil {
		return 0, fmt.Errorf("finding how many in flight are enough: %w", err)
	}
	const cure = ": give -io-depth, a longer -benchtime, or a -ceiling-size-gb of at most half of the storage tier"
	switch best := bestStep(r.steps, request); {
	case best < 0:
		streams, r.doubt = firstDepth, fmt.Sprintf("no step of the queue-depth sweep before the window completed enough "+
			"requests, so %d in flight are no choice"+cure, firstDepth)
	default:
		streams = r.steps[best].InFlight
		if last := len(enoughRequests(r.steps, request)) - 1; best == last && best < searchSteps-1 {
			r.doubt = fmt.Sprintf("the queue-depth sweep before the window had too few requests, or no room for files "+
				"or buffers, after its fastest step: more than %d in flight may move more"+cure, streams)
		}
	}
	return streams, nil
}

// enoughRequests returns the steps before the first one with too few requests.
func enoughRequests(all []result.SweepStep, request int64) []result.SweepStep {
	i := slices.IndexFunc(all, func(s result.SweepStep) bool { return s.Brief(request) })
	if i < 0 {
		return all
	}
	return all[:i]
}

// bestStep returns the first step with enough requests whose rate is at least enoughShare of the fastest of
// them, -1 without any.
func bestStep(all []result.SweepStep, request int64) int {
	most := 0.0
	all = enoughRequests(all, request)
	for _, r := range all {
		most = max(most, r.Rate())
	}
	return slices.IndexFunc(all, func(r result.SweepStep) bool { return r.Rate() >= enoughShare*most })
}

// whole reads or writes a file with one request in flight.
func (r *Ceiling) whole(ctx context.Context, worker int, op tiers.Op, o tiers.Object, from int64) (
	tiers.Timing, error) {
	start := r.bench.Clock.Now()
	err := r.transfer(ctx, r.lease.bufs[worker], op, o, from, func(c tiers.Chunk) bool {
		c.Op = op
		r.bench.Chunk(worker, r.level.Kind, c)
		return true
	})
	return tiers.Timing{Device: r.bench.Clock.Now() - start}, err
}

// Report adds the footprint, the file size and the sweep.
func (r *Ceiling) Report(res *result.Result) {
	res.PlainIO = &result.PlainIO{FootprintBytes: r.Footprint, FileBytes: r.size, Sweep: r.steps,
		SweepDoubt: r.doubt}
	if r.mover != nil {
		r.report(res)
	}
}

// CeilingWindow is the shortest window whose rate counts as a ceiling. In a shorter window the drive's
// cache and the first requests of the streams weigh too much: later runs reached 110 % of such a rate.
const CeilingWindow = 2 * time.Second

// Reached has the best rates of plain I/O with the same parameters, by share of reads.
type Reached map[float64]result.CeilingPoint

// Note adds the rate of a window and returns the map. For a nil map it makes one. The best rate of
// several windows counts. Note ignores trials that failed, were shorter than CeilingWindow, or
// had less of the device because another process used it.
func (m Reached) Note(share float64, r *result.Result) Reached {
	if m == nil {
		m = Reached{}
	}
	if r == nil || r.Status != result.StatusComplete || r.PlainIO == nil ||
		time.Duration(r.WindowNS) < CeilingWindow || r.Harness.Verdict.Kind == result.Shared {
		return m
	}
	read, write := r.StorageTraffic()
	bytes := float64(read.Bytes + write.Bytes)
	p := result.CeilingPoint{ReadShare: float64(read.Bytes) / bytes,
		Rate:     bytes / time.Duration(r.WindowNS).Seconds(),
		InFlight: r.Workload.Workers, FileBytes: r.PlainIO.FileBytes, Sweep: r.PlainIO.Sweep}
	if p.Rate > m[share].Rate {
		m[share] = p
	}
	return m
}

// Ceiling returns all points, nil without any.
func (m Reached) Ceiling() *result.Ceiling {
	if len(m) == 0 {
		return nil
	}
	c := &result.Ceiling{Read: m[1].Rate, Write: m[0].Rate}
	for _, share := range slices.Sorted(maps.Keys(m)) {
		c.Points = append(c.Points, m[share])
	}
	return c
}

// Removal measures the removal of files. All workers remove files concurrently. Then Removal waits until
// the device has completed the discards. A full cache has this cost for each eviction.
//
// After the last removal it writes and flushes one small file, because a filesystem discards removed
// blocks when it commits the removal. Without the flush that would take some seconds.
type Removal struct {
	Ceiling // writes the files: Footprint bytes
	next    atomic.Int64
	left    atomic.Int64
	bytes   atomic.Int64
	begun   time.Duration
	start   sync.Once
	unlink  time.Duration // from begun to the removal of the last file
	quiet   time.Duration // from begun to the last discard
}

var _ Routine = (*Removal)(nil)

// removable is the minimum number of files, unless a file would be smaller than a chunk.
const removable = 64

// Forecast: the load ends when all files are removed.
func (r *Removal) Forecast() kvbench.Forecast {
	return kvbench.Forecast{Fill: r.Footprint, Moves: r.Footprint, Room: r.Footprint}
}

// Prepare writes the files.
func (r *Removal) Prepare(ctx context.Context, b *Bench) (err error) {
	r.ReadShare, r.InFlight = 1, max(b.Workers, 1)
	r.files = removable
	if err := r.Ceiling.Prepare(ctx, b); err != nil {
		return err
	}
	r.left.Store(int64(len(r.objects)))
	return nil
}

// Step removes the next file. The worker that has removed the last one waits for the device and
// ends the window.
func (r *Removal) Step(ctx context.Context, b *Bench, worker int) error {
	r.start.Do(func() { r.begun = b.Clock.Now() })
	i := r.next.Add(1) - 1
	if i >= int64(len(r.objects)) {
		b.over.Store(true)
		return nil
	}
	o := r.objects[i]
	if err := r.remove(ctx, b, worker, o); err != nil {
		return err
	}
	r.bytes.Add(o.Size)
	if r.left.Add(-1) > 0 {
		return nil
	}
	r.unlink = b.Clock.Now() - r.begun
	if r.plain == nil { // an object store does not report deferred work
		r.quiet = r.unlink
		b.Stop(result.EndedByInput)
		return nil
	}
	last := b.Object(r.level, r.chunk)
	none := func(tiers.Chunk) bool { return true }
	if err := r.write(ctx, r.lease.bufs[worker], last, none); err != nil {
		return err
	}
	since, err := b.Quiet(ctx)
	if err != nil {
		return err
	}
	r.quiet = since - r.begun
	b.Stop(result.EndedByInput)
	return nil
}

// Report adds the removed files and their rate.
func (r *Removal) Report(res *result.Result) {
	r.Ceiling.Report(res)
	if r.mover == nil {
		return // Prepare failed
	}
	// The workers only remove files and wait for discards.
	res.Harness.Busy.RemovalNS = res.Harness.WorkerBusyNS
	took := r.quiet
	if start, end := r.bench.Rec.Window(); took == 0 && start < end { // the window ended first
		took = end - r.begun
	}
	files := int64(len(r.objects)) - r.left.Load()
	res.Removal = &result.Removal{Files: files, Bytes: r.bytes.Load(),
		UnlinkNS: int64(r.unlink), QuietNS: int64(r.quiet),
		FilesPerSecond: units.Ratio(files, took.Seconds()),
		BytesPerSecond: units.Ratio(r.bytes.Load(), took.Seconds())}
}
