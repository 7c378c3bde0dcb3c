package plainio

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// Ceiling is plain sequential I/O of the storage tier's files: no cache, no queue, no data
// generation beyond a stamp that keeps every 4 KiB block unique. The engine's rates are compared
// with it, so it does not use the engine's transfer.
//
// Streams write or read whole files chunk by chunk, one chunk in flight each, and flush what they
// have written. The first file of each stream is shorter by a different part, so that from the
// first moment on some write, some flush and some create, as in the middle of a long run. A short
// window then has the rate of a long one.
type Ceiling struct {
	ReadShare float64 // of the bytes: 0 writes only, 1 reads only
	// Churn begins with a full footprint, and each file written removes the oldest one, like a full
	// cache. Without it nothing is removed within the window, which ends when the footprint is
	// full.
	Churn     bool
	Footprint int64 // bytes that may lie in the tier; 0 = half of its capacity
	// InFlight is the number of streams; 0 = the smallest number that a sweep with steps of length
	// StepTime shows to be enough.
	InFlight int
	StepTime time.Duration

	fileSet
	*mover
	mix   mix
	bench *Bench
	lease *lease // of the streams
	files int    // to read, at least
	sweep []result.SweepStep
}

var _ Routine = (*Ceiling)(nil)

// filesPerStream is the number of files of each stream: in a window they differ in phase.
const filesPerStream = 4

// The sweep begins with few in flight and doubles them.
const (
	firstDepth = 4
	// A step within enoughShare of the fastest needs no more in flight; two steps without a gain
	// end the sweep.
	enoughShare = 0.95
)

// Prepare writes the files to read, runs the sweep, and gives each stream its buffer.
func (r *Ceiling) Prepare(ctx context.Context, b *Bench) (err error) {
	if r.fileSet.level, err = b.Level(tiers.Storage); err != nil {
		return err
	}
	if r.Footprint == 0 {
		r.Footprint = r.fileSet.level.Capacity / 2
	}
	if r.mover, err = newMover(b.Env, r.fileSet.level, "ceiling/"); err != nil {
		return err
	}
	r.bench, r.move, r.mix.share, r.fileSet.chunk = b, r.whole, r.ReadShare, r.mover.chunk
	r.fileSet.entire, r.own = r.plain == nil, r.owner()
	read := r.Footprint / 2
	if r.ReadShare == 0 || r.ReadShare == 1 { // one direction has it all
		read = int64(r.ReadShare) * r.Footprint
	}
	write := r.Footprint - read
	if read > 0 && read < r.mover.chunk {
		return fmt.Errorf("the footprint leaves %d bytes to read, which is less than a chunk of "+
			"%d: give a larger -ceiling-size-gb or a smaller -chunk-size", read, r.mover.chunk)
	}
	const fillers = 16
	if err := r.equip(ctx, fillers); err != nil {
		return err
	}
	r.size = r.wholeChunks(min(r.largest(), read/int64(max(fillers, r.files))))
	if r.objects, err = r.fileSet.fill(ctx, b, int(read/r.size), fillers); err != nil {
		return err
	}
	// With too little to write for several files of each stream, most of it would be in flight when
	// the window ends, and its completions would prove nothing.
	least := filesPerStream * r.mover.chunk
	if b.Workers = r.InFlight; r.InFlight == 0 {
		if b.Workers, err = r.find(ctx, b); err != nil {
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
		full, err := r.fileSet.fill(ctx, b, int(write/r.size), fillers)
		if err != nil {
			return err
		}
		r.cycle(len(full), full)
	}
	r.room.Store(write)
	r.states = seedWorkers(b)
	return r.equip(ctx, b.Workers)
}

// find runs the sweep with the mix of the window and returns the smallest number in flight that is
// enough. The files of the sweep are not part of the footprint and stay until the end of the trial:
// a filesystem that discards removed files would do so within the window.
func (r *Ceiling) find(ctx context.Context, b *Bench) (streams int, err error) {
	room := min(r.Footprint, r.fileSet.level.Capacity-r.Footprint)
	const steps = 7 // up to 256 in flight, which only a large array needs
	c, err := newSweep(b.Env, sweepConfig{level: r.fileSet.level, objects: r.objects,
		readShare: r.ReadShare, seed: b.Seed, inFlight: firstDepth, steps: steps,
		bytes: max(room/steps, r.mover.chunk), time: r.StepTime, fileSize: r.largest(),
		capacity: room})
	if err != nil {
		return 0, err
	}
	c.enough = func(all []result.SweepStep) bool {
		request := c.request(c.size)
		return all[len(all)-1].Brief(request) || bestStep(all, request) < len(all)-2
	}
	if r.sweep, err = c.run(ctx); err != nil {
		return 0, fmt.Errorf("finding how many in flight are enough: %w", err)
	}
	if len(r.sweep) == 0 {
		return firstDepth, nil // no capacity for a sweep: the result of the window shows it
	}
	return r.sweep[bestStep(r.sweep, c.request(c.size))].InFlight, nil
}

// bestStep is the first step that is as fast as the fastest, except for noise. It ignores the steps
// from the first one on in which too few requests completed.
func bestStep(all []result.SweepStep, request int64) int {
	most := 0.0
	for _, r := range all {
		if r.Brief(request) {
			break
		}
		most = max(most, r.Rate())
	}
	for i, r := range all {
		if r.Rate() >= enoughShare*most {
			return i
		}
	}
	return 0
}

// equip gives each stream a buffer.
func (r *Ceiling) equip(ctx context.Context, streams int) error {
	r.Finish(r.bench)
	lease, err := r.buffers(ctx, streams, r.mover.chunk)
	if err == nil {
		r.lease = lease
	}
	return err
}

// Finish frees the buffers.
func (r *Ceiling) Finish(*Bench) {
	_ = r.lease.free() // memory that is ours alone
	r.lease = nil
}

// Step reads or writes one whole file, whichever keeps the mix.
func (r *Ceiling) Step(ctx context.Context, b *Bench, worker int) error {
	size := r.size
	if len(r.objects) > 0 {
		size = r.objects[0].Size
	}
	return r.step(ctx, b, worker, r.mix.next(size, r.size))
}

// whole reads or writes a file, one request at a time: the number of workers is the number in
// flight.
func (r *Ceiling) whole(ctx context.Context, worker int, op tiers.Op, o tiers.Object, from int64) (
	tiers.Timing, error) {
	start := r.env.Clock.Now()
	count := func(c tiers.Chunk) bool {
		c.Op = op
		r.bench.Chunk(worker, r.fileSet.level.Kind, c)
		return true
	}
	var err error
	if op == tiers.Read {
		err = r.read(ctx, r.lease.bufs[worker], o, from, count)
	} else {
		err = r.write(ctx, r.lease.bufs[worker], o, count)
	}
	return tiers.Timing{Device: r.env.Clock.Now() - start}, err
}

// Report adds the footprint, the file size and the sweep.
func (r *Ceiling) Report(res *result.Result) {
	res.PlainIO = &result.PlainIO{FootprintBytes: r.Footprint, FileBytes: r.size, Sweep: r.sweep}
	if r.mover != nil {
		r.pool(res, r.lease, r.mover.chunk)
	}
}

// CeilingWindow is the shortest window whose rate is a ceiling. In a shorter one the caches of a
// drive, and the first requests of all streams, weigh too much: later runs reached 110 % of it.
const CeilingWindow = 2 * time.Second

// Reached is the rates of plain I/O with the same parameters, by share of reads.
type Reached map[float64]result.CeilingPoint

// Note adds the rate of a window: the best of several counts, because a rate that plain I/O has
// reached once is a bound for other runs. It ignores trials that failed or were short. It returns
// the map, which it makes if there is none.
func (m Reached) Note(share float64, r *result.Result) Reached {
	if m == nil {
		m = Reached{}
	}
	if r == nil || r.Status != result.StatusComplete || r.PlainIO == nil ||
		time.Duration(r.WindowNS) < CeilingWindow {
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

// Removal removes its files, all workers concurrently, and waits until the device has no discards
// left. Then the space is free again for a measurement; a full cache pays that cost for each
// eviction.
//
// Between the last removal and the last discard it writes and flushes one small file: filesystems
// discard removed blocks when they commit the removal, which would otherwise take some seconds.
type Removal struct {
	Footprint int64 // bytes to remove; 0 = half of the tier's capacity

	Ceiling // for its files
	next    atomic.Int64
	left    atomic.Int64
	bytes   atomic.Int64
	begun   time.Duration
	start   sync.Once
	unlink  time.Duration // until the last file was gone
	quiet   time.Duration // and its discards done
}

var _ Routine = (*Removal)(nil)

// removable is the least number of files, if they can be small enough.
const removable = 64

// Prepare writes the files.
func (r *Removal) Prepare(ctx context.Context, b *Bench) (err error) {
	r.Ceiling.Footprint, r.ReadShare, r.InFlight = r.Footprint, 1, max(b.Workers, 1)
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
	if r.plain == nil { // which does not report what it has deferred
		r.quiet = r.unlink
		b.Stop(result.EndedByInput)
		return nil
	}
	last := r.object(r.mover.chunk)
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
	if r.bench == nil {
		return // it could not be prepared
	}
	// Its workers have nothing to do but to remove, and to wait for the device to discard.
	res.Harness.Busy.RemovalNS = res.Harness.WorkerBusyNS
	took := r.quiet
	if start, end := r.bench.Rec.Window(); took == 0 && start < end { // the window was over before
		took = end - r.begun
	}
	files := int64(len(r.objects)) - r.left.Load()
	res.Removal = &result.Removal{Files: files, Bytes: r.bytes.Load(),
		UnlinkNS: int64(r.unlink), QuietNS: int64(r.quiet),
		FilesPerSecond: units.Ratio(files, took.Seconds()),
		BytesPerSecond: units.Ratio(r.bytes.Load(), took.Seconds())}
}
