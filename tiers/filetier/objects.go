package filetier

import (
	"context"
	"errors"
	"slices"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

// entry is an object and its place in a file. It is small, because there may be millions.
type entry struct {
	o     tiers.Object
	at    int64 // offset of the object in its file
	space int64 // bytes from this place to the next one
	file  any   // *pack or *bucket, where the layout has files of several objects

	// Guarded by Tier.mu.
	uses    int  // the tier while the object can be opened, and each extent
	visible bool // committed and not removed
}

// Create begins to write the first object and the objects that move together with it: adjacent objects
// in the suite's layouts, Depth objects concurrently in engines' layouts.
func (t *Tier) Create(ctx context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	return t.begin(ctx, ioengine.Write, objs)
}

// Open begins to read the objects that Create would begin to write, and keeps their places until Close.
func (t *Tier) Open(ctx context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	return t.begin(ctx, ioengine.Read, objs)
}

// file is an extent as a writer or a reader.
type file interface {
	tiers.Writer
	Close() error
}

// begin makes an extent of one span, or of up to Depth spans for objects of the same size. If a later
// object fails, the extent ends before it without an error: the caller gets the error when that object
// is the first.
func (t *Tier) begin(ctx context.Context, kind ioengine.Kind, objs []tiers.Object) (file, error) {
	x := &extent{t: t, kind: kind}
	x.spans = x.one[:0]
	x.users.end = x.end
	x.users.n.Store(1)
	t.users.n.Add(1)
	spans, size := 1, objs[0].Size
	if t.imitates() && size <= int64(t.traits.Chunk) {
		spans = max(1, t.cfg.Depth)
	}
	for n := 0; n < spans && len(objs) > 0 && objs[0].Size == size; n++ {
		x.spans = append(x.spans, span{x: x, start: int64(n) * int64(t.traits.Chunk), fd: -1})
		if err := x.spans[n].begin(ctx, objs); err != nil {
			x.spans = x.spans[:n]
			if n > 0 {
				break
			}
			return nil, errors.Join(err, t.users.leave())
		}
		objs = objs[len(x.spans[n].run):]
	}
	return x, nil
}

// begin reserves or finds the first of objs and the objects adjacent to it, and makes the layout's
// calls. After an error nothing of them is left.
func (s *span) begin(ctx context.Context, objs []tiers.Object) (err error) {
	t, op, call := s.x.t, "create", s.x.t.layout.create
	if s.x.kind == ioengine.Write {
		err = s.place(objs)
	} else {
		op, call = "open", t.layout.open
		err = s.find(objs)
	}
	if err != nil {
		return t.error(op, objs[0], -1, err)
	}
	if err := call(ctx, s); err != nil {
		err = t.error(op, objs[0], -1, err)
		if s.x.kind == ioengine.Write {
			return errors.Join(err, s.undo())
		}
		return errors.Join(err, t.release(s.run...))
	}
	return nil
}

// place reserves adjacent places for the first objects of objs, as many as the layout allows.
func (s *span) place(objs []tiers.Object) (err error) {
	t := s.x.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range objs {
		e := &entry{o: o, space: t.layout.takes(o), uses: 1}
		switch {
		case t.ended:
			err = tiers.ErrClosed
		case t.entries[o.ID()] != nil:
			err = tiers.ErrExists
		default:
			err = t.layout.place(e, s.run)
		}
		if err != nil { // it becomes the first of another extent
			break
		}
		s.add(e)
		t.add(e)
		if t.adjacent == 0 {
			break
		}
	}
	if len(s.run) > 0 {
		return nil
	}
	return err
}

// add adds the next object to the span.
func (s *span) add(e *entry) {
	if len(s.run) == 0 {
		s.at = e.at
	}
	s.run = append(s.run, e)
}

// find finds the first adjacent objects of objs and adds a user to each.
func (s *span) find(objs []tiers.Object) error {
	t := s.x.t
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, o := range objs {
		e := t.entries[o.ID()]
		if e == nil || !e.visible || i > 0 && !t.follows(s.run, e) {
			break
		}
		e.uses++
		s.add(e)
	}
	if len(s.run) == 0 {
		return tiers.ErrNotFound
	}
	return nil
}

// follows reports whether e directly follows the objects of run and the extent's limit allows it.
func (t *Tier) follows(run []*entry, e *entry) bool {
	last := run[len(run)-1]
	end := e.at - run[0].at + tiers.AlignUp(e.o.Size, int64(t.traits.Align))
	return t.adjacent > 0 && e.file == last.file && e.at == last.at+last.space && end <= t.adjacent
}

// add adds an object to the table and to the tier's bytes. Callers hold mu.
func (t *Tier) add(e *entry) {
	t.entries[e.o.ID()] = e
	t.held += e.o.Size
	t.used += e.space
}

// uncount takes an object out of the tier's bytes.
func (t *Tier) uncount(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held -= e.o.Size
	t.used -= e.space
}

// Remove removes objects. Their places are free when it returns, or when their last reader closes.
func (t *Tier) Remove(_ context.Context, objs ...tiers.Object) error {
	var errs []error
	for _, o := range objs {
		for _, o := range t.parts(o) {
			errs = append(errs, t.removeOne(o))
		}
	}
	return errors.Join(errs...)
}

func (t *Tier) removeOne(o tiers.Object) error {
	t.mu.Lock()
	e := t.entries[o.ID()]
	if e == nil || !e.visible {
		t.mu.Unlock()
		return t.error("remove", o, -1, tiers.ErrNotFound)
	}
	e.visible = false
	delete(t.entries, o.ID()) // the key may be written again before the last reader closes
	t.mu.Unlock()
	err := t.layout.remove(e)
	if err != nil {
		err = t.error("remove", o, -1, err)
	}
	if t.imitates() { // the engine counts the space as free, although readers still use it
		t.uncount(e)
	}
	return errors.Join(err, t.release(e))
}

// release removes one user of each object, and frees the places without users.
func (t *Tier) release(run ...*entry) error {
	var unused []*entry
	t.mu.Lock()
	for _, e := range run {
		if e.uses--; e.uses == 0 {
			unused = append(unused, e)
		}
	}
	t.mu.Unlock()
	var errs []error
	for _, e := range unused {
		if err := t.layout.free(e); err != nil {
			errs = append(errs, t.error("remove", e.o, -1, err))
		}
		if !t.imitates() { // else Remove has done it
			t.uncount(e)
		}
	}
	return errors.Join(errs...)
}

// has reports whether an object can be opened.
func (t *Tier) has(o tiers.Object) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[o.ID()]
	return e != nil && e.visible
}

// parts returns the objects that are stored for an object: its layers, or itself.
func (t *Tier) parts(o tiers.Object) []tiers.Object {
	if t.traits.Layers < 2 || o.Layer > 0 || t.has(o) {
		return []tiers.Object{o}
	}
	return o.InLayers(t.traits.Layers)
}

// Lookup looks objects up in the filesystem as the engine does. It returns how many objects exist
// before the first missing one. Engines look up on one thread, so a request waits for the look-ups of
// other requests.
func (t *Tier) Lookup(ctx context.Context, objs ...tiers.Object) (found int, err error) {
	if len(objs) == 0 {
		return 0, nil
	}
	select {
	case t.lookups <- struct{}{}:
	case <-ctx.Done():
		return 0, tiers.Canceled(ctx, objs[0])
	}
	defer func() { <-t.lookups }()
	// An engine looks up every layer: an object exists when all its layers exist.
	var all []tiers.Object
	for _, o := range objs {
		all = append(all, t.parts(o)...)
	}
	if err := t.layout.lookUp(all); err != nil {
		return 0, t.error("look up", objs[0], -1, err)
	}
	missing := func(o tiers.Object) bool { return !t.has(o) }
	for found < len(objs) && !slices.ContainsFunc(t.parts(objs[found]), missing) {
		found++
	}
	return found, nil
}
