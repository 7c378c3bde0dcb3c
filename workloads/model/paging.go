package model

import (
	"cmp"
	"math"
	"slices"
)

// Paging is how an engine keeps a model whose layers do not all keep the same: in blocks of so many
// tokens, and of each block a page for each layer, all pages of one size. Layers of a kind make
// groups of equally many layers, the last of a kind padded, and of a block the pages of a group are
// kept together (vllm/v1/core/kv_cache_utils.py, 2026).
type Paging struct {
	Block  int         // tokens; what an object has is a multiple
	Layers int         // of a group
	Page   int64       // bytes of a layer and token on one rank
	Groups []PageGroup // in the order in which fewer and fewer blocks are needed of them
}

// PageGroup is how much of what it keeps of a prompt a group needs to go on with it.
type PageGroup struct {
	// Tokens: of a window all but the one that is being computed, of a state 1, which stands for
	// what lies behind the last block; 0 = all of them.
	Last int
}

// gpuBlock is how many tokens vLLM's blocks have where nothing else decides.
const gpuBlock = 16

// latentBlock is of how many tokens the blocks of the kernels for latents are multiples.
const latentBlock = 128

// muchMore is from how many times the layers of the rarest kind on the most frequent one is cut
// into several groups; below it 12 and 13 layers make two groups of 13, not three of 12.
const muchMore = 1.5

// Paging is that of one of tp ranks, who share the heads of every group as far as they go, and
// states evenly. It is nil where all layers keep the same of a token, and where they have an
// indexer or compressed attention: those have pages of several sizes, in a way of their own.
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
		// The least number of tokens, in the steps of the attention's kernel, whose page is not
		// smaller than a state.
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
			p.Groups = append(p.Groups, PageGroup{Last: k.last})
		}
	}
	slices.SortStableFunc(p.Groups, func(a, b PageGroup) int {
		return cmp.Compare(b.needs(), a.needs())
	})
	return p
}

// needs is Last in an order.
func (g PageGroup) needs() int {
	if g.Last == 0 {
		return math.MaxInt
	}
	return g.Last
}

// BytesPerToken is what a token takes in the pages of all groups, padding included, on one rank.
func (p *Paging) BytesPerToken() int64 {
	return p.Page * int64(p.Layers) * int64(len(p.Groups))
}

// Tails says of how many of the last objects of a prompt, of so many tokens each, every group is
// needed: 0 = of all of them.
func (p *Paging) Tails(tokens int) (list []int) {
	for _, g := range p.Groups {
		list = append(list, (g.Last+tokens-1)/tokens)
	}
	return list
}
