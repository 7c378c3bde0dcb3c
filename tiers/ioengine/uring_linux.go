package ioengine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/tiers/ioengine/ring"
)

// uring submits requests to io_uring rings. Each ring has its own thread, which submits many requests
// and reaps completions in one system call. Done runs on these threads.
type uring struct {
	ledger
	mode  string
	rings []*looper
	turn  atomic.Uint32 // counter that assigns rings to new Ops
	// inline: the filesystem blocks the submitting thread, see Use.
	inline bool

	slots struct {
		sync.Mutex
		parts [ring.MaxBuffers]int // buffers of the arena from this one on; 0: free
	}
}

// ringEntries limits the requests that a ring has in flight; others wait in the process. The
// completion queue has capacity for all of them, so that it never overflows.
const ringEntries = 256

// NewURing returns an engine of rings threads with an io_uring each, and a description of it. Now is
// the clock of the times in an Op; inline is as in Use. If the system has no io_uring, the error
// matches errors.ErrUnsupported and names the reason.
func NewURing(now func() time.Duration, rings int, inline bool) (_ Engine, about string,
	err error) {
	e, err := newURing(now, rings, func() (queue, string, error) {
		r, err := ring.New(ringEntries)
		if err != nil {
			return nil, "", err
		}
		return r, r.Mode, nil
	})
	if err != nil {
		return nil, "", err
	}
	e.inline = inline
	return e, fmt.Sprintf("io_uring, %d rings of %d, %s", rings, ringEntries, e.mode), nil
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

// Submit implements Engine. An Op stays on its first ring.
func (e *uring) Submit(op *Op) {
	if op.kernel.ring == nil {
		lane := op.Lane - 1
		if lane < 0 {
			lane = int(e.turn.Add(1))
		}
		op.kernel.ring = e.rings[lane%len(e.rings)]
	}
	op.kernel.ring.submit(op)
}

// Register implements Engine. Slot n is the rings' buffers from n-1 on.
func (e *uring) Register(arena []byte) (slot int32, err error) {
	parts := slices.Collect(slices.Chunk(arena, ring.MaxBuffer))
	first, some := e.reserve(len(parts))
	if !some {
		return 0, nil // all buffers are taken: the arena stays unregistered
	}
	for i, part := range parts {
		if err := e.setBuffer(first+i, part); err != nil {
			e.release(first)
			return 0, err
		}
	}
	return int32(first + 1), nil
}

// reserve reserves that many adjacent buffers in all rings.
func (e *uring) reserve(parts int) (first int, some bool) {
	e.slots.Lock()
	defer e.slots.Unlock()
	for ; first+parts <= len(e.slots.parts); first++ {
		free := e.slots.parts[first : first+parts]
		if slices.Max(free) == 0 {
			for i := range free {
				free[i] = parts - i
			}
			return first, true
		}
	}
	return 0, false
}

// setBuffer registers a buffer with all rings.
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
		e.release(first)
	}
}

// release unregisters the buffers of an arena from all rings, without waiting: its caller may run in a
// Done on the very thread that has to unregister. The kernel keeps the pages until then, also if the
// memory is unmapped. The buffers are free at once: each ring makes its calls in order, so that another
// arena is registered after this one has left.
func (e *uring) release(first int) {
	e.slots.Lock()
	defer e.slots.Unlock()
	buffers := e.slots.parts[first : first+e.slots.parts[first]]
	for _, l := range e.rings {
		l.post(func() {
			for i := range buffers {
				_ = l.q.SetBuffer(first+i, nil) // after an error the ring keeps the memory pinned
				l.buffers[first+i] = nil
			}
		})
	}
	clear(buffers)
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

// Close implements Engine. A ring with requests that hang is not closed, and its thread stays.
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
