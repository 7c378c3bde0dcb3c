package checkpoint

import (
	"fmt"
	"strings"
)

// Model is a model of MLPerf Storage's checkpoint workload: the dimensions of a transformer and its
// division among accelerators. Formulas use integer divisions in the same order as the reference.
type Model struct {
	Key  string // 8b, 70b, 405b, 1t
	Name string // as in the rules: llama3-8b …

	Hidden, FFN, Heads, KVHeads, Layers int64

	// Zero is the stage of ZeRO. With 3 every accelerator keeps its share of the parameters. With 1
	// only the accelerators of the first data-parallel group keep parameters.
	Zero int
	// Tensor, Pipeline and Data are the numbers of parts into which tensors, the pipeline and the data
	// are divided. Data is the number in the rules; see [Spec.Data] for other numbers of accelerators.
	Tensor, Pipeline, Data int
}

// All models have this vocabulary size, and parameters in bfloat16.
const (
	vocabulary        = 128_256
	bytesPerParameter = 2
)

// Models returns the models of the rules, smallest first (MLPerf Storage rules, "Checkpointing";
// dimensions from the reference's workload files).
func Models() []Model {
	return []Model{
		{Key: "8b", Name: "llama3-8b", Hidden: 4096, FFN: 14336, Heads: 32, KVHeads: 8, Layers: 32,
			Zero: 3, Tensor: 1, Pipeline: 1, Data: 8},
		{Key: "70b", Name: "llama3-70b", Hidden: 8192, FFN: 28672, Heads: 128, KVHeads: 8,
			Layers: 80, Zero: 3, Tensor: 8, Pipeline: 1, Data: 8},
		{Key: "405b", Name: "llama3-405b", Hidden: 16384, FFN: 53248, Heads: 128, KVHeads: 8,
			Layers: 126, Zero: 1, Tensor: 8, Pipeline: 32, Data: 2},
		{Key: "1t", Name: "llama3-1t", Hidden: 25872, FFN: 98304, Heads: 192, KVHeads: 32,
			Layers: 128, Zero: 1, Tensor: 8, Pipeline: 64, Data: 2},
	}
}

// Find returns the model of the given key or name, in upper or lower case.
func Find(name string) (Model, error) {
	var keys []string
	for _, m := range Models() {
		if strings.EqualFold(name, m.Key) || strings.EqualFold(name, m.Name) {
			return m, nil
		}
		keys = append(keys, m.Key)
	}
	return Model{}, fmt.Errorf("there is no checkpoint of %q, but of %s", name,
		strings.Join(keys, ", "))
}

// Group returns the number of accelerators that together hold the model once: TP × PP.
func (m Model) Group() int { return m.Tensor * m.Pipeline }

// Accelerators returns the number of accelerators in the rules: TP × PP × DP.
func (m Model) Accelerators() int { return m.Group() * m.Data }

// Parameters returns N of the rules: the parameters of the embedding, of the layers (norm, attention,
// norm and FFN), of the last norm and of the head. Heads share keys and values, so projections have
// h·(h + 2·(h div a)·k) parameters.
func (m Model) Parameters() int64 {
	h, f := m.Hidden, m.FFN
	layer := h + h*m.projected() + h*h + h + 2*f*h + f*h
	return vocabulary*h + m.Layers*layer + h + vocabulary*h
}

// projected returns the width of queries, keys and values together.
func (m Model) projected() int64 { return m.Hidden + 2*(m.Hidden/m.Heads*m.KVHeads) }

// layerBytes returns the bytes of a layer on one accelerator. data is the number of data shards of the
// layer, 1 if the layer is not divided. Layer 0 is the embedding, Layers+1 the head, Layers+2 the last
// norm.
func (m Model) layerBytes(layer, data int64) int64 {
	tensor := func(n int64) int64 { return n / int64(m.Tensor) / data }
	norm := m.Hidden / data
	var n int64
	switch h, f := m.Hidden, m.FFN; layer {
	case 0, m.Layers + 1:
		n = tensor(h * vocabulary)
	case m.Layers + 2:
		n = norm
	default:
		n = norm + tensor(h*m.projected()) + tensor(h*h) + norm + tensor(h*2*f) + tensor(h*f)
	}
	return n * bytesPerParameter
}

// stage returns the layers of a stage of the pipeline. If the layers do not divide evenly, the first
// stages have one more layer. The first stage also has the embedding, the last stage the norm and the
// head.
func (m Model) stage(pp int64) (layers []int64) {
	n, more := m.Layers/int64(m.Pipeline), m.Layers%int64(m.Pipeline)
	first := 1 + pp*n + min(pp, more)
	if pp < more {
		n++
	}
	if pp == 0 {
		layers = append(layers, 0)
	}
	for i := range n {
		layers = append(layers, first+i)
	}
	if pp == int64(m.Pipeline)-1 {
		layers = append(layers, m.Layers+1, m.Layers+2)
	}
	return layers
}

// optimizerBytes returns the bytes of the optimizer on one accelerator: three tensors with 4 bytes per
// parameter. The reference adds the 5·h.
func (m Model) optimizerBytes(data int) int64 {
	return 3 * 4 * (m.Parameters()/int64(data*m.Group()) + 5*m.Hidden)
}
