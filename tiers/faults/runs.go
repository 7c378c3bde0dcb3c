package faults

import (
	"context"

	"kvbench/tiers"
)

var _ tiers.RunTier = (*Tier)(nil)

// CreateRun asks the hook as for one Create of the first entry, then the tier
// inside; where that has no runs, the run is the first entry.
func (t *Tier) CreateRun(ctx context.Context, objects []tiers.Object, at int, limit int64) (tiers.RunWriter, error) {
	inner, ok := t.inner.(tiers.RunTier)
	if !ok {
		w, err := t.Create(ctx, objects[0])
		if err != nil {
			return nil, err
		}
		return runWriter{w, one{}}, nil
	}
	if err := t.ask(ctx, Create, objects[0], 0, 0); err != nil {
		return nil, err
	}
	w, err := inner.CreateRun(ctx, objects, at, limit)
	if err != nil {
		return nil, err
	}
	t.writers.Add(1)
	return runWriter{&writer{t: t, o: objects[0], inner: w}, w}, nil
}

// OpenRun asks the hook as for one Open of the first entry, then the tier inside.
func (t *Tier) OpenRun(ctx context.Context, objects []tiers.Object, limit int64) (tiers.RunReader, error) {
	inner, ok := t.inner.(tiers.RunTier)
	if !ok {
		r, err := t.Open(ctx, objects[0])
		if err != nil {
			return nil, err
		}
		return runReader{r, one{}}, nil
	}
	if err := t.ask(ctx, Open, objects[0], 0, 0); err != nil {
		return nil, err
	}
	r, err := inner.OpenRun(ctx, objects, limit)
	if err != nil {
		return nil, err
	}
	t.readers.Add(1)
	return runReader{&reader{t: t, o: objects[0], inner: r}, r}, nil
}

// one is the shape of a run of a single entry.
type one struct{}

func (one) Len() int        { return 1 }
func (one) Start(int) int64 { return 0 }

type runWriter struct {
	tiers.Writer
	tiers.Run
}

type runReader struct {
	tiers.Reader
	tiers.Run
}
