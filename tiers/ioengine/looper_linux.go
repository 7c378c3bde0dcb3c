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

// queue is what a looper needs of a ring; tests have another.
type queue interface {
	Next() *ring.Request
	Enter(wait int) error
	Reap(each func(ring.Completion)) int
	SetBuffer(i int, mem []byte) error
	Close() error
}

// turnOver is how long a ring's thread goes on before it lets the scheduler have a look.
//
// The runtime's monitor takes the processor from whoever has not been scheduled for 10 ms, were it
// by thousands of system calls of which none was long, and then looks every 20 us for more of that:
// a timer and two switches each time, beside requests that take 20 us themselves. Measured on one
// core, 4 KiB in flight one at a time on a loop device over memory, five seconds: 35,000 looks, and
// 900 with a turn of its own accord in time; processor time of each request 18.9 and 11 us. Where a
// round is long the turn has to come before it: 16 requests of 1 MiB in flight at a disk on two
// cores, rounds of 3.4 ms, took 0.037 ns a byte with a turn when these were over, and 0.024 so
// (medians of four).
const turnOver = 8 * time.Millisecond

// batchPart of the requests under way go to the kernel with one call, at least two, which is as
// many as it gives to the device at once rather than when it has seen all of them.
//
// Fewer calls are less processor time, but what waits for the rest of its batch is missing at the
// device. Measured on one core, reads of 4 KiB, 32 in flight at a virtual disk: 58 to 63 thousand
// requests/s at 4.1 to 4.4 us of the processor where all that had come back went in one call, 71 to
// 79 thousand at 4.6 to 6.0 us in twos; with 128 in flight there was no difference.
//
// Nor does the call that gives away the last of them wait: a thread that sleeps is late to wake,
// and the device may be about to answer. Reads of 4 KiB, 8 in flight at a loop device whose worker
// ran on the other core: 178 thousand requests/s at 4.1 us where that call waited, 212 at 3.8 where
// the next one did, if nothing had come back by then (medians of seven in turns; fio's io_uring 204
// and 3.9). With the worker on the same core it costs 2 %. Where answers are further apart than
// soon, a look between them finds none: 16 reads of 1 MiB in flight at a disk, 390 us apart.
const (
	batchPart = 16
	soon      = 50 * time.Microsecond
)

// wakeUp is the user word of the request that ends the wait of a ring's thread.
const wakeUp = ^uint64(0)

// onRing is what an engine of rings keeps in an Op.
type onRing struct {
	ring  *looper
	whole whole
	going bool // it has gone to the device, perhaps in part
	waits bool // it would have had to wait there
	turn  atomic.Uint32
}

// The turns of an Op, apart from the lock, which a chain of requests then does not take.
const (
	elsewhere = iota
	inDone    // the thread is inside its Done, or has just been
	again     // submitted since that began
)

// anew makes op ready to be carried out from its beginning.
func (op *Op) anew() {
	op.Err, op.Moved = nil, 0
	op.kernel.whole, op.kernel.waits = whole{}, false
}

// looper is a ring and its thread.
//
// Nobody else touches the ring, so that the kernel need not lock it, and the thread makes one
// system call for all that has gathered meanwhile: while completions are being served, new requests
// wait in the inbox, and those that a Done submits again do not even pass that. Where there is
// nothing to do the thread sleeps in that call. Who submits then rings a bell, a read that the ring
// has under way; else it costs a lock and no system call.
type looper struct {
	e    *uring
	mode string

	mu       sync.Mutex
	inbox    []*Op
	calls    []func()
	asked    list // at the device, oldest first
	underway int  // submitted and not done
	closed   bool
	over     chan struct{} // closed when the thread has ended

	tower sync.Mutex // held while the bell is rung or taken down
	bell  int        // an eventfd; -1: it is closed

	sleeps atomic.Bool // the thread waits for completions, or is about to

	// The thread's own.
	q       queue
	alarm   [8]byte
	armed   bool
	waiting []*Op // not given to the kernel yet
	ops     [ringEntries]*Op
	free    []int
	back    []*Op         // of one reaping
	ended   int           // of those, not submitted again
	now     time.Duration // of the last reaping that brought some
	lap     time.Duration // from the one before to that
	turned  time.Duration // when the scheduler last had a look
	buffers [ring.MaxBuffers][]byte
}

// run is the life of the thread.
func (l *looper) run(open func() (queue, string, error), begun chan<- error) {
	// Never unlocked: the thread ends with the goroutine, and with it what the kernel ties to it.
	runtime.LockOSThread()
	var err error
	l.asked.init()
	l.over = make(chan struct{})
	defer close(l.over)
	if l.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err == nil {
		if l.q, l.mode, err = open(); err != nil {
			_ = unix.Close(l.bell) // each trial asks again where io_uring is refused
		}
	}
	if err != nil {
		begun <- err
		return
	}
	// A filter may let rings be made, and refuse to have them used.
	if err = l.q.Enter(0); err != nil {
		begun <- errors.Join(err, l.q.Close(), unix.Close(l.bell))
		return
	}
	for i := range l.ops {
		l.free = append(l.free, i)
	}
	begun <- nil
	for l.round() {
	}
	_ = l.q.Close()
	l.tower.Lock()
	defer l.tower.Unlock()
	_ = unix.Close(l.bell)
	l.bell = -1 // whoever is about to ring it must not write into what has its number next
}

// round gives the kernel what there is, and takes what has come back; it waits for that where there
// is nothing else to do.
func (l *looper) round() (more bool) {
	if l.now+l.lap-l.turned >= turnOver {
		runtime.Gosched()
		l.turned = l.now
	}
	l.ring()
	l.mu.Lock()
	for len(l.calls) > 0 { // before the requests that came after them
		calls := l.calls
		l.calls = nil
		l.mu.Unlock()
		for _, call := range calls {
			call()
		}
		l.mu.Lock()
	}
	l.underway -= l.ended
	l.ended = 0
	l.waiting = append(l.waiting, l.inbox...)
	clear(l.inbox)
	l.inbox = l.inbox[:0]
	begun, all := l.begin()
	wait := 0
	over := l.closed && l.underway == 0
	// With several in flight that come back quickly it first looks whether some have, meanwhile.
	if !over && all && (begun == 0 || l.underway == 1 || l.lap > soon) {
		wait = 1
		l.sleeps.Store(true)
	}
	l.mu.Unlock()
	if over {
		return false
	}
	if err := l.q.Enter(wait); err != nil {
		panic(err) // of nothing that a device does: this program has misused the ring
	}
	l.reap()
	return true
}

// ring arms the bell: a read of an eventfd that ends when somebody writes to it.
func (l *looper) ring() {
	if l.armed {
		return
	}
	if q := l.q.Next(); q != nil {
		l.armed = true
		q.Op, q.FD, q.User = ring.Read, int32(l.bell), wakeUp
		q.Addr, q.Len = address(l.alarm[:]), uint32(len(l.alarm))
	}
}

// begin puts requests into the queue as long as there is room, but no more of them than a call
// should take. It returns how many, and whether those are all that can be there now. Callers hold
// mu.
func (l *looper) begin() (begun int, all bool) {
	if len(l.waiting) == 0 {
		return 0, true
	}
	now := l.e.now()
	most := max(2, l.underway/batchPart)
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
		if !op.kernel.going { // else it is the rest of one
			op.kernel.going = true
			op.Begun = now
			l.asked.push(op)
		}
	}
	n := copy(l.waiting, l.waiting[begun:])
	clear(l.waiting[n:])
	l.waiting = l.waiting[:n]
	return begun, all
}

// fill describes what is left of op.
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
	if op.kernel.waits || l.e.inline { // it would have to wait, and a thread of the kernel's may
		q.Flags |= ring.FlagAsync
	}
}

// registered is the number of the registered buffer in which p lies as a whole.
func (l *looper) registered(b tiers.Buffer, p []byte) (i int, ok bool) {
	if b.Slot <= 0 {
		return 0, false
	}
	for i = int(b.Slot) - 1; i < len(l.buffers) && l.buffers[i] != nil; i++ {
		at := address(p) - address(l.buffers[i]) // wraps around for smaller ones
		if at < uint64(len(l.buffers[i])) {
			return i, at+uint64(len(p)) <= uint64(len(l.buffers[i]))
		}
	}
	return 0, false
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// reap takes what has come back and tells those who wait for it.
func (l *looper) reap() {
	l.sleeps.Store(false)
	l.back = l.back[:0]
	l.q.Reap(l.take)
	if len(l.back) == 0 {
		return
	}
	before := l.now
	l.now = l.e.now()
	l.lap = l.now - before
	l.mu.Lock()
	for _, op := range l.back {
		op.Ended, op.kernel.going = l.now, false
		l.asked.remove(op)
	}
	l.mu.Unlock()
	for _, op := range l.back {
		l.e.answered(op)
		op.kernel.turn.Store(inDone)
		op.Done(op)
	}
	for i, op := range l.back {
		if op.kernel.turn.Swap(elsewhere) == again {
			op.anew()
			l.waiting = append(l.waiting, op)
		} else {
			l.ended++
		}
		l.back[i] = nil
	}
}

// take looks at one completion: a request is over, or goes on with its rest.
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
	if op.kernel.turn.CompareAndSwap(inDone, again) {
		return
	}
	l.mu.Lock()
	op.anew()
	l.underway++
	l.inbox = append(l.inbox, op)
	l.wake()
}

// wake ends the thread's wait. Callers hold mu, which is let go of.
func (l *looper) wake() {
	l.mu.Unlock()
	if l.sleeps.CompareAndSwap(true, false) {
		l.tower.Lock()
		defer l.tower.Unlock()
		if l.bell >= 0 {
			one := [8]byte{1}
			_, _ = unix.Write(l.bell, one[:]) // it is ours, and far from full
		}
	}
}

// do lets the thread make a call and waits for it: never inside a Done, which is on that thread.
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

// post lets the thread make a call, some time.
func (l *looper) post(f func()) {
	l.mu.Lock()
	l.calls = append(l.calls, f)
	l.wake()
}

func (l *looper) stuck(dst []Stuck, older time.Duration) []Stuck {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.e.now()
	for op := l.asked.root.next; op != &l.asked.root && now-op.Begun > older; op = op.next {
		dst = append(dst, op.stuck(now))
	}
	return dst
}

// close returns how many requests have not come back when ctx ended.
func (l *looper) close(ctx context.Context) int {
	l.mu.Lock()
	l.closed = true
	l.wake()
	select {
	case <-l.over:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.underway
	}
	return 0
}
