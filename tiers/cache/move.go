package cache

import (
	"context"
	"errors"
	"syscall"

	"kvbench/tiers"
)

// retries is how often a transient failure is tried again (spec 12).
const retries = 3

// began tells that bytes of an object begin to move. A level without a tier takes no time and
// cannot fail: there that was all.
func (c *Cache) began(tag Tag, o tiers.Object, in *level, op tiers.Op,
	phase tiers.Phase) (over bool) {
	c.observer.Began(tag, o, in.Kind, op, phase)
	if in.Tier == nil {
		c.observer.Chunk(tag, in.Kind, op, phase, o.Size)
	}
	return in.Tier == nil
}

func (c *Cache) chunks(tag Tag, in *level, phase tiers.Phase) tiers.ChunkFunc {
	return func(op tiers.Op, bytes int64) { c.observer.Chunk(tag, in.Kind, op, phase, bytes) }
}

// read reads the first of objects, which lie in one level, and says how many that were.
func (c *Cache) read(ctx context.Context, tag Tag, in *level, objects []tiers.Object) (
	n int, tm tiers.Timing, err error,
) {
	if c.began(tag, objects[0], in, tiers.Read, tag.Phase) {
		return 1, tm, nil
	}
	for tries := 1; ; tries++ {
		n, tm, err = c.transfer.Read(ctx, in.Tier, c.chunks(tag, in, tag.Phase), objects...)
		if err == nil || !c.again(ctx, tag, objects[0], in, tiers.Read, tries, err) {
			return n, tm, err
		}
	}
}

// write writes the first of objects, and says how many that were.
func (c *Cache) write(ctx context.Context, tag Tag, in *level, objects []tiers.Object) (
	n int, tm tiers.Timing, err error,
) {
	if c.began(tag, objects[0], in, tiers.Write, tag.Phase) {
		return 1, tm, nil
	}
	for tries := 1; ; tries++ {
		n, tm, err = c.transfer.Write(ctx, in.Tier, c.chunks(tag, in, tag.Phase), objects...)
		if err == nil || !c.again(ctx, tag, objects[0], in, tiers.Write, tries, err) {
			return n, tm, err
		}
	}
}

// move copies the bytes of a demotion.
func (c *Cache) move(ctx context.Context, tag Tag, o tiers.Object, from, to *level) (rd,
	wr tiers.Timing, err error) {
	read, wrote := c.chunks(tag, from, tiers.Evict), c.chunks(tag, to, tiers.Evict)
	over, nowhere := c.began(tag, o, from, tiers.Read, tiers.Evict),
		c.began(tag, o, to, tiers.Write, tiers.Evict)
	switch {
	case over && nowhere:
	case over: // what the upper level does not hold is made again
		_, wr, err = c.transfer.Write(ctx, to.Tier, wrote, o)
	case nowhere:
		_, rd, err = c.transfer.Read(ctx, from.Tier, read, o)
	default:
		rd, wr, err = c.transfer.Move(ctx, from.Tier, to.Tier, o, read, wrote)
	}
	return rd, wr, err
}

// again says whether an operation that failed is tried again, which transient failures are. The
// timing that counts is that of the last attempt: lost ones are counted, not averaged in.
func (c *Cache) again(ctx context.Context, tag Tag, o tiers.Object, in *level, op tiers.Op,
	tries int, err error) bool {
	if tries > retries || !Transient(err) || ctx.Err() != nil {
		c.failed(ctx, tag, o, in.Kind, op, err)
		return false
	}
	c.observer.Retried(tag, o, in.Kind, op, err)
	return true
}

// failed reports err unless it is only the echo of a cancelled run.
func (c *Cache) failed(ctx context.Context, tag Tag, o tiers.Object, l tiers.Kind, op tiers.Op,
	err error) {
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		return
	}
	c.observer.Failed(tag, o, l, op, err)
}

// Transient says whether an operation that failed so may succeed when it is simply tried again.
func Transient(err error) bool {
	for _, e := range []error{syscall.EINTR, syscall.EAGAIN, syscall.ETIMEDOUT, syscall.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() && !errors.Is(err, context.DeadlineExceeded)
}
