package buffer

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/semaphore"

	"kvbench/tiers"
)

// Use is what decides how many buffers a run needs.
type Use struct {
	Workers    int   // operations at a time
	MaxWriters int   // of these that write, 0 = all
	Depth      int   // chunks in flight per operation
	Chunk      int   // bytes of a buffer
	Exactly    int   // buffers, whatever the others say; 0 = as they say
	Most       int64 // bytes that the machine can spare for them, 0 = nobody knows; see Bound
	// Streamed: the storage takes what is written as a stream, which is made where it is sent from.
	Streamed bool
}

// leastMost is what the buffers of a run may take on any machine, in bytes: 1 GiB in flight keeps a
// device of 100 GB/s busy for 10 ms.
const leastMost = 1 << 30

// Buffers is how many buffers the workers can use at once (every operation holds
// Depth of them, a write one more for the chunk that is being generated), and how
// many they get.
func (u Use) Buffers() (want, got int) {
	if u.Exactly > 0 {
		return u.Exactly, u.Exactly
	}
	writers := u.Workers
	if u.MaxWriters > 0 {
		writers = min(writers, u.MaxWriters)
	}
	want = writers*(u.Depth+1) + (u.Workers-writers)*u.Depth
	if u.Streamed { // only those who read hold any
		want = u.Workers * u.Depth
	}
	most := int(u.Bound()) / u.Chunk
	got = min(want, max(most, 2*(u.Depth+1)))
	return want, got
}

// Bound is how many bytes the buffers may take together where they are not given exactly.
func (u Use) Bound() int64 { return max(u.Most, leastMost) }

// Bytes is what the buffers take.
func (u Use) Bytes() int64 {
	_, got := u.Buffers()
	return int64(got) * int64(u.Chunk)
}

// Pool is a fixed set of equal I/O buffers, cut once from one arena. All memory that entries move
// through is here: a run's peak does not depend on how large entries are or how many wait.
//
// Buffers are given out in the order of asking, all that an operation needs at once: no operation
// holds some while it waits for more, so operations cannot block each other. Safe for concurrent
// use.
type Pool struct {
	size, buffers int
	arena         *Arena
	huge, placed  string

	// promised serves strictly in order: a large request is not overtaken for ever. Whoever has
	// acquired so many finds them free.
	promised *semaphore.Weighted

	unregister func()

	mu     sync.Mutex
	free   []tiers.Buffer // last in, first out: the warmest buffer goes first
	closed bool
}

// NewPool makes buffers of size bytes, a multiple of 4096, and touches them, so that no page is
// missing later. They lie on the NUMA nodes given, as [NewArena] says.
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

// Registrar makes memory known to whoever moves bytes, until it is unregistered.
type Registrar interface {
	Register(arena []byte) (slot int32, err error)
	Unregister(slot int32)
}

// Register makes the pool's memory known to an I/O engine until the pool is closed, which may be
// after the engine is. It comes before the first Get. When it fails the pool is used without.
func (p *Pool) Register(to Registrar) error {
	slot, err := to.Register(p.arena.Bytes())
	if err != nil {
		return fmt.Errorf("register the I/O buffers: %w", err)
	}
	for i := range p.free {
		p.free[i].Slot = slot
	}
	p.unregister = func() { to.Unregister(slot) }
	return nil
}

// Size is the length of each buffer in bytes.
func (p *Pool) Size() int { return p.size }

// Buffers is the number of buffers, free or not.
func (p *Pool) Buffers() int { return p.buffers }

// HugePages says what kind of memory the pool got, measured when it was made.
func (p *Pool) HugePages() string { return p.huge }

// Placed says on which NUMA nodes the pool lies, as [Arena.Placed] does.
func (p *Pool) Placed() string { return p.placed }

// Get waits for n buffers and appends them to dst. It returns the context's error, with dst
// unchanged, when that ends first. Asking for more than there are is an error at once.
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

// Put returns buffers, whole or cut short at the end. It panics on memory that is not a buffer of
// this pool or on more buffers than were given out: going on would let two operations share one.
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
		at := address(b.B) - lo // wraps around for smaller addresses, so one comparison does
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

// Close frees the memory. It is an error, and does nothing, while buffers are out. Closing twice is
// harmless.
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

// poison makes the use of a returned buffer show up as wrong data.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}
