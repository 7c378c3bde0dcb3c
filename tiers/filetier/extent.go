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

// Create gives objects places, makes their file if need be, and with direct I/O allocates their
// blocks.
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

// Open finds adjacent objects and keeps their places until Close.
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

// Remove forgets objects; their places are free when it returns, or when their last reader closes.
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

// extent is adjacent objects in one file, as a writer or a reader.
//
// While requests are in flight it cannot end, whatever its holder does: a descriptor that is closed
// may be another file's by the time the kernel looks at it, and a request that had been stuck would
// overwrite a place that is used again.
type extent struct {
	t    *Tier
	f    *file
	run  []*entry
	fd   int           // -1: none
	kind ioengine.Kind // of its requests: Read or Write

	over  atomic.Bool  // closed, committed or aborted
	users atomic.Int64 // its holder and the requests in flight
}

func (t *Tier) extentOf(run []*entry, kind ioengine.Kind) *extent {
	x := &extent{t: t, f: run[0].in, run: run, kind: kind}
	x.users.Store(1)
	return x
}

// Len is the number of objects.
func (x *extent) Len() int { return len(x.run) }

// Start is where object i begins.
func (x *extent) Start(i int) int64 { return x.run[i].at - x.run[0].at }

// size is where the last object ends.
func (x *extent) size() int64 {
	last := len(x.run) - 1
	return x.Start(last) + x.run[last].o.Size
}

// enter begins the use of the extent by a request, unless its holder has left.
func (x *extent) enter() bool {
	for n := x.users.Load(); n > 0; n = x.users.Load() {
		if x.users.CompareAndSwap(n, n+1) {
			if x.over.Load() {
				x.answered(nil, nil)
				return false
			}
			return true
		}
	}
	return false
}

// leave ends the use of the extent by its holder. The last use to end ends the extent.
func (x *extent) leave() error {
	if x.users.Add(-1) > 0 {
		return nil
	}
	return x.end()
}

// answered ends the use of the extent by a request, and completes io, if it is not nil. Where the
// holder has left before, the extent ends in a goroutine of its own: the caller may be a ring's
// thread, which must not wait for a device that is late already.
func (x *extent) answered(io *tiers.IO, err error) {
	if x.users.Add(-1) == 0 {
		go func() {
			_ = x.end() // no caller is left that waits for its error
			if io != nil {
				io.End(err)
			}
		}()
	} else if io != nil {
		io.End(err)
	}
}

// end releases what an aborted writer, or a reader, holds.
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

// Submit turns a request into one of the engine. The operation is kept for the next use of the IO:
// a stream of requests allocates nothing.
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
	case !x.enter(): // before the engine has it: it may be done before Submit returns
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

// request is what an IO becomes. It lives as long as the IO.
type request struct {
	x  *extent
	io *tiers.IO
	op ioengine.Op
	// ops is op as the arguments of Submit, which would else be allocated for each request.
	ops [1]*ioengine.Op
}

// done ends the request. It releases the extent first, so that the receiver of the completion can
// close it for good.
func (r *request) done(op *ioengine.Op) {
	io := r.io
	io.Begun, io.Ended = op.Begun, op.Ended
	// A file of exactly its object's size ends before the last aligned block does.
	whole := errors.Is(op.Err, goio.ErrUnexpectedEOF) && r.x.t.policy.exact && op.Moved >= io.N
	var err error
	if op.Err != nil && !whole {
		err = r.error(io.Off+int64(op.Moved), op.Err)
	}
	r.x.answered(io, err)
}

// error names the object and the file at an offset of the extent.
func (r *request) error(off int64, err error) error {
	x := r.x
	i := len(x.run) - 1
	for i > 0 && x.Start(i) > off {
		i--
	}
	return x.t.error(x.kind.String(), x.run[i].o, x.f, off-x.Start(i), err)
}

// Commit flushes the file, if the layout does, closes it if nothing follows, and makes the objects
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
	// One that was given up may not have come to the kernel yet, which would look for the file by a
	// number that belongs to another file by then.
	if n := x.users.Load() - 1; n > 0 {
		return errors.Join(t.error("close", x.run[0].o, x.f, -1,
			fmt.Errorf("%d of its requests are not answered", n)), x.Abort())
	}
	// From here on Abort does nothing: what fails is taken back here.
	x.over.Store(true)
	if err := t.written(x.f); err != nil {
		return errors.Join(err, t.abandon(x.run))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range x.run {
		e.visible = true // the writer's use becomes the tier's
	}
	return nil
}

// flush is fdatasync under direct I/O, else fsync and dropping the file from the page cache. A file
// that is to have an exact size loses its padding first, and has all its metadata flushed.
func (x *extent) flush(ctx context.Context) error {
	// Direct writes leave nothing but what finds them to be made durable.
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
		func() { x.answered(nil, nil) })
	if err != nil || x.t.direct || x.t.advice != AdviseDrop {
		return err
	}
	return x.t.call("drop from the page cache", x.f, func() error { return dropCache(x.fd) })
}

// await is ioengine.Await of this tier's engine.
func (t *Tier) await(ctx context.Context, op *ioengine.Op, over func()) error {
	return ioengine.Await(ctx, func(op *ioengine.Op) { t.engine.Submit(op) }, op, over)
}

// Abort gives the places of a writer back.
func (x *extent) Abort() error { return x.Close() }

// Close releases the places; those whose objects were removed meanwhile are free then.
func (x *extent) Close() error {
	if !x.over.CompareAndSwap(false, true) {
		return nil
	}
	return x.leave()
}

// written ends the writing of an extent: of the whole file, where nothing follows.
func (t *Tier) written(f *file) error {
	t.mu.Lock()
	f.writers--
	t.mu.Unlock()
	return t.seal(f)
}

// abandon gives up objects that were never visible. That a file is gone already is what was wanted.
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
