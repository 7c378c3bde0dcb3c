package cache

import (
	"cmp"
	"slices"
	"sort"
)

// model is the simplest implementation of the waterfall, for one operation at a time.
type model struct {
	Policy
	caps  []int64
	seq   int
	items map[string]*modelItem
}

type modelItem struct {
	key   string
	size  int64
	seq   int
	level int
}

func newModel(p Policy, caps []int64) *model {
	return &model{Policy: p, caps: caps, items: map[string]*modelItem{}}
}

func (m *model) limit(level int) int64 {
	if level == len(m.caps)-1 {
		return m.caps[level]
	}
	return int64(float64(m.caps[level]) * cmp.Or(m.Keep, KeepRatio))
}

// largest is the size of the largest entry that may be in a level above the last.
func (m *model) largest(level int) int64 {
	return int64(float64(m.caps[level]) * cmp.Or(m.Largest, m.Keep, KeepRatio))
}

func (m *model) used(level int) (n int64) {
	for _, it := range m.items {
		if it.level == level {
			n += it.size
		}
	}
	return n
}

// home returns the first existing tier from level on that may hold size.
func (m *model) home(level int, size int64) int {
	for l := level; l < len(m.caps)-1; l++ {
		if m.caps[l] > 0 && size <= m.largest(l) {
			return l
		}
	}
	return len(m.caps) - 1
}

// below returns the tier below level that may hold size, or -1.
func (m *model) below(level int, size int64) int {
	if level == len(m.caps)-1 {
		return -1
	}
	return m.home(level+1, size)
}

func (m *model) oldest(level int) *modelItem {
	var old *modelItem
	for _, it := range m.items {
		if it.level == level && (old == nil || it.seq < old.seq) {
			old = it
		}
	}
	return old
}

// freeCapacity evicts the oldest entries, tier by tier downward, until the new entry and all demoted
// entries fit. An entry that is demoted into a tier in this step is no victim there, unless the
// demoted entries could not fit even alone.
func (m *model) freeCapacity(level int, size int64) {
	incoming := make([][]*modelItem, len(m.caps))
	for l := level; l < len(m.caps); l++ {
		need := int64(0)
		if l == level {
			need = size
		}
		for _, it := range incoming[l] {
			need += it.size
		}
		push := func(it *modelItem) {
			if to := m.below(l, it.size); to < 0 {
				delete(m.items, it.key)
			} else {
				it.level = -1
				incoming[to] = append(incoming[to], it)
			}
		}
		for need > m.limit(l) && len(incoming[l]) > 0 {
			push(incoming[l][0])
			need -= incoming[l][0].size
			incoming[l] = incoming[l][1:]
		}
		for need > 0 && m.caps[l] > 0 && m.used(l)+need > max(need, m.limit(l)) {
			push(m.oldest(l))
		}
	}
	for l := range incoming {
		for _, it := range incoming[l] {
			it.level = l
		}
	}
}

func (m *model) use(in Want) (hit bool) {
	m.seq++
	if it := m.items[in.Key]; it != nil {
		it.seq = m.seq
		return true
	}
	if in.Write {
		level := m.home(0, in.Size)
		m.freeCapacity(level, in.Size)
		m.items[in.Key] = &modelItem{in.Key, in.Size, m.seq, level}
	}
	return false
}

// state lists the keys of each tier, least recent first.
func (m *model) state() [][]string {
	out := make([][]string, 0, len(m.caps))
	for level, n := range m.caps {
		if n == 0 {
			continue
		}
		var items []*modelItem
		for _, it := range m.items {
			if it.level == level {
				items = append(items, it)
			}
		}
		sort.Slice(items, func(i, j int) bool { return items[i].seq < items[j].seq })
		keys := []string{}
		for _, it := range items {
			keys = append(keys, it.key)
		}
		out = append(out, keys)
	}
	return out
}

func cacheState(c *Cache) [][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out [][]string
	for _, s := range c.levels {
		keys := []string{}
		for it := range s.order.Victims {
			keys = append(keys, it.Entry.Key())
		}
		out = append(out, keys)
	}
	return slices.Clip(out)
}
