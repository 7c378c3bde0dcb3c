package workloads

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Blocks are how engines that page their cache keep it: a fixed number of tokens each, addressed by their content and all
// that comes before it, so that requests with equal beginnings share blocks.

// blockTokens is the size of Mooncake's blocks, whose files do not tell it.
const blockTokens = 512

// maxBlocks bounds the blocks of one request.
const maxBlocks = 1 << 20

// NewBlockTrace returns a load of block traces, checked like those of NewAzure: Mooncake's JSON lines, or sessions of agents
// as JSON documents, told apart by what is in each file. Requests have Blocks instead of an entry of their own; a row without
// generated tokens is a request like others. The ids of one file, of a session of one file, are a scope of their own.
func NewBlockTrace(cfg TraceConfig) (*Trace, error) {
	if cfg.Name == "" {
		cfg.Name = "block"
	}
	if cfg.BlockTokens < 1 {
		cfg.BlockTokens = blockTokens
	}
	format := &traceFormat{name: "block", silent: true}
	format.open = func(path string) (rowReader, error) { return openBlocks(path, cfg.BlockTokens) }
	return newTrace(format, cfg)
}

// BlockExtensions are the files that ExpandPaths takes from a directory of block traces.
func BlockExtensions() []string {
	return []string{".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".json.gz", ".json.zst"}
}

// blockRequest makes the request of a row of blocks.
func (t *Trace) blockRequest(row *traceRow) *Request {
	r := &Request{
		User: -1, Seq: row.seq, Class: Responsive, Arrival: row.arrival,
		Conversation: int(row.seq), Turn: 1, SystemPrompt: -1,
		ContextTokens: row.context, GenerateTokens: row.generate,
		Blocks: make([]Entry, len(row.blocks)),
	}
	left := row.context
	for i, id := range row.blocks {
		r.Blocks[i] = Entry{Key: BlockKey(row.scope, id), Tokens: min(left, row.blockTokens)}
		left -= row.blockTokens
	}
	r.IdealBlocks = t.ideal.prefix(row.scope, row.blocks)
	return r
}

// writes returns the tokens that the request offers to write.
func (r *Request) writes() int {
	if len(r.Blocks) == 0 {
		return r.Own.Tokens
	}
	n := 0
	for _, b := range r.Blocks {
		n += b.Tokens
	}
	return n
}

// Errors of rows of blocks.
var (
	errManyBlocks = errors.New("more block ids than the input has blocks")
	errTwice      = errors.New("a block id stands twice in one request: its prefix would hold itself")
	errNoBlocks   = errors.New("no block ids")
)

// checkBlocks refuses rows that no paged cache can have made. Fewer ids than blocks are fine: engines that keep whole blocks
// only leave the rest of the last one out.
func checkBlocks(rec *record) error {
	switch n := len(rec.blocks); {
	case n == 0:
		return errNoBlocks
	case n > maxBlocks:
		return fmt.Errorf("more than %d block ids", maxBlocks)
	case n > (rec.context-1)/rec.blockTokens+1:
		return errManyBlocks
	}
	sorted := slices.Clone(rec.blocks)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) < len(rec.blocks) {
		return errTwice
	}
	return nil
}

// scopeName makes a text fit for the middle of a key.
func scopeName(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '/' || r == ',' || r == '"' || r <= ' ' || r == 0x7f || r == 0xfffd:
			return '_'
		}
		return r
	}, text)
}

// idealCache knows every block that was asked for: what a cache without bounds would hold.
type idealCache struct {
	scopes map[string]uint32
	seen   map[idealBlock]struct{}
}

type idealBlock struct {
	scope uint32
	id    int64
}

// maxIdealBlocks bounds its memory, to about a GiB. Beyond it the ideal is not known.
const maxIdealBlocks = 16 << 20

func newIdealCache() *idealCache {
	return &idealCache{scopes: map[string]uint32{}, seen: map[idealBlock]struct{}{}}
}

// prefix returns how many of the first blocks are known, and knows all of them from then on.
func (c *idealCache) prefix(scope string, ids []int64) int {
	if c.seen == nil {
		return -1
	}
	n, ok := c.scopes[scope]
	if !ok {
		n = uint32(len(c.scopes))
		c.scopes[scope] = n
	}
	known, unbroken := 0, true
	for _, id := range ids {
		b := idealBlock{n, id}
		if _, ok := c.seen[b]; ok {
			if unbroken {
				known++
			}
			continue
		}
		unbroken = false
		c.seen[b] = struct{}{}
	}
	if len(c.seen)+len(c.scopes) > maxIdealBlocks {
		c.seen, c.scopes = nil, nil
	}
	return known
}
