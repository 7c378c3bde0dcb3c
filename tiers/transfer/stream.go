package transfer

import (
	"cmp"
	"sync/atomic"
	"time"

	"kvbench/tiers"
)

// stream moves one buffer from source to sink, chunk by chunk until no chunk is left. It is a state
// machine and not a goroutine. Where it has to wait, run returns. The event that ends the wait calls
// run again: the completion of its request, or another stream that leaves the tier when Depth
// requests are in flight. So a chain of requests needs no waiting goroutine and no wake-up, which
// would cost as much CPU as a small request.
type stream struct {
	op    *operation
	buf   tiers.Buffer
	io    tiers.IO // the request for its chunk
	step  step
	at    *side         // the tier that it waits for, or that has its request
	state atomic.Int32  // counts the return of Submit and the call of Done: 2 = both
	asked time.Duration // when the request was submitted
	part  int           // the stretch of its chunks
}

// stretch is a part of the extent whose chunks are taken from front to back.
type stretch struct{ next, end int64 }

// stretch cuts the extent into n stretches of whole chunks; the last chunk may be shorter.
func (op *operation) stretch(n int) {
	op.parts = op.all[:]
	if n > 1 {
		op.parts = make([]stretch, n)
	}
	chunks := (op.size-1)/op.chunk + 1 // no overflow: a tier without bytes has huge chunks
	for i := range op.parts {
		from, to := chunks*int64(i)/int64(n), chunks*int64(i+1)/int64(n)
		op.parts[i] = stretch{from * op.chunk, min(to*op.chunk, op.size)}
	}
}

// step is the next step of a stream.
type step uint8

const (
	take   step = iota // take the next chunk
	enter              // enter the tier at
	submit             // submit the request: fewer than Depth are in flight
	finish             // process the completed request
)

// run runs until the stream has to wait or ends.
func (l *stream) run() {
	waits, err := l.advance()
	if waits {
		return
	}
	if l.step == submit || l.step == finish { // the operation has stopped, or Submit has panicked
		l.op.exit(l.at)
	}
	l.op.end(l, err)
}

// advance reports whether the stream waits; otherwise it has ended.
func (l *stream) advance() (waits bool, err error) {
	defer recoverInto(&err)
	op := l.op
	for {
		switch l.step {
		case take:
			if !op.take(l) {
				return false, nil
			}
			l.step, l.at = enter, &op.in
			if op.in.tier == nil {
				op.make(l, l.io.Off)
				l.at = &op.out
			}
		case enter:
			l.step = submit
			if !op.letIn(l) {
				return true, nil
			}
		case submit:
			op.mu.Lock()
			over := op.stopped()
			op.mu.Unlock()
			if over {
				return false, nil
			}
			// The return of Submit and the call of Done both add one to state. The second of the two
			// continues the stream, so that exactly one goroutine does. If Done is called inside
			// Submit, the stack does not grow with every chunk.
			l.step = finish
			l.state.Store(0)
			l.io.Begun, l.io.Ended, l.io.Passed, l.asked = 0, 0, 0, op.t.Clock.Now()
			l.at.to.Submit(&l.io)
			if l.state.Add(1) < 2 {
				return true, nil
			}
		case finish:
			l.step = take
			if err := op.finish(l); err != nil {
				return false, err
			}
		}
	}
}

// take gives the stream the next chunk of its stretch, or, at the end of the stretch, of another one.
// All streams take chunks in order, so that the device receives sequential requests.
func (op *operation) take(l *stream) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	for range op.parts {
		p := &op.parts[l.part]
		if n := min(op.chunk, p.end-p.next); n > 0 {
			if op.stopped() {
				return false
			}
			l.io.Off, l.io.N = p.next, int(n)
			p.next += n
			if l.buf.B != nil {
				l.io.Buf = l.buf
				l.io.Buf.B = l.buf.B[:n]
			}
			return true
		}
		l.part = (l.part + 1) % len(op.parts)
	}
	return false
}

// letIn lets the stream enter its tier, or makes it wait while Depth requests are inside. After a
// failure it does not wait: the requests inside may never complete.
func (op *operation) letIn(l *stream) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if l.at.inside >= op.t.Depth && !op.stopped() {
		l.at.waiting = l
		return false
	}
	op.enter(l.at)
	return true
}

// finish processes a chunk that a tier has moved.
func (op *operation) finish(l *stream) error {
	if l.io.Err != nil {
		return l.io.Err
	}
	op.report(l)
	switch {
	case l.at == &op.out:
		return nil
	case op.out.tier == nil:
		return op.verify(l)
	}
	// The source has no padding. Generated padding makes the files of a Move equal to those of a
	// Write.
	op.make(l, l.io.Off+int64(l.io.N))
	l.step, l.at = enter, &op.out
	return nil
}

// back is the Done of the request. It continues the stream, unless Submit has not returned yet.
func (l *stream) back(*tiers.IO) {
	l.op.exit(l.at)
	if l.state.Add(1) == 2 {
		l.run()
	}
}

// report reports the bytes that a request moved. The lock ensures that no report follows the return of
// the operation.
func (op *operation) report(l *stream) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.left {
		return
	}
	c := chunk(l.at.op, &l.io, l.asked, op.t.Clock.Now())
	c.Part = l.at.part
	if l.at == &op.in || !l.at.traits.CountsAtCommit {
		c.Memory = int64(l.io.Memory)
		c.Bytes = op.payload(l.io.Off, l.io.Off+int64(l.io.N)) - c.Memory
	}
	l.at.done(c)
}

// chunk returns the Chunk of a completed request.
func chunk(op tiers.Op, io *tiers.IO, asked, done time.Duration) tiers.Chunk {
	passed := max(io.Passed, asked)
	return tiers.Chunk{Op: op, Begun: cmp.Or(io.Begun, asked), Ended: cmp.Or(io.Ended, done),
		Asked: passed, Done: done, Held: passed - asked}
}

// end ends a stream, perhaps with a failure; the end of the last stream ends the operation. It
// returns the buffer, perhaps long after the operation: until then the tier has owned it.
func (op *operation) end(l *stream, err error) {
	if l.buf.B != nil {
		op.t.Pool.Put(l.buf)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.err == nil && l.io.Err != nil && err == l.io.Err {
		op.failed = l.at
	}
	op.fail(err)
	if op.running--; op.running == 0 && op.over != nil {
		op.over.Fire()
	}
}
