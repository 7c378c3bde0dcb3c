package filetier

import (
	"container/heap"
	"errors"
	"fmt"

	"kvbench/tiers"
)

// file holds one object or several, next to each other. Guarded by Tier.mu, but for making. It is
// small: where every object has a file of its own there may be millions.
type file struct {
	first   *tiers.Object // what it was made for
	gen     uint64        // which file of the tier it is
	end     int64         // where the next place begins
	making  *making       // how it is written; nil when nothing will be any more
	free    int32         // places not given out
	writers int32         // extents being written
	live    int32         // objects whose place is not free again
	gone    bool          // it is being unlinked, or it could not be made
}

// entry is an object's place. It is free again when the last user has gone: the tier itself is one
// while the object can be opened.
type entry struct {
	o       tiers.Object
	in      *file
	at      int64
	room    int64 // from here to the next place
	uses    int
	visible bool // committed and not removed
}

// place gives the first of objs adjacent places, as many as the layout has.
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
	// Its first writer makes the file, outside of the lock: two requests may be given places in one
	// that does not exist yet.
	f := t.current
	if f == nil {
		f = &file{gen: t.made, free: int32(t.policy.places), making: &making{}}
		t.made++
	}
	for i, o := range objs[:min(int(f.free), len(objs))] {
		e := &entry{o: o, in: f, at: t.next(f), room: tiers.AlignUp(o.Size, t.unit), uses: 1}
		if i > 0 && (!t.follows(run, e) || t.entries[o.ID()] != nil ||
			t.policy.slot > 0 && o.Size > t.policy.slot) {
			break // its turn comes as the first of another extent
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

// next is where the next object of f goes: into the lowest free slot, as the engines' free lists
// do, or behind the last place; nothing is searched for a longer stretch.
func (t *Tier) next(f *file) int64 {
	if len(t.slots) > 0 {
		return t.slots[0]
	}
	return f.end
}

// follows reports whether e lies right behind a run and within its extent.
func (t *Tier) follows(run []*entry, e *entry) bool {
	last := run[len(run)-1]
	end := e.at - run[0].at + tiers.AlignUp(e.o.Size, int64(t.traits.Align))
	return e.in == last.in && e.at == last.at+last.room && end <= t.traits.Extent
}

// take counts an object in.
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

// find returns the first of objs that are adjacent, with one more use each; none if the first is
// not there.
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

// leave ends one use of each object, and frees the places without any other use. Callers hold mu,
// which is released for system calls.
func (t *Tier) leave(run ...*entry) error {
	var errs []error
	for _, e := range run {
		if e.uses--; e.uses == 0 {
			errs = append(errs, t.vacate(e))
		}
	}
	return errors.Join(errs...)
}

// vacate frees the place of an object: a slot is used again, a place in a file goes with it when it
// is the last one there, else by a hole. Its space is free when it returns. Callers hold mu, which
// is released for system calls.
//
// It comes from Remove, from the last reader's Close and from Abort, perhaps for one file at once.
// So whether this is the last place is asked twice: others may have left the file while this one
// made its hole, and only one of them unlinks it.
func (t *Tier) vacate(e *entry) (err error) {
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

// drop reports, once, that no more places of a file are in use than those being freed: then it gets
// no new objects, and the caller unlinks it. Callers hold mu.
func (t *Tier) drop(f *file, freed int32) bool {
	if f.gone || f.live > freed {
		return false
	}
	t.close(f)
	f.gone = true
	return true
}

// close lets a file take no more objects. Callers hold mu.
func (t *Tier) close(f *file) {
	f.free = 0
	if t.current == f {
		t.current = nil
	}
}

// slotHeap is a min-heap of the slots that were in use and are free again. A file has as many as
// were ever in use at a time, so that it may grow beyond what was preallocated: objects smaller
// than a slot take one each.
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
