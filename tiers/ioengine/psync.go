package ioengine

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// psync makes one blocking system call per request, on the thread of a worker goroutine. It has one worker
// for each request of the highest number in flight. The number of buffers limits the requests in flight.
type psync struct {
	ledger
	call func(*Op) (moved int, err error)

	work     chan *Op       // to idle workers; closed with the engine
	inFlight sync.WaitGroup // requests submitted and not done
	closing  sync.Once
	over     chan struct{} // closed when no request is in flight after Close

	mu      sync.Mutex
	workers []*worker
}

// worker is a goroutine that executes requests one after the other. It holds its lock except during a
// system call, so that TryLock succeeds only then. This takes half as many atomic instructions as a lock at
// the begin and another at the end of the call. One lock for all workers limited sixteen processors to 0.5
// million requests/s.
type worker struct {
	mu sync.Mutex
	op *Op      // the last request
	_  [64]byte // no other worker's lock in this cache line
}

// NewPsync returns the psync engine, which works on every system. Now is the clock of the times in an
// Op.
func NewPsync(now func() time.Duration) Engine { return newPsync(now, perform) }

func newPsync(now func() time.Duration, call func(*Op) (int, error)) *psync {
	return &psync{ledger: ledger{now: now}, call: call, work: make(chan *Op), over: make(chan struct{})}
}

// Register does nothing: system calls need no registered memory.
func (e *psync) Register([]byte) (int32, error) { return 0, nil }

// Unregister does nothing.
func (e *psync) Unregister(int32) {}

// Submit passes the request to an idle worker, or starts a worker. A request that its own Done submits
// again stays on the worker that called Done, because the wake-up of another worker costs more CPU than
// the system call.
func (e *psync) Submit(op *Op) {
	if op.chain() {
		return
	}
	e.inFlight.Add(1)
	select {
	case e.work <- op:
	default:
		go e.execute(op)
	}
}

// execute is the main function of a worker. It executes requests until the engine is closed, op first.
func (e *psync) execute(op *Op) {
	w := &worker{}
	w.mu.Lock()
	e.mu.Lock()
	e.workers = append(e.workers, w)
	e.mu.Unlock()
	for ; op != nil; op = <-e.work {
		for yielded := time.Duration(0); e.serve(w, op); {
			yielded = cmp.Or(yielded, op.Begun)
			if op.Ended-yielded >= turnOver {
				runtime.Gosched()
				yielded = op.Ended
			}
		}
		e.inFlight.Done()
	}
}

// serve executes one request and reports whether its Done submitted it again.
func (e *psync) serve(w *worker, op *Op) (again bool) {
	w.op, op.Begun = op, e.now()
	w.mu.Unlock()
	moved, err := e.call(op)
	ended := e.now()
	w.mu.Lock()
	op.Moved, op.Err, op.Ended = moved, err, ended
	e.completed(op)
	op.done()
	return op.chained()
}

// Stuck implements Engine.
func (e *psync) Stuck(dst []Stuck, older time.Duration) []Stuck {
	return e.inService(e.stuck(dst, older), older)
}

// inService appends the requests that have been in service for longer than older.
func (e *psync) inService(dst []Stuck, older time.Duration) []Stuck {
	now := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.workers {
		if !w.mu.TryLock() {
			continue // no request of it is in service
		}
		if now-w.op.Begun > older {
			dst = append(dst, w.op.stuck(now))
		}
		w.mu.Unlock()
	}
	return dst
}

// Stalls implements Engine.
func (e *psync) Stalls() Stalls { return e.stalls(e.Stuck(nil, StallAfter)) }

// Close ends the workers. A worker whose call hangs in the device ends when the call completes.
func (e *psync) Close(ctx context.Context) error {
	e.closing.Do(func() {
		go func() {
			e.inFlight.Wait()
			close(e.work)
			close(e.over)
		}()
	})
	select {
	case <-e.over:
		return nil
	case <-ctx.Done():
	}
	left := len(e.inService(nil, math.MinInt64))
	return fmt.Errorf("close the I/O engine: the device still has %d requests: %w", left,
		context.Cause(ctx))
}

// perform executes a request with system calls.
func perform(op *Op) (moved int, err error) {
	flush := unix.Fsync
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
		flush = syncData
	}
	for {
		if err := flush(op.FD); err != unix.EINTR {
			return 0, err
		}
	}
}

// transfer moves the bytes of a request, with as many calls as it takes. The first moved bytes have been
// moved before. It returns how many bytes have been moved in all.
func transfer(op *Op, moved int, read, write func(fd int, p []byte, off int64) (int, error)) (int, error) {
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
