package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/workloads/model"
)

// A benchmark of recordings that is added is not read as those of another.
func TestEveryBenchmarkOfRecordingsHasAFormatOfItsOwn(t *testing.T) {
	whose := map[string]string{}
	for _, b := range params.Benchmarks() {
		v := &params.Values{Bench: b, Tokenizer: "chars"}
		v.Profile.ShareGPT.CharsPerToken = 4
		format, err := traceFormat(v)
		if b.Load != params.LoadTrace {
			assert.Error(t, err, b.Name)
			continue
		}
		require.NoError(t, err)
		assert.Empty(t, whose[format.Name], "%s is that of %s too", format.Name, b.Name)
		whose[format.Name] = b.Name
	}
	assert.Len(t, whose, 4)
}

// What a model keeps of a sequence and not of tokens is told where a load would have had it.
func TestModelsWithStatesAreTold(t *testing.T) {
	v := &params.Values{TensorParallel: 1, IOTraceLog: "x", Model: model.Model{Key: "m", Layers: 2,
		KVHeads: 2, HeadDim: 64, Attention: model.GQA, StateBytes: 3 << 20}}
	for _, load := range []params.Load{params.LoadUsers, params.LoadTrace} {
		v.Bench.Load = load
		assert.Contains(t, warnings(v), "m keeps 3 MiB of every sequence besides the 1,024 B of "+
			"each token, as states or as its last tokens: no entry has that")
	}
	v.Bench.Load = params.LoadNone
	assert.Empty(t, warnings(v))
}
