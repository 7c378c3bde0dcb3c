package ioengine

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// Engine moves bytes. Submit does not wait for the device: a device that hangs keeps buffers and gets
// a line in the result, but does not block the process.
type Engine interface {
	// Register registers an arena with the kernel if that saves work per request. The slot goes into
	// tiers.Buffer; 0 means that this engine registers nothing.
	Register(arena []byte) (slot int32, err error)
	// Unregister releases a slot. No request in flight may use it.
	Unregister(slot int32)
	// Submit begins a request. Done may be called before it returns.
	Submit(op *Op)
	// Call makes another system call that may hang in the device, on the caller's goroutine. What
	// names the call (create, remove, ...), where is the path. It returns the error of f.
	Call(what, where string, f func() error) error
	// Stuck appends, unordered, the requests and calls that have been in service for longer than
	// older.
	Stuck(dst []Stuck, older time.Duration) []Stuck
	// Stalls returns all requests and calls that took StallAfter or longer, including those in
	// flight.
	Stalls() Stalls
	// Close waits for the requests in flight, at most until ctx ends. After it no request may be
	// submitted.
	Close(ctx context.Context) error
}

// Kind is the operation of an Op.
type Kind uint8

// The kinds. Sync is fsync, DataSync fdatasync.
const (
	Read Kind = iota
	Write
	Sync
	DataSync
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"read", "write", "sync", "datasync"}[k]
}

// Op is one request. It may be submitted again after Done, and inside Done, which is cheapest. Set its
// fields one by one then: the engine may still use the unexported ones.
type Op struct {
	Kind Kind
	FD   int
	Buf  tiers.Buffer // its first N bytes are moved
	Off  int64
	N    int
	// Vec, only with psync: if not nil, the memory in pieces, N bytes in all. The call is preadv or
	// pwritev then, and Buf is ignored.
	Vec [][]byte
	// AtPosition: read and write at the descriptor's own position, which must be Off. No other
	// request may use the descriptor until Done.
	AtPosition bool
	// Leaves: buffered I/O must not stay in the page cache. After a write the kernel begins the
	// write-back, without waiting for it and, unlike Sync, without reporting its errors. After a
	// read the pages are dropped.
	Leaves bool
	// Lane: requests with the same lane, from 1 on, use the same ring. 0: the engine chooses a ring.
	Lane int
	Done func(*Op) // called once, on a goroutine of the engine; it must not block

	// Err is nil if all N bytes were moved; otherwise Moved bytes were moved.
	Err   error
	Moved int
	// Begun and Ended are the start and end of service at the device, on the engine's clock.
	Begun, Ended time.Duration

	// The engine's own fields.
	turn   atomic.Uint32
	kernel onRing
}

// The states of Op.turn, which is atomic so that a chain of requests takes no lock.
const (
	elsewhere = iota
	inDone    // the engine is in the Op's Done, or has just returned from it
	again     // submitted since Done began, until the next Done
)

// done calls Done. The caller then calls chained.
func (op *Op) done() {
	op.turn.Store(inDone)
	op.Done(op)
}

// chained reports whether the Op has been submitted again since done. The caller then continues with it.
func (op *Op) chained() bool { return op.turn.Load() == again || op.turn.Swap(elsewhere) == again }

// chain reports, for Submit, whether the caller of done continues with the Op.
func (op *Op) chain() bool { return op.turn.CompareAndSwap(inDone, again) }

// turnOver is how long a thread executes requests before it yields to the scheduler.
//
// The runtime's monitor preempts a goroutine that runs for 10 ms without a yield, even if it has made
// thousands of short system calls. After a preemption the monitor polls every 20 us. Each poll costs a
// timer and two context switches, as often as requests that take 20 us themselves. Measured on one
// core, 4 KiB, one in flight on a loop device in memory, five seconds: 35,000 polls without yields and
// 900 with them; CPU per request 18.9 and 11 us. With psync on tmpfs, 4 KiB, one worker, two seconds: 5,800
// and 2,300 context switches of the whole process.
const turnOver = 8 * time.Millisecond

// whole is the progress of a request that takes several calls because of signals or short transfers.
type whole struct {
	moved int
	back  bool // gone back to the beginning of a block, see step
	out   bool // all bytes are moved; the next call takes them out of the page cache
}

// blockSize is a multiple of the alignment of direct I/O.
const blockSize = 4096

// step processes the result of a call for the rest of op. It reports whether the request is complete.
func (w *whole) step(op *Op, more int, err error) (over bool, _ error) {
	end := io.ErrUnexpectedEOF
	if op.Kind == Write {
		end = io.ErrShortWrite
	}
	switch {
	case err == unix.EINTR:
		return false, nil
	case w.out: // ignore the error: some filesystems do not support it
		return true, nil
	case op.N == 0:
		return true, err
	case op.Kind == Write && w.moved > 0 && err == unix.EINVAL && !w.back:
		// A full disk or a quota has stopped a direct write at an unaligned offset, from where it
		// fails with EINVAL. From the beginning of that block it fails with the real reason.
		w.back, w.moved = true, w.moved&^(blockSize-1)
		return false, nil
	case more == 0 && err == nil, op.Kind == Read && w.moved > 0 && err == unix.EINVAL:
		// The file ends here. A direct read from an unaligned offset fails with EINVAL.
		return true, end
	case err != nil:
		return true, err
	}
	w.moved += more
	over = w.moved >= op.N
	w.out = over && op.Leaves
	return over && !w.out, nil
}
