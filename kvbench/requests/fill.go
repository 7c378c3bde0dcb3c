package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// Forecast implements Workload. Decode-only requests write nothing.
func (l *Load) Forecast() kvbench.Forecast {
	f := kvbench.Forecast{WriteShare: 1}
	if p := l.cfg.Population; p.Entries > 0 {
		f.Fill, f.WriteShare = int64(p.Entries)*l.cfg.Planner.Sizer.Bytes(p.Tokens), 0
	}
	documents, _ := l.documents()
	f.Fill += l.cfg.Precondition.Bytes + documents
	return f
}

// documents returns the bytes of all documents, and of those that are kept.
func (l *Load) documents() (total, kept int64) {
	c := l.cfg.Corpus
	if c == nil {
		return 0, 0
	}
	n, first := c.Documents()
	for doc := range n {
		for _, e := range c.Chunks(nil, doc) {
			bytes := l.cfg.Planner.Sizer.Bytes(e.Tokens)
			if total += bytes; doc >= first {
				kept += bytes
			}
		}
	}
	return total, kept
}

// populate writes the entries that decode-only requests read. The workers write them before the window,
// without the limit of concurrent writes (spec 6).
func (l *Load) populate(ctx context.Context) error {
	p, parts, tokens := l.cfg.Population, 1, l.cfg.Population.Tokens
	if n := l.cfg.Planner.ObjectTokens; n > 0 {
		parts, tokens = p.Tokens/n, n
	}
	total := int64(p.Entries) * int64(parts) * l.cfg.Planner.Sizer.Bytes(tokens)
	err := l.fits(fmt.Sprintf("the %d entries of decode-only", p.Entries), total, "-num-users",
		p.Entries/workloads.PopulationPerUser)
	if err != nil || total == 0 {
		return err
	}
	f := l.newFiller(ctx, "filling", total)
	return f.write(ctx, l.cfg.Workers, p.Entries*parts, func(n int) workloads.Entry {
		key := workloads.PopulationKey(n / parts)
		if l.cfg.Planner.ObjectTokens > 0 {
			key = workloads.PartKey(key, n%parts)
		}
		return workloads.Entry{Key: key, Tokens: tokens}
	})
}

// fits returns an error if the entries are larger than the last tier. The error suggests a value of the
// option with which they fit.
func (l *Load) fits(what string, bytes int64, option string, value int) error {
	last := l.env.Levels[len(l.env.Levels)-1]
	if bytes <= last.Capacity {
		return nil
	}
	return fmt.Errorf("%w: %s need %s, the %s tier has %s: about %s %d would fit, or a "+
		"larger -storage-capacity-gb", cache.ErrTooLarge, what, units.Bytes.Text(bytes), last.Kind,
		units.Bytes.Text(last.Capacity), option,
		int64(float64(value)*float64(last.Capacity)/float64(bytes)))
}

// preconditionDrive writes Precondition.Bytes to bring the drive to its steady state (spec 11). The
// entries stay in the cache as the first victims. Their deletion would trim the drive and undo the
// preconditioning.
func (l *Load) preconditionDrive(ctx context.Context) error {
	p := l.cfg.Precondition
	if p.Bytes == 0 || l.env.Simulated {
		return nil
	}
	tokens, writers := cmp.Or(p.Tokens, 2048), cmp.Or(p.Threads, runtime.NumCPU())
	size := l.cfg.Planner.Sizer.Bytes(tokens)
	entries := (p.Bytes + size - 1) / size
	f := l.newFiller(ctx, "preconditioning", entries*size)
	err := f.write(ctx, writers, int(entries), func(n int) workloads.Entry {
		return workloads.Entry{Key: workloads.PreconditionKey(n), Tokens: tokens}
	})
	f.endRound()
	rates := f.rates[max(0, len(f.rates)-reported):]
	l.precondition = &result.Precondition{
		Bytes: f.done.Load(), DurationNS: int64(l.env.Clock.Now() - f.begin), Writers: writers,
		LastRates: rates,
	}
	if len(rates) > 0 {
		l.precondition.Spread = (floats.Max(rates) - floats.Min(rates)) * float64(len(rates)) /
			floats.Sum(rates)
	}
	return err
}

// ingest writes the documents of a run with RAG, one document after the other, with as many writers as
// workers. If the corpus keeps only some documents, ingest removes the oldest before it writes the next.
//
// The order of the documents is their recency in LRU. With concurrent documents the timing of the
// storage would decide which documents a small cache keeps.
func (l *Load) ingest(ctx context.Context) error {
	c := l.cfg.Corpus
	if c == nil {
		return nil
	}
	n, first := c.Documents()
	total, kept := l.documents()
	err := l.fits(fmt.Sprintf("the %d documents kept", n-first), kept, "-rag-num-docs", n-first)
	if err != nil {
		return err
	}
	f := l.newFiller(ctx, "ingesting", total)
	for doc := range n {
		if old := doc - (n - first); old >= 0 {
			for _, e := range c.Chunks(nil, old) {
				err := errors.Join(l.env.Cache.Forget(ctx, cache.Tag{}, e.Key),
					l.env.Reference.Forget(ctx, e.Key))
				if err != nil {
					return fmt.Errorf("ingesting documents: %w", err)
				}
			}
		}
		chunks := c.Chunks(nil, doc)
		err := f.write(ctx, l.cfg.Workers, len(chunks),
			func(n int) workloads.Entry { return chunks[n] })
		if err != nil {
			return fmt.Errorf("document %d: %w", doc, err)
		}
	}
	return nil
}

// filler writes the cache's initial content, with several writers.
type filler struct {
	load  *Load
	stage string
	total int64 // bytes
	begin time.Duration

	done  atomic.Int64 // bytes
	mu    sync.Mutex
	rates []float64 // bytes/s of the rounds so far
	mark  int64     // bytes at the end of the last round
	at    time.Duration
}

// rounds is the number of rounds of equal bytes in a filling. The result has the rates of the last
// reported rounds.
//
// An empty SSD writes fast until its SLC cache is full. Then it slows down until garbage collection
// keeps up with the writes. If the last rounds have the same rate, the drive is in its steady state. The
// result has the spread of these rates.
const (
	rounds   = 10
	reported = 4
)

// newFiller returns a filler whose progress is on the live line until ctx ends.
func (l *Load) newFiller(ctx context.Context, stage string, total int64) *filler {
	now := l.env.Clock.Now()
	f := &filler{load: l, stage: stage, total: total, begin: now, at: now}
	l.env.Filling(ctx, stage, total, &f.done)
	return f
}

// wrote counts an entry and ends the round if the round is full.
func (f *filler) wrote(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done.Add(size)-f.mark >= max(1, f.total/rounds) {
		f.endRound()
	}
}

// endRound records the rate of a round. The last round may be shorter than the others. Callers hold mu.
func (f *filler) endRound() {
	if now, done := f.load.env.Clock.Now(), f.done.Load(); now > f.at && done > f.mark {
		f.rates = append(f.rates, float64(done-f.mark)/(now-f.at).Seconds())
		f.mark, f.at = done, now
	}
}

// write writes the entries with several writers. It returns when all entries are written, or when all
// writers have ended after an error or interruption.
//
// Writers take the entries one by one, in order. With several writers the order of completion may
// differ.
func (f *filler) write(ctx context.Context, writers, entries int,
	entry func(n int) workloads.Entry) error {
	env, sizer := f.load.env, f.load.cfg.Planner.Sizer
	var next atomic.Int64
	err := env.Concurrently(ctx, min(writers, entries), func(ctx context.Context, w int) error {
		tag := cache.Tag{Shard: w, Phase: tiers.Prefill, Unbounded: true}
		var lease, usual cache.Lease
		for n := next.Add(1) - 1; n < int64(entries); n = next.Add(1) - 1 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			e := entry(int(n))
			want := cache.Want{Key: e.Key, Size: sizer.Bytes(e.Tokens), Write: true}
			env.Cache.Decide(&lease, []cache.Want{want})
			env.Reference.Decide(&usual, []cache.Want{want}, false, func(int) {})
			env.Reference.Write(&usual, 0)
			_, _, err := lease.Write(ctx, 0, tag)
			lease.Close(ctx, tag)
			env.Reference.Close(&usual)
			if err != nil {
				return err
			}
			f.wrote(want.Size)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.stage, cmp.Or(context.Cause(ctx), err))
	}
	return nil
}
