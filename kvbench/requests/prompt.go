package requests

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/workloads"
	"kvbench/workloads/compute"
)

// prompt is the model's input for a request, piece by piece in the order of their positions: the
// common prefix, history, retrieved chunks, new tokens. A piece that was read from a tier is found
// and need not be computed.
//
// A decode-only request reads an entry that was written before. For any other request the own entry
// is new, and reading it back is no part of the prompt. Blocks cover the input except for a last
// part that fills no block: that is new, too.
//
// Its memory is reused from request to request; it is its worker's own.
type prompt struct {
	pieces []piece
	of     []int // the piece of each intent, -1 for none
	below  int64 // bytes that came from the last tier
}

type piece struct {
	purpose workloads.Purpose
	tokens  int
	bytes   int64
	found   bool
	early   bool // its turn is not written yet
}

// ask initialises the prompt of a planned request and returns its length in tokens; intent has the
// intent of each operation.
func (p *prompt) ask(r *workloads.Request, plan []workloads.Op, intent []int) (tokens int) {
	p.pieces, p.of, p.below = p.pieces[:0], p.of[:0], 0
	fresh, rest := -1, 0
	if len(plan) == 0 { // a prompt that fills no block
		rest = r.PromptTokens()
	}
	for i, op := range plan {
		at := intent[i]
		for len(p.of) <= at {
			p.of = append(p.of, -1)
		}
		switch {
		case op.Purpose == workloads.ForPrefill:
			fresh, rest = at, op.Tokens
		case op.Purpose != workloads.ForReread &&
			(op.Purpose != workloads.ForDecodeRead || r.Kind == workloads.DecodeOnly):
			p.of[at] = len(p.pieces)
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

// found notes that the n intents from at on were read, with so many bytes: all or the needed ones.
func (p *prompt) found(at, n int, bytes int64, below bool) {
	if below {
		p.below += bytes
	}
	for _, i := range p.of[at : at+n] {
		if i >= 0 {
			p.pieces[i].found, p.pieces[i].bytes = true, min(p.pieces[i].bytes, bytes)
			bytes -= p.pieces[i].bytes
		}
	}
}

// early notes that an intent is of a turn that is not written yet.
func (p *prompt) early(at int) { p.pieces[p.of[at]].early = true }

// tokens sums the pieces up by purpose.
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

// cost returns the time of computing what was not found, each piece after those before it, and of
// computing the whole prompt.
//
// A missing piece between others is computed alone: the pieces after it were computed with it in
// its place, so they are valid when it is there again. Engines whose lookup ends at the first
// missing piece compute more; blocks are found only up to that piece. Retrieved chunks count as if
// they had been computed at their present position.
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
