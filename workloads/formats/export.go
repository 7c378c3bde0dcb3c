package formats

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// MooncakeWriter writes rows of blocks as Mooncake's JSON lines, which every replayer of block traces
// reads. Blocks of all scopes get common ids, in the order of their first use. Its memory grows with
// the number of blocks. One goroutine at a time uses it, and calls Flush at the end.
type MooncakeWriter struct {
	out    *bufio.Writer
	tokens int // tokens of a block, 0 = the rows' block size
	ids    map[scopedID]int64
	joined map[link]int64 // for joined blocks: the nodes of the tree of their parts
	blocks map[int64]int64
	row    []int64 // ids of the current row
	list   []byte  // text of the ids
}

// scopedID is an id of a block with its scope.
type scopedID struct {
	scope string
	id    int64
}

// NewMooncakeWriter returns a writer of blocks of so many tokens, 0 for the rows' block size. Larger
// blocks join several blocks of a row. Two joined blocks are equal only if all their parts, and all
// blocks before them, are equal.
func NewMooncakeWriter(w io.Writer, tokens int) *MooncakeWriter {
	return &MooncakeWriter{out: bufio.NewWriterSize(w, 1<<16), tokens: tokens,
		ids: make(map[scopedID]int64), joined: make(map[link]int64),
		blocks: make(map[int64]int64)}
}

// Write writes a row with its arrival, rounded to a millisecond. If the block size is not 512 tokens,
// the line contains it, because readers need it. If the row has no id to write, Write writes no line
// and returns false.
func (m *MooncakeWriter) Write(r *Row, at time.Duration) (written bool, err error) {
	size, parts := r.BlockTokens, 1
	if m.tokens > 0 {
		if m.tokens%size != 0 {
			return false, fmt.Errorf("blocks of %d tokens cannot be joined to blocks of %d: give "+
				"a multiple of %d", size, m.tokens, size)
		}
		size, parts = m.tokens, m.tokens/size
	}
	ids := m.numbers(r, parts)
	if len(ids) == 0 {
		return false, nil
	}
	fmt.Fprintf(m.out, `{"timestamp": %d, "input_length": %d, "output_length": %d`,
		at.Round(time.Millisecond).Milliseconds(), r.Context, r.Generate)
	if size != mooncakeTokens {
		fmt.Fprintf(m.out, `, "block_size": %d`, size)
	}
	list := append(m.list[:0], `, "hash_ids": [`...)
	for _, id := range ids {
		list = append(strconv.AppendInt(list, id, 10), ", "...)
	}
	m.list = append(list[:len(list)-len(", ")], "]}\n"...)
	_, err = m.out.Write(m.list) // a bufio.Writer keeps its first error
	return err == nil, err
}

// numbers returns the common ids of a row's blocks, valid until the next call. Each block joins several
// parts. The last block may have fewer parts if the row has a block for every token: engines that omit
// a partial block also omit a partial larger block.
func (m *MooncakeWriter) numbers(r *Row, parts int) []int64 {
	partial := len(r.Blocks)*r.BlockTokens >= r.Context
	place := int64(0)
	m.row = m.row[:0]
	for i, id := range r.Blocks {
		n := numbered(m.ids, scopedID{r.Scope, id}, int64(len(m.ids)))
		if parts == 1 {
			m.row = append(m.row, n)
			continue
		}
		place = numbered(m.joined, link{place, n + 1}, int64(len(m.joined))+1)
		if (i+1)%parts == 0 || partial && i == len(r.Blocks)-1 {
			m.row = append(m.row, numbered(m.blocks, place, int64(len(m.blocks))))
		}
	}
	return m.row
}

// numbered returns the number of a key; a new key gets next.
func numbered[K comparable](known map[K]int64, key K, next int64) int64 {
	n, ok := known[key]
	if !ok {
		n, known[key] = next, next
	}
	return n
}

// Flush writes buffered lines.
func (m *MooncakeWriter) Flush() error { return m.out.Flush() }
