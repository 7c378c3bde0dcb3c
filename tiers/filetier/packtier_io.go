package filetier

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"kvbench/tiers"
)

// Create gives the entry the next place.
func (t *PackTier) Create(ctx context.Context, o tiers.Object) (tiers.Writer, error) {
	w, err := t.CreateRun(ctx, []tiers.Object{o}, 0, 0)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// CreateRun gives entries the next places of the file that takes entries, as
// many as it has left; grouped ones a file of their own. With direct I/O their
// blocks are allocated here: a full disk shows.
func (t *PackTier) CreateRun(_ context.Context, objects []tiers.Object, at int, limit int64) (tiers.RunWriter, error) {
	w, err := t.place(objects, at, limit)
	if err != nil {
		return nil, &tiers.OpError{Op: "create", Path: t.dir.Path(), Key: objects[0].Key, Offset: -1, Err: err}
	}
	f, err := t.file(w.pack())
	if err == nil {
		err = t.preallocate(f.file, w.run[0].at, w.room())
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	w.out = f
	return w, nil
}

// place chooses the places of a run.
func (t *PackTier) place(objects []tiers.Object, at int, limit int64) (*packWriter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return nil, tiers.ErrClosed
	case t.entries[objects[0].ID()] != nil:
		return nil, tiers.ErrExists
	}
	p := t.current
	if p == nil {
		p = &pack{gen: t.made, free: t.opt.Places}
		t.made++
	}
	most := p.free
	if t.opt.Grouped {
		most -= at % t.opt.Places
	}
	w := &packWriter{packRun: packRun{tier: t}}
	first := p.end
	for i, o := range objects[:min(most, len(objects))] {
		if i > 0 && (p.end-first+t.padded(o) > limit || t.entries[o.ID()] != nil) {
			break
		}
		e := &packEntry{o: o, in: p, at: p.end, room: tiers.AlignUp(o.Size, t.unit), uses: 1}
		w.run = append(w.run, e)
		p.end += e.room
		t.held += o.Size
		t.used += e.room
	}
	p.writers++
	p.live += len(w.run)
	p.free -= len(w.run)
	if t.opt.Grouped {
		p.free = 0
	}
	if t.current = p; p.free == 0 {
		t.current = nil
	}
	return w, nil
}

func (t *PackTier) padded(o tiers.Object) int64 { return tiers.AlignUp(o.Size, int64(t.traits.Align)) }

// Open finds an entry and keeps its place until Close.
func (t *PackTier) Open(ctx context.Context, o tiers.Object) (tiers.Reader, error) {
	r, err := t.OpenRun(ctx, []tiers.Object{o}, 0)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// OpenRun finds entries side by side in one file, and keeps their places until
// Close. Without direct I/O the file is dropped from the page cache, so that what
// is read comes from the device.
func (t *PackTier) OpenRun(_ context.Context, objects []tiers.Object, limit int64) (tiers.RunReader, error) {
	r := t.find(objects, limit)
	if r == nil {
		return nil, &tiers.OpError{Op: "open", Path: t.dir.Path(), Key: objects[0].Key, Offset: -1, Err: tiers.ErrNotFound}
	}
	var err error
	if r.in, err = t.openCold(r.pack().object()); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

func (t *PackTier) find(objects []tiers.Object, limit int64) *packReader {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &packReader{packRun: packRun{tier: t}}
	next := int64(0)
	for i, o := range objects {
		e := t.entries[o.ID()]
		if e == nil || i > 0 && (e.in != r.pack() || e.at != next || e.at-r.run[0].at+t.padded(o) > limit) {
			break
		}
		e.uses++
		next = e.at + e.room
		r.run = append(r.run, e)
	}
	if len(r.run) == 0 {
		return nil
	}
	return r
}

// Remove forgets an entry; its place is free when that returns, or when its last
// reader closes.
func (t *PackTier) Remove(_ context.Context, o tiers.Object) error {
	t.mu.Lock()
	e := t.entries[o.ID()]
	if e == nil {
		t.mu.Unlock()
		return &tiers.OpError{Op: "remove", Path: t.dir.Path(), Key: o.Key, Offset: -1, Err: tiers.ErrNotFound}
	}
	delete(t.entries, o.ID())
	e.uses--
	unused := e.uses == 0
	t.mu.Unlock()
	if unused {
		return t.vacate(e)
	}
	return nil
}

// packRun is the places of one writer or reader, side by side in one file.
type packRun struct {
	tier *PackTier
	run  []*packEntry
	over atomic.Bool
}

// Len and Start implement Run.
func (r *packRun) Len() int          { return len(r.run) }
func (r *packRun) Start(i int) int64 { return r.run[i].at - r.run[0].at }

func (r *packRun) pack() *pack { return r.run[0].in }

// room is the bytes of all places.
func (r *packRun) room() int64 {
	last := len(r.run) - 1
	return r.Start(last) + r.run[last].room
}

// error names the entry that the run begins with and the file.
func (r *packRun) error(op string, off int64, err error) error {
	f := newFile(r.pack().object())
	return &tiers.OpError{Op: op, Path: r.tier.dir.Path() + "/" + f.fan + "/" + f.name, Key: r.run[0].o.Key, Offset: off, Err: err}
}

// within checks that a call stays inside of the entries.
func (r *packRun) within(n int, off int64) error {
	last := len(r.run) - 1
	if end := r.Start(last) + r.run[last].o.Size; off < 0 || off+int64(n) > end {
		return fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", n, off, end)
	}
	return nil
}

type packWriter struct {
	packRun
	out *fileWriter
}

func (w *packWriter) WriteAt(_ context.Context, p []byte, off int64) error {
	t := w.tier
	if err := w.within(len(p), off); err != nil {
		return w.error("write", off, err)
	}
	if w.over.Load() {
		return w.error("write", off, tiers.ErrClosed)
	}
	if n, err := t.calls.PwriteFull(w.out.fd, p[:tiers.AlignUp(len(p), t.traits.Align)], w.run[0].at+off); err != nil {
		return w.error("write", off+int64(n), err)
	}
	return nil
}

// Commit flushes the file, if the layout does, and makes the entries visible.
func (w *packWriter) Commit(context.Context) error {
	t := w.tier
	if w.over.Load() {
		return w.error("flush", -1, tiers.ErrClosed)
	}
	if !t.unflushed {
		if err := t.flush(w.out.fd); err != nil {
			return errors.Join(w.error("flush", -1, err), w.Abort())
		}
	}
	if !w.over.CompareAndSwap(false, true) {
		return w.error("flush", -1, tiers.ErrClosed)
	}
	if err := w.leave(); err != nil {
		return errors.Join(err, t.vacate(w.run...))
	}
	if err := w.publish(); err != nil {
		return errors.Join(w.error("commit", -1, err), t.vacate(w.run...))
	}
	return nil
}

// leave ends the writing, of the whole file where nothing follows.
func (w *packWriter) leave() error {
	p := w.pack()
	w.tier.mu.Lock()
	p.writers--
	done := p.settle()
	w.tier.mu.Unlock()
	if done {
		return w.tier.seal(p)
	}
	return nil
}

func (w *packWriter) publish() error {
	t := w.tier
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range w.run {
		if t.entries[e.o.ID()] != nil {
			return tiers.ErrExists
		}
	}
	for _, e := range w.run {
		t.entries[e.o.ID()] = e // the writer's use becomes the tier's
	}
	return nil
}

func (w *packWriter) Abort() error {
	if !w.over.CompareAndSwap(false, true) {
		return nil
	}
	return errors.Join(w.leave(), w.tier.vacate(w.run...))
}

type packReader struct {
	packRun
	in *fileReader
}

func (r *packReader) ReadAt(_ context.Context, p []byte, off int64) error {
	t := r.tier
	if err := r.within(len(p), off); err != nil {
		return r.error("read", off, err)
	}
	if n, err := t.calls.PreadFull(r.in.fd, p[:tiers.AlignUp(len(p), t.traits.Align)], len(p), r.run[0].at+off); err != nil {
		return r.error("read", off+int64(n), err)
	}
	return nil
}

// Close lets go of the places; those whose entries were removed meanwhile are
// free when it returns.
func (r *packReader) Close() error {
	if !r.over.CompareAndSwap(false, true) {
		return nil
	}
	return errors.Join(r.in.Close(), r.release())
}

func (r *packReader) release() error {
	var unused []*packEntry
	r.tier.mu.Lock()
	for _, e := range r.run {
		if e.uses--; e.uses == 0 {
			unused = append(unused, e)
		}
	}
	r.tier.mu.Unlock()
	var errs []error
	for _, e := range unused { // not necessarily side by side
		errs = append(errs, r.tier.vacate(e))
	}
	return errors.Join(errs...)
}
