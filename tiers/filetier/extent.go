package filetier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	goio "io"
	"math"
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
		return nil, t.error("create", objs[0], nil, 0, -1, err)
	}
	w := t.extentOf(run, ioengine.Write)
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
	r := t.extentOf(run, ioengine.Read)
	if r.fds = t.in; r.fds == nil {
		var err error
		if r.fds, err = t.open(r.f, objs[0]); err != nil {
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
			errs = append(errs, t.error("remove", o, nil, 0, -1, tiers.ErrNotFound))
			continue
		}
		delete(t.entries, o.ID()) // the key may be written again before the last reader closes
		errs = append(errs, t.leave(e))
	}
	return errors.Join(errs...)
}

// extent is objects side by side in one file, or one object in several, as a writer or a reader.
//
// While requests are under way it cannot end, whatever its holder does: a descriptor that is closed
// may be another file's by the time the kernel looks at it, and a place that is used again would be
// overwritten by a request that had been stuck.
type extent struct {
	t    *Tier
	f    *file
	run  []*entry
	fds  []int
	kind ioengine.Kind // of its requests: Read or Write

	over  atomic.Bool  // closed, committed or aborted
	users atomic.Int64 // its holder and the requests under way
}

func (t *Tier) extentOf(run []*entry, kind ioengine.Kind) *extent {
	x := &extent{t: t, f: run[0].in, run: run, kind: kind}
	x.users.Store(1)
	return x
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

// leave ends the use of the extent by its holder. The last one who leaves ends it.
func (x *extent) leave() error {
	if x.users.Add(-1) > 0 {
		return nil
	}
	return x.end()
}

// answered ends the use of the extent by a request, and tells whose it is, if anybody's. Where its
// holder has left before, whoever calls must not wait for what is to be done then: it may be a
// ring's thread, and the device is one that answers late.
func (x *extent) answered(io *tiers.IO, err error) {
	if x.users.Add(-1) == 0 {
		go func() {
			_ = x.end() // what fails here has nobody who waits for it
			if io != nil {
				io.End(err)
			}
		}()
	} else if io != nil {
		io.End(err)
	}
}

// end lets go of an aborted writer, or of a reader.
func (x *extent) end() error {
	if x.kind == ioengine.Write {
		return errors.Join(x.t.written(x.f), x.t.abandon(x.run))
	}
	if x.t.in == nil {
		x.t.closeAll(x.f, x.fds)
	}
	x.t.mu.Lock()
	defer x.t.mu.Unlock()
	return x.t.leave(x.run...)
}

// Submit turns a request into requests of the engine: one, or as many as there are files under it.
func (x *extent) Submit(io *tiers.IO) {
	r, ok := io.State.(*request)
	if !ok {
		r = &request{}
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
	r.split()
	x.t.engine.Submit(r.ops[:r.n]...)
}

// request is what an IO becomes. It lives as long as the IO.
type request struct {
	x    *extent
	io   *tiers.IO
	ops  []*ioengine.Op // of this use and of earlier ones
	n    int            // those at the engine, of ops
	left atomic.Int32
}

// split makes the operations: each ends where its file or the IO does. Buffers are aligned, and so
// is the size of every file but the last of an object, so that only the last part has padding. They
// are kept for the next use of the IO: a stream of requests allocates nothing.
func (r *request) split() {
	x, io := r.x, r.io
	part := cmp.Or(x.t.policy.part, math.MaxInt64)
	r.n = 0
	for p, n := 0, 0; p < io.N; p += n {
		off := x.run[0].at + io.Off + int64(p)
		n = int(min(int64(io.N-p), part-off%part))
		whole := tiers.AlignUp(n, x.t.traits.Align)
		if r.n == len(r.ops) {
			r.ops = append(r.ops, &ioengine.Op{Done: r.done})
		}
		op := r.ops[r.n]
		op.Kind, op.FD, op.Off, op.N = x.kind, x.fds[off/part], off%part, whole
		op.Leaves = x.t.policy.exact && !x.t.direct && x.t.advice == AdviseDrop
		op.Buf = tiers.Buffer{B: io.Buf.B[p : p+whole], Slot: io.Buf.Slot, Node: io.Buf.Node}
		r.n++
	}
	r.left.Store(int32(r.n))
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
	for _, op := range r.ops[:r.n] {
		io.Begun, io.Ended = min(io.Begun, op.Begun), max(io.Ended, op.Ended)
		// A file of exactly its object's size ends before the last aligned block does.
		whole := errors.Is(op.Err, goio.ErrUnexpectedEOF) && r.x.t.policy.exact &&
			op.Moved >= io.N
		if op.Err != nil && err == nil && !whole {
			err = r.error(off+int64(op.Moved), op.Err)
		}
		off += int64(op.N)
	}
	r.x.answered(io, err)
}

// error names the object and the file at an offset of the extent.
func (r *request) error(off int64, err error) error {
	x := r.x
	part := int(min(max(0, off), x.size()-1) / cmp.Or(x.t.policy.part, math.MaxInt64))
	i := len(x.run) - 1
	for i > 0 && x.Start(i) > off {
		i--
	}
	return x.t.error(x.kind.String(), x.run[i].o, x.f, part, off-x.Start(i), err)
}

// Commit flushes the file, if the layout does, closes it if nothing follows, and makes the objects
// visible.
func (x *extent) Commit(ctx context.Context) error {
	t := x.t
	if x.over.Load() {
		return t.error("flush", x.run[0].o, x.f, 0, -1, tiers.ErrClosed)
	}
	if t.policy.flush {
		if err := x.flush(ctx); err != nil {
			return errors.Join(t.error("flush", x.run[0].o, x.f, 0, -1, err), x.Abort())
		}
	}
	// One that was given up may not have come to the kernel yet, which would look for the file by a
	// number that is somebody else's by then.
	if n := x.users.Load() - 1; n > 0 {
		return errors.Join(t.error("close", x.run[0].o, x.f, 0, -1,
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
		cut := func() error { return unix.Ftruncate(x.fds[0], x.size()) }
		err := x.t.call("cut", x.f, 0, func() error { return workdir.Retry(cut) })
		if err != nil {
			return fmt.Errorf("cut to %d bytes: %w", x.size(), err)
		}
	}
	x.users.Add(1)
	err := x.t.await(ctx, &ioengine.Op{Kind: kind, FD: x.fds[0]},
		func() { x.answered(nil, nil) })
	if err != nil || x.t.direct || x.t.advice != AdviseDrop {
		return err
	}
	return x.t.call("drop from the page cache", x.f, 0, func() error { return dropCache(x.fds[0]) })
}

// await is ioengine.Await of this tier's engine.
func (t *Tier) await(ctx context.Context, op *ioengine.Op, over func()) error {
	return ioengine.Await(ctx, func(op *ioengine.Op) { t.engine.Submit(op) }, op, over)
}

// Abort gives the places of a writer back.
func (x *extent) Abort() error { return x.Close() }

// Close lets go of the places; those whose objects were removed meanwhile are free then.
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
		if e.in.shell != nil {
			e.in.shell.spoiled = true
		}
	}
	if err := t.leave(run...); !errors.Is(err, tiers.ErrNotFound) {
		return err
	}
	return nil
}
