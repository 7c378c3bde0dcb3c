package checkpoint

import (
	"context"
	"encoding/hex"
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/content"
	"kvbench/tiers/transfer"
	"kvbench/tracing/host"
)

// oldest returns the number of the oldest checkpoint that exists, which is read first.
func (l *Load) oldest() int { return l.mark.Last - l.mark.Kept + 1 }

// prepareReads finds all files before the first read, and drops their pages from the page cache.
func (l *Load) prepareReads(ctx context.Context) error {
	nonce, err := hex.DecodeString(l.mark.Nonce)
	if err != nil || len(nonce) != len(l.Nonce) {
		return fmt.Errorf("the marker's nonce %q is none", l.mark.Nonce)
	}
	l.content = content.New([16]byte(nonce), 0)
	// With a time limit fewer checkpoints than requested may exist.
	if l.Within > 0 {
		l.Number = min(l.Number, l.mark.Kept)
	}
	if l.Number > l.mark.Kept {
		return fmt.Errorf("-checkpoint-reads: at most %d, as many checkpoints as there are in %s, "+
			"given %d", l.mark.Kept, l.folder.Path(), l.Number)
	}
	// The files were written by another tier, perhaps in another process. So this tier adopts them by
	// name.
	tier, ok := l.tier.(adopter)
	if files := tiers.FilesOf(l.tier); files != nil {
		tier, ok = files.(adopter)
	}
	if !ok {
		return fmt.Errorf("%s does not take over files of an earlier run",
			l.tier.Traits().Description)
	}
	// Adopt all files before the first read, so that a missing file ends the trial at once.
	var all []tiers.Object
	for n := range l.Number {
		all = append(all, l.objects(l.oldest()+n)...)
	}
	for _, o := range all {
		if err := tier.Adopt(ctx, o); err != nil {
			return err
		}
	}
	// The rules count the time to empty the caches as part of the recovery.
	begun := l.env.Clock.Now()
	switch l.Flush {
	case FlushDrop:
		err = host.DropCaches()
	case FlushFadvise:
		for _, o := range all {
			if err = l.env.Call("drop from the page cache", l.path(o), func() error {
				return host.DropFromCache(l.path(o))
			}); err != nil {
				break
			}
		}
	}
	if err != nil {
		return fmt.Errorf("-checkpoint-flush %s: %w", l.Flush, err)
	}
	if l.Flush != FlushNone {
		l.flush = l.env.Clock.Now() - begun
	}
	return nil
}

// objects returns the files of one checkpoint.
func (l *Load) objects(step int) (list []tiers.Object) {
	for i := range l.Count {
		for _, f := range l.files[l.source(i)] {
			list = append(list, object(step, f))
		}
	}
	return list
}

// read reads one checkpoint back and verifies it.
func (l *Load) read(ctx context.Context, step int) (run result.CheckpointRun, err error) {
	// Count cached pages before the time starts, because reads get these pages from the page cache.
	cached := l.cached(l.objects(step))
	tier := l.tier
	if files := tiers.FilesOf(tier); files != nil { // read ranges of a file concurrently
		tier = transfer.New(files, &transfer.Settings{Pool: l.env.Pool, Chunk: int(l.Chunk),
			Depth: l.Depth, Ranges: l.Readers, Clock: l.env.Clock})
	}
	verify := &content.Verifier{Content: l.content, Verify: l.Verify, Sample: sampleEvery}
	run, err = l.timed(ctx, step, func(ctx context.Context, i int) error {
		for _, f := range l.files[l.source(i)] {
			o, a := object(step, f), l.First+i
			call := tiers.Call{Observe: func(c tiers.Chunk) { l.chunk(a, c) }}
			if err := tier.Get(ctx, &call, []tiers.Object{o}, verify); err != nil {
				return err
			}
			l.moved(a, o, call.Timing)
		}
		return nil
	})
	if err != nil {
		return run, err
	}
	for _, o := range l.objects(step) {
		run.VerifiedBytes += l.verified(o.Size)
	}
	run.CachedBytes = cached
	// The device's counters include the reads of other clients. Package merge compares them with the
	// bytes of all clients.
	alone := run
	if l.env.Group.Size() > 1 {
		alone.DeviceBytes = nil
	}
	alone.JudgeCold()
	run.Cold = alone.Cold
	return run, nil
}

// cached returns how many bytes of the files are in the page cache, nil if unknown.
func (l *Load) cached(all []tiers.Object) *int64 {
	if l.env.Dir == nil { // objects of a store do not pass the page cache
		return nil
	}
	sum := int64(0)
	for _, o := range all {
		var n int64
		err := l.env.Call("look into the page cache", l.path(o), func() (err error) {
			n, err = host.CachedBytes(l.path(o))
			return err
		})
		if err != nil {
			return nil
		}
		sum += min(n, o.Size) // n is in whole pages
	}
	return &sum
}
