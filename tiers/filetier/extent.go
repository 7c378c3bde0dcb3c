package filetier

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

// Create gives objects places, makes their file if need be, and with direct I/O allocates their
// blocks.
func (t *Tier) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	run, err := t.place(objs)
	if err != nil {
		return nil, t.error("create", objs[0], nil, 0, -1, err)
	}
	w := &writer{extent{t: t, f: run[0].in, run: run}}
	w.users.Store(1)
	w.end = w.release
	if err = t.makeFile(w.f); err == nil {
		err = t.preallocate(w.f, run)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	w.fds = w.f.making.fds
	return w, nil
}

// Open finds objects side by side and keeps their places until Close.
func (t *Tier) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	run := t.find(objs)
	if len(run) == 0 {
		return nil, t.error("open", objs[0], nil, 0, -1, tiers.ErrNotFound)
	}
	r := &reader{extent{t: t, f: run[0].in, run: run, fds: t.in}}
	r.users.Store(1)
	r.end = r.release
	if r.fds == nil {
		var err error
		if r.fds, err = t.open(r.f, objs[0]); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Remove forgets objects; their places are free when it returns, or when their last reader closes.
func (t *Tier) Remove(_ context.Context, objs ...tiers.Object) error {
	var errs []error
	for _, o := range objs {
		e, unused := t.forget(o)
		switch {
		case e == nil:
			errs = append(errs, t.error("remove", o, nil, 0, -1, tiers.ErrNotFound))
		case unused:
			errs = append(errs, t.vacate(e))
		}
	}
	return errors.Join(errs...)
}

// extent is objects side by side in one file, or one object in several, for a writer or a reader.
//
// While requests are under way it cannot end, whatever its holder does: a descriptor that is closed
// may be another file's by the time the kernel looks at it, and a place that is used again would be
// overwritten by a request that had been stuck.
type extent struct {
	t   *Tier
	f   *file
	run []*entry
	fds []int

	over  atomic.Bool  // closed, committed or aborted
	users atomic.Int64 // its holder and the requests under way; whoever leaves last calls end
	end   func() error
}

// Len is how many objects they are.
func (x *extent) Len() int { return len(x.run) }

// Start is where object i begins.
func (x *extent) Start(i int) int64 { return x.run[i].at - x.run[0].at }

// size is where the last object ends.
func (x *extent) size() int64 {
	last := len(x.run) - 1
	return x.Start(last) + x.run[last].o.Size
}

// leave ends the use of the extent by its holder or by a request.
func (x *extent) leave() error {
	if x.users.Add(-1) > 0 {
		return nil
	}
	return x.end()
}

// submit turns a request into requests of the engine: one, or as many as there are files under it.
func (x *extent) submit(kind ioengine.Kind, io *tiers.IO) {
	r, ok := io.State.(*request)
	if !ok {
		r = &request{}
		io.State = r
	}
	r.x, r.io, r.kind = x, io, kind
	switch end := io.Off + int64(io.N); {
	case io.Off < 0 || end > x.size():
		io.End(r.error(io.Off, fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", io.N,
			io.Off, x.size())))
		return
	case x.over.Load():
		io.End(r.error(io.Off, tiers.ErrClosed))
		return
	}
	x.users.Add(1) // before the engine has it: it may be done before Submit returns
	r.split()
	x.t.engine.Submit(r.ops...)
}

// request is what an IO becomes. It lives as long as the IO.
type request struct {
	x    *extent
	io   *tiers.IO
	kind ioengine.Kind
	ops  []*ioengine.Op // at the engine
	all  []*ioengine.Op // and those of earlier uses
	left atomic.Int32
}

// split makes the operations: each ends where its file or the IO does. Buffers are aligned, and so
// is the size of every file but the last of an object, so that only the last part has padding. They
// are kept for the next use of the IO: a stream of requests allocates nothing.
func (r *request) split() {
	x, align := r.x, r.x.t.traits.Align
	r.ops = r.ops[:0]
	buf, off := r.io.Buf, x.run[0].at+r.io.Off
	for left := r.io.N; left > 0; {
		n, fd := left, x.fds[0]
		at := off
		if part := x.t.policy.part; part > 0 {
			fd, at = x.fds[off/part], off%part
			n = int(min(int64(left), part-at))
		}
		op := r.op(len(r.ops))
		whole := tiers.AlignUp(n, align)
		op.Kind, op.FD, op.Off, op.N = r.kind, fd, at, whole
		op.Buf = tiers.Buffer{B: buf.B[:whole], Slot: buf.Slot, Node: buf.Node}
		r.ops = append(r.ops, op)
		if left -= n; left > 0 {
			buf.B, off = buf.B[n:], off+int64(n)
		}
	}
	r.left.Store(int32(len(r.ops)))
}

// op is the i-th operation, made when it is first needed.
func (r *request) op(i int) *ioengine.Op {
	if i == len(r.all) {
		r.all = append(r.all, &ioengine.Op{Done: r.done})
	}
	return r.all[i]
}

// done ends the request with its last operation. The extent is let go of first, so that whoever is
// told can close it for good.
func (r *request) done(*ioengine.Op) {
	if r.left.Add(-1) > 0 {
		return
	}
	io := r.io
	io.Begun, io.Ended = r.ops[0].Begun, r.ops[0].Ended
	var err error
	off := io.Off
	for _, op := range r.ops {
		io.Begun, io.Ended = min(io.Begun, op.Begun), max(io.Ended, op.Ended)
		if op.Err != nil && err == nil {
			err = r.error(off+int64(op.Moved), op.Err)
		}
		off += int64(op.N)
	}
	_ = r.x.leave() // what fails here has nobody who waits for it
	io.End(err)
}

// error names the object and the file at an offset of the extent.
func (r *request) error(off int64, err error) error {
	x, part := r.x, 0
	if size := x.t.policy.part; size > 0 {
		part = int(min(max(0, off), x.size()-1) / size)
	}
	i := len(x.run) - 1
	for i > 0 && x.Start(i) > off {
		i--
	}
	return x.t.error(r.kind.String(), x.run[i].o, x.f, part, off-x.Start(i), err)
}

type writer struct{ extent }

// Submit implements tiers.Writer.
func (w *writer) Submit(io *tiers.IO) { w.submit(ioengine.Write, io) }

// Commit flushes the file, if the layout does, closes it if nothing follows, and makes the objects
// visible.
func (w *writer) Commit(ctx context.Context) error {
	t := w.t
	if w.over.Load() {
		return t.error("flush", w.run[0].o, w.f, 0, -1, tiers.ErrClosed)
	}
	if t.policy.flush {
		if err := w.flush(ctx); err != nil {
			return errors.Join(t.error("flush", w.run[0].o, w.f, 0, -1, err), w.Abort())
		}
	}
	// From here on Abort does nothing: what fails is taken back here.
	w.over.Store(true)
	if err := t.written(w.f); err != nil {
		return errors.Join(err, t.abandon(w.run))
	}
	t.publish(w.run)
	return nil
}

// flush is fdatasync under direct I/O, else fsync and dropping the file from the page cache.
func (w *writer) flush(ctx context.Context) error {
	// Direct writes leave nothing but what finds them to be made durable.
	kind := ioengine.Sync
	if w.t.direct {
		kind = ioengine.DataSync
	}
	w.users.Add(1)
	done := make(chan error, 1)
	op := &ioengine.Op{Kind: kind, FD: w.fds[0]}
	op.Done = func(op *ioengine.Op) {
		err := op.Err
		_ = w.leave()
		done <- err
	}
	w.t.engine.Submit(op)
	if err := wait(ctx, done); err != nil || w.t.direct {
		return err
	}
	return dropCache(w.fds[0])
}

// wait returns what comes, or the cause when ctx has ended for longer than a device may take that
// answers at all.
func wait(ctx context.Context, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(tiers.Grace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err
	case <-grace.C:
		return context.Cause(ctx)
	}
}

// Abort gives the places back.
func (w *writer) Abort() error {
	if !w.over.CompareAndSwap(false, true) {
		return nil
	}
	return w.leave()
}

// release is the end of an aborted writer.
func (w *writer) release() error {
	return errors.Join(w.t.written(w.f), w.t.abandon(w.run))
}

// written ends the writing of an extent: of the whole file, where nothing follows.
func (t *Tier) written(f *file) error {
	t.mu.Lock()
	f.writers--
	done := f.settle()
	t.mu.Unlock()
	if done {
		return t.seal(f)
	}
	return nil
}

// abandon gives up objects that were never visible. That a file is gone already is what was wanted.
func (t *Tier) abandon(run []*entry) error {
	t.mu.Lock()
	for _, e := range run {
		delete(t.entries, e.o.ID())
	}
	t.mu.Unlock()
	if err := t.vacate(run...); !errors.Is(err, tiers.ErrNotFound) {
		return err
	}
	return nil
}

type reader struct{ extent }

// Submit implements tiers.Reader.
func (r *reader) Submit(io *tiers.IO) { r.submit(ioengine.Read, io) }

// Close lets go of the places; those whose objects were removed meanwhile are free then.
func (r *reader) Close() error {
	if !r.over.CompareAndSwap(false, true) {
		return nil
	}
	return r.leave()
}

// release is the end of a reader.
func (r *reader) release() error {
	if r.t.in == nil {
		closeAll(r.fds)
	}
	var errs []error
	for _, e := range r.t.unuse(r.run) { // not necessarily side by side
		errs = append(errs, r.t.vacate(e))
	}
	return errors.Join(errs...)
}
