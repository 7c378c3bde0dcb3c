package plainio

import (
	"container/list"
	"hash/maphash"

	"kvbench/tiers"
)

// replayLRU is the order of use of what lies in the tier, as decided.
type replayLRU struct {
	used  int64
	order list.List // of *replayEntry, oldest first
	index map[string]*replayEntry
}

type replayEntry struct {
	object tiers.Object
	at     *list.Element
}

func (l *replayLRU) find(key string) *replayEntry { return l.index[key] }

func (l *replayLRU) touch(e *replayEntry) { l.order.MoveToBack(e.at) }

// oldest returns the entry used longest ago of an LRU that is not empty.
func (l *replayLRU) oldest() *replayEntry { return l.order.Front().Value.(*replayEntry) }

func (l *replayLRU) add(o tiers.Object) {
	if l.index == nil {
		l.index = make(map[string]*replayEntry)
	}
	e := &replayEntry{object: o}
	e.at = l.order.PushBack(e)
	l.index[o.Key] = e
	l.used += o.Size
}

func (l *replayLRU) remove(e *replayEntry) {
	l.order.Remove(e.at)
	delete(l.index, e.object.Key)
	l.used -= e.object.Size
}

// bloom remembers which keys have ever been written, in constant memory whatever
// the length of the trace. It never forgets one; of keys never written it takes
// some for written: with ten million written keys two in 100,000.
type bloom struct {
	seed maphash.Seed
	bits []uint64
}

const (
	bloomWords  = 4 << 20 // 32 MiB
	bloomHashes = 8
)

// each calls f with the word and the bit of each of the key's places until f
// returns false.
func (b *bloom) each(key string, f func(word int, bit uint64) bool) {
	h := maphash.String(b.seed, key)
	step := h>>32 | 1
	for range bloomHashes {
		place := h % (bloomWords * 64)
		if !f(int(place/64), 1<<(place%64)) {
			return
		}
		h += step * 0x9e3779b97f4a7c15
	}
}

func (b *bloom) add(key string) {
	if b.bits == nil {
		b.seed, b.bits = maphash.MakeSeed(), make([]uint64, bloomWords)
	}
	b.each(key, func(word int, bit uint64) bool { b.bits[word] |= bit; return true })
}

func (b *bloom) has(key string) bool {
	if b.bits == nil {
		return false
	}
	all := true
	b.each(key, func(word int, bit uint64) bool { all = b.bits[word]&bit != 0; return all })
	return all
}
