package kvbench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/workloads"
)

// ingest writes the documents of a run with RAG, one after the other, with as
// many writers as workers. Where only some are kept, the oldest leaves before
// the next one comes.
func (t *trial) ingest(ctx context.Context) error {
	c := t.cfg.Corpus
	if c == nil {
		return nil
	}
	n, first := c.Documents()
	last := t.stack.levels[len(t.stack.levels)-1]
	var total, kept int64
	var chunks []workloads.Entry
	for doc := range n {
		for _, e := range chunksOf(&chunks, c, doc) {
			total += t.cfg.Planner.Sizer.Bytes(e.Tokens)
		}
		if doc == first-1 {
			kept = total
		}
	}
	if kept = total - kept; kept > last.Capacity {
		return fmt.Errorf("%w: the %d documents kept take %d bytes, the %s tier has %d: about -rag-num-docs %d would fit, or a larger -storage-capacity-gb",
			tiers.ErrTooLarge, n-first, kept, last.Level, last.Capacity, int64(float64(n-first)*float64(last.Capacity)/float64(kept)))
	}
	begin, told := t.clock.Now(), t.clock.Now()
	var done atomic.Int64
	for doc := range n {
		select {
		case <-t.ending.failed: // a filesystem that runs short
			_, err := t.ended()
			return err
		default:
		}
		if doc >= n-first && first > 0 {
			for _, e := range chunksOf(&chunks, c, doc-(n-first)) {
				if err := t.stack.cache.Forget(ctx, tiers.Tag{}, e.Key); err != nil {
					return fmt.Errorf("ingesting documents: %w", err)
				}
			}
		}
		if err := t.ingestDocument(ctx, chunksOf(&chunks, c, doc), &done); err != nil {
			return fmt.Errorf("ingesting document %d: %w", doc, err)
		}
		if now := t.clock.Now(); t.cfg.Progress != nil && now-told >= time.Second {
			told = now
			t.cfg.Progress(Snapshot{Stage: "ingesting", Elapsed: now - begin, Done: done.Load(), Of: total, Free: t.freeSpace()})
		}
	}
	return nil
}

// chunksOf reuses the memory of one list.
func chunksOf(list *[]workloads.Entry, c workloads.Corpus, doc int) []workloads.Entry {
	*list = c.Chunks((*list)[:0], doc)
	return *list
}

// ingestDocument writes the chunks of one document.
func (t *trial) ingestDocument(ctx context.Context, chunks []workloads.Entry, done *atomic.Int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for n := range min(t.cfg.Workers, len(chunks)) {
		wg.Go(func() {
			tag := tiers.Tag{Shard: n, Phase: tiers.Prefill, Unbounded: true}
			var lease tiers.Lease
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(chunks) {
					return
				}
				size := t.cfg.Planner.Sizer.Bytes(chunks[i].Tokens)
				t.stack.cache.Decide(&lease, []tiers.Intent{{Key: chunks[i].Key, Size: size, Write: true}})
				_, err := lease.Write(ctx, 0, tag)
				lease.Close(ctx, tag)
				if err != nil {
					cancel(err)
				}
				done.Add(size)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
