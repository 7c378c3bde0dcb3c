package filetier

import (
	"container/heap"
	"fmt"

	"kvbench/tiers"
)

// file holds one object or several, side by side. Guarded by Tier.mu, but for making. It is small:
// where every object has a file of its own there may be millions.
type file struct {
	first   *tiers.Object // what it was made for
	gen     uint64        // which file of the tier it is
	end     int64         // where the next place begins
	making  *making       // how it is written; nil when it is sealed
	free    int32         // places not given out
	writers int32         // extents being written
	live    int32         // objects whose place is not free again
	busy    int32         // places being freed
	sealed  bool          // nothing will be written to it any more
	gone    bool          // somebody unlinks it
	broken  bool          // it could not be made
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

// place gives the first of objs places side by side, as many as the layout has.
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
	// The file is made by whoever first writes to it, outside of the lock: two requests may be
	// given places in one that does not exist yet.
	f := t.current
	if f == nil {
		f = &file{gen: t.made, free: int32(t.policy.places), making: &making{}}
		t.made++
	}
	most := int(f.free)
	if t.policy.grouped {
		most -= objs[0].Place % t.policy.places
	}
	for i, o := range objs[:min(most, len(objs))] {
		e := &entry{o: o, in: f, at: t.next(f), room: tiers.AlignUp(o.Size, t.unit), uses: 1}
		if i > 0 && (!t.follows(run, e) || t.entries[o.ID()] != nil ||
			t.policy.slot > 0 && o.Size > t.policy.slot) {
			break // its turn comes as the first of another extent
		}
		run = append(run, e)
		t.take(e)
	}
	f.writers++
	if t.policy.grouped {
		f.free = 0 // the next request begins another, even where this one ended early
	}
	if t.current = f; f.free == 0 {
		t.current = nil
	}
	return run, nil
}

// next is where the next object of f goes: behind the last one, or into the lowest free slot, as
// the engines' free lists do; nothing is searched for a longer stretch.
func (t *Tier) next(f *file) int64 {
	if t.policy.slot > 0 {
		return t.slots.lowest() * t.policy.slot
	}
	return f.end
}

// follows says whether e lies right behind a run and is in reach of its requests.
func (t *Tier) follows(run []*entry, e *entry) bool {
	last := run[len(run)-1]
	end := e.at - run[0].at + tiers.AlignUp(e.o.Size, int64(t.traits.Align))
	return e.in == last.in && e.at == last.at+last.room && end <= t.extent
}

// take counts an object in.
func (t *Tier) take(e *entry) {
	if t.policy.slot > 0 {
		t.slots.take()
	}
	if e.in.first == nil {
		e.in.first = &e.o
	}
	e.in.end = e.at + e.room
	e.in.free--
	e.in.live++
	t.entries[e.o.ID()] = e
	t.held += e.o.Size
	t.used += e.room
}

// find returns the first of objs that lie side by side, with one more use each; none if the first
// is not there.
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

// publish makes written objects visible: the writer's use of them becomes the tier's.
func (t *Tier) publish(run []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range run {
		e.visible = true
	}
}

// forget ends the visibility of an object. It says whether it was there, and whether its place is
// to be vacated.
func (t *Tier) forget(o tiers.Object) (e *entry, unused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e = t.entries[o.ID()]
	if e == nil || !e.visible {
		return nil, false
	}
	e.visible = false
	delete(t.entries, o.ID()) // the key may be written again before the last reader closes
	e.uses--
	return e, e.uses == 0
}

// unuse ends one use of each object, and returns those whose place is to be vacated.
func (t *Tier) unuse(run []*entry) (unused []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range run {
		if e.uses--; e.uses == 0 {
			unused = append(unused, e)
		}
	}
	return unused
}

// vacateSlots lets slots be used again.
func (t *Tier) vacateSlots(run []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range run {
		heap.Push(&t.slots.free, e.at/t.policy.slot)
	}
	t.letGo(run)
}

// letGo counts objects out whose space is free. Callers hold mu.
func (t *Tier) letGo(run []*entry) {
	for _, e := range run {
		t.held -= e.o.Size
		t.used -= e.room
	}
}

// settle says, once, that nothing will be written to the file any more. Callers hold mu.
func (f *file) settle() bool {
	if f.sealed || f.free > 0 || f.writers > 0 {
		return false
	}
	f.sealed = true
	return true
}

// drop says, once, that the file is empty but for the given number of places that are being freed:
// then it gets no new objects and the caller unlinks it. Callers hold mu.
func (t *Tier) drop(f *file, busy int32) bool {
	if t.policy.slot > 0 || f.gone || f.live > 0 || f.busy != busy {
		return false
	}
	f.gone, f.sealed, f.free = true, true, 0
	if t.current == f {
		t.current = nil
	}
	return true
}

// slots are the numbered places of one file. They are as many as were ever in use at a time, so
// that the file may grow beyond what was preallocated: objects smaller than a slot take one each.
type slots struct {
	free  slotHeap // released ones
	fresh int64    // the first that was never used
}

// lowest is the number of the slot that comes next.
func (s *slots) lowest() int64 {
	if len(s.free) > 0 {
		return s.free[0]
	}
	return s.fresh
}

func (s *slots) take() {
	if len(s.free) > 0 {
		heap.Pop(&s.free)
	} else {
		s.fresh++
	}
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
