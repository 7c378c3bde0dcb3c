package kvbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/content"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/store"
	"kvbench/tracing/host"
	"kvbench/workloads"
	"kvbench/workloads/iotrace"
)

// observer is the trial as the cache's Observer. It records chunks, demotions, copies, deletions,
// evictions, retries and failures.
type observer trial

var _ cache.Observer = (*observer)(nil)

// Began writes a row of the I/O trace.
func (o *observer) Began(_ cache.Tag, ob tiers.Object, l tiers.Kind, op tiers.Op, ph tiers.Phase) {
	o.row(rowOperations[op], ob, l, ph)
}

func (o *observer) Chunk(tag cache.Tag, l tiers.Kind, ph tiers.Phase, c tiers.Chunk) {
	o.Rec.Chunk(tag.Shard, l, ph, c)
}

// Demoted counts the read and the write of a demotion as operations. The time in which neither has a
// chunk in flight counts as waiting for space, in the request that demotes.
func (o *observer) Demoted(tag cache.Tag, ob tiers.Object, from, to tiers.Kind, read,
	write tiers.Timing) {
	now := o.Clock.Now()
	o.Succeeded(2)
	o.Rec.Demote(now, tag.Shard, from, to, ob.Size)
	o.moved(now, tag, ob, from, tiers.Read, read)
	o.moved(now, tag, ob, to, tiers.Write, write)
}

// Copied counts a write of a copy to another level than the entry's. It counts like the write of a
// demotion. The bytes come from the request, so there is no read to count.
func (o *observer) Copied(tag cache.Tag, ob tiers.Object, _, to tiers.Kind, write tiers.Timing) {
	o.Succeeded(1)
	o.moved(o.Clock.Now(), tag, ob, to, tiers.Write, write)
}

// moved records an operation of a demotion or copy.
func (o *observer) moved(at time.Duration, tag cache.Tag, ob tiers.Object, l tiers.Kind,
	op tiers.Op, t tiers.Timing) {
	o.Rec.Operation(record.OpSample{At: at, Shard: tag.Shard, Level: l, Op: op,
		Phase: tiers.Evict, Purpose: workloads.ForPrefill, Bytes: ob.Size, Timing: t})
}

func (o *observer) Deleted(tag cache.Tag, ob tiers.Object, l tiers.Kind, took time.Duration) {
	o.Succeeded(1)
	o.Rec.Delete(o.Clock.Now(), tag.Shard, l, ob.Size, took)
	if o.sim != nil && o.sim.Deletes {
		o.row(iotrace.Delete, ob, l, tiers.Evict)
	}
}

func (o *observer) Evicted(tag cache.Tag, ob tiers.Object, l tiers.Kind) {
	o.Rec.Evict(o.Clock.Now(), tag.Shard, l, ob.Size)
}

func (o *observer) Retried(tag cache.Tag) { o.Rec.Retry(o.Clock.Now(), tag.Shard) }

func (o *observer) Failed(tag cache.Tag, ob tiers.Object, l tiers.Kind, what string, err error) {
	why := fatal(err)
	// The sample has the error's text, not the error, which may refer to a file or buffer.
	s := result.ErrorSample{Tier: l.String(), Operation: what, Errno: errnoName(err),
		Key: ob.Key, Message: err.Error(), Fatal: why != ""}
	if mismatch, ok := errors.AsType[*content.MismatchError](err); ok {
		s.Errno, s.Offset = "mismatch", new(mismatch.Offset)
	}
	now := o.Clock.Now()
	o.Rec.Failure(now, s)
	failed, all := o.Rec.Failed(now)
	switch {
	case s.Fatal:
		if why = " (" + why + ")"; strings.Contains(s.Message, why[2:len(why)-1]) {
			why = ""
		}
		o.Fail(fmt.Errorf("%s of %s on the %s tier: %w%s", what, ob.Key, l, err, why),
			result.EndedByError)
	// With 10 failures or more, a share of failures above 1 % ends the trial.
	case failed >= 10 && failed*100 > all:
		o.Fail(fmt.Errorf("more than 1 %% of the operations failed (%d of %d), the last one: "+
			"%s of %s on the %s tier: %w", failed, all, what, ob.Key, l, err), result.EndedByError)
	}
}

// Failed counts a failed operation of the workload on a tier. The cache reports its own operations. Some
// errors end the trial.
func (e *Env) Failed(shard int, o tiers.Object, l tiers.Kind, what string, err error) {
	(*observer)(e.trial).Failed(cache.Tag{Shard: shard}, o, l, what, err)
}

var rowOperations = [tiers.NumOps]iotrace.Operation{tiers.Read: iotrace.Read,
	tiers.Write: iotrace.Write}

// row writes a row of the I/O trace, if there is one.
func (o *observer) row(operation iotrace.Operation, ob tiers.Object, l tiers.Kind, ph tiers.Phase) {
	if o.sim == nil || o.sim.Trace == nil || o.sim.over {
		return
	}
	err := o.sim.Trace.Row(iotrace.Row{At: o.Clock.Now(), Operation: operation, Bytes: ob.Size,
		Tier: int(l), Key: ob.Key, Phase: ph.String()})
	if err != nil {
		o.Fail(err, result.EndedByError)
	}
}

// fatal returns the reason why an error ends the trial. It returns "" if the trial continues.
func fatal(err error) string {
	var mismatch *content.MismatchError
	var panicked *tiers.PanicError
	switch {
	case errors.As(err, &panicked):
		return "a bug in this program"
	case errors.As(err, &mismatch):
		return "what was read is not what was written"
	case errors.Is(err, store.ErrFull):
		return "the store is full: give a smaller -storage-capacity-gb or free space in it"
	case errors.Is(err, store.ErrDown):
		return "no endpoint of the store answers any more"
	case errors.Is(err, syscall.ENOSPC):
		return full(err)
	case errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		return strings.TrimPrefix(tiers.Advice(err), "; ")
	}
	return ""
}

// full returns a text with the free bytes and inodes of the filesystem that rejected a write with
// ENOSPC. If a create failed although much is free, the directory is full, as on ext4 without large_dir.
func full(err error) string {
	const most = 64 << 20 // free bytes of a filesystem that counts as full
	var e *tiers.OpError
	if !errors.As(err, &e) {
		return "there is no room"
	}
	fs, _ := host.FilesystemOf(e.Path)
	text := "the filesystem has " + units.Bytes.Text(fs.Free)
	if fs.FreeFiles != nil {
		text += " and " + units.Plural(*fs.FreeFiles, "inode")
	}
	text += " left"
	if e.Op == "create" && fs.Free > most && (fs.FreeFiles == nil || *fs.FreeFiles > 1000) {
		text += ", so it is the directory that is full: a larger -object-tokens or another " +
			"-layout makes fewer files"
	}
	return text
}

// errnoName returns the name of the errno in err's chain, such as "EIO". For an error of an object store
// it returns the cause, such as "refused", "timeout" or the HTTP status "403". It returns "" for other
// errors.
func errnoName(err error) string {
	var errno syscall.Errno
	var of *store.Error
	switch {
	case errors.Is(err, objecttier.ErrLost):
		return "lost"
	case errors.As(err, &of):
		return of.Cause
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "short file"
	case errors.Is(err, tiers.ErrNotFound):
		return "ENOENT"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	}
	return ""
}
