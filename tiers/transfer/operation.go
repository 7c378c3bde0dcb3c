package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/clock"
)

// operation is one Put or Get in progress.
type operation struct {
	*Tier
	ctx  context.Context
	call *tiers.Call
	op   tiers.Op
	src  tiers.Source // of a write
	dst  tiers.Sink   // of a read

	traits tiers.Traits
	to     tiers.Submitter
	part   int            // the part of the tier, see tiers.PartOf
	objs   []tiers.Object // the objects that this operation moves
	ext    tiers.Extent   // has the offsets of the objects
	size   int64          // of the extent
	chunk  int64          // bytes per request

	waited time.Duration // the wait for buffers
	wall   time.Duration // the time after the wait for buffers
	flush  time.Duration // the time of the commit

	bufs []tiers.Buffer // buffers of streams that have not begun

	mu      sync.Mutex
	running int            // streams that have not ended
	over    clock.Event    // fires after the last stream, or after Grace; nil: no wait yet
	ranges  []extentRange  // the ranges of the extent from which streams take chunks
	single  [1]extentRange // memory of ranges if there is only one
	err     error          // the first failure
	done    bool           // the operation has returned: it reports nothing any more

	inside  int           // requests and calls that are in the tier
	since   time.Duration // the time at which inside became 1
	busy    time.Duration // the time with inside > 0: concurrent requests count once
	waiting *stream       // the stream that waits until inside < Depth; there is at most one
}

// run moves the first n of the objects, sets the call's Timing, and sets Done to n. The tier chooses n, at
// least 1. After a write the files have all n objects or none.
func (op *operation) run(objs []tiers.Object) error {
	op.traits, op.objs = op.files.Traits(), objs[:1]
	err := op.execute(objs)
	op.mu.Lock() // a request may still be in flight
	defer op.mu.Unlock()
	// busy does not include a request that still hangs. If the tier holds no bytes, the host has no
	// work: all time is device time.
	tm := tiers.Timing{Admission: op.waited, Device: op.wall}
	if op.traits.Holds {
		tm.Device = op.busy
	}
	if rest := op.wall - tm.Device; op.op == tiers.Read {
		tm.Host = rest
	} else {
		tm.Generation = rest
	}
	if op.op == tiers.Write && op.Settings.FlushOnly && op.traits.Holds {
		tm.Device, tm.Host = op.flush, tm.Device-op.flush
	}
	op.call.Timing, op.call.Done = tm, len(op.objs)
	return err
}

func (op *operation) execute(objs []tiers.Object) (err error) {
	defer recoverInto(&err)
	if err := op.admit(objs); err != nil {
		return err
	}
	defer op.leave()
	from := op.Settings.Clock.Now()
	undone := time.Duration(0)
	defer func() { op.wall = op.Settings.Clock.Now() - from - undone }()
	if op.op == tiers.Read {
		return op.read(objs)
	}
	var w tiers.Writer
	if err := op.inService(func() (err error) {
		w, err = op.files.Create(op.ctx, objs...)
		return err
	}); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed { // also when Commit panics
			// The time of Abort does not count: after the end of a window it may be longer than the
			// time of the write.
			begun := op.Settings.Clock.Now()
			err = errors.Join(err, w.Abort())
			undone = op.Settings.Clock.Now() - begun
		}
	}()
	op.setExtent(w, w, objs)
	if err := op.pump(); err != nil {
		return err
	}
	err = op.commit(w)
	committed = err == nil
	return err
}

// read reads the first n of the objects; the tier chooses n.
func (op *operation) read(objs []tiers.Object) (err error) {
	var r tiers.Reader
	if err := op.inService(func() (err error) {
		r, err = op.files.Open(op.ctx, objs...)
		return err
	}); err != nil {
		return err
	}
	// Closing the last reader of a removed object deletes the object, which may fail.
	defer func() { err = errors.Join(err, op.inService(r.Close)) }()
	op.setExtent(r, r, objs)
	return op.pump()
}

// commit ends a write and reports the flush.
func (op *operation) commit(w tiers.Writer) error {
	flushed := op.Settings.Clock.Now()
	err := op.inService(func() error { return w.Commit(op.ctx) })
	now := op.Settings.Clock.Now()
	op.flush = now - flushed
	if err != nil || op.call.Observe == nil {
		return err
	}
	c := tiers.Chunk{Op: tiers.Write, Flush: true, Begun: flushed, Ended: now, Submitted: flushed,
		Completed: now, Part: op.part}
	// With buffered I/O the commit moves the bytes from the page cache to the device.
	if op.traits.CountsAtCommit {
		size := op.payload(0, op.size)
		c.Bytes = tiers.Committed(w, size)
		c.Memory = size - c.Bytes
	}
	op.call.Observe(c)
	return nil
}

// leave ends the operation. Streams whose requests hang continue to run.
func (op *operation) leave() {
	op.mu.Lock()
	op.done = true
	op.mu.Unlock()
	if op.traits.Holds && len(op.bufs) > 0 {
		op.Settings.Pool.Put(op.bufs...)
	}
}

// setExtent sets the extent of the opened or created objects. It has the first ext.Len() of objs.
func (op *operation) setExtent(to tiers.Submitter, ext tiers.Extent, objs []tiers.Object) {
	n := ext.Len()
	op.to, op.part, op.objs, op.ext = to, tiers.PartOf(to), objs[:n], ext
	op.size = ext.Start(n-1) + objs[n-1].Size
}

// each calls do for each object that has bytes in the range [from, to) of the extent: n bytes, which begin
// at offset inObject of the object and at offset inRange of the range. With padding, n includes the padding
// after the object.
//
// A chunk may have several small objects, and may end inside an object. Most extents have one object: then
// each calls do once.
func (op *operation) each(from, to int64, padding bool,
	do func(o tiers.Object, inObject, inRange, n int64) error) error {
	for i, o := range op.objs {
		begin := op.ext.Start(i)
		end := begin + o.Size
		if padding && i < len(op.objs)-1 {
			end = op.ext.Start(i + 1)
		} else if padding {
			end = to
		}
		lo, hi := max(from, begin), min(to, end)
		if lo >= hi {
			continue
		}
		if err := do(o, lo-begin, lo-from, hi-lo); err != nil {
			return err
		}
	}
	return nil
}

// payload returns the number of bytes of objects in [from, to), without padding.
func (op *operation) payload(from, to int64) (bytes int64) {
	for i, o := range op.objs {
		begin := op.ext.Start(i)
		bytes += max(0, min(to, begin+o.Size)-max(from, begin))
	}
	return bytes
}

// admit checks the sizes and waits for all buffers at once, so that no operation holds buffers while
// it waits for more. It takes enough buffers for all objects, although the tier may move fewer of them.
func (op *operation) admit(objs []tiers.Object) (err error) {
	t := op.Settings
	op.chunk = int64(cmp.Or(op.traits.Chunk, t.Chunk))
	if objs[0].Size < 1 {
		return fmt.Errorf("entry %s has %d bytes: it must have at least one", objs[0].Key, objs[0].Size)
	}
	if op.traits.Holds && op.chunk%int64(op.traits.Align) != 0 {
		return fmt.Errorf("requests of %d bytes must be a multiple of %d", op.chunk, op.traits.Align)
	}
	var bytes int64
	for _, o := range objs {
		bytes += o.Size
	}
	n := int(min(int64(t.Depth), 1+(bytes-1)/op.chunk))
	if !op.traits.Holds {
		op.bufs = make([]tiers.Buffer, n)
		return nil
	}
	if op.op == tiers.Write && int64(n)*op.chunk < bytes {
		n++ // for the chunk that is generated while Depth requests are in flight
	}
	from := t.Clock.Now()
	n = min(n, t.Pool.Buffers())
	op.bufs, err = t.Pool.Get(op.ctx, n, make([]tiers.Buffer, 0, n))
	op.waited = t.Clock.Now() - from
	if err != nil {
		return fmt.Errorf("wait for the buffers of entry %s: %w", objs[0].Key, err)
	}
	return nil
}

// pump moves all chunks and returns the first failure. In a memory tier a stream never waits and keeps
// its goroutine. So each stream starts on its own goroutine, and the last stream on the caller's. Streams
// without bytes only submit requests. So all of them start on the caller's goroutine, which is the only
// goroutine in virtual time.
func (op *operation) pump() error {
	streams := make([]stream, len(op.bufs))
	op.split(min(max(1, op.Settings.Ranges), len(streams)))
	for i, b := range op.bufs {
		l := &streams[i]
		l.op, l.buf, l.io.Done, l.place = op, b, l.completed, i%len(op.ranges)
	}
	op.running, op.bufs = len(streams), nil
	for i := range streams {
		if l := &streams[i]; op.traits.Holds && i < len(streams)-1 {
			go l.run() // copy memory and generate content concurrently
		} else {
			l.run()
		}
	}
	return op.wait()
}

// wait returns when all streams have ended. After the end of the context it waits for requests in
// flight for up to tiers.Grace, so that the device's counters include them.
func (op *operation) wait() error {
	op.mu.Lock()
	if op.running == 0 {
		defer op.mu.Unlock()
		return op.err
	}
	clk := op.Settings.Clock
	op.over = clk.NewEvent()
	op.mu.Unlock()
	if err := op.over.Wait(op.ctx); err != nil {
		if op.ctx.Err() != nil {
			err = tiers.Canceled(op.ctx, op.objs[0])
		}
		op.dismiss(err)
		if op.traits.Holds {
			clk.At(clk.Now()+tiers.Grace, op.over.Fire)
			_ = op.over.Wait(context.WithoutCancel(op.ctx))
		}
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.err
}

// dismiss fails the operation and ends the stream that waits to enter the tier: requests that hang in the
// tier may never let it in.
func (op *operation) dismiss(err error) {
	op.mu.Lock()
	op.fail(err)
	idle := op.waiting
	op.waiting = nil
	op.mu.Unlock()
	if idle != nil {
		op.end(idle, nil)
	}
}

// fail records the first failure; err may be nil. Callers hold mu.
func (op *operation) fail(err error) { op.err = cmp.Or(op.err, err) }

// stopped reports whether the operation has failed or its context has ended. Streams call it between
// chunks. Callers hold mu.
func (op *operation) stopped() bool {
	if op.ctx.Err() != nil {
		op.fail(tiers.Canceled(op.ctx, op.objs[0]))
	}
	return op.err != nil
}

// inService makes one call of the files. It counts the time of the call, also if the call panics.
func (op *operation) inService(call func() error) error {
	op.mu.Lock()
	op.enter()
	op.mu.Unlock()
	defer op.exit()
	return call()
}

// enter counts a request or call that begins. Callers hold mu. enter reads the clock only if the tier was
// empty, and exit only if the tier becomes empty. With many requests in flight that is rare.
func (op *operation) enter() {
	if op.inside++; op.inside == 1 {
		op.since = op.Settings.Clock.Now()
	}
}

// exit counts the end of a request or call. If a stream waits to enter, it takes the place of the ended
// request. exit runs this stream itself, because the stream's next step is only to submit its request.
func (op *operation) exit() {
	op.mu.Lock()
	next := op.waiting
	op.waiting = nil
	if next == nil {
		if op.inside--; op.inside == 0 {
			op.busy += op.Settings.Clock.Now() - op.since
		}
	}
	op.mu.Unlock()
	if next != nil {
		next.run()
	}
}

// recoverInto turns a panic of the calling function into its error.
func recoverInto(err *error) {
	if v := recover(); v != nil {
		*err = &tiers.PanicError{Value: v, Stack: debug.Stack()}
	}
}
