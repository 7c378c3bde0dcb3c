package kvbench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/tiers/spread"
	"kvbench/tiers/transfer"
	"kvbench/tracing/host"
)

const (
	// In a short window the measurement takes this part of the window's length.
	unloadedPart = 10
	// The fewest requests of each direction. A storage with slow requests has longer than the measurement's
	// time for them: a GET of 32 MiB at 50 MB/s takes 0.7 s.
	unloadedLeast, unloadedLongest = 8, 10 * time.Second
	// Objects are written for the measurement: in turns of up to 16 requests and 4 MiB, and of a
	// sixteenth of a request, because entries may be smaller than a request. All objects together
	// have at most 64 MiB, or half of the tier, which is enough for 8 objects of each kind.
	unloadedRequests, unloadedObject = 16, 4 << 20
	unloadedSmall, unloadedEach      = 16, 8
	unloadedBytes, unloadedCapacity  = 64 << 20, 2
)

// Filled is a Workload that has written objects to the storage tier past the cache.
type Filled interface {
	// Objects returns objects that may be read before the window.
	Objects() []tiers.Object
}

// measureUnloaded measures the storage tier's latency with one request in flight, before the window,
// for the verdict. Of several ranks rank 0 alone measures, while the others wait at the barrier that
// ends the preparation.
func (t *trial) measureUnloaded(ctx context.Context) error {
	if t.cfg.Unloaded == 0 {
		return nil
	}
	if err := t.Group.Barrier(ctx); err != nil {
		return err
	}
	if t.Group.Rank() > 0 {
		t.unloaded.Reason = "rank 0 measures it for all ranks"
		return nil
	}
	err := t.readWriteAlone(ctx)
	if err != nil && ctx.Err() == nil {
		t.unloaded.Reason, err = err.Error(), nil
	}
	return err
}

// readWriteAlone writes objects for half of the time, and reads for the other half: the load's
// objects, if there are some, else those that it has written.
func (t *trial) readWriteAlone(ctx context.Context) (err error) {
	level, err := t.Level(tiers.Storage)
	if err != nil {
		return err
	}
	if level.Tier == nil {
		return errors.New("the storage tier takes no time")
	}
	length := t.cfg.Unloaded
	if w := t.phase.Window; w > 0 {
		length = min(length, w/unloadedPart)
	}
	m := &alone{trial: t, tier: level.Tier, half: length / 2}
	single := *t.Transfer
	single.Depth, single.Ranges = 1, 0
	if level.Tier.Traits().Holds {
		if single.Pool, err = t.NewPool(1, single.Chunk); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, single.Pool.Close()) }()
	}
	objects := t.Cache.Objects(tiers.Storage)
	if w, ok := t.workload.(Filled); ok {
		objects = append(objects, w.Objects()...)
	}
	if files := level.Files(); files != nil { // of several tensor-parallel ranks the first one's
		m.tier = transfer.New(files, &single) // the trial closes the files
		if ranks, ok := level.Tier.(*spread.Ranks); ok {
			objects = ranks.InFiles(objects)
		}
	} else if t.bucket != nil {
		bufs, err := single.Pool.Get(ctx, 1, nil)
		if err != nil {
			return err
		}
		defer single.Pool.Put(bufs...)
		m.tier = t.bucket.Plain(bufs[0])
	}
	left := min(unloadedBytes, level.Capacity/unloadedCapacity)
	if len(objects) > 0 {
		err = errors.Join(m.read(ctx, objects), m.write(ctx, left))
	} else if err = m.write(ctx, left); err == nil && len(m.written) > 0 {
		err = m.read(ctx, m.written)
	}
	need := level.Capacity
	for _, o := range objects {
		need -= o.Size
	}
	return errors.Join(err, m.clear(ctx, need))
}

// alone moves objects with one request in flight.
type alone struct {
	*trial
	tier    tiers.Tier
	half    time.Duration // how long each direction takes
	written []tiers.Object
}

// write writes objects of left bytes at most.
func (m *alone) write(ctx context.Context, left int64) (err error) {
	const block = buffer.PageSize
	chunk := int64(m.Transfer.Chunk)
	large := max(chunk, min(unloadedRequests*chunk, unloadedObject)/chunk*chunk)
	small := max(block, chunk/unloadedSmall/block*block)
	sizes := [2]int64{m.fits(min(large, left/(2*unloadedEach)/block*block)),
		m.fits(min(small, left/(2*unloadedEach)/block*block))}
	l := m.latencies()
	for n := 0; err == nil && !l.enough(); n++ {
		o := tiers.Object{Key: fmt.Sprint("unloaded-", n), Gen: 1, Size: sizes[n%2]}
		if left -= o.Size; left < 0 || o.Size < block {
			break
		}
		if m.cfg.Storage.Folder != nil { // it has one name in addition to the names of the load
			err = m.remove(ctx)
		}
		if err == nil {
			err = m.tier.Put(ctx, &tiers.Call{Observe: l.count}, []tiers.Object{o}, m.Content.Source())
		}
		if err == nil {
			m.written = append(m.written, o)
		}
	}
	m.unloaded.Write = l.means()
	m.reasonOf("write", l)
	return err
}

// read reads objects, the written ones in turns and others in a random order. It ends the read of a
// large object early.
func (m *alone) read(ctx context.Context, objects []tiers.Object) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	l := m.latencies()
	l.over = func() { stop(errWindowOver) }
	draw := rand.New(rand.NewPCG(m.info.Seed, 0))
	sink := &content.Verifier{Verify: content.VerifyNone}
	defer func() { m.unloaded.Read = l.means(); m.reasonOf("read", l) }()
	for n := 0; !l.enough(); n++ {
		o := objects[n%len(objects)]
		if len(m.written) == 0 {
			o = objects[draw.IntN(len(objects))]
		}
		err := m.tier.Get(ctx, &tiers.Call{Observe: l.count}, []tiers.Object{o}, sink)
		if context.Cause(ctx) == errWindowOver {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clear removes the written objects where they take the place of others, count as bytes of a directory,
// would be kept, or leave less free space than the load may need. Other files stay until the end of the
// trial: the device would discard them within the window.
func (m *alone) clear(ctx context.Context, need int64) error {
	cfg := &m.cfg.Storage
	y, _ := cfg.Layout.Spec()
	if y.Name == tiers.LayoutFiles && len(m.dirs) == 1 && cfg.Folder == nil && !cfg.KeepFiles {
		var fs host.Filesystem
		err := m.Call("statfs", m.dirs[0].path, func() (err error) {
			fs, err = host.FilesystemOf(m.dirs[0].path)
			return err
		})
		if err == nil && fs.Free >= need+cfg.Roots[0].Floor {
			return nil
		}
	}
	return m.remove(ctx)
}

// remove removes the written objects.
func (m *alone) remove(ctx context.Context) error {
	if len(m.written) == 0 {
		return nil
	}
	err := m.tier.Remove(context.WithoutCancel(ctx), m.written...)
	m.written = nil
	return err
}

// fits limits a size to one that the storage tier stores as one object.
func (t *trial) fits(size int64) int64 {
	if c, _ := t.cfg.Storage.filesOfRank(); c.Layout.Bytes > 0 {
		return min(size, c.Layout.Bytes)
	}
	return size
}

// latencies are those of one direction: of the requests, or behind the page cache of the flushes,
// whose requests have no bytes.
type latencies struct {
	clock         clock.Clock
	begun, length time.Duration
	paused        func(time.Duration) time.Duration // see trial.paused
	over          func()                            // called when enough requests have completed; nil: nothing
	chunk, pieces int64                             // pieces in bytes, of the request in flight
	n, retried    int                               // requests; those that were sent more than once are in retried alone
	cut           bool                              // the time was over before the request in flight had completed
	sizes         [2]struct {
		took  []time.Duration
		bytes int64
	} // of small and large requests
}

func (m *alone) latencies() *latencies {
	return &latencies{clock: m.Clock, paused: m.paused, begun: m.Clock.Now(), length: m.half,
		chunk: int64(m.Transfer.Chunk)}
}

// count receives each request. A request that was sent again has no latency of its own: its time contains the
// pauses between its attempts.
func (l *latencies) count(c tiers.Chunk) {
	if l.cut {
		return
	}
	switch l.pieces += c.Bytes; {
	case l.late(): // the request in flight is cut off: it has no latency
		if l.cut = true; c.Retried {
			l.retried++
		}
	case c.Piece || c.Bytes == 0:
	case c.Retried:
		l.pieces = 0
		l.retried++
	case l.paused(c.Ended-c.Begun) > 0: // this process did not run
		l.pieces = 0
	default:
		size := &l.sizes[0]
		if l.pieces > l.chunk/2 {
			size = &l.sizes[1]
		}
		size.took, size.bytes = append(size.took, c.Ended-c.Begun), size.bytes+l.pieces
		l.pieces = 0
		l.n++
	}
	if l.over != nil && l.enough() && (l.n > 0 || l.late()) { // at n = 0 the first request is in flight
		l.over()
	}
}

// enough reports whether the time is over. A layout may keep all bytes in memory, and has no
// requests then.
func (l *latencies) enough() bool {
	spent := l.clock.Now() - l.begun
	return spent >= l.length && (l.n+l.retried == 0 || l.n >= unloadedLeast) || l.late() ||
		spent == 0 && l.n >= unloadedLeast // requests take no time
}

func (l *latencies) late() bool { return l.clock.Now()-l.begun >= unloadedLongest }

// reasonOf says why a direction has no latency.
func (m *alone) reasonOf(direction string, l *latencies) {
	var why string
	switch {
	case l.n > 0:
		return
	case l.retried > 0:
		why = fmt.Sprintf("the store refused the first attempt of each %s that was measured (%d)", direction, l.retried)
	case l.late():
		why = fmt.Sprintf("one %s took longer than the %s of the measurement", direction, unloadedLongest)
	default:
		return
	}
	m.unloaded.Reason = strings.TrimPrefix(m.unloaded.Reason+"; "+why, "; ")
}

// means are the means of the sizes that occurred, the smaller first. The slowest tenth is left out:
// of few requests, one that waited for a processor would change the mean.
func (l *latencies) means() (all []result.UnloadedLatency) {
	for _, size := range l.sizes {
		n := len(size.took)
		if n == 0 {
			continue
		}
		slices.Sort(size.took)
		kept := size.took[:max(1, n-(n+9)/10)]
		sum := time.Duration(0)
		for _, took := range kept {
			sum += took
		}
		if sum > 0 {
			all = append(all, result.UnloadedLatency{RequestBytes: size.bytes / int64(n),
				NS: int64(sum) / int64(len(kept)), Requests: int64(n)})
		}
	}
	return all
}
