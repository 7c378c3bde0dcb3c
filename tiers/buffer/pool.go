package buffer

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"kvbench/tiers"
)

// Use determines how many buffers a run needs.
type Use struct {
	Workers    int   // operations at a time
	MaxWriters int   // of these that write, 0 = all
	Depth      int   // chunks in flight per operation
	Chunk      int   // bytes of a buffer
	Exactly    int   // number of buffers, overrides the other fields; 0 = not set
	Most       int64 // bytes that the machine can spare for them, 0 = unknown; see Bound
	// Streamed: the storage takes what is written as a stream, which is made where it is sent from.
	Streamed bool
}

// leastMost is how many bytes the buffers of a run may take on any machine: 1 GiB in flight keeps a
// device of 100 GB/s busy for 10 ms.
const leastMost = 1 << 30

// Buffers returns how many buffers the workers can use at once, and how many they get. Every operation
// holds Depth buffers; a write holds one more for the chunk that is being generated.
func (u Use) Buffers() (want, got int) {
	if u.Exactly > 0 {
		return u.Exactly, u.Exactly
	}
	writers := u.Workers
	if u.MaxWriters > 0 {
		writers = min(writers, u.MaxWriters)
	}
	want = writers*(u.Depth+1) + (u.Workers-writers)*u.Depth
	if u.Streamed { // only reads hold buffers
		want = u.Workers * u.Depth
	}
	most := int(u.Bound()) / u.Chunk
	got = min(want, max(most, 2*(u.Depth+1)))
	return want, got
}

// Bound returns how many bytes the buffers may take together, if Exactly is 0.
func (u Use) Bound() int64 { return max(u.Most, leastMost) }

// Bytes returns how many bytes the buffers take.
func (u Use) Bytes() int64 {
	_, got := u.Buffers()
	return int64(got) * int64(u.Chunk)
}

// Pool is a fixed set of I/O buffers of equal size, cut once from one arena. All entries move through
// these buffers: a run's peak memory does not depend on the size of entries or the number of waits.
//
// Get gives out buffers in FIFO order, all buffers of an operation at once: no operation holds some
// while it waits for more, so operations cannot deadlock. Safe for concurrent use.
type Pool struct {
	size, buffers int
	arena         *Arena
	huge, placed  string

	// promised admits callers strictly in FIFO order, so that a large request is not overtaken for
	// ever. A caller that has acquired n finds n free buffers.
	promised *semaphore.Weighted

	unregister func()

	mu     sync.Mutex
	free   []tiers.Buffer // LIFO: the buffer that is most likely in the CPU cache first
	closed bool
}

// NewPool makes buffers of size bytes, a multiple of 4096, and touches them, so that no page faults
// later. They lie on the NUMA nodes given, see [NewArena].
func NewPool(buffers, size int, nodes ...int) (*Pool, error) {
	if buffers < 1 || size < PageSize || size%PageSize != 0 {
		return nil, fmt.Errorf("make a pool of %d buffers of %d bytes: there must be at least "+
			"one, and the size a multiple of %d", buffers, size, PageSize)
	}
	arena, err := NewArena(int64(buffers)*int64(size), nodes...)
	if err != nil {
		return nil, fmt.Errorf("make a pool of %d buffers of %d bytes: %w", buffers, size, err)
	}
	Touch(arena.Bytes())
	p := &Pool{size: size, buffers: buffers, arena: arena, huge: arena.HugePages(),
		placed: arena.Placed(), unregister: func() {},
		promised: semaphore.NewWeighted(int64(buffers)), free: make([]tiers.Buffer, 0, buffers)}
	mem := arena.Bytes()
	for i := buffers - 1; i >= 0; i-- {
		p.free = append(p.free, tiers.Buffer{B: mem[i*size : (i+1)*size : (i+1)*size]})
	}
	return p, nil
}

// Registrar registers memory with an I/O engine, see ioengine.Engine.
type Registrar interface {
	Register(arena []byte) (slot int32, err error)
	Unregister(slot int32)
}

// Register registers the pool's memory with an I/O engine, or with a card (slot 0), until the pool is
// closed, which may be after the engine is. Call it before the first Get. After an error the pool works
// unregistered.
func (p *Pool) Register(to Registrar) error {
	slot, err := to.Register(p.arena.Bytes())
	if err != nil {
		return fmt.Errorf("register the I/O buffers: %w", err)
	}
	for i := range p.free {
		p.free[i].Slot = cmp.Or(slot, p.free[i].Slot)
	}
	before := p.unregister
	p.unregister = func() { before(); to.Unregister(slot) }
	return nil
}

// Buffers returns the number of buffers, free or not.
func (p *Pool) Buffers() int { return p.buffers }

// HugePages describes the pool's pages at its creation, as [Arena.HugePages] does.
func (p *Pool) HugePages() string { return p.huge }

// Placed describes the NUMA nodes of the pool, as [Arena.Placed] does.
func (p *Pool) Placed() string { return p.placed }

// Get waits for n buffers and appends them to dst. If the context ends first it returns the context's
// error, and dst unchanged. If the pool has fewer than n buffers it fails at once.
func (p *Pool) Get(ctx context.Context, n int, dst []tiers.Buffer) ([]tiers.Buffer, error) {
	if n > p.buffers {
		return dst, fmt.Errorf("get %d buffers: the pool has only %d", n, p.buffers)
	}
	if !p.promised.TryAcquire(int64(n)) && p.promised.Acquire(ctx, int64(n)) != nil {
		return dst, context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.promised.Release(int64(n))
		return dst, fmt.Errorf("get %d buffers: the pool is %w", n, tiers.ErrClosed)
	}
	for range n {
		last := len(p.free) - 1
		dst = append(dst, p.free[last])
		p.free = p.free[:last]
	}
	return dst, nil
}

// Put returns buffers, whole or shortened at the end. It panics if memory is not a buffer of this pool,
// or if more buffers return than were given out: two operations would share a buffer otherwise.
func (p *Pool) Put(bufs ...tiers.Buffer) {
	if RaceEnabled {
		for _, b := range bufs {
			poison(b.B[:cap(b.B)])
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	lo := address(p.arena.mem)
	for _, b := range bufs {
		at := address(b.B) - lo // wraps around for smaller addresses, so one comparison is enough
		if cap(b.B) != p.size || at >= uintptr(len(p.arena.mem)) || at%uintptr(p.size) != 0 {
			panic("buffer: Pool.Put of memory that is not a buffer of this pool")
		}
		if len(p.free) == p.buffers {
			panic("buffer: Pool.Put of more buffers than were given out")
		}
		b.B = b.B[:p.size]
		p.free = append(p.free, b)
	}
	p.promised.Release(int64(len(bufs)))
}

// Close frees the memory. While buffers are in use it returns an error and does nothing. Closing twice
// is harmless.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if out := p.buffers - len(p.free); out > 0 {
		return fmt.Errorf("close the pool: %d of %d buffers are still in use", out, p.buffers)
	}
	p.closed, p.free = true, nil
	p.unregister()
	if err := p.arena.Close(); err != nil {
		return fmt.Errorf("close the pool: %w", err)
	}
	return nil
}

// poison makes the use of a returned buffer show up as wrong data. It copies: the race detector takes
// each copy as one write, and a loop byte by byte.
func poison(b []byte) {
	b[0] = 0xDB // no buffer is empty
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
