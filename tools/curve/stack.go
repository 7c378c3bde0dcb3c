package curve

import "math"

// never is the distance of a block at its first request: no cache has it.
const never = math.MaxInt64

// maxBlocks limits the distinct blocks of a stack, to some GiB of memory.
const maxBlocks = 1 << 28

// stack has the blocks in the order of their last use, and computes Mattson's stack distance (IBM
// Systems Journal 9/2, 1970) in bytes. Uses are numbered. A Fenwick tree over the numbers has, for each
// number, the size of the block whose last use it is (Bennett and Kruskal, IBM J. Res. Dev. 19/4,
// 1975). When the numbers are used up, the blocks are renumbered, after at least as many uses as
// blocks. So a use costs O(log blocks), and memory grows only with the number of blocks.
type stack struct {
	scopes map[string]map[int64]int32 // by scope and block id: the index in blocks
	scope  string                     // scope of the last request
	ids    map[int64]int32            // blocks of that scope
	blocks []block
	last   []int32 // by use: the block whose last use it is, or none; use 0 is unused
	tree   []int64 // by use u: bytes of the uses in (u - lowest bit of u, u]
	uses   int     // numbers used
	bytes  int64   // of all blocks

	found  []int32 // by position in the request: the index in blocks, or none
	depths []int64
}

// block is a distinct block.
type block struct {
	size int64 // bytes
	use  int32 // number of its last use
}

const none = int32(-1)

func newStack() *stack {
	return &stack{scopes: make(map[string]map[int64]int32), last: make([]int32, 1),
		tree: make([]int64, 1)}
}

// request returns the stack distance of each block of a request: the bytes of the blocks used since its
// last use, itself included, or never. A cache of at least that capacity has the block. Then request
// uses all blocks, last to first. The distances are valid until the next call.
//
// A block keeps its first size. resized is the number of blocks that have another size in this request.
func (s *stack) request(scope string, ids, sizes []int64) (depths []int64, resized int64) {
	if s.ids == nil || scope != s.scope {
		if s.scope, s.ids = scope, s.scopes[scope]; s.ids == nil {
			s.ids = make(map[int64]int32)
			s.scopes[scope] = s.ids
		}
	}
	if s.uses+len(ids) >= len(s.last) {
		s.renumber(len(ids))
	}
	s.found, s.depths = s.found[:0], s.depths[:0]
	use, depth := int32(none), int64(0)
	for i, id := range ids {
		at, known := s.ids[id]
		if !known {
			at, use, depth = none, none, never
		} else {
			b := &s.blocks[at]
			if b.size != sizes[i] {
				resized++
			}
			// The blocks of a prefix that was used as a whole are adjacent.
			if b.use == use-1 {
				depth += b.size
			} else {
				depth = s.bytes - s.before(b.use)
			}
			use = b.use
		}
		s.found, s.depths = append(s.found, at), append(s.depths, depth)
	}
	for i := len(ids) - 1; i >= 0; i-- {
		at := s.found[i]
		if at == none {
			at = int32(len(s.blocks))
			s.blocks = append(s.blocks, block{size: sizes[i]})
			s.ids[ids[i]] = at
			s.bytes += sizes[i]
		} else {
			s.take(s.blocks[at])
		}
		s.push(at)
	}
	return s.depths, resized
}

// before returns the bytes of the blocks whose last use was before a use.
func (s *stack) before(use int32) (sum int64) {
	for u := use - 1; u > 0; u &= u - 1 {
		sum += s.tree[u]
	}
	return sum
}

// take removes a block's last use.
func (s *stack) take(b block) {
	s.last[b.use] = none
	for u := int(b.use); u <= s.uses; u += u & -u {
		s.tree[u] -= b.size
	}
}

// push gives a block the next use. It computes the tree node of that use from the nodes below it, one on
// average.
func (s *stack) push(at int32) {
	s.uses++
	u := s.uses
	sum := s.blocks[at].size
	for below := u - 1; below > u&(u-1); below &= below - 1 {
		sum += s.tree[below]
	}
	s.tree[u], s.last[u] = sum, at
	s.blocks[at].use = int32(u)
}

// renumber numbers the last uses from 1 in their order, and adds capacity for at least as many uses.
func (s *stack) renumber(more int) {
	order := s.last[1 : s.uses+1]
	s.uses = 0
	capacity := 1 + 2*(len(s.blocks)+more) + 1<<12
	s.last, s.tree = make([]int32, capacity), make([]int64, capacity)
	for _, at := range order {
		if at != none {
			s.push(at)
		}
	}
}
