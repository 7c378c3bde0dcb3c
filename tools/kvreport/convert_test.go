package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConvert(t *testing.T) {
	code, out, errs := call("", "convert", blockTrace)
	assert.Zero(t, code)
	assert.Equal(t, 60, strings.Count(out, "\n"))
	assert.Equal(t, "kvreport convert: 60 rows of 1 file read: 60 written, 0 malformed, 0 before "+
		"-trace-start, 0 without a whole block\n", errs)

	path := filepath.Join(t.TempDir(), "s.jsonl")
	code, out, errs = call("", "convert", "../../testdata/session-small.json", "-o", path)
	assert.Zero(t, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "5 rows of 1 file read: 5 written")
	assert.Contains(t, errs, "blocks have 64 tokens")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"block_size": 64, "hash_ids": [0, 1, 2`)

	// The curve of the copy is that of the original.
	_, curve, _ := call("", "curve", path, "-format", "csv")
	_, original, _ := call("", "curve", "../../testdata/session-small.json", "-format", "csv")
	assert.Equal(t, original, curve)
}

func TestConvertTellsWhatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.jsonl")
	text, err := os.ReadFile(blockTrace)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(text, "{}\n{\n"...), 0o644))
	code, _, errs := call("", "convert", path)
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "2 of the first 62 rows are malformed, more than 1 %")
	code, out, errs := call("", "convert", path, "-trace-allow-malformed", "-trace-start", "5s")
	assert.Zero(t, code)
	assert.Contains(t, errs, "62 rows of 1 file read: ")
	assert.Contains(t, errs, "2 malformed")
	assert.Contains(t, errs, "m.jsonl:62: ")
	assert.Less(t, strings.Count(out, "\n"), 60)
	for _, tool := range []string{"convert", "curve"} {
		code, _, errs = call("", tool, blockTrace, "-num-users", "2")
		assert.Equal(t, Usage, code)
		assert.Contains(t, errs, "-num-users: must be absent but for sessions of agents")
	}
	// A frame that needs a window of 2 GiB, as zstd --long=31 writes it.
	long := filepath.Join(t.TempDir(), "long.jsonl.zst")
	require.NoError(t, os.WriteFile(long, []byte("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"), 0o644))
	code, _, errs = call("", "convert", long)
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "long.jsonl.zst in line 1: window size exceeded: recompress it without "+
		"--long, or with at most --long=27")
	code, _, errs = call("", "convert", "-block-tokens", "-1", "-trace-start", "1")
	assert.Equal(t, Usage, code)
	assert.Equal(t, 3, strings.Count(errs, "kvreport convert: "), errs)
}
