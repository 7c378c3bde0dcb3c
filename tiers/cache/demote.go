package cache

import (
	"cmp"
	"context"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// copied copies an object to a lower level. The wait for buffers is in the timing of the read, and the
// two timings overlap. After an error nothing of the object is left in the lower level; readFailed
// reports that the read has failed, and not the write.
func (c *Cache) copied(ctx context.Context, read, write *tiers.Call, o tiers.Object,
	from, to *level) (readFailed bool, err error) {
	memory, ok := from.Files().(tiers.Memory)
	if !ok || to.Tier == nil || !to.Tier.Traits().Holds {
		// One of the levels has no bytes: they are generated again.
		if err := c.get(ctx, read, from, []tiers.Object{o}); err != nil {
			return true, err
		}
		return false, c.put(ctx, write, to, []tiers.Object{o})
	}
	begun := c.clock.Now()
	view, release, err := memory.View(o)
	src := &upper{view: view, call: read, clock: c.clock, padding: c.source()}
	src.busy.Enter(begun)
	src.busy.Exit(c.clock.Now())
	if err != nil {
		return true, err
	}
	err = to.Tier.Put(ctx, write, []tiers.Object{o}, src)
	read.Timing = tiers.Timing{Admission: write.Timing.Admission}
	failed := src.end()
	release()
	// The rest of the time is the upper level's, and not generation.
	write.Timing = tiers.Timing{Device: write.Timing.IO()}
	if err == nil { // also where a failed read was repeated
		return false, nil
	}
	return failed != nil, cmp.Or(failed, err)
}

// upper is the upper level's bytes of a demotion, as the source of the write. Its reads are requests to
// the upper level; reads that are repeated count, too. A read may end after the demotion.
type upper struct {
	view    tiers.Source
	padding tiers.Source
	call    *tiers.Call
	clock   clock.Clock
	busy    clock.Busy

	mu   sync.Mutex
	err  error // of the first read that failed
	left bool  // the demotion has ended: no more reports
}

// Fill implements tiers.Source. Padding is generated, so that files have the same bytes as after a
// write.
func (u *upper) Fill(o tiers.Object, off int64, p []byte) error {
	n := int(max(0, min(int64(len(p)), o.Size-off)))
	begun := u.clock.Now()
	u.busy.Enter(begun)
	err := u.view.Fill(o, off, p[:n])
	now := u.clock.Now()
	u.busy.Exit(now)
	u.mu.Lock()
	if err != nil {
		u.err = cmp.Or(u.err, err)
	} else if !u.left {
		u.call.Observe(tiers.Chunk{Op: tiers.Read, Bytes: int64(n), Begun: begun, Ended: now,
			Asked: begun, Done: now})
	}
	u.mu.Unlock()
	if err != nil || n == len(p) {
		return err
	}
	return u.padding.Fill(o, off+int64(n), p[n:])
}

// end ends the reports, and returns the error of the first read that failed: the error of the write
// wraps it differently. It adds the time of the reads to the call.
func (u *upper) end() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.left = true
	u.call.Timing.Device = u.busy.Total()
	return u.err
}
