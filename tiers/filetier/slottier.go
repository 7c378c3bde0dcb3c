package filetier

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"kvbench/tiers"
	"kvbench/tiers/buffer"
	"kvbench/tiers/workdir"
)

// slotsKey names the file of a SlotTier.
const slotsKey = "slots"

// SlotTier keeps entries in slots of one size in one preallocated file, as
// engines do that offload fixed-size blocks: nothing is created, flushed or
// unlinked per entry. An entry takes the lowest free slot, so that entries
// written together lie together as far as there are free slots side by side,
// and are written and read as runs there. Direct I/O is what makes a write reach
// the device without a flush; where the filesystem refuses it the tier says so
// in its Warnings. The directory stays the caller's to close, after the tier.
type SlotTier struct {
	*FileTier
	slot  int64
	out   *fileWriter // the file, for writing and for reading
	in    *fileReader
	ended atomic.Bool

	mu      sync.Mutex
	entries map[tiers.ID]*slotEntry
	free    slotHeap // released slots, the lowest first
	fresh   int64    // the first slot never used
	held    int64    // bytes of entries
	taken   int64    // slots in use
}

var _ tiers.RunTier = (*SlotTier)(nil)

// NewSlotTier makes the file with room for capacity bytes in whole slots of at
// least size bytes. Entries smaller than a slot take one each, so that the file
// may grow beyond that; see Footprint.
func NewSlotTier(dir *workdir.Dir, opt FileOptions, size, capacity int64) (_ *SlotTier, err error) {
	if size < 1 || capacity < 1 {
		return nil, fmt.Errorf("make slots of %d bytes for %d bytes: both must be positive", size, capacity)
	}
	ft, err := NewFileTier(dir, opt)
	if err != nil {
		return nil, err
	}
	t := &SlotTier{FileTier: ft, slot: tiers.AlignUp(size, max(int64(ft.traits.Align), buffer.PageSize)), entries: make(map[tiers.ID]*slotEntry)}
	o := tiers.Object{Key: slotsKey}
	if t.out, err = ft.create(o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.out.Abort())
		}
	}()
	if _, err = preallocate(t.out.fd, 0, tiers.AlignUp(capacity, t.slot)); err != nil {
		return nil, ft.error("preallocate", t.out.file, -1, err)
	}
	if t.in, err = ft.open(o); err != nil {
		return nil, err
	}
	if !ft.direct {
		ft.warn("slots are written without a flush: with buffered I/O that measures the page cache")
	}
	ft.traits.BytesAtCommit = false
	ft.traits.Description += fmt.Sprintf(", one file of slots of %d KiB", t.slot>>10)
	return t, nil
}

// Close removes the file, unless the directory keeps its files.
func (t *SlotTier) Close() error {
	if !t.ended.CompareAndSwap(false, true) {
		return nil
	}
	if t.dir.Keep() {
		return errors.Join(t.in.Close(), unix.Close(t.out.fd))
	}
	return errors.Join(t.in.Close(), t.out.Abort())
}

// Footprint returns the bytes of the entries, and what their slots take beyond.
func (t *SlotTier) Footprint() (held, waste int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.held, t.taken*t.slot - t.held
}

// slotEntry is one entry's slot. It is free again when the last user has gone:
// the tier itself is one while the entry can be opened.
type slotEntry struct {
	o    tiers.Object
	at   int64 // number of the slot
	uses int   // guarded by SlotTier.mu
}

// Remove forgets an entry; its slot is used again at once, or when its last
// reader closes.
func (t *SlotTier) Remove(_ context.Context, o tiers.Object) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[o.ID()]
	if e == nil {
		return t.slotError("remove", o, -1, tiers.ErrNotFound)
	}
	delete(t.entries, o.ID())
	t.release(e)
	return nil
}

// release ends one use of e. The caller holds mu.
func (t *SlotTier) release(e *slotEntry) {
	if e.uses--; e.uses == 0 {
		t.taken--
		t.held -= e.o.Size
		heap.Push(&t.free, e.at)
	}
}

func (t *SlotTier) slotError(op string, o tiers.Object, off int64, err error) error {
	return &tiers.OpError{Op: op, Path: t.dir.Path() + "/" + t.out.fan + "/" + t.out.name, Key: o.Key, Offset: off, Err: err}
}

// slotHeap is a min-heap of slot numbers.
type slotHeap []int64

func (h slotHeap) Len() int           { return len(h) }
func (h slotHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h slotHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *slotHeap) Push(x any) { *h = append(*h, x.(int64)) }

// Pop implements heap.Interface.
func (h *slotHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
