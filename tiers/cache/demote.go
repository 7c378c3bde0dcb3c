package cache

import (
	"cmp"
	"context"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// copied copies an object to a lower level, with retries. After an error the lower level has nothing of
// the object.
func (c *Cache) copied(ctx context.Context, tag Tag, o tiers.Object, from, to *level) error {
	c.observer.Began(tag, o, from.Kind, tiers.Read, tiers.Evict)
	c.observer.Began(tag, o, to.Kind, tiers.Write, tiers.Evict)
	read, write := c.newCall(tag, from, tiers.Evict), c.newCall(tag, to, tiers.Evict)
	err := c.tried(ctx, tag, o, func() (tiers.Kind, tiers.Op, error) {
		failed, err := c.copiedOnce(ctx, read, write, o, from, to)
		if failed == tiers.Read {
			return from.Kind, failed, err
		}
		return to.Kind, failed, err
	})
	if err == nil {
		c.observer.Demoted(tag, o, from.Kind, to.Kind, read.Timing, write.Timing)
	}
	return err
}

// copiedOnce copies an object to a lower level. The two timings overlap. The wait for buffers is in the
// timing of the read. After an error failed is the operation that failed.
func (c *Cache) copiedOnce(ctx context.Context, read, write *tiers.Call, o tiers.Object,
	from, to *level) (failed tiers.Op, err error) {
	memory, ok := from.Files().(tiers.Memory)
	if !ok || to.Tier == nil || !to.Tier.Traits().Holds {
		// If one of the levels holds no bytes, generate them again.
		if err := c.once(ctx, read, tiers.Read, from, []tiers.Object{o}); err != nil {
			return tiers.Read, err
		}
		return tiers.Write, c.once(ctx, write, tiers.Write, to, []tiers.Object{o})
	}
	begun := c.clock.Now()
	view, release, err := memory.View(o)
	src := &upper{view: view, call: read, clock: c.clock}
	src.busy.Enter(begun)
	src.busy.Exit(c.clock.Now())
	if err != nil {
		return tiers.Read, err
	}
	err = to.Tier.Put(ctx, write, []tiers.Object{o}, src)
	read.Timing = tiers.Timing{Admission: write.Timing.Admission}
	unread := src.end()
	release()
	// The rest of the time belongs to the upper level, and is not generation.
	write.Timing = tiers.Timing{Device: write.Timing.IO()}
	if err != nil && unread != nil { // without err a failed read was repeated
		return tiers.Read, unread
	}
	return tiers.Write, err
}

// upper is the source of a demotion's write: the object's bytes in the upper level. Each Fill is a read
// of the upper level and is reported, also if it is repeated. A read may end after the demotion.
type upper struct {
	view  tiers.Source
	call  *tiers.Call
	clock clock.Clock
	busy  clock.Busy

	mu   sync.Mutex
	err  error // of the first read that failed
	left bool  // the demotion has ended: no more reports
}

// Fill implements tiers.Source. The padding is zero.
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
			Submitted: begun, Completed: now})
	}
	u.mu.Unlock()
	clear(p[n:])
	return err
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
