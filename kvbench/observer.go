package kvbench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/tiers/content"
	"kvbench/workloads"
)

// observer counts what the cache does by itself: chunks, demotions, deletions
// and failures.
type observer struct {
	clock clock.Clock
	rec   *record.Recorder
	fail  func(err error, endedBy string)

	succeeded atomic.Int64 // operations of the whole load, warm-up included
}

var _ cache.Observer = (*observer)(nil)

// Began is for those who trace.
func (o *observer) Began(cache.Tag, tiers.Object, tiers.Kind, tiers.Op, tiers.Phase) {}

func (o *observer) Chunk(tag cache.Tag, l tiers.Kind, op tiers.Op, ph tiers.Phase, bytes int64) {
	o.rec.Chunk(o.clock.Now(), tag.Shard, l, op, ph, bytes)
}

// Demoted counts both halves. The times between, when neither half had a chunk
// in flight, belong to the mover's own request as waiting for space.
func (o *observer) Demoted(tag cache.Tag, ob tiers.Object, from, to tiers.Kind, read,
	write tiers.Timing) {
	now := o.clock.Now()
	o.succeeded.Add(2)
	o.rec.Demote(now, tag.Shard, from, to, ob.Size)
	half := record.OpSample{At: now, Shard: tag.Shard, Phase: tiers.Evict,
		Purpose: workloads.ForPrefill, Bytes: ob.Size}
	for _, s := range []struct {
		level tiers.Kind
		op    tiers.Op
		t     tiers.Timing
	}{{from, tiers.Read, read}, {to, tiers.Write, write}} {
		half.Level, half.Op, half.Timing = s.level, s.op, s.t
		o.rec.Operation(half)
	}
}

func (o *observer) Deleted(tag cache.Tag, ob tiers.Object, l tiers.Kind, took time.Duration) {
	o.rec.Delete(o.clock.Now(), tag.Shard, l, ob.Size, took)
}

func (o *observer) Evicted(tag cache.Tag, ob tiers.Object, l tiers.Kind) {
	o.rec.Evict(o.clock.Now(), tag.Shard, l, ob.Size)
}

func (o *observer) Retried(tag cache.Tag, _ tiers.Object, l tiers.Kind, op tiers.Op, _ error) {
	o.rec.Retry(o.clock.Now(), tag.Shard, l, op)
}

func (o *observer) Failed(tag cache.Tag, ob tiers.Object, l tiers.Kind, op tiers.Op, err error) {
	why := fatal(err)
	// The error becomes a text at once: what it holds, a file or a buffer, is not kept.
	s := result.ErrorSample{Tier: l.String(), Operation: op.String(), Errno: errnoName(err),
		Key: ob.Key, Message: err.Error(), Fatal: why != ""}
	var mismatch *content.MismatchError
	if errors.As(err, &mismatch) {
		s.Errno, s.Offset = "mismatch", new(mismatch.Offset)
	}
	o.rec.Failure(s)
	switch {
	case s.Fatal:
		o.fail(fmt.Errorf("%s of %s on the %s tier: %w (%s)", op, ob.Key, l, err, why),
			result.EndedByError)
	case o.tooMany():
		o.fail(fmt.Errorf("more than 1 %% of the operations failed, the last one: %s of %s on "+
			"the %s tier: %w", op, ob.Key, l, err), result.EndedByError)
	}
}

// tooMany is the one-percent rule of spec 12, once there are enough failures to
// speak of a share. Failures count from the load's beginning, so the operations
// do, too.
func (o *observer) tooMany() bool {
	failed := o.rec.Failed()
	return failed >= 10 && failed*100 > o.succeeded.Load()+failed
}

// fatal says why an error must end the trial, "" if it need not.
func fatal(err error) string {
	var mismatch *content.MismatchError
	var panicked *tiers.PanicError
	switch {
	case errors.As(err, &panicked):
		return "a bug in this program"
	case errors.As(err, &mismatch):
		return "what was read is not what was written"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the filesystem is full: give a smaller -storage-capacity-gb or free space"
	case errors.Is(err, syscall.EROFS):
		return "the filesystem is read-only"
	case errors.Is(err, syscall.EIO):
		return "the device reported an I/O error: see the kernel log"
	}
	return ""
}

// errnoName is the symbolic name of the errno in err's chain.
func errnoName(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	case errors.Is(err, tiers.ErrNotFound):
		return "ENOENT"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	}
	return ""
}
