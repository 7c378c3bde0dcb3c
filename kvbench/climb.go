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
	"kvbench/tracing/host"
)

// How a run tries, right after its window, whether more in flight would have moved more: with as
// many requests as it had on average, with twice and with four times as many. A rung takes a
// twentieth of the window and not more than a second; less than 100 ms shows nothing. It takes
// longer in a short window, up to that second, on a storage so slow that too few requests would end
// with twice as many in flight (see result.Rung.Brief), and less where it has moved what 300 ms
// may: room for it may have to be made. Before, the filesystem may take 3 s to carry out the
// deletions that it has put off: their discards would slow the rungs.
const (
	climbRungs                = 3
	climbPart                 = 20
	climbAtLeast, climbAtMost = 100 * time.Millisecond, time.Second
	climbRoom                 = 300 * time.Millisecond
	climbSync                 = 3 * time.Second
	// What is written to be read, where the run has left less: 256 MiB are beyond what most devices
	// keep in their own memory.
	climbObjects, climbObject = 8, 32 << 20
)

// climb measures plain I/O in the run's own mix, and notes why it did not. The window is closed and
// nobody is at work. What the storage does not answer it is not waited for longer than a signal or
// -io-timeout let it.
func (t *trial) climb(ctx context.Context) {
	into := &result.Ladder{Rungs: []result.Rung{}}
	t.info.Harness.Ladder = into
	if err := t.climbable(ctx); err != nil {
		into.Reason = err.Error()
		return
	}
	climbing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-t.hung:
			stop(ErrUnanswered)
		case <-climbing.Done():
		}
	}()
	t.climbed = make(chan struct{})
	var found result.Ladder // its own until it has ended
	var failed error
	show := func() Snapshot { return Snapshot{Stage: "plain I/O after the window", Free: -1} }
	t.show(show())
	ended, _ := t.await(ctx, briefly, show, func() error {
		defer close(t.climbed)
		found, failed = t.rungs(climbing)
		return nil
	})
	switch {
	case !ended:
		into.Reason = ErrUnanswered.Error()
	case failed != nil:
		found.Reason = failed.Error()
		fallthrough
	default:
		*into = found
	}
}

// climbable says why there is to be no ladder.
func (t *trial) climbable(ctx context.Context) error {
	_, failure := t.ended()
	switch {
	case t.sim != nil:
		return errors.New("this is a simulation")
	case t.cfg.Climb == nil:
		return errors.New("nobody asked for it")
	case failure != nil || ctx.Err() != nil:
		return errors.New("the run did not end in order")
	case t.storage() < 0 || t.place() == "" && t.bucket == nil:
		return errors.New("the run has no storage tier on a filesystem")
	}
	return nil
}

// storage is the number of the storage tier's level, -1 where there is none.
func (t *trial) storage() int {
	return slices.IndexFunc(t.Levels, func(l cache.Level) bool { return l.Kind == tiers.Storage })
}

// rungs climbs the ladder.
func (t *trial) rungs(ctx context.Context) (found result.Ladder, err error) {
	found.Rungs = []result.Rung{}
	ask, err := t.ladder(ctx)
	if err != nil {
		return found, err
	}
	// Nothing moves through the run's buffers any more, and the ladder has its own, as many again:
	// with a client for each accelerator that is gigabytes, and huge pages that they would lack.
	if t.Pool != nil {
		_ = t.Pool.Close() // which is told where it is closed anyway
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
	if own := t.climber(); own != nil {
		climb = own
	}
	rungs, err := climb(ctx, &t.Env, ask)
	if err == nil && len(rungs) > 0 {
		found.Rungs = rungs
	}
	return found, err
}

// climber is the workload's own, nil if it has none.
func (t *trial) climber() Climber {
	if w, some := t.workload.(Climbs); some {
		return w.Climber()
	}
	return nil
}

// ladder is what to ask for; an error says why nothing is.
func (t *trial) ladder(ctx context.Context) (l Ladder, err error) {
	l.Level, l.Rungs, l.Seed = t.Levels[t.storage()], climbRungs, t.info.Seed
	read, write := t.Rec.Traffic(tiers.Storage)
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
		write.Operations)) / float64(moved) // of those twice as many
	slow := min(time.Duration(five*float64(window)), climbAtMost)
	l.Time = max(part, slow)
	// Enough for the last rung to move four times as much as the run, and the others less.
	perRung := float64(moved) / window.Seconds() * max(slow, min(part, climbRoom)).Seconds()
	l.Bytes = max(1<<20, int64(2*4*perRung))
	writes := 1 - l.ReadShare
	// Files like the run's entries, that is with as many flushes, but so small that each stream
	// comes to the end of two in the first rung: what no flush has confirmed, a cache may hold.
	l.FileSize = max(int64(t.Transfer.Chunk), int64(writes*perRung/float64(2*l.InFlight)))
	if n := write.Operations; n > 0 {
		l.FileSize = min(l.FileSize, write.EntryBytes/n) // of a run of blocks, all of it
	}
	l.FileSize = t.fits(l.FileSize)
	if t.climber() != nil { // it needs neither room nor something to read
		return l, nil
	}
	want := int64(writes * 2 * (1 + 2 + 4) * perRung)
	if err := t.makeRoom(ctx, &l, want, write.Cancelled); err != nil || writes == 0 {
		return l, err
	}
	// Each rung gets its part of what room there is.
	l.Bytes = max(1, min(l.Bytes, int64(float64(l.Room)/climbRungs/writes)))
	return l, nil
}

// makeRoom finds what to read and how much may be written. A cache that is full has to give up some
// of its entries, which nobody needs any more. What a workload has written past the cache, which is
// half of the tier at most, is read where it says so, and never removed. Cut is how many writes the
// window's end cut off.
func (t *trial) makeRoom(ctx context.Context, l *Ladder, want, cut int64) error {
	objects, free := t.Cache.Objects(tiers.Storage)
	if t.counted == nil {
		free /= 2
	}
	least := 0
	if l.ReadShare > 0 {
		least = max(1, len(objects)/2) // of few, a device's own memory would serve all reads
	}
	deleted := t.Rec.Deleted(tiers.Storage) > 0
	for len(objects) > least && free < want {
		deleted = true
		if err := t.Cache.Forget(ctx, cache.Tag{}, objects[0].Key); err != nil {
			return fmt.Errorf("no room could be made: %w", err)
		}
		free += objects[0].Size
		objects = objects[1:]
	}
	if w, some := t.workload.(Climbs); some {
		objects = append(slices.Clip(objects), w.Readable()...)
	}
	// As plain I/O finds them: layer by layer, where the run has kept them so.
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

// requestBytes is how many bytes end together: those of a chunk, or, where the tier streams, of an
// object or its parts.
func (t *trial) requestBytes(moved, operations int64) int64 {
	chunk := int64(t.Transfer.Chunk)
	if t.bucket == nil || operations == 0 {
		return chunk
	}
	return max(chunk, min(moved/operations, t.cfg.Storage.Bucket.PartSize))
}

// fits is a size that the storage tier takes as one object: slots are all of one.
func (t *trial) fits(size int64) int64 {
	if y := t.cfg.Storage.Layout; y.Kind == tiers.LayoutSlots {
		return min(size, y.Bytes)
	}
	if y := t.cfg.Storage.Engine; y.Layout != "" {
		return min(size, y.Bytes)
	}
	return size
}

// awaitDiscards lets the filesystem carry out the deletions that it has put off, and waits until
// the device has no more discards to do: none has ended since the last look, and none can be under
// way, which may take longer than that. A long window leaves more behind than a short one, so it
// waits for as much as a sixth of it, or for climbSync; what remains then, or is somebody else's,
// the ladder tells.
func (t *trial) awaitDiscards(ctx context.Context) {
	start, end := t.Rec.Window()
	ctx, cancel := context.WithTimeout(ctx, max(climbSync, (end-start)/6))
	defer cancel()
	if t.place() == "" { // a store tells nobody what it has put off
		return
	}
	synced := t.Clock.NewEvent()
	t.Clock.Go(func() {
		for _, dir := range t.places {
			_ = host.SyncFilesystem(dir) // a filesystem that cannot puts nothing off
		}
		synced.Fire()
	})
	_ = synced.Wait(ctx)
	_, _ = t.quiet(ctx)
}
