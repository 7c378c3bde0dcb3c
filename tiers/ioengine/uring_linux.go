package ioengine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"kvbench/tiers/ioengine/ring"
)

// uring gives requests to rings of the kernel, each with a thread of its own that submits many at a
// time and reaps what has come back in the same system call. Done runs on these threads.
type uring struct {
	ledger
	mode  string
	rings []*looper
	turn  atomic.Uint32 // whose is the next request that has no ring yet
	// inline: the files' filesystem answers inside the call, see Use.
	inline bool

	slots struct {
		sync.Mutex
		parts [ring.MaxBuffers]int // of an arena, from this one on; 0: it is free
	}
}

// How many requests a ring has at a time; others wait in the process. The queue of completions has
// room for all of them, so that it never overflows.
const ringEntries = 256

// NewURing returns an engine of rings threads, each with an io_uring, and how it works. Now is the
// clock of the times in an Op; inline is as in Use. The error matches errors.ErrUnsupported, and
// says why, where the system has none.
func NewURing(now func() time.Duration, rings int, inline bool) (_ Engine, about string,
	err error) {
	e, err := newURing(now, rings, func() (queue, string, error) {
		r, err := ring.New(ringEntries, 2)
		if err != nil {
			text, _ := os.ReadFile(disabled) // older kernels have no such setting
			return nil, "", refusal(err, strings.TrimSpace(string(text)))
		}
		return r, r.Mode(), nil
	})
	if err != nil {
		return nil, "", err
	}
	e.inline = inline
	return e, fmt.Sprintf("io_uring, %d rings of %d, %s", rings, ringEntries, e.mode), nil
}

const disabled = "/proc/sys/kernel/io_uring_disabled"

// refusal says who refuses an io_uring, given the setting of the kernel.
func refusal(err error, setting string) error {
	switch {
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("this kernel has no io_uring, or a seccomp filter hides it: %w", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("this kernel's io_uring lacks what is needed (5.18 and later have it): "+
			"%w", err)
	case errors.Is(err, unix.EPERM) && (setting == "1" || setting == "2"):
		return fmt.Errorf("%s is %s: %w", disabled, setting, err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("a seccomp filter, as Docker's, or a security module refuses it: %w", err)
	}
	return err
}

func newURing(now func() time.Duration, rings int, open func() (queue, string, error)) (*uring,
	error) {
	e := &uring{ledger: ledger{now: now}}
	for range rings {
		l := &looper{e: e}
		begun := make(chan error, 1)
		go l.run(open, begun)
		if err := <-begun; err != nil {
			return nil, errors.Join(err, e.Close(context.Background()))
		}
		e.mode = l.mode
		e.rings = append(e.rings, l)
	}
	return e, nil
}

// Submit implements Engine. A request stays with the ring that had it first.
func (e *uring) Submit(ops ...*Op) {
	for _, op := range ops {
		if op.kernel.ring == nil {
			op.kernel.ring = e.rings[int(e.turn.Add(1))%len(e.rings)]
		}
		op.kernel.ring.submit(op)
	}
}

// Register implements Engine: slot n is ring buffers from n-1 on.
func (e *uring) Register(arena []byte) (slot int32, err error) {
	parts := slices.Collect(slices.Chunk(arena, ring.MaxBuffer))
	first, some := e.reserve(len(parts))
	if !some {
		return 0, nil // there are as many as may be: it goes without
	}
	for i, part := range parts {
		if err := e.setBuffer(first+i, part); err != nil {
			e.release(first, len(parts))
			return 0, err
		}
	}
	return int32(first + 1), nil
}

// reserve takes so many neighbouring buffers of all rings.
func (e *uring) reserve(parts int) (first int, some bool) {
	e.slots.Lock()
	defer e.slots.Unlock()
	free := 0
	for i := range e.slots.parts {
		if free++; e.slots.parts[i] != 0 {
			first, free = i+1, 0
		}
		if free == parts {
			for j := range parts {
				e.slots.parts[first+j] = parts - j
			}
			return first, true
		}
	}
	return 0, false
}

// setBuffer gives a buffer to all rings.
func (e *uring) setBuffer(i int, mem []byte) error {
	for _, l := range e.rings {
		if err := l.do(func() error {
			err := l.q.SetBuffer(i, mem)
			if err == nil {
				l.buffers[i] = mem
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Unregister implements Engine.
func (e *uring) Unregister(slot int32) {
	if first := int(slot) - 1; first >= 0 {
		e.slots.Lock()
		parts := e.slots.parts[first]
		e.slots.Unlock()
		e.release(first, parts)
	}
}

// release takes buffers from all rings. It does not wait for that: who unregisters may be inside
// the Done of a device's late answer, on the very thread that would have to do it. The kernel keeps
// the pages until then, whatever becomes of the memory.
func (e *uring) release(first, parts int) {
	var left atomic.Int64
	left.Store(int64(len(e.rings)))
	for _, l := range e.rings {
		l.post(func() {
			for i := first; i < first+parts; i++ {
				_ = l.q.SetBuffer(i, nil) // the memory stays pinned until the ring goes
				l.buffers[i] = nil
			}
			if left.Add(-1) == 0 {
				e.slots.Lock()
				defer e.slots.Unlock()
				clear(e.slots.parts[first : first+parts])
			}
		})
	}
}

// Stuck implements Engine.
func (e *uring) Stuck(dst []Stuck, older time.Duration) []Stuck {
	dst = e.stuck(dst, older)
	for _, l := range e.rings {
		dst = l.stuck(dst, older)
	}
	return dst
}

// Stalls implements Engine.
func (e *uring) Stalls() Stalls { return e.stalls(e.Stuck(nil, StallAfter)) }

// Close implements Engine. A ring with requests that do not come back stays, with its thread.
func (e *uring) Close(ctx context.Context) error {
	left := 0
	for _, l := range e.rings {
		left += l.close(ctx)
	}
	if left > 0 {
		return fmt.Errorf("close the I/O engine: the device still has %d requests: %w", left,
			context.Cause(ctx))
	}
	return nil
}
