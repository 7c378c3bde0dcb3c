package filetier

import (
	"context"
	"errors"
	"fmt"
	goio "io"
	"io/fs"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/ioengine"
)

// extent is a writer or a reader of one span, or of several spans that move concurrently. The spans are
// in the order of the request. Each begins at a multiple of the tier's chunk size, so that a request of
// that size is in one span.
//
// An extent does not end while requests are in flight, even after its owner has closed it. Otherwise
// the kernel could use a descriptor's number after another file has it, and a late request could
// overwrite a reused place.
type extent struct {
	t     *Tier
	spans []span
	one   [1]span       // the memory of spans, usually
	kind  ioengine.Kind // of its requests: Read or Write

	ended atomic.Bool // closed, committed or aborted
	users users       // the owner and the requests in flight
}

// span is the part of an extent that one call moves: adjacent objects in one file.
type span struct {
	x     *extent
	run   []*entry
	start int64  // offset in the extent
	at    int64  // offset of the first object in the file
	fd    int    // -1: none
	path  string // of the file that fd is, or was
	mem   []byte // the bytes, if they are in memory of the engine
	// whole, if not nil, prepares the operation for all bytes at once, as the engine makes it. Parts of
	// an object, which no engine moves, use pread and pwrite.
	whole     func(op *ioengine.Op)
	written   int64 // bytes of all objects that this commit wrote to a bucket
	closed    bool  // the writer's descriptor is closed, whether or not Commit goes on
	committed bool
}

// offset returns the offset of object i in the span.
func (s *span) offset(i int) int64 {
	if i == 0 {
		return 0
	}
	return s.run[i].at - s.run[0].at
}

// size returns the offset of the last object's end.
func (s *span) size() int64 {
	last := len(s.run) - 1
	return s.offset(last) + s.run[last].o.Size
}

// Len returns the number of objects.
func (x *extent) Len() (n int) {
	for i := range x.spans {
		n += len(x.spans[i].run)
	}
	return n
}

// Start returns the offset of object i.
func (x *extent) Start(i int) int64 {
	n := 0
	for i >= len(x.spans[n].run) {
		i -= len(x.spans[n].run)
		n++
	}
	return x.spans[n].start + x.spans[n].offset(i)
}

// Part returns the number of the directory.
func (x *extent) Part() int { return x.t.cfg.Part }

// acquire adds a request to the users of the extent. It returns false if the owner has left.
func (x *extent) acquire() bool {
	for n := x.users.n.Load(); n > 0; n = x.users.n.Load() {
		if x.users.n.CompareAndSwap(n, n+1) {
			if x.ended.Load() {
				x.users.leaveLater()
				return false
			}
			return true
		}
	}
	return false
}

// completed ends the use of the extent by a request, and completes io. If the owner has left, the extent
// ends before, on a new goroutine: the caller may be a ring's thread, which must not wait for a slow
// device.
func (x *extent) completed(io *tiers.IO, err error) {
	if x.users.n.Add(-1) > 0 {
		io.End(err)
		return
	}
	go func() {
		_ = x.end() // no caller is left for its error
		io.End(err)
	}()
}

// end closes a reader, or removes the objects of a writer.
func (x *extent) end() error {
	defer func() { _ = x.t.users.leave() }() // if this closes the tier, Close has returned already
	var errs []error
	for i := range x.spans {
		s := &x.spans[i]
		if x.kind == ioengine.Write {
			errs = append(errs, s.undo())
			continue
		}
		if err := x.t.layout.done(s); err != nil {
			errs = append(errs, x.t.error("close", s.run[0].o, -1, err))
		}
		errs = append(errs, x.t.release(s.run...))
	}
	return errors.Join(errs...)
}

// undo removes objects that were never visible.
func (s *span) undo() error {
	t := s.x.t
	var err error
	if s.committed { // and another span of the extent is not
		for _, e := range s.run {
			err = errors.Join(err, t.layout.remove(e), t.layout.free(e))
		}
	} else {
		err = t.layout.abandon(s)
	}
	for _, e := range s.run {
		t.mu.Lock()
		delete(t.entries, e.o.ID())
		t.mu.Unlock()
		t.uncount(e)
	}
	if err != nil {
		return t.error("remove", s.run[0].o, -1, err)
	}
	return nil
}

// Submit makes one call. A request is in one span, because spans begin at multiples of the tier's chunk
// size.
func (x *extent) Submit(io *tiers.IO) {
	i := len(x.spans) - 1
	for i > 0 && x.spans[i].start > io.Off {
		i--
	}
	x.spans[i].submit(io)
}

// request is the state of an IO. It is reused with the IO, so that a stream of requests allocates
// nothing.
type request struct {
	s  *span
	io *tiers.IO
	op ioengine.Op
}

// submit makes one call for a request of the span. Offsets are of the extent.
func (s *span) submit(io *tiers.IO) {
	r, ok := io.State.(*request)
	if !ok {
		r = &request{}
		r.op.Done = r.done
		io.State = r
	}
	x, t := s.x, s.x.t
	r.s, r.io = s, io
	off, size := io.Off-s.start, s.size()
	end := off + int64(io.N)
	if s != &x.spans[len(x.spans)-1] && end <= int64(t.traits.Chunk) {
		end = min(end, size) // the bytes up to the next span are padding
	}
	switch {
	case off < 0 || off > end || end > size:
		io.End(s.error(off, fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", io.N, off,
			size)))
		return
	case !x.acquire(): // before the engine's Submit, during which the request may complete
		io.End(s.error(off, tiers.ErrClosed))
		return
	}
	if s.mem != nil {
		if x.kind == ioengine.Read {
			copy(io.Buf.B[:end-off], s.mem[off:])
		} else {
			copy(s.mem[off:], io.Buf.B[:end-off])
		}
		io.Begun, io.Ended, io.Passed, io.Memory = 0, 0, 0, int(end-off)
		x.completed(io, nil)
		return
	}
	n := tiers.AlignUp(int(end-off), t.traits.Align)
	// The other fields belong to the I/O engine, which may still use them for the last submission.
	op := &r.op
	op.Kind, op.FD, op.Off, op.N = x.kind, s.fd, s.at+off, n
	op.Buf = tiers.Buffer{B: io.Buf.B[:n], Slot: io.Buf.Slot, Node: io.Buf.Node}
	op.Vec, op.AtPosition, op.Leaves, op.Lane = nil, false, t.dropsCache, io.Lane
	if off == 0 && end == size && s.whole != nil {
		s.whole(op)
	}
	t.limits.threads(x.kind).submit(&io.Passed, op)
}

// done completes the request. It first ends the use of the extent, so that a Close in the IO's Done
// ends the extent.
func (r *request) done(op *ioengine.Op) {
	s, io := r.s, r.io
	s.x.t.limits.threads(s.x.kind).done(op.Ended)
	io.Begun, io.Ended, io.Memory = op.Begun, op.Ended, 0
	// A file of exactly its object's size ends before the last aligned block does.
	whole := errors.Is(op.Err, goio.ErrUnexpectedEOF) && op.Moved >= io.N
	var err error
	if op.Err != nil && !whole {
		err = s.error(io.Off-s.start+int64(op.Moved), op.Err)
	}
	s.x.completed(io, err)
}

// error returns an error that names the object and the file at an offset of the span.
func (s *span) error(off int64, err error) error {
	i := len(s.run) - 1
	for i > 0 && s.offset(i) > off {
		i--
	}
	kind := s.x.kind.String()
	return s.x.t.error(kind, s.run[i].o, off-s.offset(i),
		&fs.PathError{Op: kind, Path: s.x.t.calls.path + "/" + s.path, Err: err})
}

// Commit makes the objects visible, and as durable as the layout does. If it fails, it removes them.
func (x *extent) Commit(ctx context.Context) error {
	t, o := x.t, x.spans[0].run[0].o
	if !x.ended.CompareAndSwap(false, true) {
		return t.error("commit", o, -1, tiers.ErrClosed)
	}
	// A request in flight may not have reached the kernel yet, and would use the descriptor's number
	// after another file has it.
	if n := x.users.n.Load() - 1; n > 0 {
		return errors.Join(t.error("commit", o, -1, fmt.Errorf("%d of its requests are in flight", n)),
			x.users.leave())
	}
	for i := range x.spans {
		s := &x.spans[i]
		if err := t.layout.commit(ctx, s); err != nil {
			return errors.Join(t.error("commit", s.run[0].o, -1, err), x.users.leave())
		}
		s.committed = true
	}
	t.mu.Lock()
	for i := range x.spans {
		for _, e := range x.spans[i].run {
			e.visible = true // the tier becomes a user instead of the writer
		}
	}
	t.mu.Unlock()
	return t.users.leave()
}

// Committed returns the number of bytes that Commit wrote. In a bucket only the last object's commit
// writes, and it writes the whole bucket.
func (x *extent) Committed(n int64) int64 {
	if x.spans[0].mem == nil {
		return n
	}
	n = 0
	for i := range x.spans {
		n += x.spans[i].written
	}
	return n
}

// Abort removes the objects.
func (x *extent) Abort() error { return x.Close() }

// Close ends the owner's use of the extent.
func (x *extent) Close() error {
	if !x.ended.CompareAndSwap(false, true) {
		return nil
	}
	return x.users.leave()
}

// await submits an operation to the threads of a direction and waits for it. After ctx has ended it waits
// for at most tiers.Grace. back, if not nil, is called when the kernel no longer uses the operation's
// memory, which may be long after await has returned.
func (t *Tier) await(ctx context.Context, l *limit, op *ioengine.Op, back func()) error {
	done := make(chan error, 1)
	t.users.n.Add(1)
	op.Done = func(op *ioengine.Op) {
		l.done(op.Ended)
		if back != nil {
			back()
		}
		t.users.leaveLater()
		done <- op.Err
	}
	var passed time.Duration // not used: the operation moves none of a request's bytes
	l.submit(&passed, op)
	err, ok := tiers.Await(ctx, done)
	if !ok {
		return context.Cause(ctx)
	}
	return err
}

// submitLast submits the last operation of a file. It closes the file when the operation has completed,
// even after its caller has stopped waiting: otherwise the kernel could write to another file with the
// descriptor's number.
func (t *Tier) submitLast(ctx context.Context, path string, op *ioengine.Op, back func()) error {
	file := users{end: func() error { return t.calls.close(op.FD, path) }}
	file.n.Store(2)
	err := t.await(ctx, &t.limits.stores, op, func() {
		back()
		file.leaveLater()
	})
	return errors.Join(err, file.leave())
}

// users counts the users of a resource, which ends with the last one.
type users struct {
	n   atomic.Int64
	end func() error
}

// leave ends the use of a user, and returns the error of end for the last one.
func (u *users) leave() error {
	if u.n.Add(-1) > 0 {
		return nil
	}
	return u.end()
}

// leaveLater is leave for a goroutine that must not wait for a slow device, such as a ring's thread. No
// caller is left for the error of end.
func (u *users) leaveLater() {
	if u.n.Add(-1) == 0 {
		go func() { _ = u.end() }()
	}
}
