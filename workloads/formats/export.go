package formats

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"
)

// MooncakeWriter writes rows of blocks as Mooncake's JSON lines, which every replayer of block
// traces reads. Ids of all scopes become those of one file, in the order in which blocks come
// first. Its memory grows with the blocks. One goroutine uses it, and calls Flush at the end.
type MooncakeWriter struct {
	out    *bufio.Writer
	tokens int // per block, 0 = those of the rows
	ids    map[string]map[int64]int64
	count  int64          // ids given out
	joined map[link]int64 // of larger blocks: places in the tree of their parts
	blocks map[int64]int64
	line   []byte
}

// NewMooncakeWriter writes blocks of so many tokens, 0 for those of the rows. Larger ones are made
// by joining: a block is then another one as soon as one of its parts, or anything before it, is.
func NewMooncakeWriter(w io.Writer, tokens int) *MooncakeWriter {
	return &MooncakeWriter{out: bufio.NewWriterSize(w, 1<<16), tokens: tokens,
		ids: make(map[string]map[int64]int64), joined: make(map[link]int64),
		blocks: make(map[int64]int64)}
}

// Write writes a row that arrives at a time, which is rounded to a millisecond. Blocks of other
// than 512 tokens have their size in each row: readers that do not know the key must be told it. It
// says false of a row that has no whole block where parts of one are left out: a line without a
// block is none.
func (m *MooncakeWriter) Write(r *Row, at time.Duration) (written bool, err error) {
	size, parts := r.BlockTokens, 1
	if m.tokens > 0 {
		if m.tokens%size != 0 {
			return false, fmt.Errorf("blocks of %d tokens cannot be joined to blocks of %d: give "+
				"a multiple of %d", size, m.tokens, size)
		}
		size, parts = m.tokens, m.tokens/size
	}
	line := append(m.line[:0], `{"timestamp": `...)
	line = strconv.AppendInt(line, at.Round(time.Millisecond).Milliseconds(), 10)
	line = strconv.AppendInt(append(line, `, "input_length": `...), int64(r.Context), 10)
	line = strconv.AppendInt(append(line, `, "output_length": `...), int64(r.Generate), 10)
	if size != mooncakeTokens {
		line = strconv.AppendInt(append(line, `, "block_size": `...), int64(size), 10)
	}
	line = append(line, `, "hash_ids": [`...)
	begun := len(line)
	if parts == 1 {
		scope := m.scope(r.Scope)
		for i, id := range r.Blocks {
			line = m.append(line, i, m.number(scope, id))
		}
	} else {
		line = m.join(line, r, parts)
	}
	if len(line) > begun {
		line = append(line, "]}\n"...)
		_, err = m.out.Write(line)
		written = err == nil
	}
	m.line = line
	return written, err
}

// join appends blocks of several parts each. The last one may have fewer, if the row has a block
// for every token: engines that leave a part of a block out leave it out of larger ones, too.
func (m *MooncakeWriter) join(line []byte, r *Row, parts int) []byte {
	scope := m.scope(r.Scope)
	partial := len(r.Blocks)*r.BlockTokens >= r.Context
	place, n := int64(0), 0
	for i, id := range r.Blocks {
		next := link{place, m.number(scope, id) + 1}
		at, known := m.joined[next]
		if !known {
			at = int64(len(m.joined)) + 1
			m.joined[next] = at
		}
		place = at
		if (i+1)%parts == 0 || partial && i == len(r.Blocks)-1 {
			block, known := m.blocks[place]
			if !known {
				block = int64(len(m.blocks))
				m.blocks[place] = block
			}
			line = m.append(line, n, block)
			n++
		}
	}
	return line
}

// append appends the i-th id of a row.
func (m *MooncakeWriter) append(line []byte, i int, id int64) []byte {
	if i > 0 {
		line = append(line, ", "...)
	}
	return strconv.AppendInt(line, id, 10)
}

func (m *MooncakeWriter) scope(name string) map[int64]int64 {
	ids := m.ids[name]
	if ids == nil {
		ids = make(map[int64]int64)
		m.ids[name] = ids
	}
	return ids
}

// number is the id of a block of a scope among those of all.
func (m *MooncakeWriter) number(scope map[int64]int64, id int64) int64 {
	n, known := scope[id]
	if !known {
		n = m.count
		m.count++
		scope[id] = n
	}
	return n
}

// Flush writes what is left.
func (m *MooncakeWriter) Flush() error { return m.out.Flush() }
