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
	// Reread reads an entry that the request has just read or written, Times times; no lookup.
	Reread
	// ReadPrefixOrWrite is one of a request's blocks, in order: those up to the first missing one
	// are read, what is missing is written, and what is there behind it is left alone.
	ReadPrefixOrWrite
)

// String names the operation.
func (k OpKind) String() string {
	return name(k, "op",
		"read-if-present", "write-if-absent", "read-or-write", "reread", "read-prefix-or-write")
}

// Purpose says what an operation is for; lookups and latencies are counted by it.
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
	return name(p, "purpose",
		"prefix", "history", "prefill", "probe", "reread", "block", "retrieval")
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
	DecodeBatch int  // generated tokens per re-read; 0 means 32
	Batched     bool // re-read the entry during decoding; otherwise it is read once
	// ObjectTokens are those of an engine's objects, into which every prompt is cut that is not cut
	// yet; 0: each piece of a prompt is an entry.
	ObjectTokens int
}

// Plan appends the operations of a request to dst, in the order in which they run: prefix, history,
// prefill, retrieval, probe, re-reads; of a prompt in objects, those. It depends on nothing but the
// request.
//
// An object is whole or is not kept, and what it holds depends on all that comes before it: it is
// called after the piece in which its last token lies, and its place in the prompt. That names one
// content, because before a piece there is always the same: the turns of a conversation so far,
// behind the common prompt of the first of them. So Retrieved is not for prompts in objects: what
// is put together anew for each request is found by no engine's prefix.
func (p Planner) Plan(dst []Op, r *Request) []Op {
	op := func(kind OpKind, purpose Purpose, e Entry, times int) {
		dst = append(dst, Op{Kind: kind, Purpose: purpose, Key: e.Key, Tokens: e.Tokens,
			Bytes: p.Sizer.Bytes(e.Tokens), Times: times})
	}
	var n, end int // objects so far, and tokens of the pieces that they are made of
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
