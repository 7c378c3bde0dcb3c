package requests

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// populate writes the entries that decode-only reads: bounded by nothing but
// the workers (spec 6), outside the window.
func (l *Load) populate(ctx context.Context) error {
	p := l.cfg.Population
	if p.Entries == 0 {
		return nil
	}
	size := l.cfg.Planner.Sizer.Bytes(p.Tokens)
	if err := l.populationFits(size); err != nil {
		return err
	}
	f := l.newFiller(ctx, "filling", int64(p.Entries)*size)
	defer f.stop()
	err := f.write(ctx, l.cfg.Workers, p.Entries,
		func(n int) (string, int64) { return workloads.PopulationKey(n), size })
	if err != nil {
		return fmt.Errorf("filling: %w", err)
	}
	return nil
}

// populationFits refuses a population larger than the terminal tier.
func (l *Load) populationFits(size int64) error {
	entries := l.cfg.Population.Entries
	total := int64(entries) * size
	last := l.env.Levels[len(l.env.Levels)-1]
	if total <= last.Capacity {
		return nil
	}
	fit := last.Capacity / size / populationPerUser
	return fmt.Errorf("%w: decode-only needs %d entries of %d bytes (%d bytes in all) in the %s "+
		"tier of %d bytes: -num-users %d would fit, or a larger -storage-capacity-gb",
		cache.ErrTooLarge, entries, size, total, last.Kind, last.Capacity, fit)
}

// populationPerUser is how many entries decode-only writes per user (spec 5).
const populationPerUser = 10

// precondition writes until the drive has shown its steady state (spec 11). Its
// entries stay as the first victims: deleting them would trim the drive and
// undo it.
func (l *Load) preconditionDrive(ctx context.Context) error {
	p := l.cfg.Precondition
	if p.Bytes == 0 || l.env.Simulated {
		return nil
	}
	if p.Tokens == 0 {
		p.Tokens = 2048
	}
	if p.Threads == 0 {
		p.Threads = runtime.NumCPU()
	}
	size := l.cfg.Planner.Sizer.Bytes(p.Tokens)
	entries := int((p.Bytes + size - 1) / size)
	f := l.newFiller(ctx, "preconditioning", int64(entries)*size)
	defer f.stop()
	err := f.write(ctx, p.Threads, entries,
		func(n int) (string, int64) { return workloads.PreconditionKey(n), size })
	rates, bytes := f.lastRates()
	l.precondition = &result.Precondition{
		Bytes: bytes, DurationNS: int64(l.env.Clock.Now() - f.begin), Writers: p.Threads,
		LastRates: rates, Spread: spread(rates),
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("preconditioning filled the disk after %d of %d bytes: give a smaller "+
			"-storage-capacity-gb or -precondition-size-gb: preconditioning: %w",
			bytes, p.Bytes, err)
	case err != nil:
		return fmt.Errorf("preconditioning: %w", err)
	}
	return nil
}

// filler writes what has to be in the cache before the load, with several writers.
type filler struct {
	env   *kvbench.Env
	stage string
	total int64 // bytes
	begin time.Duration
	stop  context.CancelFunc // ends the showing of progress

	mu    sync.Mutex
	done  int64     // bytes
	rates []float64 // of the rounds so far
	mark  int64     // bytes at the end of the last of them
	at    time.Duration
}

// fillPatience is how long an interrupted filling waits for its writers.
const fillPatience = 200 * time.Millisecond

// rounds is into how many rounds of equal bytes a filling is cut; the rates of
// the last reported of them show whether the rate has settled.
//
// A drive that was empty writes fast until its cache of single-level cells is full, then more
// slowly until it collects garbage as fast as it is written to. When the last rounds have the same
// rate it has come to its steady state; a result says how far they lie apart.
const (
	rounds   = 10
	reported = 4
)

// newFiller shows progress until it is stopped.
func (l *Load) newFiller(ctx context.Context, stage string, total int64) *filler {
	now := l.env.Clock.Now()
	f := &filler{env: l.env, stage: stage, total: total, begin: now, at: now}
	ctx, f.stop = context.WithCancel(ctx)
	l.env.Clock.Every(ctx, time.Second, func() {
		f.mu.Lock()
		done := f.done
		f.mu.Unlock()
		f.env.Show(kvbench.Snapshot{
			Stage: stage, Elapsed: f.env.Clock.Now() - f.begin, Done: done, Of: total,
		})
	})
	return f
}

// wrote counts an entry and ends the round that is full with it.
func (f *filler) wrote(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done += size; f.done-f.mark >= max(1, f.total/rounds) {
		f.endRound()
	}
}

// endRound notes the rate of a round. Callers hold mu.
func (f *filler) endRound() {
	if now := f.env.Clock.Now(); now > f.at && f.done > f.mark {
		f.rates = append(f.rates, float64(f.done-f.mark)/(now-f.at).Seconds())
		f.mark, f.at = f.done, now
	}
}

// lastRates returns the rates of the last rounds, of which the very last may be cut short, and
// how many bytes were written.
func (f *filler) lastRates() (rates []float64, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endRound()
	return f.rates[max(0, len(f.rates)-reported):], f.done
}

// write returns when all is written or something failed. Interrupted, it does not
// wait long for the writers: clean waits for them.
//
// Entries are handed out one by one, in order: with several writers the order of completion may
// differ, that of the decisions does not, so that what is evicted first is known.
func (f *filler) write(ctx context.Context, writers, entries int,
	entry func(n int) (key string, size int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if writers = min(writers, entries); writers == 0 {
		return nil
	}
	var next, ended atomic.Int64
	finished := f.env.Clock.NewEvent()
	for w := range writers {
		f.env.Clock.Go(func() {
			tag := cache.Tag{Shard: w, Phase: tiers.Prefill, Unbounded: true}
			var lease cache.Lease
			for n := next.Add(1) - 1; n < int64(entries) && ctx.Err() == nil; n = next.Add(1) - 1 {
				key, size := entry(int(n))
				f.env.Cache.Decide(&lease, []cache.Want{{Key: key, Size: size, Write: true}})
				_, _, err := lease.Write(ctx, 0, tag)
				lease.Close(ctx, tag)
				if err != nil {
					cancel(err)
					break
				}
				f.wrote(size)
			}
			if ended.Add(1) == int64(writers) {
				finished.Fire()
			}
		})
	}
	if finished.Wait(ctx) != nil {
		patience, done := context.WithTimeout(context.WithoutCancel(ctx), fillPatience)
		defer done()
		_ = finished.Wait(patience)
	}
	return context.Cause(ctx)
}

// spread is (max - min) ÷ mean.
func spread(rates []float64) float64 {
	if len(rates) == 0 {
		return 0
	}
	lo, hi, sum := rates[0], rates[0], 0.0
	for _, r := range rates {
		lo, hi, sum = min(lo, r), max(hi, r), sum+r
	}
	return (hi - lo) * float64(len(rates)) / sum
}

// ingest writes the documents of a run with RAG, one after the other, with as
// many writers as workers. Where only some are kept, the oldest leaves before
// the next one comes.
//
// Documents come one after the other because their order is their recency: written side by side,
// which of them a small cache keeps would depend on the storage.
func (l *Load) ingest(ctx context.Context) error {
	c := l.cfg.Corpus
	if c == nil {
		return nil
	}
	n, first := c.Documents()
	last := l.env.Levels[len(l.env.Levels)-1]
	var total, kept int64
	var chunks []workloads.Entry
	for doc := range n {
		for _, e := range chunksOf(&chunks, c, doc) {
			total += l.cfg.Planner.Sizer.Bytes(e.Tokens)
		}
		if doc == first-1 {
			kept = total
		}
	}
	if kept = total - kept; kept > last.Capacity {
		return fmt.Errorf("%w: the %d documents kept take %d bytes, the %s tier has %d: about "+
			"-rag-num-docs %d would fit, or a larger -storage-capacity-gb",
			cache.ErrTooLarge, n-first, kept, last.Kind, last.Capacity,
			int64(float64(n-first)*float64(last.Capacity)/float64(kept)))
	}
	f := l.newFiller(ctx, "ingesting", total)
	defer f.stop()
	for doc := range n {
		if doc >= n-first && first > 0 {
			for _, e := range chunksOf(&chunks, c, doc-(n-first)) {
				if err := l.env.Cache.Forget(ctx, cache.Tag{}, e.Key); err != nil {
					return fmt.Errorf("ingesting documents: %w", err)
				}
			}
		}
		chunksOf(&chunks, c, doc)
		err := f.write(ctx, l.cfg.Workers, len(chunks), func(n int) (string, int64) {
			return chunks[n].Key, l.cfg.Planner.Sizer.Bytes(chunks[n].Tokens)
		})
		if err != nil {
			return fmt.Errorf("ingesting document %d: %w", doc, err)
		}
	}
	return nil
}

// chunksOf reuses the memory of one list.
func chunksOf(list *[]workloads.Entry, c workloads.Corpus, doc int) []workloads.Entry {
	*list = c.Chunks((*list)[:0], doc)
	return *list
}
