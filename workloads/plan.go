package workloads

import (
	"cmp"

	"kvbench/workloads/model"
)

// OpKind is a cache operation whose meaning does not depend on the state of the cache.
type OpKind uint8

// The operations.
const (
	ReadIfPresent OpKind = iota // a missing entry is a miss and costs nothing
	WriteIfAbsent               // an existing entry costs nothing
	ReadOrWrite                 // a missing entry is a miss and is written
	// Reread reads an entry that the request has just read or written, Times times, without a lookup.
	Reread
	// ReadPrefixOrWrite applies to each block of a request, in order. Blocks before the first missing
	// block are read. Missing blocks are written. Existing blocks after the first missing block are not
	// used.
	ReadPrefixOrWrite
)

// String names the operation.
func (k OpKind) String() string {
	return [...]string{"read-if-present", "write-if-absent", "read-or-write", "reread",
		"read-prefix-or-write"}[k]
}

// Purpose is the purpose of an operation. Results count lookups and latencies per purpose.
type Purpose uint8

// The purposes.
const (
	ForPrefix Purpose = iota
	ForHistory
	ForPrefill
	ForDecodeRead
	ForReread
	ForBlock
	ForRetrieval
	NumPurposes = 7
)

// String names the purpose, as results do.
func (p Purpose) String() string {
	return [...]string{"prefix", "history", "prefill", "probe", "reread", "block", "retrieval"}[p]
}

// Op is one step of a plan.
type Op struct {
	Kind    OpKind
	Purpose Purpose
	Key     string
	Tokens  int
	Bytes   int64
	Times   int // 1, or the number of re-reads
}

// Planner turns requests into cache operations. It is plain data and safe for concurrent use.
type Planner struct {
	Sizer       model.Sizer
	DecodeBatch int  // generated tokens per re-read, 0 means 32
	Batched     bool // re-read the entry during decoding; otherwise read it once
	// ObjectTokens is the number of tokens in an engine's object. Prompts without blocks are cut into
	// objects. With 0 each piece of a prompt is an entry.
	ObjectTokens int
}

// Plan appends the operations of a request to dst, in the order of their execution: prefix, history,
// prefill, retrieval, probe, re-reads. With ObjectTokens it appends the objects of the prompt instead.
// The plan depends only on the request.
//
// With ObjectTokens only full objects are stored, and the content of an object depends on all tokens
// before it. The key of an object is the piece that contains its last token, and its place in the
// prompt. This key identifies one content, because the same tokens always precede a piece: the common
// prompt of the conversation's first turn, and the turns so far. So prompts in objects have no
// Retrieved: an engine's prefix cache cannot find chunks that each request combines anew.
func (p Planner) Plan(dst []Op, r *Request) []Op {
	op := func(kind OpKind, purpose Purpose, e Entry, times int) {
		dst = append(dst, Op{Kind: kind, Purpose: purpose, Key: e.Key, Tokens: e.Tokens,
			Bytes: p.Sizer.Bytes(e.Tokens), Times: times})
	}
	var n, end int // number of objects so far, and end of the pieces so far in tokens
	if r.OfBlocks() {
		for _, e := range r.Blocks {
			op(ReadPrefixOrWrite, ForBlock, e, 1)
		}
		return dst
	}
	if p.ObjectTokens > 0 {
		for _, piece := range r.pieces() {
			for end += piece.Tokens; (n+1)*p.ObjectTokens <= end; n++ {
				e := Entry{PartKey(piece.Key, n), p.ObjectTokens}
				op(ReadPrefixOrWrite, ForBlock, e, 1)
			}
		}
		return dst
	}
	if r.SystemPrompt >= 0 {
		op(ReadOrWrite, ForPrefix, Entry{SystemKey(r.SystemPrompt), r.SystemPromptTokens}, 1)
	}
	if r.Kind != DecodeOnly {
		for _, e := range r.History {
			op(ReadIfPresent, ForHistory, e, 1)
		}
		op(WriteIfAbsent, ForPrefill, r.Own, 1)
	}
	for _, e := range r.Retrieved {
		op(ReadIfPresent, ForRetrieval, e, 1)
	}
	if r.Kind == PrefillOnly || r.Query {
		return dst
	}
	if r.Kind == DecodeOnly {
		op(ReadIfPresent, ForDecodeRead, r.Own, 1)
	} else {
		op(ReadOrWrite, ForDecodeRead, r.Own, 1)
	}
	if p.Batched && r.GenerateTokens > 0 {
		batch := cmp.Or(p.DecodeBatch, 32)
		op(Reread, ForReread, r.Own, (r.GenerateTokens-1)/batch+1)
	}
	return dst
}
