package curve

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// naive is a stack as a list, newest first.
type naive []naiveBlock

type naiveBlock struct {
	scope string
	id    int64
	size  int64
}

func (n *naive) find(scope string, id int64) int {
	return slices.IndexFunc(*n, func(b naiveBlock) bool { return b.scope == scope && b.id == id })
}

func (n *naive) request(scope string, ids, sizes []int64) (depths []int64) {
	for _, id := range ids {
		depth := int64(0)
		at := n.find(scope, id)
		for _, b := range (*n)[:at+1] {
			depth += b.size
		}
		if at < 0 {
			depth = never
		}
		depths = append(depths, depth)
	}
	for i, id := range slices.Backward(ids) {
		b := naiveBlock{scope, id, sizes[i]}
		if at := n.find(scope, id); at >= 0 {
			b = (*n)[at]
			*n = slices.Delete(*n, at, at+1)
		}
		*n = slices.Insert(*n, 0, b)
	}
	return depths
}

// requestOf makes a request of distinct blocks from bytes: a prefix of a conversation, also with holes and
// jumps that no engine makes.
func requestOf(data []byte) (scope string, ids, sizes []int64) {
	scope = []string{"a", "b"}[data[0]&1]
	for i, b := range data[1:] {
		id := int64(b)
		if b < 128 && len(ids) > 0 {
			id = ids[len(ids)-1] + 1 // mostly consecutive
		}
		if !slices.Contains(ids, id) {
			ids, sizes = append(ids, id), append(sizes, int64(1+(int(b)*7+i)%5))
		}
	}
	return scope, ids, sizes
}

func FuzzDistances(f *testing.F) {
	f.Add([]byte{0, 200, 1, 1, 0xff, 1, 200, 1, 0xff, 0, 200, 1, 1, 1})
	rng := rand.New(rand.NewPCG(7, 7))
	long := make([]byte, 20_000) // more uses than a small tree has
	for i := range long {
		long[i] = byte(rng.UintN(256))
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, n := newStack(), naive{}
		for part := range slices.Chunk(data, 24) {
			scope, ids, sizes := requestOf(part)
			got, _ := s.request(scope, ids, sizes)
			require.Equal(t, n.request(scope, ids, sizes), append([]int64(nil), got...))
		}
		sum := int64(0)
		for _, b := range n {
			sum += b.size
		}
		require.Equal(t, sum, s.bytes)
		require.Len(t, s.blocks, len(n))
	})
}

// Uses are renumbered many times, and no block is lost.
func TestUsesAreGivenAnew(t *testing.T) {
	s, n := newStack(), naive{}
	rng := rand.New(rand.NewPCG(1, 2))
	renumbered := 0
	for range 6000 {
		var ids, sizes []int64
		for at := rng.Int64N(60); len(ids) < 8; at++ {
			ids, sizes = append(ids, at), append(sizes, 1+at%3)
		}
		before := s.uses
		got, resized := s.request("", ids, sizes)
		require.Equal(t, n.request("", ids, sizes), append([]int64(nil), got...))
		assert.Zero(t, resized)
		if s.uses < before {
			renumbered++
		}
	}
	assert.Greater(t, renumbered, 5)
	assert.Less(t, len(s.last), 20_000, "memory follows the blocks, not the uses")
}

func TestABlockKeepsItsFirstSize(t *testing.T) {
	s := newStack()
	_, resized := s.request("", []int64{1, 2}, []int64{10, 4})
	assert.Zero(t, resized)
	depths, resized := s.request("", []int64{1, 2}, []int64{10, 10})
	assert.EqualValues(t, 1, resized)
	assert.Equal(t, []int64{10, 14}, depths)
}
