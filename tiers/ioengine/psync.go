package ioengine

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// psync asks with one blocking system call per request, each on a thread that the Go runtime lends
// to a worker goroutine while it blocks. There are as many workers as requests were ever under way
// at once: buffers bound them.
type psync struct {
	now  func() time.Duration
	call func(*Op) (moved int, err error)

	mu       sync.Mutex
	work     sync.Cond // there is something to do for an idle worker, or the engine is closed
	queue    list      // not taken yet
	asked    list      // at the device, oldest first
	idle     int
	underway int           // submitted and not done
	drained  chan struct{} // made by Close, closed when nothing is under way
	closed   bool
}

// NewPsync returns the engine that works everywhere. Now is the clock of the times in an Op.
func NewPsync(now func() time.Duration) Engine { return newPsync(now, perform) }

func newPsync(now func() time.Duration, call func(*Op) (int, error)) *psync {
	e := &psync{now: now, call: call}
	e.work.L = &e.mu
	return e
}

// Register: a system call per request has no use for it.
func (e *psync) Register([]byte) (int32, error) { return 0, nil }

// Submit wakes an idle worker for each request, or hires one. A request submitted again by its own
// Done goes to the worker that called it: a chain of requests in one buffer needs no wake-ups,
// which cost more CPU than the calls.
func (e *psync) Submit(ops ...*Op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, op := range ops {
		op.Err, op.Moved = nil, 0
		e.underway++
		switch {
		case op.own:
			op.again = true
			continue
		case e.idle > 0:
			e.idle-- // taken off here, so that two submissions do not count on one worker
			e.work.Signal()
		default:
			go e.worker()
		}
		e.queue.push(op)
	}
}

// worker serves requests until the engine is closed.
func (e *psync) worker() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		for e.queue.first == nil {
			if e.closed {
				return
			}
			e.idle++
			e.work.Wait()
			// Whoever submitted took this worker off the idle ones, unless the engine is closed.
		}
		op := e.queue.first
		e.queue.remove(op)
		for more := true; more; {
			more = e.serve(op)
		}
	}
}

// serve carries out one request and says whether its Done submitted it again. The lock is held
// before and after.
func (e *psync) serve(op *Op) (again bool) {
	op.Begun = e.now()
	e.asked.push(op)
	e.mu.Unlock()
	moved, err := e.call(op)
	ended := e.now()
	e.mu.Lock()
	op.Moved, op.Err, op.Ended = moved, err, ended
	e.asked.remove(op)
	op.own = true
	e.mu.Unlock()
	op.Done(op)
	e.mu.Lock()
	again = op.again
	op.own, op.again = false, false
	if e.underway--; e.underway == 0 && e.drained != nil {
		close(e.drained)
	}
	return again
}

func (e *psync) Stuck(dst []Stuck, older time.Duration) []Stuck {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for op := e.asked.first; op != nil && now-op.Begun > older; op = op.next {
		dst = append(dst, Stuck{Kind: op.Kind, FD: op.FD, Off: op.Off, N: op.N,
			For: now - op.Begun})
	}
	return dst
}

// Close ends the workers. Those that the device holds end when it answers, if ever.
func (e *psync) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.work.Broadcast()
	if e.underway == 0 {
		e.mu.Unlock()
		return nil
	}
	if e.drained == nil {
		e.drained = make(chan struct{})
	}
	drained := e.drained
	e.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Errorf("close the I/O engine: the device still has %d requests: %w", e.underway,
		context.Cause(ctx))
}

// list is a queue that an Op can leave from the middle.
type list struct{ first, last *Op }

func (l *list) push(op *Op) {
	op.prev, op.next = l.last, nil
	if l.last == nil {
		l.first = op
	} else {
		l.last.next = op
	}
	l.last = op
}

func (l *list) remove(op *Op) {
	if op.prev == nil {
		l.first = op.next
	} else {
		op.prev.next = op.next
	}
	if op.next == nil {
		l.last = op.prev
	} else {
		op.next.prev = op.prev
	}
	op.prev, op.next = nil, nil
}
