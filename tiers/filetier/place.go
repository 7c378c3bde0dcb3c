package filetier

import (
	"container/heap"
	"errors"
	"fmt"

	"kvbench/tiers"
)

// file holds one object, or several adjacent ones. Guarded by Tier.mu, except making. It is small,
// because with one file per object there may be millions.
type file struct {
	first   *tiers.Object // the object that it was made for
	gen     uint64        // number of the file in the tier
	end     int64         // offset of the next place
	making  *making       // its state while it is written; nil when no more writes follow
	free    int32         // places without an object yet
	writers int32         // extents being written
	live    int32         // objects whose place is not freed
	gone    bool          // it is being unlinked, or its creation has failed
}

// entry is an object's place. It is freed after its last user; the tier is a user while the object can
// be opened.
type entry struct {
	o       tiers.Object
	in      *file
	at      int64 // offset in the file
	room    int64 // bytes to the next place
	uses    int
	visible bool // committed and not removed
}

// place reserves adjacent places for the first of objs, as many as the layout allows.
func (t *Tier) place(objs []tiers.Object) (run []*entry, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended:
		return nil, tiers.ErrClosed
	case t.entries[objs[0].ID()] != nil:
		return nil, tiers.ErrExists
	case t.policy.slot > 0 && objs[0].Size > t.policy.slot:
		return nil, fmt.Errorf("%d bytes do not fit into a slot of %d", objs[0].Size, t.policy.slot)
	}
	// The file's first writer creates it, without the lock: two requests may get places in a file that
	// does not exist yet.
	f := t.current
	if f == nil {
		f = &file{gen: t.made, free: int32(t.policy.places), making: &making{}}
		t.made++
	}
	for i, o := range objs[:min(int(f.free), len(objs))] {
		e := &entry{o: o, in: f, at: t.next(f), room: tiers.AlignUp(o.Size, t.unit), uses: 1}
		if i > 0 && (!t.follows(run, e) || t.entries[o.ID()] != nil ||
			t.policy.slot > 0 && o.Size > t.policy.slot) {
			break // it becomes the first of another extent
		}
		run = append(run, e)
		t.take(e)
	}
	f.writers++
	t.current = f
	if f.free == 0 {
		t.close(f)
	}
	return run, nil
}

// next returns the offset of the next object of f: the lowest free slot, as in the engines' free lists,
// or the end of the last place. It does not search for adjacent free slots.
func (t *Tier) next(f *file) int64 {
	if len(t.slots) > 0 {
		return t.slots[0]
	}
	return f.end
}

// follows reports whether e directly follows a run and is within its extent.
func (t *Tier) follows(run []*entry, e *entry) bool {
	last := run[len(run)-1]
	end := e.at - run[0].at + tiers.AlignUp(e.o.Size, int64(t.traits.Align))
	return e.in == last.in && e.at == last.at+last.room && end <= t.traits.Extent
}

// take adds an object to its file and to the index.
func (t *Tier) take(e *entry) {
	if e.at < e.in.end {
		heap.Pop(&t.slots)
	} else {
		e.in.end = e.at + e.room
	}
	if e.in.first == nil {
		e.in.first = &e.o
	}
	e.in.free--
	e.in.live++
	t.entries[e.o.ID()] = e
	t.held += e.o.Size
	t.used += e.room
}

// find returns the first adjacent objects of objs and adds a user to each; none if the first object does
// not exist.
func (t *Tier) find(objs []tiers.Object) (run []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, o := range objs {
		e := t.entries[o.ID()]
		if e == nil || !e.visible || i > 0 && !t.follows(run, e) {
			break
		}
		e.uses++
		run = append(run, e)
	}
	return run
}

// leave removes one user of each object, and frees the places without users. Callers hold mu, which is
// released for system calls.
func (t *Tier) leave(run ...*entry) error {
	var errs []error
	for _, e := range run {
		if e.uses--; e.uses == 0 {
			errs = append(errs, t.freePlace(e))
		}
	}
	return errors.Join(errs...)
}

// freePlace frees the place of an object: a slot can be reused; the last place of a file is freed by
// removing the file, any other place by a hole. The space is free when it returns. Callers hold mu,
// which is released for system calls.
//
// Remove, the last reader's Close, and Abort call it, perhaps concurrently for one file. So it checks
// twice whether this is the last place: other places may have been freed while it made the hole, and
// only one caller unlinks the file.
func (t *Tier) freePlace(e *entry) (err error) {
	if t.policy.slot > 0 {
		heap.Push(&t.slots, e.at)
	} else {
		last := t.drop(e.in, 1)
		if !e.in.gone {
			t.mu.Unlock()
			err = t.hole(e)
			t.mu.Lock()
		}
		e.in.live--
		if last || t.drop(e.in, 0) {
			t.mu.Unlock()
			err = errors.Join(err, t.seal(e.in), t.unlink(e.in))
			t.mu.Lock()
		}
	}
	t.held -= e.o.Size
	t.used -= e.room
	return err
}

// drop reports, once, that only the places being freed are still in use. The file takes no new objects
// then, and the caller unlinks it. Callers hold mu.
func (t *Tier) drop(f *file, freed int32) bool {
	if f.gone || f.live > freed {
		return false
	}
	t.close(f)
	f.gone = true
	return true
}

// close stops a file from taking objects. Callers hold mu.
func (t *Tier) close(f *file) {
	f.free = 0
	if t.current == f {
		t.current = nil
	}
}

// slotHeap is a min-heap of slots that were used and are free again. The file has as many slots as were
// ever in use at a time. It may grow beyond the preallocated size, because objects smaller than a slot
// take a whole one.
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
