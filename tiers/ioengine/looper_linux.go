package ioengine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/ioengine/ring"
)

// queue has the methods of a ring that a looper uses. Tests use a fake.
type queue interface {
	Next() *ring.Request
	Enter(wait int) error
	Reap(each func(ring.Completion))
	SetBuffer(i int, mem []byte) error
	Close() error
}

// One call submits 1/batchPart of the requests in flight, and at least two: the kernel passes two to
// the device at once, but a longer batch only when it has prepared all of it.
//
// Fewer calls take less CPU, but requests that wait for the rest of their batch are missing at the
// device. Measured on one core, reads of 4 KiB, 32 in flight at a virtual disk: 58 to 63 thousand
// requests/s at 4.1 to 4.4 us of CPU with one call for all completed requests, 71 to 79 thousand at
// 4.6 to 6.0 us with two requests per call. With 128 in flight there was no difference.
//
// The call that submits the last batch does not wait for completions either. A sleeping thread wakes
// late, and the device may complete a request soon. The next call waits if no request has completed by
// then. Measured with reads of 4 KiB, 8 in flight at a loop device whose worker ran on the other core:
// 178 thousand requests/s at 4.1 us of CPU if the first call waited, 212 at 3.8 if only the next one
// waited (medians of seven, alternating; fio's io_uring 204 and 3.9). With the worker on the same core
// the extra call costs 2 %. If completions are further apart than soon, the extra call would find none,
// so the first call waits. For example, 16 reads of 1 MiB in flight at a disk complete 390 us apart.
const (
	batchPart = 16
	soon      = 50 * time.Microsecond
)

// wakeUp is the user data of the request that wakes a ring's thread.
const wakeUp = ^uint64(0)

// onRing is the state of an Op in the io_uring engine.
type onRing struct {
	ring  *looper
	whole whole
	going bool // it is in service; a part of it may be complete
	waits bool // it returned EAGAIN: the kernel would have blocked
}

// anew resets op for execution from its beginning.
func (op *Op) anew() {
	op.Err, op.Moved = nil, 0
	op.kernel.whole, op.kernel.waits = whole{}, false
}

// looper is a ring and its thread.
//
// Only the thread uses the ring, so that the kernel need not lock it. The thread makes one system
// call for all requests that have been submitted since the last one: while it runs the Done
// functions, new requests wait in the inbox. Requests that their own Done submits again bypass the
// inbox. Without work the thread sleeps in that call. A submitter then wakes it through an eventfd,
// on which the ring has a read in flight; otherwise a submission costs a lock and no system call.
type looper struct {
	e    *uring
	mode string

	mu       sync.Mutex
	inbox    []*Op
	calls    []func()         // to run on the thread
	ops      [ringEntries]*Op // the kernel has them; only the thread changes the array
	inFlight int              // submitted and not done
	closed   bool
	over     chan struct{} // closed when the thread has ended

	wakeMu sync.Mutex // held while wakeFD is written or closed
	wakeFD int        // an eventfd; -1: it is closed

	sleeps atomic.Bool // the thread waits for completions, or is about to

	// Used by the thread alone.
	q       queue
	alarm   [8]byte       // buffer of the read of wakeFD
	armed   bool          // that read is in flight
	waiting []*Op         // not submitted to the kernel yet
	free    []int         // places in ops
	back    []*Op         // completed, in one reap
	ended   int           // completed and not submitted again
	now     time.Duration // time of the last reap with completions
	lap     time.Duration // time between the last two of them
	turned  time.Duration // when the thread last yielded
	buffers [ring.MaxBuffers][]byte
}

// run is the thread's main function.
func (l *looper) run(open func() (queue, string, error), begun chan<- error) {
	// Never unlocked, so that the thread and its state in the kernel end with the goroutine.
	runtime.LockOSThread()
	var err error
	l.over = make(chan struct{})
	defer close(l.over)
	if l.wakeFD, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err == nil {
		if l.q, l.mode, err = open(); err != nil {
			_ = unix.Close(l.wakeFD) // else each trial on a system without io_uring leaks one
		}
	}
	if err != nil {
		begun <- err
		return
	}
	// A seccomp filter may allow io_uring_setup and refuse io_uring_enter.
	if err = l.q.Enter(0); err != nil {
		begun <- errors.Join(err, l.q.Close(), unix.Close(l.wakeFD))
		return
	}
	for i := range l.ops {
		l.free = append(l.free, i)
	}
	begun <- nil
	for l.round() {
	}
	_ = l.q.Close()
	l.wakeMu.Lock()
	defer l.wakeMu.Unlock()
	_ = unix.Close(l.wakeFD)
	l.wakeFD = -1 // a late wake must not write to another file with this number
}

// round submits the waiting requests and reaps completions. It waits for completions if it has
// nothing else to do.
func (l *looper) round() (more bool) {
	// A thread with long rounds must yield before the round that would pass the limit. Measured with 16
	// requests of 1 MiB in flight at a disk, two cores, rounds of 3.4 ms: 0.037 ns of CPU a byte with a
	// yield after the 8 ms, and 0.024 with a yield before (medians of four).
	if l.now+l.lap-l.turned >= turnOver {
		runtime.Gosched()
		l.turned = l.now
	}
	l.ring()
	l.mu.Lock()
	for len(l.calls) > 0 { // first, because requests in the inbox may depend on them
		calls := l.calls
		l.calls = nil
		l.mu.Unlock()
		for _, call := range calls {
			call()
		}
		l.mu.Lock()
	}
	l.inFlight -= l.ended
	l.ended = 0
	l.waiting = append(l.waiting, l.inbox...)
	clear(l.inbox)
	l.inbox = l.inbox[:0]
	begun, all := l.begin()
	wait := 0
	over := l.closed && l.inFlight == 0
	// After it has submitted several short requests it does not wait, see soon.
	if !over && all && (begun == 0 || l.inFlight == 1 || l.lap > soon) {
		wait = 1
		l.sleeps.Store(true)
	}
	l.mu.Unlock()
	if over {
		return false
	}
	if err := l.q.Enter(wait); err != nil {
		panic(err) // no device causes this error: this program has misused the ring
	}
	l.reap()
	return true
}

// ring submits a read of wakeFD, unless one is in flight. The read completes when wake writes to wakeFD.
func (l *looper) ring() {
	if l.armed {
		return
	}
	if q := l.q.Next(); q != nil {
		l.armed = true
		q.Op, q.FD, q.User = ring.Read, int32(l.wakeFD), wakeUp
		q.Addr, q.Len = address(l.alarm[:]), uint32(len(l.alarm))
	}
}

// begin puts waiting requests into the submission queue, at most one batch. It returns how many, and
// whether these were all that the free entries allow. Callers hold mu.
func (l *looper) begin() (begun int, all bool) {
	if len(l.waiting) == 0 {
		return 0, true
	}
	now := l.e.now()
	most := max(2, l.inFlight/batchPart)
	for all = true; begun < len(l.waiting) && len(l.free) > 0; {
		if begun == most {
			all = false
			break
		}
		q := l.q.Next()
		if q == nil {
			break
		}
		op := l.waiting[begun]
		begun++
		i := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		l.ops[i] = op
		l.fill(q, op)
		q.User = uint64(i)
		if !op.kernel.going { // else it is the rest of a request
			op.kernel.going = true
			op.Begun = now
		}
	}
	n := copy(l.waiting, l.waiting[begun:])
	clear(l.waiting[n:])
	l.waiting = l.waiting[:n]
	return begun, all
}

// fill describes the remaining bytes of op in a queue entry.
func (l *looper) fill(q *ring.Request, op *Op) {
	q.FD = int32(op.FD)
	if op.kernel.whole.out {
		if q.Op, q.OpFlags = ring.SyncFileRange, unix.SYNC_FILE_RANGE_WRITE; op.Kind == Read {
			q.Op, q.OpFlags = ring.Fadvise, unix.FADV_DONTNEED
		}
		q.Off, q.Len = uint64(op.Off), uint32(op.N)
		return
	}
	switch op.Kind {
	case Sync, DataSync:
		if q.Op = ring.Fsync; op.Kind == DataSync {
			q.OpFlags = ring.FsyncData
		}
		return
	case Write:
		q.Op = ring.Write
	default:
		q.Op = ring.Read
	}
	p := op.Buf.B[op.kernel.whole.moved:op.N]
	q.Addr, q.Len, q.Off = address(p), uint32(len(p)), uint64(op.Off+int64(op.kernel.whole.moved))
	if i, ok := l.registered(op.Buf, p); ok {
		q.Op, q.Buffer = q.Op-ring.Read+ring.ReadFixed, uint16(i)
	}
	if op.kernel.waits || l.e.inline { // it would block this thread: a kernel thread executes it
		q.Flags |= ring.FlagAsync
	}
}

// registered returns the index of the registered buffer that contains all of p.
func (l *looper) registered(b tiers.Buffer, p []byte) (i int, ok bool) {
	if b.Slot <= 0 {
		return 0, false
	}
	for i = int(b.Slot) - 1; i < len(l.buffers) && l.buffers[i] != nil; i++ {
		at := address(p) - address(l.buffers[i]) // wraps around if p is before the buffer
		if at < uint64(len(l.buffers[i])) {
			return i, at+uint64(len(p)) <= uint64(len(l.buffers[i]))
		}
	}
	return 0, false
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// reap reaps completions and runs the Done functions of completed requests.
func (l *looper) reap() {
	l.sleeps.Store(false)
	l.back = l.back[:0]
	l.mu.Lock()
	l.q.Reap(l.take)
	l.mu.Unlock()
	if len(l.back) == 0 {
		return
	}
	before := l.now
	l.now = l.e.now()
	l.lap = l.now - before
	for _, op := range l.back {
		op.Ended, op.kernel.going = l.now, false
		l.e.completed(op)
		op.done()
	}
	for i, op := range l.back { // after all calls of Done: one may submit the request of another again
		if op.chained() {
			op.anew()
			l.waiting = append(l.waiting, op)
		} else {
			l.ended++
		}
		l.back[i] = nil
	}
}

// take processes one completion: a request is complete, or its rest is submitted. Callers hold mu.
func (l *looper) take(c ring.Completion) {
	if c.User == wakeUp {
		l.armed = false
		return
	}
	op := l.ops[c.User]
	l.ops[c.User] = nil
	l.free = append(l.free, int(c.User))
	more, err := int(c.Result), error(nil)
	if more < 0 {
		more, err = 0, unix.Errno(-c.Result)
	}
	over := true
	switch {
	case err == unix.EAGAIN && !op.kernel.waits:
		op.kernel.waits, over, err = true, false, nil
	case op.Kind == Read || op.Kind == Write:
		over, err = op.kernel.whole.step(op, more, err)
	default:
		over = err != unix.EINTR
	}
	if !over {
		l.waiting = append(l.waiting, op)
		return
	}
	op.Moved, op.Err = op.kernel.whole.moved, err
	l.back = append(l.back, op)
}

// submit queues a request and wakes the thread, if it sleeps.
func (l *looper) submit(op *Op) {
	if op.chain() {
		return
	}
	l.mu.Lock()
	op.anew()
	l.inFlight++
	l.inbox = append(l.inbox, op)
	l.wake()
}

// wake wakes the thread if it sleeps. Callers hold mu, which wake unlocks.
func (l *looper) wake() {
	l.mu.Unlock()
	if l.sleeps.CompareAndSwap(true, false) {
		l.wakeMu.Lock()
		defer l.wakeMu.Unlock()
		if l.wakeFD >= 0 {
			one := [8]byte{1}
			_, _ = unix.Write(l.wakeFD, one[:]) // cannot fail: the counter is far from its limit
		}
	}
}

// do runs a function on the thread and waits for it. It must not be called inside Done, which runs on
// that thread.
func (l *looper) do(f func() error) error {
	done := make(chan error, 1)
	l.post(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-l.over:
		return tiers.ErrClosed
	}
}

// post runs a function on the thread later.
func (l *looper) post(f func()) {
	l.mu.Lock()
	l.calls = append(l.calls, f)
	l.wake()
}

// stuck appends the requests that the kernel has had for longer than older.
func (l *looper) stuck(dst []Stuck, older time.Duration) []Stuck {
	now := l.e.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range l.ops {
		if op != nil && now-op.Begun > older {
			dst = append(dst, op.stuck(now))
		}
	}
	return dst
}

// close ends the thread. It returns how many requests were still in flight when ctx ended.
func (l *looper) close(ctx context.Context) int {
	l.mu.Lock()
	l.closed = true
	l.wake()
	select {
	case <-l.over:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.inFlight
	}
	return 0
}
