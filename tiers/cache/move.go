package cache

import (
	"context"
	"errors"
	"syscall"

	"kvbench/tiers"
)

// retries is how often a transient failure is tried again (spec 12).
const retries = 3

func (c *Cache) chunks(tag Tag, in *level, phase tiers.Phase) tiers.ChunkFunc {
	return func(op tiers.Op, bytes int64) { c.observer.Chunk(tag, in.Kind, op, phase, bytes) }
}

// transferred reads or writes the first of objects, which lie in one level, and says how many that
// were. A level without a tier takes no time and cannot fail.
func (c *Cache) transferred(ctx context.Context, tag Tag, op tiers.Op, in *level,
	objects []tiers.Object) (n int, tm tiers.Timing, err error) {
	c.observer.Began(tag, objects[0], in.Kind, op, tag.Phase)
	if in.Tier == nil {
		c.observer.Chunk(tag, in.Kind, op, tag.Phase, objects[0].Size)
		return 1, tm, nil
	}
	carry := c.transfer.Read
	if op == tiers.Write {
		carry = c.transfer.Write
	}
	told := c.chunks(tag, in, tag.Phase)
	for tries := 1; ; tries++ {
		n, tm, err = carry(ctx, in.Tier, told, objects...)
		if err == nil || !c.again(ctx, tag, objects[0], in, op, tries, err) {
			return n, tm, err
		}
	}
}

// move copies the bytes of a demotion.
func (c *Cache) move(ctx context.Context, tag Tag, o tiers.Object, from, to *level) error {
	c.observer.Began(tag, o, from.Kind, tiers.Read, tiers.Evict)
	c.observer.Began(tag, o, to.Kind, tiers.Write, tiers.Evict)
	rd, wr, err := c.transfer.Move(ctx, from.Tier, to.Tier, o,
		c.chunks(tag, from, tiers.Evict), c.chunks(tag, to, tiers.Evict))
	if err != nil {
		c.failed(ctx, tag, o, to.Kind, tiers.Write, err)
		return err
	}
	c.observer.Demoted(tag, o, from.Kind, to.Kind, rd, wr)
	return nil
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
