package ioengine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// psync makes one blocking system call per request, on the thread of a worker goroutine. There are as
// many workers as the largest number of requests that were ever in flight; the number of buffers
// limits it.
type psync struct {
	ledger
	call func(*Op) (moved int, err error)

	mu        sync.Mutex
	work      sync.Cond // wakes idle workers and Close
	queue     list      // submitted, without a worker yet
	inService list      // oldest first
	idle      int
	inFlight  int // submitted and not done
	closed    bool
}

// NewPsync returns the psync engine, which works on every system. Now is the clock of the times in an
// Op.
func NewPsync(now func() time.Duration) Engine { return newPsync(now, perform) }

func newPsync(now func() time.Duration, call func(*Op) (int, error)) *psync {
	e := &psync{ledger: ledger{now: now}, call: call}
	e.work.L = &e.mu
	e.queue.init()
	e.inService.init()
	return e
}

// Register does nothing: system calls need no registered memory.
func (e *psync) Register([]byte) (int32, error) { return 0, nil }

// Unregister does nothing.
func (e *psync) Unregister(int32) {}

// Submit wakes an idle worker for each request, or starts one. A request that its own Done submits
// again stays on the worker that called Done: a chain of requests in one buffer needs no wake-ups,
// which cost more CPU than the calls.
func (e *psync) Submit(ops ...*Op) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, op := range ops {
		op.Err, op.Moved = nil, 0
		e.inFlight++
		switch {
		case op.own:
			op.again = true
			continue
		case e.idle > 0:
			e.idle-- // here, so that two submissions do not count on one worker
			e.work.Signal()
		default:
			go e.worker()
		}
		e.queue.push(op)
	}
}

// worker executes requests until the engine is closed.
func (e *psync) worker() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		op := e.queue.first()
		for ; op == nil; op = e.queue.first() {
			if e.closed {
				return
			}
			e.idle++
			e.work.Wait()
			// Submit has subtracted this worker from idle, unless the engine is closed.
		}
		e.queue.remove(op)
		for more := true; more; {
			more = e.serve(op)
		}
	}
}

// serve executes one request and reports whether its Done submitted it again. The lock is held before
// and after.
func (e *psync) serve(op *Op) (again bool) {
	op.Begun = e.now()
	e.inService.push(op)
	e.mu.Unlock()
	moved, err := e.call(op)
	ended := e.now()
	e.mu.Lock()
	op.Moved, op.Err, op.Ended = moved, err, ended
	e.inService.remove(op)
	op.own = true
	e.mu.Unlock()
	e.completed(op)
	op.Done(op)
	e.mu.Lock()
	again = op.again
	op.own, op.again = false, false
	if e.inFlight--; e.inFlight == 0 && e.closed {
		e.work.Broadcast()
	}
	return again
}

func (e *psync) Stuck(dst []Stuck, older time.Duration) []Stuck {
	dst = e.stuck(dst, older)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.inService.stuck(dst, e.now(), older)
}

func (e *psync) Stalls() Stalls { return e.stalls(e.Stuck(nil, StallAfter)) }

// Close ends the workers. A worker whose call hangs in the device ends when the call completes.
func (e *psync) Close(ctx context.Context) error {
	wake := func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.work.Broadcast()
	}
	defer context.AfterFunc(ctx, wake)()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.work.Broadcast()
	for e.inFlight > 0 {
		if ctx.Err() != nil {
			return fmt.Errorf("close the I/O engine: the device still has %d requests: %w",
				e.inFlight, context.Cause(ctx))
		}
		e.work.Wait()
	}
	return nil
}

// perform executes a request with system calls.
func perform(op *Op) (moved int, err error) {
	sync := unix.Fsync
	switch op.Kind {
	case Read, Write:
		switch {
		case op.Vec != nil:
			return vector(op, unix.Preadv, unix.Pwritev, unix.Pread, unix.Pwrite)
		case op.AtPosition:
			return transfer(op, 0,
				func(fd int, p []byte, _ int64) (int, error) { return unix.Read(fd, p) },
				func(fd int, p []byte, _ int64) (int, error) { return unix.Write(fd, p) })
		}
		return transfer(op, 0, unix.Pread, unix.Pwrite)
	case DataSync:
		sync = syncData
	}
	for {
		if err := sync(op.FD); err != unix.EINTR {
			return 0, err
		}
	}
}

// transfer moves the bytes of a request after the first moved ones, with as many calls as it takes.
// It returns how many bytes have been moved, including the first ones.
func transfer(op *Op, moved int, read, write func(fd int, p []byte, off int64) (int, error)) (n int,
	err error) {
	call := read
	if op.Kind == Write {
		call = write
	}
	w := whole{moved: moved}
	for over := false; !over; {
		var more int
		var err error
		if w.out {
			err = leave(op.Kind, op.FD, op.Off, int64(op.N))
		} else {
			more, err = call(op.FD, op.Buf.B[w.moved:op.N], op.Off+int64(w.moved))
		}
		if over, err = w.step(op, more, err); err != nil {
			return w.moved, err
		}
	}
	return w.moved, nil
}

// vector moves the pieces of a request with one call. After a short transfer it moves the rest piece
// by piece.
func vector(op *Op, readv, writev func(fd int, pieces [][]byte, off int64) (int, error),
	read, write func(fd int, p []byte, off int64) (int, error)) (n int, err error) {
	call := readv
	if op.Kind == Write {
		call = writev
	}
	for {
		if n, err = call(op.FD, op.Vec, op.Off); err != unix.EINTR {
			break
		}
	}
	if n = max(0, n); err != nil || n == op.N {
		return n, err
	}
	at := 0
	for _, p := range op.Vec {
		if at+len(p) > n {
			piece := Op{Kind: op.Kind, FD: op.FD, Off: op.Off + int64(at), N: len(p)}
			piece.Buf.B = p
			moved, err := transfer(&piece, n-at, read, write)
			if n = at + moved; err != nil {
				return n, err
			}
		}
		at += len(p)
	}
	return n, nil
}

// list is a FIFO queue from which any Op can be removed: a circular list with root as sentinel.
type list struct{ root Op }

func (l *list) init() { l.root.next, l.root.prev = &l.root, &l.root }

// first returns the oldest Op, or nil.
func (l *list) first() *Op {
	if l.root.next == &l.root {
		return nil
	}
	return l.root.next
}

func (l *list) push(op *Op) {
	op.prev, op.next = l.root.prev, &l.root
	op.prev.next, l.root.prev = op, op
}

// stuck appends the requests that have been in service for longer than older, oldest first.
func (l *list) stuck(dst []Stuck, now, older time.Duration) []Stuck {
	for op := l.root.next; op != &l.root && now-op.Begun > older; op = op.next {
		dst = append(dst, op.stuck(now))
	}
	return dst
}

func (l *list) remove(op *Op) {
	op.prev.next, op.next.prev = op.next, op.prev
	op.prev, op.next = nil, nil
}
