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
	"kvbench/tiers/buffer"
	"kvbench/tiers/clock"
)

// operation is one Read, Write or Move in progress.
type operation struct {
	t       *Transfer
	ctx     context.Context
	objs    []tiers.Object // the objects of this operation
	ext     tiers.Extent   // their offsets
	size    int64          // of the extent
	chunk   int64
	in, out side // source and sink; without a tier content is generated, or compared and dropped

	waited time.Duration // for buffers
	wall   time.Duration // the time after waited
	flush  time.Duration

	bufs []tiers.Buffer // of streams that have not begun

	mu      sync.Mutex
	running int         // streams that have not ended
	over    clock.Event // fires when the last stream has ended, or after Grace; nil: no wait yet
	parts   []stretch   // parts of the extent from which streams take chunks
	all     [1]stretch  // memory for a single part
	err     error       // the first failure
	failed  *side       // the side that failed; nil: neither tier, or unknown
	made    []made      // content streams that are not in use
	left    bool        // the operation has returned: no more reports
}

// side is a tier at one end of an operation. Guarded by operation.mu.
type side struct {
	op     tiers.Op
	tier   tiers.Tier // may be nil
	traits tiers.Traits
	to     tiers.Submitter
	part   int // see tiers.PartOf
	done   tiers.ChunkFunc

	inside  int           // requests and calls in the tier
	since   time.Duration // when inside became 1
	busy    time.Duration // time with inside > 0: concurrent requests count once
	waiting *stream       // waits until fewer than Depth are inside: streams are at most one more
}

func sideOf(op tiers.Op, tier tiers.Tier, done tiers.ChunkFunc) side {
	if done == nil {
		done = func(tiers.Chunk) {}
	}
	return side{op: op, tier: tier, traits: tier.Traits(), done: done}
}

// timing returns the time in which a tier was busy, and the rest of the operation's time. A request
// that still hangs there does not count. With a tier without bytes there is no other work, so that all
// time is the tier's.
func (op *operation) timing(s *side) (tm tiers.Timing, rest time.Duration) {
	op.mu.Lock() // a request may still be in flight
	defer op.mu.Unlock()
	tm = tiers.Timing{Admission: op.waited, Device: op.wall}
	if op.holds() {
		tm.Device = s.busy
	}
	return tm, op.wall - tm.Device
}

// run executes the operation for the first of objs. After it the sink has all of these objects or
// none.
func (op *operation) run(objs []tiers.Object) (err error) {
	defer recoverInto(&err)
	if err := op.admit(objs); err != nil {
		return err
	}
	defer op.leave()
	from := op.t.Clock.Now()
	ended := sync.OnceFunc(func() { op.wall = op.t.Clock.Now() - from })
	defer ended()
	var r tiers.Reader
	if s := &op.in; s.tier != nil {
		err = op.call(s, func() (err error) { r, err = s.tier.Open(op.ctx, objs...); return err })
		if err != nil {
			op.failed = s
			return err
		}
		defer func() { err = errors.Join(err, op.call(s, r.Close)) }()
		op.lay(s, r, r, objs)
	}
	s := &op.out
	if s.tier == nil {
		return op.pump()
	}
	var w tiers.Writer
	err = op.call(s, func() (err error) { w, err = s.tier.Create(op.ctx, objs...); return err })
	if err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed { // also when Commit panics
			// The time of Abort does not count: after the end of a window it may take longer than
			// the write did.
			ended()
			err = errors.Join(err, w.Abort())
		}
	}()
	op.lay(s, w, w, objs)
	if err := op.pump(); err != nil {
		return err
	}
	// Close the source before Commit, while the target can still be aborted: the last reader of a
	// removed object deletes it, which may fail, and a failed move must leave nothing in its target.
	if r != nil {
		if err := op.call(&op.in, r.Close); err != nil {
			op.failed = &op.in
			return err
		}
	}
	flushed := op.t.Clock.Now()
	err = op.call(s, func() error { return w.Commit(op.ctx) })
	now := op.t.Clock.Now()
	op.flush = now - flushed
	if committed = err == nil; committed {
		c := tiers.Chunk{Op: s.op, Flush: true, Begun: flushed, Ended: now, Asked: flushed,
			Done: now, Part: s.part}
		// Bytes that were in the page cache reach the device only now.
		if s.traits.CountsAtCommit {
			size := op.payload(0, op.size)
			c.Bytes = tiers.Committed(w, size)
			c.Memory = size - c.Bytes
		}
		s.done(c)
	}
	return err
}

// leave ends the operation, except for streams whose requests hang.
func (op *operation) leave() {
	op.mu.Lock()
	op.left = true
	op.mu.Unlock()
	if op.holds() && len(op.bufs) > 0 {
		op.t.Pool.Put(op.bufs...)
	}
}

// lay sets the objects of the operation and their extent.
func (op *operation) lay(s *side, to tiers.Submitter, ext tiers.Extent, objs []tiers.Object) {
	n := ext.Len()
	s.to, s.part, op.objs, op.ext = to, tiers.PartOf(to), objs[:n], ext
	op.size = ext.Start(n-1) + objs[n-1].Size
}

// holds reports whether the operation moves bytes. In a Move both tiers hold bytes, see
// Transfer.Move.
func (op *operation) holds() bool { return op.in.traits.Holds || op.out.traits.Holds }

// admit checks the settings and waits for all buffers at once, so that no operation holds some while
// it waits for more. It does not know yet how many objects the tier will take; the others are few and
// small, so that an extra buffer does not matter.
func (op *operation) admit(objs []tiers.Object) (err error) {
	t, align := op.t, 1
	op.chunk = int64(t.Chunk)
	for _, s := range []*side{&op.in, &op.out} {
		align = max(align, s.traits.Align)
		if n := int64(s.traits.Chunk); n > 0 {
			op.chunk = n // the sink's chunk size wins over the source's: small requests cost it more
		}
	}
	if err := op.validate(objs[0], align); err != nil {
		return err
	}
	var bytes int64
	for _, o := range objs {
		bytes += o.Size
	}
	n := int(min(int64(t.Depth), 1+(bytes-1)/op.chunk))
	if !op.holds() {
		op.bufs = make([]tiers.Buffer, n)
		return nil
	}
	if op.out.tier != nil && int64(n)*op.chunk < bytes {
		n++ // for the chunk that is generated, or read, while Depth are in flight
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

func (op *operation) validate(o tiers.Object, align int) error {
	t, chunk := op.t, op.chunk
	switch {
	case t.Clock == nil:
		return errors.New("a Transfer needs a Clock")
	case t.Depth < 1:
		return fmt.Errorf("a Transfer's Depth (%d) must be at least 1", t.Depth)
	case chunk < 1:
		return fmt.Errorf("a Transfer's Chunk (%d bytes) must be positive", chunk)
	case o.Size < 1:
		return fmt.Errorf("entry %s has %d bytes: it must have at least one", o.Key, o.Size)
	case !op.holds():
		return nil
	case chunk%buffer.PageSize != 0 || chunk%int64(align) != 0:
		return fmt.Errorf("a Transfer's Chunk (%d bytes) must be a multiple of %d", chunk,
			max(align, buffer.PageSize))
	case chunk > int64(t.Pool.Size()):
		return fmt.Errorf("a Transfer's Chunk (%d bytes) must fit the pool's buffers (%d bytes)",
			chunk, t.Pool.Size())
	}
	return nil
}

// pump moves all chunks and returns the first failure. If the tier is memory, a stream never waits and
// runs on the goroutine that began it, so each stream begins on its own goroutine and the last one on
// the caller's. Streams without bytes only submit, so they all begin on the caller's goroutine, the
// only one in virtual time.
func (op *operation) pump() error {
	streams := make([]stream, len(op.bufs))
	op.stretch(min(max(1, op.t.Stretches), len(streams)))
	for i, b := range op.bufs {
		l := &streams[i]
		l.op, l.buf, l.io.Done, l.part = op, b, l.back, i%len(op.parts)
	}
	op.running, op.bufs = len(streams), nil
	for i := range streams {
		if l := &streams[i]; op.holds() && i < len(streams)-1 {
			go l.run() // copy memory and generate content concurrently
		} else {
			l.run()
		}
	}
	return op.wait()
}

// wait returns when all streams have ended. After the end of the context it waits for requests in
// flight for up to tiers.Grace, so that a device's counters include them, and abandons the rest.
func (op *operation) wait() error {
	op.mu.Lock()
	if op.running == 0 {
		defer op.mu.Unlock()
		return op.err
	}
	op.over = op.t.Clock.NewEvent()
	op.mu.Unlock()
	if err := op.over.Wait(op.ctx); err != nil {
		if op.ctx.Err() != nil {
			err = tiers.Canceled(op.ctx, op.objs[0])
		}
		op.dismiss(err)
		if op.holds() {
			op.t.Clock.At(op.t.Clock.Now()+tiers.Grace, op.over.Fire)
			_ = op.over.Wait(context.WithoutCancel(op.ctx))
		}
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.err
}

// dismiss ends the streams that wait to enter a tier, which may never become possible.
func (op *operation) dismiss(err error) {
	op.mu.Lock()
	op.fail(err)
	idle := [...]*stream{op.in.waiting, op.out.waiting}
	op.in.waiting, op.out.waiting = nil, nil
	op.mu.Unlock()
	for _, l := range idle {
		if l != nil {
			op.end(l, nil)
		}
	}
}

// fail records the first failure; err may be nil. Callers hold mu.
func (op *operation) fail(err error) { op.err = cmp.Or(op.err, err) }

// stopped reports, between chunks, that something failed or that the context has ended. Callers hold
// mu.
func (op *operation) stopped() bool {
	if op.ctx.Err() != nil {
		op.fail(tiers.Canceled(op.ctx, op.objs[0]))
	}
	return op.err != nil
}

// call measures one call of a tier, also if it panics.
func (op *operation) call(s *side, f func() error) error {
	op.mu.Lock()
	op.enter(s)
	op.mu.Unlock()
	defer op.exit(s)
	return f()
}

// enter counts a request or call that begins. Callers hold mu. Enter and exit read the clock only for
// the first and the last one inside: with many in flight that is rare.
func (op *operation) enter(s *side) {
	if s.inside++; s.inside == 1 {
		s.since = op.t.Clock.Now()
	}
}

// exit counts a request or call that has ended. If a stream waits to enter, it takes the place and
// runs at once, since it only has to submit.
func (op *operation) exit(s *side) {
	op.mu.Lock()
	next := s.waiting
	s.waiting = nil
	if next == nil {
		if s.inside--; s.inside == 0 {
			s.busy += op.t.Clock.Now() - s.since
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
