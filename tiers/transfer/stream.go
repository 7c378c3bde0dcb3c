package transfer

import (
	"cmp"
	"sync/atomic"
	"time"

	"kvbench/tiers"
)

// stream moves chunks through one buffer until no chunk is left. It is a state machine, not a
// goroutine. When it has to wait, run returns. The event that ends the wait calls run again: the
// completion of its request, or another stream that leaves the tier when Depth requests are in flight.
// So a chain of requests needs no waiting goroutine and no wake-up, which would cost as much CPU as a
// small request.
type stream struct {
	op    *operation
	buf   tiers.Buffer
	io    tiers.IO // the request of its chunk
	step  step
	state atomic.Int32  // counts the return of Submit and the call of Done: 2 after both
	asked time.Duration // the time of Submit
	part  int           // index of the stretch from which it takes chunks
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
	enter              // enter the tier
	submit             // submit the request: fewer than Depth are in flight
	finish             // process the completed request
)

// run advances the stream until it has to wait or ends.
func (l *stream) run() {
	waits, err := l.advance()
	if waits {
		return
	}
	if l.step == submit || l.step == finish { // the operation has stopped, or Submit has panicked
		l.op.exit()
	}
	l.op.end(l, err)
}

// advance returns true if the stream waits. Otherwise the stream has ended.
func (l *stream) advance() (waits bool, err error) {
	defer recoverInto(&err)
	op := l.op
	for {
		switch l.step {
		case take:
			if !op.take(l) {
				return false, nil
			}
			l.step = enter
			if err := op.generate(l); err != nil {
				return false, err
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
			// Both the return of Submit and the call of Done add 1 to state. The second one continues
			// the stream, so that exactly one goroutine does. If Submit calls Done, the stack does not
			// grow with every chunk.
			l.step = finish
			l.state.Store(0)
			l.io.Begun, l.io.Ended, l.io.Passed, l.asked = 0, 0, 0, op.Settings.Clock.Now()
			op.to.Submit(&l.io)
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

// take gives the stream the next chunk of its stretch or, at the end of the stretch, of another
// stretch. Chunks are taken in order, so that the device receives sequential requests.
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

// letIn lets the stream enter the tier, or makes it wait while Depth requests are inside. After a
// failure it does not wait, because the requests inside may never complete.
func (op *operation) letIn(l *stream) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.inside >= op.Settings.Depth && !op.stopped() {
		op.waiting = l
		return false
	}
	op.enter()
	return true
}

// generate fills the buffer of a write with its chunk and the padding. Padding is written too, and must
// not be old content of the buffer.
func (op *operation) generate(l *stream) error {
	if op.op == tiers.Read || l.buf.B == nil {
		return nil
	}
	end := l.io.Off + tiers.AlignUp(int64(l.io.N), int64(op.traits.Align))
	p := l.buf.B[:end-l.io.Off]
	return op.each(l.io.Off, end, true, func(o tiers.Object, off, at, n int64) error {
		return op.src.Fill(o, off, p[at:at+n])
	})
}

// finish processes a completed request.
func (op *operation) finish(l *stream) error {
	if l.io.Err != nil {
		return l.io.Err
	}
	op.report(l)
	if op.op == tiers.Write || l.buf.B == nil {
		return nil
	}
	p, from := l.buf.B[:l.io.N], l.io.Off
	return op.each(from, from+int64(len(p)), false, func(o tiers.Object, off, at, n int64) error {
		return op.dst.Take(o, off, p[at:at+n])
	})
}

// back is the Done of the request. It continues the stream, unless Submit has not returned yet.
func (l *stream) back(*tiers.IO) {
	l.op.exit()
	if l.state.Add(1) == 2 {
		l.run()
	}
}

// report reports the bytes that a request moved. The lock ensures that nothing is reported after the
// operation has returned.
func (op *operation) report(l *stream) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.left || op.call.Observe == nil {
		return
	}
	c := chunk(op.op, &l.io, l.asked, op.Settings.Clock.Now())
	c.Part = op.part
	if op.op == tiers.Read || !op.traits.CountsAtCommit {
		c.Memory = int64(l.io.Memory)
		c.Bytes = op.payload(l.io.Off, l.io.Off+int64(l.io.N)) - c.Memory
	}
	op.call.Observe(c)
}

// chunk returns the Chunk of a completed request.
func chunk(op tiers.Op, io *tiers.IO, asked, done time.Duration) tiers.Chunk {
	passed := max(io.Passed, asked)
	return tiers.Chunk{Op: op, Begun: cmp.Or(io.Begun, asked), Ended: cmp.Or(io.Ended, done),
		Asked: passed, Done: done, Held: passed - asked}
}

// end ends a stream, with an error if it failed. The end of the last stream ends the operation. It
// returns the buffer to the pool, which may be long after the operation: until then the tier owns the
// buffer.
func (op *operation) end(l *stream, err error) {
	if l.buf.B != nil {
		op.Settings.Pool.Put(l.buf)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	op.fail(err)
	if op.running--; op.running == 0 && op.over != nil {
		op.over.Fire()
	}
}
