package memtier

import (
	"cmp"
	"slices"
)

// piece is a range of a memory, in one part.
type piece struct{ at, end int64 }

func (p piece) size() int64 { return p.end - p.at }

// take takes n bytes, which are free. They begin in the tier's next part, so that the parts have the same
// load. The entry is in the first free piece that is large enough, or else in several pieces. Callers
// hold mu.
func (t *Tier) take(n int64) (pieces []piece) {
	at := t.find(int64(t.part) * t.bytes)
	t.part = (t.part + 1) % t.parts
	for k := range t.free {
		if i := (at + k) % len(t.free); t.free[i].size() >= n {
			at = i
			break
		}
	}
	for n > 0 {
		if at == len(t.free) {
			at = 0
		}
		p := t.free[at]
		p.end = min(p.end, p.at+n)
		n -= p.size()
		pieces = append(pieces, p)
		if t.free[at].at = p.end; t.free[at].size() == 0 {
			t.free = slices.Delete(t.free, at, at+1)
		}
	}
	return pieces
}

// find returns the index of the first free piece at an offset or behind it.
func (t *Tier) find(at int64) int {
	i, _ := slices.BinarySearchFunc(t.free, at, func(p piece, at int64) int { return cmp.Compare(p.at, at) })
	return i
}

// give frees pieces. Callers hold mu.
func (t *Tier) give(pieces []piece) {
	for _, p := range pieces {
		i := t.find(p.at)
		if i < len(t.free) && t.joins(p, t.free[i]) {
			p.end = t.free[i].end
			t.free = slices.Delete(t.free, i, i+1)
		}
		if i > 0 && t.joins(t.free[i-1], p) {
			t.free[i-1].end = p.end
		} else {
			t.free = slices.Insert(t.free, i, p)
		}
	}
}

// joins reports whether b continues a, in the same part.
func (t *Tier) joins(a, b piece) bool { return a.end == b.at && b.at%t.bytes != 0 }
