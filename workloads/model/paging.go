package model

import (
	"cmp"
	"math"
	"slices"
)

// Paging describes how an engine stores a model with different kinds of layers: in blocks of tokens,
// with a page for each layer and block. All pages have one size. The layers of a kind are divided into
// groups of equally many layers; the last group of a kind is padded. The pages of a group in a block
// are stored together (vllm/v1/core/kv_cache_utils.py, 2026).
type Paging struct {
	Block  int   // tokens of a block; an object has a multiple
	Layers int   // layers of a group
	Page   int64 // bytes per layer and token on one rank
	// Last is the number of last tokens of a stored prompt that each group needs to continue the
	// prompt, 0 = all. Groups that need more come first. A group with a window needs the window's
	// tokens without the token that is being computed. A state needs 1, the token before the next
	// block.
	Last []int
}

// gpuBlock is the default number of tokens in vLLM's blocks.
const gpuBlock = 16

// latentBlock is the step of the tokens of a block if the attention kernels are for latents.
const latentBlock = 128

// muchMore is a ratio: if the most frequent kind has this many times the layers of the rarest kind, it
// is divided into several groups. Below this ratio, 12 and 13 layers make two groups of 13, not three
// groups of 12.
const muchMore = 1.5

// Paging returns the pages of one of tp ranks. The ranks divide the heads of every group as far as
// possible, and divide states evenly. Paging returns nil if all layers keep the same bytes per token.
// It also returns nil with an indexer or compressed attention, because those have pages of several
// sizes.
func (m Model) Paging(tp int) *Paging {
	if m.Groups == nil || m.Attention == CSA || m.index.layers > 0 ||
		len(m.Groups) == 1 && m.stateLayers == 0 {
		return nil
	}
	type kind struct{ layers, last int }
	p := &Paging{Block: gpuBlock}
	var kinds []kind
	for _, g := range m.Groups {
		last := g.Window
		if last > 1 {
			last--
		}
		kinds = append(kinds, kind{g.Layers, last})
		parts := min(max(1, tp), max(1, cmp.Or(g.KVHeads, m.KVHeads)))
		if m.Latents() {
			parts = 1
		}
		p.Page = max(p.Page, int64(math.Ceil(m.entry(g)/float64(parts))))
	}
	if m.stateLayers > 0 {
		kinds = append(kinds, kind{m.stateLayers, 1})
		// The smallest block, in steps of the attention's kernel, whose page can hold a state.
		step := gpuBlock
		if m.Latents() {
			step = latentBlock
		}
		state := float64(m.StateBytes) / float64(m.stateLayers*max(1, tp))
		p.Block = step * int(math.Ceil(state/float64(int64(step)*p.Page)))
	}
	byLayers := func(a, b kind) int { return cmp.Compare(a.layers, b.layers) }
	p.Layers = slices.MinFunc(kinds, byLayers).layers
	if most := slices.MaxFunc(kinds, byLayers).layers; float64(most) < muchMore*float64(p.Layers) {
		p.Layers = most
	}
	for _, k := range kinds {
		for range (k.layers + p.Layers - 1) / p.Layers {
			p.Last = append(p.Last, k.last)
		}
	}
	slices.SortFunc(p.Last, func(a, b int) int { // as unsigned numbers, 0 - 1 is the largest
		return cmp.Compare(uint(b)-1, uint(a)-1)
	})
	return p
}

// BytesPerToken returns the bytes of a token in the pages of all groups, padding included, on one rank.
func (p *Paging) BytesPerToken() int64 {
	return p.Page * int64(p.Layers) * int64(len(p.Last))
}

// Tails returns for each group how many of a prompt's last objects it needs, if an object has the given
// number of tokens; 0 means all objects.
func (p *Paging) Tails(tokens int) (list []int) {
	for _, last := range p.Last {
		list = append(list, (last+tokens-1)/tokens)
	}
	return list
}
