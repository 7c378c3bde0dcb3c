package transfer

import (
	"runtime/debug"
	"sync/atomic"

	"kvbench/tiers"
)

// lane is one buffer on its way from source to sink, chunk after chunk until none is left. It is a
// state machine and not a goroutine: where it has to wait, run returns, and whoever ends the wait
// calls run again.
type lane struct {
	op    *operation
	buf   tiers.Buffer
	io    tiers.IO // the request for its chunk
	step  step
	at    *side        // the tier that it waits for, or that has its request
	hands atomic.Int32 // 2: the request was submitted, and is back
	ended bool         // guarded by operation.mu
}

// step is where a lane goes on.
type step uint8

const (
	take   step = iota // to the next chunk
	submit             // the request to at, which has a place for it
	finish             // with the request that at has served
)

// run goes on until the lane has to wait or ends.
func (l *lane) run() {
	op := l.op
	defer func() {
		if v := recover(); v != nil {
			op.fail(&tiers.PanicError{Value: v, Stack: debug.Stack()})
			op.end(l)
		}
	}()
	for {
		ready := false
		switch l.step {
		case take:
			if !op.take(l) {
				op.end(l)
				return
			}
			if op.in != nil {
				ready = op.queue(l, op.in)
			} else {
				op.generate(l)
				ready = op.queue(l, op.out)
			}
		case submit:
			if op.stopped() {
				op.exitAndRun(l.at)
				op.end(l)
				return
			}
			l.step = finish
			ready = l.send()
		case finish:
			if l.io.Err != nil {
				op.fail(l.io.Err)
				op.end(l)
				return
			}
			op.report(l)
			if l.at == op.in && op.out != nil {
				op.pad(l)
				ready = op.queue(l, op.out)
				break
			}
			if l.at == op.in {
				if err := op.verify(l); err != nil {
					op.fail(err)
				}
			}
			l.step, ready = take, true
		}
		if !ready {
			return
		}
	}
}

// take gives the lane the next chunk, if there is one.
func (op *operation) take(l *lane) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.next >= op.size || op.stoppedLocked() {
		return false
	}
	off := op.next
	n := min(op.chunk, op.size-off)
	op.next += n
	l.io.Off, l.io.N = off, int(n)
	if l.buf.B != nil {
		l.io.Buf = l.buf
		l.io.Buf.B = l.buf.B[:n]
	}
	return true
}

// queue lets the lane into a tier, or says that it has to wait for a place there.
func (op *operation) queue(l *lane, s *side) bool {
	op.mu.Lock()
	defer op.mu.Unlock()
	l.step, l.at = submit, s
	if s.inside >= s.depth {
		s.waiting = append(s.waiting, l)
		return false
	}
	op.enter(s)
	return true
}

// send submits the request and says whether it is back already.
func (l *lane) send() (back bool) {
	l.hands.Store(0)
	defer func() {
		if v := recover(); v != nil {
			l.io.End(&tiers.PanicError{Value: v, Stack: debug.Stack()})
			back = l.hands.Add(1) == 2
		}
	}()
	l.at.to.Submit(&l.io)
	return l.hands.Add(1) == 2
}

// back is told that the request is: the lane goes on here, unless Submit has not returned yet.
func (l *lane) back(*tiers.IO) {
	l.op.exitAndRun(l.at)
	if l.hands.Add(1) == 2 {
		l.run()
	}
}

// exitAndRun lets go of a place in a tier and runs the lane that waited for it, first of all: it
// has only to submit.
func (op *operation) exitAndRun(s *side) {
	if next := op.exit(s); next != nil {
		next.run()
	}
}

// report tells of the bytes that a request moved. The lock keeps the promise that nobody is told
// after the operation has returned.
func (op *operation) report(l *lane) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if !op.left && (l.at == op.in || !l.at.traits.CountsAtCommit) {
		l.at.done(l.at.op, op.payload(l.io.Off, l.io.Off+int64(l.io.N)))
	}
}

// end is the end of a lane, and with the last one of the operation.
func (op *operation) end(l *lane) {
	op.mu.Lock()
	l.ended = true
	left := op.left
	if op.running--; op.running == 0 && op.over != nil {
		op.over.Fire()
	}
	op.mu.Unlock()
	if left && l.buf.B != nil {
		op.t.Pool.Put(l.buf)
	}
}
