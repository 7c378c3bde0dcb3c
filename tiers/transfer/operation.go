package transfer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
)

// operation is one Write, Read or Move under way. Its lanes each hold one buffer and take the next chunk until
// none is left; the first lane is the caller's own goroutine, so an operation of one lane starts none.
type operation struct {
	t    *Transfer
	ctx  context.Context
	o    tiers.Object
	bufs [][]byte

	failed atomic.Bool
	mu     sync.Mutex
	err    error // the first failure

	next atomic.Int64 // offset of the next chunk, where chunks need no order
}

// begin checks the settings and waits for the buffers of an operation with at most lanes lanes.
func (t *Transfer) begin(ctx context.Context, o tiers.Object, lanes, align int) (*operation, time.Duration, error) {
	if err := t.validate(o, align); err != nil {
		return nil, 0, err
	}
	chunks := (o.Size + int64(t.Chunk) - 1) / int64(t.Chunk)
	lanes = int(min(int64(lanes), chunks, int64(t.Pool.Buffers())))
	op := &operation{t: t, ctx: ctx, o: o}
	from := t.Now()
	bufs, err := t.Pool.Get(ctx, lanes, nil)
	waited := t.Now() - from
	if err != nil {
		return nil, waited, fmt.Errorf("wait for the buffers of entry %s: %w", o.Key, err)
	}
	op.bufs = bufs
	return op, waited, nil
}

func (t *Transfer) validate(o tiers.Object, align int) error {
	switch {
	case t.Now == nil || t.Pool == nil || t.Content == nil:
		return errors.New("a Transfer needs Pool, Content and Now")
	case t.Depth < 1:
		return fmt.Errorf("a Transfer's Depth (%d) must be at least 1", t.Depth)
	case t.Chunk < 1 || t.Chunk%buffer.PageSize != 0 || t.Chunk%align != 0:
		return fmt.Errorf("a Transfer's Chunk (%d bytes) must be a multiple of %d", t.Chunk, max(align, buffer.PageSize))
	case t.Chunk > t.Pool.Size():
		return fmt.Errorf("a Transfer's Chunk (%d bytes) must fit the pool's buffers (%d bytes)", t.Chunk, t.Pool.Size())
	case o.Size < 1:
		return fmt.Errorf("entry %s has %d bytes: it must have at least one", o.Key, o.Size)
	}
	return nil
}

// run calls lane once per buffer, in parallel, and returns the first failure after all have ended.
func (op *operation) run(lane func(buf []byte)) error {
	var all sync.WaitGroup
	for _, buf := range op.bufs[1:] {
		all.Go(func() { op.guard(lane, buf) })
	}
	op.guard(lane, op.bufs[0])
	all.Wait()
	return op.err
}

// guard turns a panic into the operation's failure: the other lanes end and nothing is left behind.
func (op *operation) guard(lane func(buf []byte), buf []byte) {
	defer func() {
		if v := recover(); v != nil {
			op.fail(&tiers.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	lane(buf)
}

func (op *operation) fail(err error) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.err == nil {
		op.err = err
		op.failed.Store(true)
	}
}

// stopped tells a lane, between chunks, that another one failed or that the context has ended.
func (op *operation) stopped() bool {
	if op.failed.Load() {
		return true
	}
	if op.ctx.Err() == nil {
		return false
	}
	op.fail(tiers.Canceled(op.ctx, op.o))
	return true
}

// release returns the buffers.
func (op *operation) release() { op.t.Pool.Put(op.bufs...) }

// chunk returns the part of buf for the chunk at off: its length is the chunk's, its capacity the buffer's.
func (op *operation) chunk(buf []byte, off int64) []byte {
	return buf[:min(int64(op.t.Chunk), op.o.Size-off)]
}

// gate lets a number of lanes through at a time, in the order of coming. A nil gate is always open.
type gate chan struct{}

// newGate returns the gate that lanes need to keep at most depth of them inside.
func newGate(lanes, depth int) gate {
	if lanes <= depth {
		return nil
	}
	return make(gate, depth)
}

func (g gate) enter() {
	if g != nil {
		g <- struct{}{}
	}
}

func (g gate) leave() {
	if g != nil {
		<-g
	}
}

// meter measures the time in which at least one call is inside the tier.
type meter struct {
	now   func() time.Duration
	mu    sync.Mutex
	calls int
	since time.Duration
	busy  time.Duration
}

func (m *meter) begin() {
	m.mu.Lock()
	if m.calls == 0 {
		m.since = m.now()
	}
	m.calls++
	m.mu.Unlock()
}

func (m *meter) end() {
	m.mu.Lock()
	m.calls--
	if m.calls == 0 {
		m.busy += m.now() - m.since
	}
	m.mu.Unlock()
}

// in measures one call; a panic inside still ends it.
func (m *meter) in(call func() error) error {
	m.begin()
	defer m.end()
	return call()
}
