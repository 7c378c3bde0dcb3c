package memtier

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
)

// blockSize is the cpu tier's allocation unit. Copying a chunk in such blocks costs no more than copying
// it at once. The unused end of an entry's last block does not matter for engines' objects of 100 KiB and
// more.
const blockSize = 16 << 10

// Tier stores entries in memory outside the Go heap: real bytes, copied in and out. The Cache enforces the
// exact capacity; the tier holds any mix of entries of that many bytes. It takes memory from the system
// up to its highest use (see Prefault), plus less than a block per entry.
type Tier struct {
	capacity int64
	nodes    []int

	mu      sync.Mutex
	entries map[tiers.ID]*entry
	arenas  []*buffer.Arena
	fresh   []byte   // the part of the last arena that was never used
	free    [][]byte // released blocks, LIFO: the last one is likely in the CPU cache
	held    int64    // bytes of entries, being written or committed
	used    int64    // bytes of their blocks
	closed  bool
}

var _ tiers.Files = (*Tier)(nil)

// New reserves address space for capacity bytes. Memory comes with use, from the NUMA nodes given, see
// [buffer.NewArena].
func New(capacity int64, nodes ...int) (*Tier, error) {
	t := &Tier{capacity: capacity, nodes: nodes, entries: make(map[tiers.ID]*entry)}
	// An eighth more than the capacity, for unused ends of blocks; grow adds arenas if that is too little.
	if err := t.grow(capacity + capacity/8); err != nil {
		return nil, fmt.Errorf("make a cpu tier of %d bytes (-cpu-mem-gb): %w", capacity, err)
	}
	return t, nil
}

// Prefault takes the memory of the whole capacity from the system now. Without it the kernel clears every
// page at its first use, inside the measured window. Call it before the first entry.
func (t *Tier) Prefault() {
	mem := t.arenas[0].Bytes()
	buffer.Touch(mem[:min(int64(len(mem)), t.capacity)])
}

// Traits returns the tier's traits: any alignment; bytes count when they are copied.
func (t *Tier) Traits() tiers.Traits {
	return tiers.Traits{Align: 1, Holds: true, Description: "memory outside the Go heap"}
}

// Footprint returns the bytes of the entries, and the unused bytes of their last blocks.
func (t *Tier) Footprint() (held, waste int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.used - t.held
}

// entry is one entry's blocks. They return to the tier after the last user. Users are the tier while the
// entry can be opened, handles, and requests in flight.
type entry struct {
	o      tiers.Object
	blocks [][]byte // fixed from Create on: copying needs no lock
	uses   int      // guarded by Tier.mu
}

// Create takes the memory for the whole entry, so that a write that has begun does not run out of memory.
func (t *Tier) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	o := objs[0]
	n := blocks(o.Size)
	e := &entry{o: o, blocks: make([][]byte, 0, n), uses: 1}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable(o); err != nil {
		return nil, t.error("create", o, -1, err)
	}
	for range n {
		b, err := t.block(o.Size)
		if err != nil {
			t.free = append(t.free, e.blocks...)
			return nil, t.error("create", o, -1, err)
		}
		e.blocks = append(e.blocks, b)
	}
	t.take(e, +1)
	return &handle{tier: t, e: e, op: tiers.Write}, nil
}

// blocks returns the number of blocks of an entry.
func blocks(size int64) int { return int((size + blockSize - 1) / blockSize) }

// usable returns an error if an object cannot be written. Create and Commit both check it, because two
// writers may write the same object.
func (t *Tier) usable(o tiers.Object) error {
	switch {
	case t.closed:
		return tiers.ErrClosed
	case t.entries[o.ID()] != nil:
		return tiers.ErrExists
	}
	return nil
}

// block takes the block that was released last, which may still be in the CPU cache, or else an unused
// one, for which the tier may grow.
func (t *Tier) block(size int64) (b []byte, err error) {
	if n := len(t.free); n > 0 {
		b, t.free = t.free[n-1], t.free[:n-1]
		return b, nil
	}
	if len(t.fresh) == 0 {
		if err := t.grow(max(size, 64<<20)); err != nil {
			return nil, err
		}
	}
	b, t.fresh = t.fresh[:blockSize:blockSize], t.fresh[blockSize:]
	return b, nil
}

// grow reserves an arena for at least that many bytes of blocks.
func (t *Tier) grow(bytes int64) error {
	arena, err := buffer.NewArena(tiers.AlignUp(bytes, int64(buffer.HugePage)), t.nodes...)
	if err != nil {
		return err
	}
	t.arenas = append(t.arenas, arena)
	t.fresh = arena.Bytes()
	return nil
}

// Open opens an entry and keeps its memory until Close.
func (t *Tier) Open(_ context.Context, objs ...tiers.Object) (tiers.Reader, error) {
	o := objs[0]
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[o.ID()]
	if e == nil {
		return nil, t.error("open", o, -1, tiers.ErrNotFound)
	}
	e.uses++
	return &handle{tier: t, e: e, op: tiers.Read}, nil
}

// Remove removes entries. Their memory is reused at once, or after the last reader has closed.
func (t *Tier) Remove(_ context.Context, objs ...tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, o := range objs {
		e := t.entries[o.ID()]
		if e == nil {
			errs = append(errs, t.error("remove", o, -1, tiers.ErrNotFound))
			continue
		}
		delete(t.entries, o.ID())
		t.release(e)
	}
	return errors.Join(errs...)
}

// Space returns the capacity, and its part that entries do not use.
func (t *Tier) Space(context.Context) (tiers.Space, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tiers.Space{Total: t.capacity, Free: t.capacity - t.held}, nil
}

// Close returns all memory to the system.
func (t *Tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	t.entries, t.fresh, t.free = nil, nil, nil
	for _, a := range t.arenas {
		if err := a.Close(); err != nil {
			return fmt.Errorf("close the cpu tier: %w", err)
		}
	}
	return nil
}

// release removes one user of e. The caller holds mu.
func (t *Tier) release(e *entry) {
	if e.uses--; e.uses == 0 {
		t.take(e, -1)
		t.free = append(t.free, e.blocks...)
		e.blocks = nil
	}
}

// take counts an entry's memory as used (sign 1) or free (sign -1).
func (t *Tier) take(e *entry, sign int64) {
	t.held += sign * e.o.Size
	t.used += sign * int64(blocks(e.o.Size)) * blockSize
}

func (t *Tier) error(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: "cpu tier", Key: o.Key, Offset: off, Err: err}
}

// move copies between b and the entry's bytes from off on.
func (e *entry) move(op tiers.Op, b []byte, off int64) error {
	if off < 0 || off+int64(len(b)) > e.o.Size {
		return fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", len(b), off,
			e.o.Size)
	}
	for len(b) > 0 {
		mem, n := e.blocks[off/blockSize][off%blockSize:], 0
		if op == tiers.Write {
			n = copy(mem, b)
		} else {
			n = copy(b, mem)
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// View implements tiers.Memory. The entry keeps its memory until release.
func (t *Tier) View(o tiers.Object) (tiers.Source, func(), error) {
	r, err := t.Open(context.Background(), o)
	if err != nil {
		return nil, nil, err
	}
	return view{r.(*handle)}, func() { _ = r.Close() }, nil
}

// view is an opened entry as a source.
type view struct{ *handle }

// Fill copies bytes of the entry. The caller fills what lies behind its end.
func (v view) Fill(o tiers.Object, off int64, p []byte) error {
	io := tiers.IO{Buf: tiers.Buffer{B: p}, Off: off, N: len(p), Done: func(*tiers.IO) {}}
	v.Submit(&io)
	return io.Err
}

// handle is a writer or reader of one entry.
type handle struct {
	tiers.OneObject
	tier  *Tier
	e     *entry
	op    tiers.Op
	ended bool // guarded by Tier.mu
}

// Submit copies at once, on the caller's goroutine. The request is a user of the entry, because a
// cancelled operation does not wait for it.
func (h *handle) Submit(io *tiers.IO) {
	t := h.tier
	t.mu.Lock()
	if h.ended {
		t.mu.Unlock()
		io.End(t.error(h.op.String(), h.e.o, io.Off, tiers.ErrClosed))
		return
	}
	h.e.uses++
	t.mu.Unlock()
	err := h.e.move(h.op, io.Buf.B[:io.N], io.Off)
	t.mu.Lock()
	t.release(h.e)
	t.mu.Unlock()
	if err != nil {
		err = t.error(h.op.String(), h.e.o, io.Off, err)
	}
	io.End(err)
}

// Commit makes the tier a user of the entry instead of the writer. The second commit of the same object
// fails, and its entry is removed.
func (h *handle) Commit(context.Context) error {
	t := h.tier
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.ended {
		return t.error("commit", h.e.o, -1, tiers.ErrClosed)
	}
	h.ended = true
	if err := t.usable(h.e.o); err != nil {
		t.release(h.e)
		return t.error("commit", h.e.o, -1, err)
	}
	t.entries[h.e.o.ID()] = h.e
	return nil
}

// Abort ends a writer, Close a reader.
func (h *handle) Abort() error { return h.Close() }

func (h *handle) Close() error {
	h.tier.mu.Lock()
	defer h.tier.mu.Unlock()
	if !h.ended {
		h.ended = true
		h.tier.release(h.e)
	}
	return nil
}
