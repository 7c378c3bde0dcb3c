package workloads

import "time"

// frontier finds which arrivals are the first N of all users in time order, without writing down N of anything: it walks a
// second cursor per user through time and remembers where it counted the N-th. Until then every arrival up to the time
// that it has reached is among the first N.
type frontier struct {
	heap slotHeap // next uncounted arrival of each user
	seq  []int64  // its number
	left int64    // arrivals still to count
	last slotItem // the N-th arrival, once left is 0
}

func newFrontier(limit int64, firsts []slotItem) *frontier {
	f := &frontier{left: limit, seq: make([]int64, len(firsts))}
	for _, it := range firsts {
		f.heap.push(it)
	}
	return f
}

// advance counts the arrivals up to and including until. after returns the arrival that follows arrival seq of a user.
func (f *frontier) advance(until time.Duration, after func(slot int32, seq int64, at time.Duration) time.Duration) {
	for f.left > 0 && f.heap.len() > 0 && f.heap.top().at <= until {
		it := f.heap.top()
		f.left--
		if f.left == 0 {
			f.last = it
			f.heap.items, f.seq = nil, nil
			return
		}
		next := after(it.slot, f.seq[it.slot], it.at)
		f.seq[it.slot]++
		f.heap.replaceTop(slotItem{at: next, slot: it.slot})
	}
}

// within tells whether an arrival that the frontier has passed is among the first N. A nil frontier has no limit.
func (f *frontier) within(it slotItem) bool {
	return f == nil || f.left > 0 || !f.last.before(it)
}
