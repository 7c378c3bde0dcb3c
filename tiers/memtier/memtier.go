package memtier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
)

// Memory is where a tier keeps its bytes: main memory, or the memory of cards.
type Memory interface {
	// Copy copies b to the memory (Write) or from it (Read). The bytes in the memory begin at an offset
	// and are in one part, see Over. Copies of different bytes are concurrent.
	Copy(op tiers.Op, off int64, b []byte) error
	Close() error
}

// Tier stores entries in memory outside the Go heap: real bytes, copied in and out. The Cache enforces the
// capacity. The tier holds any mix of entries of that many bytes, because an entry may have several pieces.
type Tier struct {
	memory Memory
	parts  int
	bytes  int64 // of a part
	kind   tiers.Kind
	traits tiers.Traits

	mu      sync.Mutex
	entries map[tiers.ID]*entry
	free    []piece // free bytes, in the order of the offsets; neighbours in a part are joined
	part    int     // the part in which the next entry begins
	held    int64   // bytes of entries, being written or committed
	closed  bool
}

var _ tiers.Files = (*Tier)(nil)

// New returns a cpu tier. It reserves address space for capacity bytes. Memory comes with use, from the
// NUMA nodes given, see [buffer.NewArena].
func New(capacity int64, nodes ...int) (*Tier, error) {
	arena, err := buffer.NewArena(capacity, nodes...)
	if err != nil {
		return nil, fmt.Errorf("make a cpu tier of %d bytes (-cpu-mem-gb): %w", capacity, err)
	}
	return Over(mainMemory{arena}, 1, capacity, tiers.CPU, "memory outside the Go heap"), nil
}

// Over returns a tier over a memory, which the tier closes. The memory has parts of equal size, such as
// cards. Writers begin in one part after the other, and go on in the next part when one is full.
func Over(m Memory, parts int, bytes int64, kind tiers.Kind, description string) *Tier {
	t := &Tier{memory: m, parts: parts, bytes: bytes, kind: kind, entries: make(map[tiers.ID]*entry),
		traits: tiers.Traits{Align: 1, Holds: true, Description: description}}
	for i := range int64(parts) {
		t.free = append(t.free, piece{i * bytes, (i + 1) * bytes})
	}
	return t
}

// mainMemory is the memory of the cpu tier.
type mainMemory struct{ *buffer.Arena }

func (m mainMemory) Copy(op tiers.Op, off int64, b []byte) error {
	if op == tiers.Write {
		copy(m.Bytes()[off:], b)
	} else {
		copy(b, m.Bytes()[off:])
	}
	return nil
}

// Prefault takes the memory of a cpu tier from the system now. Without it the kernel clears every page at
// its first use, inside the measured window. Call it before the first entry.
func (t *Tier) Prefault() { buffer.Touch(t.memory.(mainMemory).Bytes()) }

// Traits returns the tier's traits: any alignment; bytes count when they are copied.
func (t *Tier) Traits() tiers.Traits { return t.traits }

// entry is the place of one entry. It returns to the tier after the last user. Users are the tier while
// the entry can be opened, handles, and requests in flight.
type entry struct {
	o      tiers.Object
	pieces []piece // fixed from Create on: copying needs no lock
	uses   int     // guarded by Tier.mu
}

// Create takes the memory for the whole entry, so that a write that has begun does not run out of memory.
func (t *Tier) Create(_ context.Context, objs ...tiers.Object) (tiers.Writer, error) {
	o := objs[0]
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.usable(o); err != nil {
		return nil, t.error("create", o, -1, err)
	}
	if free := int64(t.parts)*t.bytes - t.held; o.Size > free {
		return nil, t.error("create", o, -1, fmt.Errorf("it has %d bytes and %d are free: %w", o.Size,
			free, syscall.ENOSPC))
	}
	t.held += o.Size
	return &handle{tier: t, e: &entry{o: o, pieces: t.take(o.Size), uses: 1}, op: tiers.Write}, nil
}

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

// Close returns all memory to the system.
func (t *Tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	t.entries, t.free = nil, nil
	if err := t.memory.Close(); err != nil {
		return fmt.Errorf("close the %s tier: %w", t.kind, err)
	}
	return nil
}

// release removes one user of e. The caller holds mu.
func (t *Tier) release(e *entry) {
	if e.uses--; e.uses == 0 && !t.closed {
		t.held -= e.o.Size
		t.give(e.pieces)
		e.pieces = nil
	}
}

func (t *Tier) error(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.kind.String() + " tier", Key: o.Key, Offset: off, Err: err}
}

// move copies between b and the entry's bytes from off on.
func (t *Tier) move(e *entry, op tiers.Op, b []byte, off int64) error {
	if off < 0 || off+int64(len(b)) > e.o.Size {
		return fmt.Errorf("%d bytes at offset %d reach beyond the entry's %d", len(b), off,
			e.o.Size)
	}
	for _, p := range e.pieces {
		n := min(p.size()-off, int64(len(b)))
		if n > 0 {
			if err := t.memory.Copy(op, p.at+off, b[:n]); err != nil {
				return err
			}
			b, off = b[n:], off+n
		}
		off -= p.size()
	}
	return nil
}

// View implements tiers.Memory. The entry keeps its memory until release.
func (t *Tier) View(o tiers.Object) (tiers.Source, func(), error) {
	r, err := t.Open(context.Background(), o)
	if err != nil {
		return nil, nil, err
	}
	return r.(*handle), func() { _ = r.Close() }, nil
}

// handle is a writer or reader of one entry, or a view.
type handle struct {
	tiers.OneObject
	tier  *Tier
	e     *entry
	op    tiers.Op
	ended bool // guarded by Tier.mu
}

// Submit copies at once, on the caller's goroutine.
func (h *handle) Submit(io *tiers.IO) { io.End(h.copy(io.Buf.B[:io.N], io.Off)) }

// Fill implements tiers.Source for a view. The caller fills what lies behind the entry's end.
func (h *handle) Fill(_ tiers.Object, off int64, p []byte) error { return h.copy(p, off) }

// copy copies between b and the entry. The copy is a user of the entry, because a cancelled operation does
// not wait for it.
func (h *handle) copy(b []byte, off int64) error {
	t := h.tier
	t.mu.Lock()
	if h.ended {
		t.mu.Unlock()
		return t.error(h.op.String(), h.e.o, off, tiers.ErrClosed)
	}
	h.e.uses++
	t.mu.Unlock()
	err := t.move(h.e, h.op, b, off)
	t.mu.Lock()
	t.release(h.e)
	t.mu.Unlock()
	if err != nil {
		return t.error(h.op.String(), h.e.o, off, err)
	}
	return nil
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
