package filetier

import (
	"context"
	"errors"
	"fmt"
	goio "io"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
	"kvbench/tiers/workdir"
)

// Create reserves places for objects, creates their file if necessary, and with direct I/O allocates
// their blocks.
func (t *Tier) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	run, err := t.place(objs)
	if err != nil {
		return nil, t.error("create", objs[0], nil, -1, err)
	}
	w := t.extentOf(run, ioengine.Write)
	if err = t.makeFile(w.f); err == nil {
		err = t.preallocate(w.f, run)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	w.fd = w.f.making.fd
	return w, nil
}

// Open opens adjacent objects and keeps their places until Close.
func (t *Tier) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	run := t.find(objs)
	if len(run) == 0 {
		return nil, t.error("open", objs[0], nil, -1, tiers.ErrNotFound)
	}
	r := t.extentOf(run, ioengine.Read)
	if r.fd = t.in; r.fd < 0 {
		var err error
		if r.fd, err = t.open(r.f, objs[0]); err != nil {
			r.fd = -1
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// Remove removes objects. Their places are free when it returns, or when their last reader closes.
func (t *Tier) Remove(_ context.Context, objs ...tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, o := range objs {
		e := t.entries[o.ID()]
		if e == nil || !e.visible {
			errs = append(errs, t.error("remove", o, nil, -1, tiers.ErrNotFound))
			continue
		}
		delete(t.entries, o.ID()) // the key may be written again before the last reader closes
		errs = append(errs, t.leave(e))
	}
	return errors.Join(errs...)
}

// extent is a writer or reader of adjacent objects in one file.
//
// It does not end while requests are in flight, also after its owner has closed it: a closed descriptor's
// number may belong to another file when the kernel uses it, and a late request would overwrite a reused
// place.
type extent struct {
	t    *Tier
	f    *file
	run  []*entry
	fd   int           // -1: none
	kind ioengine.Kind // of its requests: Read or Write

	over  atomic.Bool  // closed, committed or aborted
	users atomic.Int64 // the owner and the requests in flight
}

func (t *Tier) extentOf(run []*entry, kind ioengine.Kind) *extent {
	x := &extent{t: t, f: run[0].in, run: run, kind: kind}
	x.users.Store(1)
	return x
}

// Len returns the number of objects.
func (x *extent) Len() int { return len(x.run) }

// Start returns the offset of object i.
func (x *extent) Start(i int) int64 { return x.run[i].at - x.run[0].at }

// size returns the offset of the last object's end.
func (x *extent) size() int64 {
	last := len(x.run) - 1
	return x.Start(last) + x.run[last].o.Size
}

// enter adds a request to the users of the extent, unless its owner has left.
func (x *extent) enter() bool {
	for n := x.users.Load(); n > 0; n = x.users.Load() {
		if x.users.CompareAndSwap(n, n+1) {
			if x.over.Load() {
				x.completed(nil, nil)
				return false
			}
			return true
		}
	}
	return false
}

// leave ends the use of the extent by its owner. The last user ends the extent.
func (x *extent) leave() error {
	if x.users.Add(-1) > 0 {
		return nil
	}
	return x.end()
}

// completed ends the use of the extent by a request, and completes io, if it is not nil. If the owner
// has already left, the extent ends on a goroutine of its own: the caller may be a ring's thread, which
// must not wait for a device that is late.
func (x *extent) completed(io *tiers.IO, err error) {
	if x.users.Add(-1) == 0 {
		go func() {
			_ = x.end() // no caller is left for its error
			if io != nil {
				io.End(err)
			}
		}()
	} else if io != nil {
		io.End(err)
	}
}

// end releases the places and the descriptor of an aborted writer, or of a reader.
func (x *extent) end() error {
	if x.kind == ioengine.Write {
		return errors.Join(x.t.written(x.f), x.t.abandon(x.run))
	}
	if x.t.in < 0 && x.fd >= 0 {
		x.t.closeRead(x.f, x.fd)
	}
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	return x.t.leave(x.run...)
}

// Submit submits a request to the I/O engine. The operation is reused with the IO, so that a stream of
// requests allocates nothing.
func (x *extent) Submit(io *tiers.IO) {
	r, ok := io.State.(*request)
	if !ok {
		r = &request{}
		r.op.Done, r.ops[0] = r.done, &r.op
		io.State = r
	}
	r.x, r.io = x, io
	switch end := io.Off + int64(io.N); {
	case io.Off < 0 || end > x.size():
		io.End(r.error(io.Off, fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", io.N,
			io.Off, x.size())))
		return
	case !x.enter(): // before the engine's Submit, during which the request may complete
		io.End(r.error(io.Off, tiers.ErrClosed))
		return
	}
	op, t := &r.op, x.t
	op.Kind, op.FD, op.Off = x.kind, x.fd, x.run[0].at+io.Off
	op.N = tiers.AlignUp(io.N, t.traits.Align)
	op.Leaves = t.policy.exact && !t.direct && t.advice == AdviseDrop
	op.Buf = tiers.Buffer{B: io.Buf.B[:op.N], Slot: io.Buf.Slot, Node: io.Buf.Node}
	t.engine.Submit(r.ops[:]...)
}

// request is the state of an IO, with which it is reused.
type request struct {
	x  *extent
	io *tiers.IO
	op ioengine.Op
	// ops contains op as the argument list of Submit, which would allocate for each request otherwise.
	ops [1]*ioengine.Op
}

// done completes the request. It leaves the extent first, so that a Close in the IO's Done ends the
// extent.
func (r *request) done(op *ioengine.Op) {
	io := r.io
	io.Begun, io.Ended = op.Begun, op.Ended
	// A file of exactly its object's size ends before the last aligned block does.
	whole := errors.Is(op.Err, goio.ErrUnexpectedEOF) && r.x.t.policy.exact && op.Moved >= io.N
	var err error
	if op.Err != nil && !whole {
		err = r.error(io.Off+int64(op.Moved), op.Err)
	}
	r.x.completed(io, err)
}

// error returns an error that names the object and the file at an offset of the extent.
func (r *request) error(off int64, err error) error {
	x := r.x
	i := len(x.run) - 1
	for i > 0 && x.Start(i) > off {
		i--
	}
	return x.t.error(x.kind.String(), x.run[i].o, x.f, off-x.Start(i), err)
}

// Commit flushes the file, if the layout does, closes it if no more writes follow, and makes the objects
// visible.
func (x *extent) Commit(ctx context.Context) error {
	t := x.t
	if x.over.Load() {
		return t.error("flush", x.run[0].o, x.f, -1, tiers.ErrClosed)
	}
	if t.policy.flush {
		if err := x.flush(ctx); err != nil {
			return errors.Join(t.error("flush", x.run[0].o, x.f, -1, err), x.Abort())
		}
	}
	// An abandoned request may not have reached the kernel yet, and would use the descriptor's number
	// when it belongs to another file.
	if n := x.users.Load() - 1; n > 0 {
		return errors.Join(t.error("close", x.run[0].o, x.f, -1,
			fmt.Errorf("%d of its requests are not answered", n)), x.Abort())
	}
	// From here on Abort does nothing, so Commit itself undoes a failure.
	x.over.Store(true)
	if err := t.written(x.f); err != nil {
		return errors.Join(err, t.abandon(x.run))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range x.run {
		e.visible = true // the tier becomes a user instead of the writer
	}
	return nil
}

// flush is fdatasync with direct I/O; otherwise it is fsync, followed by dropping the file from the page
// cache. A file of exact size is truncated to remove its padding first, and is flushed with fsync.
func (x *extent) flush(ctx context.Context) error {
	// After direct writes only the metadata that locates the bytes is not durable yet.
	kind := ioengine.Sync
	if x.t.direct && !x.t.policy.exact {
		kind = ioengine.DataSync
	}
	if x.t.policy.exact && x.size()%int64(x.t.traits.Align) != 0 {
		cut := func() error { return unix.Ftruncate(x.fd, x.size()) }
		err := x.t.call("cut", x.f, func() error { return workdir.Retry(cut) })
		if err != nil {
			return fmt.Errorf("cut to %d bytes: %w", x.size(), err)
		}
	}
	x.users.Add(1)
	err := x.t.await(ctx, &ioengine.Op{Kind: kind, FD: x.fd},
		func() { x.completed(nil, nil) })
	if err != nil || x.t.direct || x.t.advice != AdviseDrop {
		return err
	}
	return x.t.call("drop from the page cache", x.f, func() error { return dropCache(x.fd) })
}

// await is ioengine.Await with this tier's engine.
func (t *Tier) await(ctx context.Context, op *ioengine.Op, over func()) error {
	return ioengine.Await(ctx, func(op *ioengine.Op) { t.engine.Submit(op) }, op, over)
}

// Abort frees the places of a writer.
func (x *extent) Abort() error { return x.Close() }

// Close ends the owner's use of the places. It frees those whose objects were removed in the meantime.
func (x *extent) Close() error {
	if !x.over.CompareAndSwap(false, true) {
		return nil
	}
	return x.leave()
}

// written ends the writing of an extent, and of the whole file if no more writes follow.
func (t *Tier) written(f *file) error {
	t.mu.Lock()
	f.writers--
	t.mu.Unlock()
	return t.seal(f)
}

// abandon removes objects that were never visible. It ignores that a file does not exist.
func (t *Tier) abandon(run []*entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range run {
		delete(t.entries, e.o.ID())
	}
	if err := t.leave(run...); !errors.Is(err, tiers.ErrNotFound) {
		return err
	}
	return nil
}
