package benchmarks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A block trace is replayed with each layout, hits the same, and is judged by a recorded run.
func TestBlockTraceLayouts(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"entry", "block", "slots"} {
		b := newBench(t)
		recorded := filepath.Join(b.work, "recorded.json")
		require.NoError(t, os.WriteFile(recorded, []byte(`[{"cache_hit": true}, {"cache_hit": false}, {"cache_hit": false}]`), 0o600))
		b.ok(append(append(b.micro(), b.places()...), "-test.bench=BlockTrace", "-block-trace-path="+data(t, "mooncake-small.jsonl"), "-layout="+layout,
			"-validation-trace="+recorded, "-verify=full")...)
		res := theResult(t, b.results)
		require.NotNil(t, res.BlockCache)
		assert.EqualValues(t, 258, res.BlockCache.Blocks)
		assert.EqualValues(t, 92, res.BlockCache.Hits)
		require.NotNil(t, res.Validation)
		assert.False(t, res.Validation.Passed)
		assert.False(t, exists(b.cache), "nothing is left behind")
	}
	b := newBench(t)
	has(t, b.refused("-test.bench=Synthetic", "-layout=slots"), "-layout: must be entry or block but for BlockTrace")
	has(t, b.refused("-test.bench=BlockTrace", "-layout=slots", "-block-trace-path="+data(t, "azure-small.csv")), "azure-small.csv")
}

// Conversations and documents go through the front door, and the tokenizer is named.
func TestConversationsAndDocuments(t *testing.T) {
	t.Parallel()
	for tokenizer, name := range map[string]string{"cl100k": "cl100k_base", "chars": "characters/4"} {
		b := newBench(t)
		b.ok(append(append(b.micro(), b.places()...), "-test.bench=ShareGPT", "-dataset-path="+data(t, "sharegpt-small.json"),
			"-tokenizer="+tokenizer)...)
		res := theResult(t, b.results)
		require.NotNil(t, res.Input)
		assert.Equal(t, name, res.Input.Tokenizer)
		assert.EqualValues(t, 6, res.RequestsCompleted)
		assert.EqualValues(t, 6, res.MultiTurnCacheHits, "a conversation of four turns reads its history")
	}
	b := newBench(t)
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=RAG", "-rag-num-docs=2", "-test.benchtime=200x")...)
	res := theResult(t, b.results)
	assert.Positive(t, res.Lookups.ByKind["rag"].Hits)
}
