package filetier

import (
	"container/heap"
	"context"
	"fmt"
	"sync/atomic"

	"kvbench/tiers"
)

// Create takes the lowest free slot.
func (t *SlotTier) Create(ctx context.Context, o tiers.Object) (tiers.Writer, error) {
	return t.CreateRun(ctx, []tiers.Object{o}, 0, 0)
}

// CreateRun takes the lowest free slot, and those behind it as long as they are
// the lowest free ones: as the engines' free lists do, nothing is searched for a
// longer stretch.
func (t *SlotTier) CreateRun(_ context.Context, objects []tiers.Object, _ int, limit int64) (tiers.RunWriter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &slotWriter{slotRun: slotRun{tier: t}}
	for i, o := range objects {
		if i > 0 && (t.lowest() != w.run[0].at+int64(i) || w.Start(i)+t.padded(o) > limit) {
			break
		}
		e, err := t.place(o)
		if err != nil && i == 0 {
			return nil, t.slotError("create", o, -1, err)
		}
		if err != nil {
			break // its turn comes as the first of another run
		}
		w.run = append(w.run, e)
	}
	return w, nil
}

// place takes the lowest slot for o. The caller holds mu.
func (t *SlotTier) place(o tiers.Object) (*slotEntry, error) {
	switch {
	case t.ended.Load():
		return nil, tiers.ErrClosed
	case o.Size > t.slot:
		return nil, fmt.Errorf("%d bytes do not fit into a slot of %d", o.Size, t.slot)
	case t.entries[o.ID()] != nil:
		return nil, tiers.ErrExists
	}
	e := &slotEntry{o: o, at: t.lowest(), uses: 1}
	if len(t.free) > 0 {
		heap.Pop(&t.free)
	} else {
		t.fresh++
	}
	t.taken++
	t.held += o.Size
	return e, nil
}

// lowest is the number of the slot that comes next. The caller holds mu.
func (t *SlotTier) lowest() int64 {
	if len(t.free) > 0 {
		return t.free[0]
	}
	return t.fresh
}

func (t *SlotTier) padded(o tiers.Object) int64 { return tiers.AlignUp(o.Size, int64(t.traits.Align)) }

// Open finds an entry and keeps its slot until Close.
func (t *SlotTier) Open(ctx context.Context, o tiers.Object) (tiers.Reader, error) {
	return t.OpenRun(ctx, []tiers.Object{o}, 0)
}

// OpenRun finds entries in slots side by side, and keeps them until Close.
func (t *SlotTier) OpenRun(_ context.Context, objects []tiers.Object, limit int64) (tiers.RunReader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &slotReader{slotRun: slotRun{tier: t}}
	for i, o := range objects {
		e := t.entries[o.ID()]
		if e == nil && i == 0 {
			return nil, t.slotError("open", o, -1, tiers.ErrNotFound)
		}
		if e == nil || i > 0 && (e.at != r.run[0].at+int64(i) || r.Start(i)+t.padded(o) > limit) {
			break
		}
		e.uses++
		r.run = append(r.run, e)
	}
	return r, nil
}

// slotRun is the slots of one writer or reader, side by side.
type slotRun struct {
	tier *SlotTier
	run  []*slotEntry
	over atomic.Bool
}

// Len and Start implement Run.
func (r *slotRun) Len() int          { return len(r.run) }
func (r *slotRun) Start(i int) int64 { return int64(i) * r.tier.slot }

// within checks that a call stays inside of the entries.
func (r *slotRun) within(n int, off int64) error {
	last := len(r.run) - 1
	if end := r.Start(last) + r.run[last].o.Size; off < 0 || off+int64(n) > end {
		return fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", n, off, end)
	}
	return nil
}

// file is where the byte at off lies.
func (r *slotRun) file(off int64) int64 { return r.run[0].at*r.tier.slot + off }

// release ends the use of all slots. The caller holds mu.
func (r *slotRun) release() {
	for _, e := range r.run {
		r.tier.release(e)
	}
}

type slotWriter struct{ slotRun }

func (w *slotWriter) WriteAt(_ context.Context, p []byte, off int64) error {
	t, o := w.tier, w.run[0].o
	if err := w.within(len(p), off); err != nil {
		return t.slotError("write", o, off, err)
	}
	if w.over.Load() {
		return t.slotError("write", o, off, tiers.ErrClosed)
	}
	if n, err := t.calls.PwriteFull(t.out.fd, p[:tiers.AlignUp(len(p), t.traits.Align)], w.file(off)); err != nil {
		return t.slotError("write", o, off+int64(n), err)
	}
	return nil
}

// Commit makes the entries visible.
func (w *slotWriter) Commit(context.Context) error {
	t := w.tier
	if !w.over.CompareAndSwap(false, true) {
		return t.slotError("commit", w.run[0].o, -1, tiers.ErrClosed)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range w.run {
		if t.entries[e.o.ID()] != nil {
			w.release()
			return t.slotError("commit", e.o, -1, tiers.ErrExists)
		}
	}
	for _, e := range w.run {
		t.entries[e.o.ID()] = e // the writer's use becomes the tier's
	}
	return nil
}

func (w *slotWriter) Abort() error {
	if w.over.CompareAndSwap(false, true) {
		w.tier.mu.Lock()
		defer w.tier.mu.Unlock()
		w.release()
	}
	return nil
}

type slotReader struct{ slotRun }

func (r *slotReader) ReadAt(_ context.Context, p []byte, off int64) error {
	t, o := r.tier, r.run[0].o
	if err := r.within(len(p), off); err != nil {
		return t.slotError("read", o, off, err)
	}
	if n, err := t.calls.PreadFull(t.in.fd, p[:tiers.AlignUp(len(p), t.traits.Align)], len(p), r.file(off)); err != nil {
		return t.slotError("read", o, off+int64(n), err)
	}
	return nil
}

func (r *slotReader) Close() error {
	if r.over.CompareAndSwap(false, true) {
		r.tier.mu.Lock()
		defer r.tier.mu.Unlock()
		r.release()
	}
	return nil
}
