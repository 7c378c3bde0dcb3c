package requests

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/workloads"
	"kvbench/workloads/compute"
)

// prompt has the pieces of a request's prompt, in the order of their positions: the common prefix,
// history, retrieved chunks, new tokens. A piece that was read from a tier is found and is not computed.
//
// The prompt of a decode-only request is an entry that was written before. Every other request writes an
// entry with its new tokens; a read of that entry is no part of the prompt. Blocks cover the prompt
// except for the last tokens that fill no block. These tokens are new.
//
// Each worker has one prompt, and the next request reuses its memory.
type prompt struct {
	pieces  []piece
	pieceOf []int // the piece of each intent, -1 for none
	below   int64 // bytes that came from the last tier
}

type piece struct {
	purpose workloads.Purpose
	tokens  int
	bytes   int64
	found   bool
	early   bool // the entry of the earlier turn is not written yet
}

// ask initialises the prompt of a planned request and returns its length in tokens. intent has the index
// of the key of each operation.
func (p *prompt) ask(r *workloads.Request, plan []workloads.Op, intent []int) (tokens int) {
	p.pieces, p.pieceOf, p.below = p.pieces[:0], p.pieceOf[:0], 0
	fresh, rest := -1, 0
	if len(plan) == 0 { // the prompt is shorter than a block
		rest = r.PromptTokens()
	}
	for i, op := range plan {
		at := intent[i]
		for len(p.pieceOf) <= at {
			p.pieceOf = append(p.pieceOf, -1)
		}
		switch {
		case op.Purpose == workloads.ForPrefill:
			fresh, rest = at, op.Tokens
		case op.Purpose != workloads.ForReread &&
			(op.Purpose != workloads.ForDecodeRead || r.Kind == workloads.DecodeOnly):
			p.pieceOf[at] = len(p.pieces)
			p.pieces = append(p.pieces, piece{op.Purpose, op.Tokens, op.Bytes, false, false})
			if op.Purpose == workloads.ForBlock {
				rest -= op.Tokens
			}
		}
	}
	if rest < 0 {
		rest += r.PromptTokens()
	}
	if fresh >= 0 || rest > 0 {
		p.pieces = append(p.pieces, piece{purpose: workloads.ForPrefill, tokens: max(rest, 0)})
	}
	for _, part := range p.pieces {
		tokens += part.tokens
	}
	return tokens
}

// found marks the pieces of n intents from index at on as read. bytes is the number of bytes that were
// read, which may be fewer than the sizes of the entries. below means that the last tier had them.
func (p *prompt) found(at, n int, bytes int64, below bool) {
	if below {
		p.below += bytes
	}
	for _, i := range p.pieceOf[at : at+n] {
		if i >= 0 {
			p.pieces[i].found, p.pieces[i].bytes = true, min(p.pieces[i].bytes, bytes)
			bytes -= p.pieces[i].bytes
		}
	}
}

// early marks the piece of an intent as not yet written.
func (p *prompt) early(at int) { p.pieces[p.pieceOf[at]].early = true }

// tokens returns the tokens of the pieces by purpose.
func (p *prompt) tokens() (all [workloads.NumPurposes]result.PromptTokens) {
	for _, part := range p.pieces {
		n, tokens := &all[part.purpose], int64(part.tokens)
		n.Tokens += tokens
		if part.found {
			n.Found += tokens
		}
		if part.early {
			n.NotYetWritten += tokens
		}
	}
	return all
}

// cost returns the time to compute the missing pieces, the time to compute the whole prompt, and the
// tokens and bytes of the found pieces.
//
// A missing piece between found pieces costs only its own tokens at its position. The pieces after it
// stay valid, because they were computed with the same tokens before them. Engines whose lookup ends at
// the first missing piece compute more. Blocks are found only up to the first missing block. Retrieved
// chunks count as if they were computed at their position in this prompt.
func (p *prompt) cost(c compute.Cost) (missing, all time.Duration, found, bytes int64) {
	var at int64
	for _, part := range p.pieces {
		end := at + int64(part.tokens)
		if part.found {
			found, bytes = found+int64(part.tokens), bytes+part.bytes
		} else {
			missing += c.Span(at, end)
		}
		at = end
	}
	return missing, c.Span(0, at), found, bytes
}
