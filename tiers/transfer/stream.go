package transfer

import (
	"cmp"
	"sync/atomic"
	"time"

	"kvbench/tiers"
)

// stream is one buffer on its way from source to sink, chunk after chunk until none is left. It is
// a state machine and not a goroutine: where it has to wait, run returns, and whoever ends the wait
// calls run again, which is the tier when a request is back, and another stream when it leaves a
// place in a tier. So a chain of requests needs neither a goroutine that waits nor a wake-up, which
// would cost as much processor time as a small request does.
type stream struct {
	op    *operation
	buf   tiers.Buffer
	io    tiers.IO // the request for its chunk
	step  step
	at    *side         // the tier that it waits for, or that has its request
	hands atomic.Int32  // 2: the request was submitted, and is back
	asked time.Duration // when it was submitted
	part  int           // the stretch that it takes chunks of
}

// stretch is a part of the extent that is gone through from front to back.
type stretch struct{ next, end int64 }

// stretch cuts the extent into n of them, each of whole chunks but for the last one.
func (op *operation) stretch(n int) {
	op.parts = op.all[:]
	if n > 1 {
		op.parts = make([]stretch, n)
	}
	chunks := (op.size-1)/op.chunk + 1 // one of a tier without bytes is as large as numbers go
	for i := range op.parts {
		from, to := chunks*int64(i)/int64(n), chunks*int64(i+1)/int64(n)
		op.parts[i] = stretch{from * op.chunk, min(to*op.chunk, op.size)}
	}
}

// step is where a stream goes on.
type step uint8

const (
	take   step = iota // the next chunk
	enter              // the tier at
	submit             // the request to it, there is a place
	finish             // with the request, which is back
)

// run goes on until the stream has to wait or ends.
func (l *stream) run() {
	waits, err := l.advance()
	if waits {
		return
	}
	if l.step == submit || l.step == finish { // for no more, or Submit panicked
		l.op.exit(l.at)
	}
	l.op.end(l, err)
}

// advance says whether the stream waits now; else it has ended.
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
			// Submit and Done both count a hand: whoever comes second goes on with the stream, so
			// that one goroutine does and no other, and a tier that is done inside Submit does not
			// make the stack grow with every chunk.
			l.step = finish
			l.hands.Store(0)
			l.io.Begun, l.io.Ended, l.io.Passed, l.asked = 0, 0, 0, op.t.Clock.Now()
			l.at.to.Submit(&l.io)
			if l.hands.Add(1) < 2 {
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

// take gives the stream the next chunk, if there is one: in order, so that a device sees sequential
// requests, whichever stream is first. Where its stretch has come to its end it helps with others.
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

// letIn gives the stream a place in its tier, or lets it wait for one. After a failure nobody
// waits: the place may never come.
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

// finish does what is to be done with a chunk that a tier has moved.
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
	// What a tier did not have, the padding, is the same as where it is generated, so that files do
	// not depend on their way.
	op.make(l, l.io.Off+int64(l.io.N))
	l.step, l.at = enter, &op.out
	return nil
}

// back is told that the request is: the stream goes on here, unless Submit has not returned yet.
func (l *stream) back(*tiers.IO) {
	l.op.exit(l.at)
	if l.hands.Add(1) == 2 {
		l.run()
	}
}

// report tells of the bytes that a request moved. The lock keeps the promise that nobody is told
// after the operation has returned.
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

// chunk is what is told of a request that is back.
func chunk(op tiers.Op, io *tiers.IO, asked, done time.Duration) tiers.Chunk {
	passed := max(io.Passed, asked)
	return tiers.Chunk{Op: op, Begun: cmp.Or(io.Begun, asked), Ended: cmp.Or(io.Ended, done),
		Asked: passed, Done: done, Held: passed - asked}
}

// end is the end of a stream, perhaps by a failure, and with the last one of the operation. Its
// buffer goes back, however long after the operation: one that is stuck is still the tier's.
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
