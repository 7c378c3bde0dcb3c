package ioengine

import (
	"context"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
)

// Engine moves bytes. Submit does not wait for the device: a device that never answers costs its
// buffers and a line in the result, never the process.
type Engine interface {
	// Register makes an arena known to the kernel where that saves work per request. The slot goes
	// into tiers.Buffer; 0 means that this engine has no use for it.
	Register(arena []byte) (slot int32, err error)
	// Unregister takes it back. No request may be under way with it.
	Unregister(slot int32)
	// Submit begins requests. Done may be called before it returns.
	Submit(ops ...*Op)
	// Call makes another call of the kernel's that the device may not answer (what: create, remove,
	// ...; where: the path), on the caller's goroutine, which waits. It returns what f does.
	Call(what, where string, f func() error) error
	// Stuck appends the requests and calls that the device has had for longer than that, in no
	// order.
	Stuck(dst []Stuck, older time.Duration) []Stuck
	// Stalls tells of all that took StallAfter and more, those included that are not answered.
	Stalls() Stalls
	// Close waits for the requests under way, at most until ctx ends. Nothing may be submitted any
	// more.
	Close(ctx context.Context) error
}

// Kind is what an Op asks for.
type Kind uint8

// The kinds. Sync makes a file durable, DataSync its bytes and what is needed to find them.
const (
	Read Kind = iota
	Write
	Sync
	DataSync
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"read", "write", "sync", "datasync"}[k]
}

// Op is one request. It may be submitted again when it is done, and within Done, which costs least;
// its fields are set one by one then, since an engine may still be at its own ones.
type Op struct {
	Kind Kind
	FD   int
	Buf  tiers.Buffer // N bytes of it are moved
	Off  int64
	N    int
	// For engines of a call per request alone (psync): Vec, if not nil, is the memory in pieces, N
	// bytes in all: then Buf is not looked at, and the call is preadv or pwritev.
	Vec [][]byte
	// AtPosition: read and write at the descriptor's own position, which Off has to name. Nobody
	// else may use the descriptor meanwhile.
	AtPosition bool
	// Leaves: what goes through the page cache is not to stay there. What was written is to go to
	// the device from now on: nobody waits for that, nor is told of what fails, as a Sync is. What
	// was read is dropped.
	Leaves bool
	Done   func(*Op) // once, on a goroutine of the engine; it must not block

	// Err is nil when all N bytes were moved, else Moved of them were.
	Err   error
	Moved int
	// Begun and Ended are when the request went to the device and came back, by the clock of the
	// engine.
	Begun, Ended time.Duration

	// The engine's, under its lock.
	next, prev *Op
	own        bool // a worker is inside Done
	again      bool // submitted by its own Done
	kernel     onRing
}

// whole is how far a request has come that the kernel carries out in parts: signals interrupt it,
// and transfers are short.
type whole struct {
	moved int
	back  bool // gone back to the beginning of a block, see step
	out   bool // all is moved; the kernel is told that it is to leave the page cache
}

// blockSize is a multiple of what direct I/O has to begin at.
const blockSize = 4096

// step takes what a call for the rest of op has returned, and says whether the request is over.
func (w *whole) step(op *Op, more int, err error) (over bool, _ error) {
	end := io.ErrUnexpectedEOF
	if op.Kind == Write {
		end = io.ErrShortWrite
	}
	switch {
	case err == unix.EINTR:
		return false, nil
	case w.out: // there are filesystems that cannot
		return true, nil
	case op.N == 0:
		return true, err
	case op.Kind == Write && w.moved > 0 && err == unix.EINVAL && !w.back:
		// A direct write says EINVAL when it is to go on from an odd place, where a full disk or a
		// quota has made it stop. From the beginning of that block it tells so.
		w.back, w.moved = true, w.moved&^(blockSize-1)
		return false, nil
	case more == 0 && err == nil, op.Kind == Read && w.moved > 0 && err == unix.EINVAL:
		// The file ends here. A direct read says EINVAL when it is to go on from an odd place.
		return true, end
	case err != nil:
		return true, err
	}
	w.moved += more
	over = w.moved >= op.N
	w.out = over && op.Leaves
	return over && !w.out, nil
}

// Await submits an operation and waits for it, or, when ctx has ended, for no longer than a device
// may take that answers at all: tiers.Grace. Then it returns ctx's cause, and the kernel still has
// the operation and its buffer. Over is called when it is back, perhaps long after.
func Await(ctx context.Context, submit func(*Op), op *Op, over func()) error {
	done := make(chan error, 1)
	op.Done = func(op *Op) {
		over()
		done <- op.Err
	}
	submit(op)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	grace := time.NewTimer(tiers.Grace)
	defer grace.Stop()
	select {
	case err := <-done:
		return err
	case <-grace.C:
		return context.Cause(ctx)
	}
}
