package cache

import (
	"cmp"
	"context"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// copied copies an object to a lower level. The two timings overlap. The wait for buffers is in the
// timing of the read. After an error the lower level has nothing of the object; readFailed reports
// whether the read failed, not the write.
func (c *Cache) copied(ctx context.Context, read, write *tiers.Call, o tiers.Object,
	from, to *level) (readFailed bool, err error) {
	memory, ok := from.Files().(tiers.Memory)
	if !ok || to.Tier == nil || !to.Tier.Traits().Holds {
		// If one of the levels holds no bytes, generate them again.
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
	// The rest of the time belongs to the upper level, and is not generation.
	write.Timing = tiers.Timing{Device: write.Timing.IO()}
	if err == nil { // also if a failed read was repeated
		return false, nil
	}
	return failed != nil, cmp.Or(failed, err)
}

// upper is the source of a demotion's write: the object's bytes in the upper level. Each Fill is a read
// of the upper level and is reported, also if it is repeated. A read may end after the demotion.
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

// Fill implements tiers.Source. It generates the padding, so that a file has the same bytes as after a
// write by a request.
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

// end stops the reports. It returns the error of the first read that failed, which the error of the
// write may hide. It adds the time of the reads to the call.
func (u *upper) end() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.left = true
	u.call.Timing.Device = u.busy.Total()
	return u.err
}
