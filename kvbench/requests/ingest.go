package requests

import (
	"context"
	"fmt"

	"kvbench/tiers/cache"
	"kvbench/workloads"
)

// ingest writes the documents of a run with RAG, one after the other, with as
// many writers as workers. Where only some are kept, the oldest leaves before
// the next one comes.
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
		return fmt.Errorf("%w: the %d documents kept take %d bytes, the %s tier has %d: about -rag-num-docs %d would fit, or a larger -storage-capacity-gb",
			cache.ErrTooLarge, n-first, kept, last.Kind, last.Capacity, int64(float64(n-first)*float64(last.Capacity)/float64(kept)))
	}
	f := l.newFiller("ingesting", total)
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
		f.show()
	}
	return nil
}

// chunksOf reuses the memory of one list.
func chunksOf(list *[]workloads.Entry, c workloads.Corpus, doc int) []workloads.Entry {
	*list = c.Chunks((*list)[:0], doc)
	return *list
}
