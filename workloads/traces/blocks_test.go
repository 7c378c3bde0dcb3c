package traces

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// blockCounts counts the hits of a cache without bounds, from the requests themselves and by the trace's
// report.
type blockCounts struct{ blocks, distinct, hits, ideal int }

func countBlocks(rs []*workloads.Request) (c blockCounts) {
	seen := map[string]bool{}
	for _, r := range rs {
		unbroken := true
		for _, b := range r.Blocks {
			c.blocks++
			unbroken = unbroken && seen[b.Key]
			if unbroken {
				c.hits++
			}
		}
		for _, b := range r.Blocks {
			seen[b.Key] = true
		}
		c.ideal += r.IdealBlocks
	}
	c.distinct = len(seen)
	return c
}

// An object of an engine is a part of a block, or several blocks. Tokens that fill no object are left out.
// A cache without bounds has the reported hits.
func TestBlocksAreCutIntoObjects(t *testing.T) {
	for _, c := range []struct {
		file   string
		object int
		second string // a key of the first request
	}{{"mooncake-small.jsonl", 16, "blk/mooncake-small/0#1"},
		{"mooncake-small.jsonl", 512, "blk/mooncake-small/1#0"}, {"session-small.json", 256, ""},
		{"session-small.json", 64, ""}} {
		cfg := traceConfig(testdata(c.file))
		whole := all(t, openTrace(t, formats.Blocks, cfg))
		cfg.ObjectTokens = c.object
		s := openTrace(t, formats.Blocks, cfg)
		rs := all(t, s)
		require.NoError(t, s.Err())
		require.Len(t, rs, len(whole))
		for i, r := range rs {
			tokens := 0
			for _, b := range whole[i].Blocks {
				tokens += b.Tokens
			}
			assert.Len(t, r.Blocks, tokens/c.object, "%s, request %d", c.file, i)
			assert.Equal(t, tokens-tokens%c.object, r.Own.Tokens)
			assert.True(t, r.OfBlocks())
			for _, b := range r.Blocks {
				assert.Equal(t, c.object, b.Tokens)
			}
			if c.second != "" && i == 0 {
				assert.Equal(t, c.second, r.Blocks[1].Key)
			}
		}
		counts := countBlocks(rs)
		assert.Equal(t, counts.hits, counts.ideal, "%s in %d tokens", c.file, c.object)
		assert.Positive(t, counts.hits)
	}
}

// Equal ids in files of the same name are different blocks, in rows and in sessions. Ids of a whole data
// set are the same blocks.
func TestFilesOfTheSameName(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		blocks int
	}{
		"t.jsonl": {`{"timestamp":0,"input_length":600,"output_length":1,"hash_ids":[1,2]}`, 4},
		"s.json": {`{"id":"s","block_size":64,"requests":[
			{"t":0,"in":64,"out":1,"hash_ids":[1]}]}`, 2},
		"g.json": {`{"block_size":64,"hash_id_scope":"global","requests":[
			{"t":0,"in":64,"out":1,"hash_ids":[1]}]}`, 1},
	} {
		var paths []string
		for range 2 {
			paths = append(paths, write(t, name, c.text))
		}
		keys := map[string]bool{}
		for _, r := range all(t, openTrace(t, formats.Blocks, traceConfig(paths...))) {
			for _, b := range r.Blocks {
				keys[b.Key] = true
			}
		}
		assert.Len(t, keys, c.blocks, name)
	}
}

func TestTheIdealIsUnknownBeyondItsBound(t *testing.T) {
	var c idealCache
	assert.Equal(t, 0, c.prefix("a", []int64{1, 2, 3}))
	assert.Equal(t, 2, c.prefix("a", []int64{1, 2, 4, 3}))
	assert.Equal(t, 0, c.prefix("b", []int64{1}))
	c.seen = nil
	assert.Equal(t, -1, c.prefix("a", []int64{1}))
}
