package plainio

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

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
	if r.store != nil { // which does not report what it has deferred
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

// Readable is nothing: it is removed.
func (r *Removal) Readable() []tiers.Object { return nil }

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
