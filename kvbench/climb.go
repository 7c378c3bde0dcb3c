package kvbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/spread"
	"kvbench/tracing/host"
)

// Parameters of the queue-depth sweep right after the window, which shows whether more in flight
// would have moved more: steps of plain I/O with as many requests in flight as the run had on
// average, with twice and with four times as many. A step takes a twentieth of the window and at
// most a second; less than 100 ms shows nothing. In a short window it takes longer, up to that
// second, if otherwise too few requests would complete with twice as many in flight (see
// result.Rung.Brief). It ends early after the bytes of 300 ms, because entries may have to be
// evicted for them. Before the sweep the filesystem gets 3 s to execute postponed deletions: their
// discards would slow the steps.
const (
	climbRungs                = 3
	climbPart                 = 20
	climbAtLeast, climbAtMost = 100 * time.Millisecond, time.Second
	climbRoom                 = 300 * time.Millisecond
	climbSync                 = 3 * time.Second
	// Files that the sweep writes to read them, where the run has left too few: 256 MiB are more
	// than most devices cache.
	climbObjects, climbObject = 8, 32 << 20
)

// climb measures plain I/O in the run's own mix, or notes why it did not. The window is closed and
// the workers have ended. climb waits for a storage that does not answer until a signal or
// -io-timeout.
func (t *trial) climb(ctx context.Context) {
	into := &result.Ladder{Rungs: []result.Rung{}}
	t.info.Harness.Ladder = into
	if err := t.climbable(ctx); err != nil {
		into.Reason = err.Error()
		return
	}
	into.Reason = ErrUnanswered.Error() // what the watchdog's result says
	t.show(Snapshot{Stage: "plain I/O after the window", Free: -1})
	found, failed := t.rungs(ctx)
	if t.hurried() {
		return
	}
	if failed != nil {
		found.Reason = failed.Error()
	}
	*into = found
}

// climbable returns the reason for running no sweep.
func (t *trial) climbable(ctx context.Context) error {
	_, failure := t.ended()
	_, missing := t.Level(tiers.Storage)
	switch {
	case t.sim != nil:
		return errors.New("this is a simulation")
	case t.cfg.Climb == nil:
		return errors.New("it was not requested")
	case failure != nil || ctx.Err() != nil:
		return errors.New("the run did not end in order")
	case missing != nil || t.place() == "" && t.bucket == nil:
		return errors.New("the run has no storage tier on a filesystem")
	}
	return nil
}

// rungs runs the sweep.
func (t *trial) rungs(ctx context.Context) (found result.Ladder, err error) {
	found.Rungs = []result.Rung{}
	ask, err := t.ladder(ctx)
	if err != nil {
		return found, err
	}
	// The run's buffers are unused now, and the sweep allocates as many of its own: with a client
	// for each accelerator both would be gigabytes, and compete for huge pages.
	if t.Pool != nil {
		_ = t.Pool.Close() // the trial's own Close reports the error
	}
	var before host.BlockStat
	var from time.Duration
	var usage host.Usage
	ask.Begins = func() { before, from, usage = t.readDevice(), t.Clock.Now(), t.cfg.Usage() }
	ask.Climbed = func() {
		cpu, took := t.cfg.Usage().CPU-usage.CPU, t.Clock.Now()-from
		found.CPUShare = units.Ratio(cpu, t.info.Limits.Cores*float64(took))
		if t.info.DeviceWitness.Device != "" {
			found.DiscardShare = units.Ratio(t.readDevice().Sub(before).DiscardTicks, took)
		}
	}
	climb := t.cfg.Climb
	if _, own := t.sweep(); own != nil {
		climb = own
	}
	rungs, err := climb(ctx, &t.Env, ask)
	if err == nil && len(rungs) > 0 {
		found.Rungs = rungs
	}
	return found, err
}

// sweep returns the workload's own objects to read, and its own sweep, nil if it has none.
func (t *trial) sweep() (readable []tiers.Object, own Climber) {
	if w, some := t.workload.(Climbs); some {
		return w.Sweep()
	}
	return nil, nil
}

// ladder returns the sweep's parameters, or an error that says why there is no sweep.
func (t *trial) ladder(ctx context.Context) (l Ladder, err error) {
	l.Rungs, l.Seed = climbRungs, t.info.Seed
	if l.Level, err = t.Level(tiers.Storage); err != nil {
		return l, err
	}
	counts := t.Rec.Tier(tiers.Storage)
	read, write := &counts.Read, &counts.Write
	start, end := t.Rec.Window()
	window, moved, flew := end-start, read.Bytes+write.Bytes, read.InFlightNS+write.InFlightNS
	if window <= 0 || moved == 0 || flew == 0 {
		return l, errors.New("the storage tier moved nothing in the window")
	}
	if window < t.cfg.ClimbAfter {
		return l, fmt.Errorf("the window of %s is shorter than %s", window.Round(time.Millisecond),
			t.cfg.ClimbAfter)
	}
	l.ReadShare = float64(read.Bytes) / float64(moved)
	l.InFlight = max(1, int(math.Round(float64(flew)/float64(window))))
	part := min(max(window/climbPart, climbAtLeast), climbAtMost)
	five := float64(5*2*l.InFlight) * float64(t.requestBytes(moved, read.Operations+
		write.Operations)) / float64(moved) // twice as many in flight
	slow := min(time.Duration(five*float64(window)), climbAtMost)
	l.Time = max(part, slow)
	// Enough for the last step to move four times as much as the run, and the others less.
	perRung := float64(moved) / window.Seconds() * max(slow, min(part, climbRoom)).Seconds()
	l.Bytes = max(1<<20, int64(2*4*perRung))
	writes := 1 - l.ReadShare
	// Files like the run's entries, with as many flushes, but small enough for each stream to
	// complete two in the first step: a cache may hold data until a flush confirms it.
	l.FileSize = max(int64(t.Transfer.Chunk), int64(writes*perRung/float64(2*l.InFlight)))
	if n := write.Operations; n > 0 {
		l.FileSize = min(l.FileSize, write.EntryBytes/n) // of a run of blocks, all of it
	}
	l.FileSize = t.fits(l.FileSize)
	if _, own := t.sweep(); own != nil { // it needs neither capacity nor something to read
		return l, nil
	}
	want := int64(writes * 2 * (1 + 2 + 4) * perRung)
	if err := t.makeRoom(ctx, &l, want, write.Cancelled); err != nil || writes == 0 {
		return l, err
	}
	// Each step gets its part of the capacity.
	l.Bytes = max(1, min(l.Bytes, int64(float64(l.Room)/climbRungs/writes)))
	return l, nil
}

// makeRoom finds objects to read and capacity to write. A full cache has to evict some of its
// entries, which the ended run does not need. Objects that a workload wrote past the cache, half of
// the tier at most, are read where the workload names them, and never removed. cut is how many
// writes the window's end cut off.
func (t *trial) makeRoom(ctx context.Context, l *Ladder, want, cut int64) error {
	objects, free := t.Cache.Objects(tiers.Storage)
	if t.counted == nil {
		free /= 2
	}
	least := 0
	if l.ReadShare > 0 {
		least = max(1, len(objects)/2) // of few, a device's own memory would serve all reads
	}
	deleted := t.Rec.Tier(tiers.Storage).Deleted.Entries > 0
	for len(objects) > least && free < want {
		deleted = true
		if err := t.Cache.Forget(ctx, cache.Tag{}, objects[0].Key); err != nil {
			return fmt.Errorf("no room could be made: %w", err)
		}
		free += objects[0].Size
		objects = objects[1:]
	}
	readable, _ := t.sweep()
	objects = append(slices.Clip(objects), readable...)
	if several, ok := l.Level.Tier.(*spread.Ranks); ok {
		objects = several.InFiles(objects)
	}
	// As plain I/O reads them: layer by layer, if the run stored them so.
	layers := func(o tiers.Object) []tiers.Object {
		return o.InLayers(l.Level.Tier.Traits().Layers)
	}
	for _, o := range objects {
		l.Objects = append(l.Objects, layers(o)...)
	}
	for n := len(objects); l.ReadShare > 0 && n < climbObjects && free > 2*climbObject; n++ {
		o := tiers.Object{Key: fmt.Sprint("climb/", n), Gen: uint64(n), Size: t.fits(climbObject)}
		l.Spare = append(l.Spare, layers(o)...)
		free -= o.Size
	}
	l.Room = min(want, free)
	if deleted || cut > 0 { // what was being written at the window's end was removed, too
		t.awaitDiscards(ctx)
	}
	return nil
}

// requestBytes is the bytes of one completion: a chunk, or an object or its part where the tier
// streams.
func (t *trial) requestBytes(moved, operations int64) int64 {
	chunk := int64(t.Transfer.Chunk)
	if t.bucket == nil || operations == 0 {
		return chunk
	}
	return max(chunk, min(moved/operations, t.cfg.Storage.Bucket.PartSize))
}

// fits limits a size to one that the storage tier stores as one object: slots have one size.
func (t *trial) fits(size int64) int64 {
	if y := t.cfg.Storage.Layout; y.Bytes > 0 {
		return min(size, y.Bytes)
	}
	return size
}

// awaitDiscards lets the filesystem execute postponed deletions, and waits until the device has no
// discards left: none has completed since the last poll, and none can be in flight, which may take
// longer than a poll. A long window leaves more behind than a short one, so it waits for up to a
// sixth of the window, or for climbSync. The sweep reports discards that remain, and discards of other
// processes.
func (t *trial) awaitDiscards(ctx context.Context) {
	start, end := t.Rec.Window()
	ctx, cancel := context.WithTimeout(ctx, max(climbSync, (end-start)/6))
	defer cancel()
	if t.place() == "" { // a store does not report postponed work
		return
	}
	synced := t.Clock.NewEvent()
	t.Clock.Go(func() {
		for _, dir := range t.dirs {
			_ = host.SyncFilesystem(dir.path) // a filesystem without syncfs postpones nothing
		}
		synced.Fire()
	})
	_ = synced.Wait(ctx)
	_, _ = t.quiet(ctx)
}
