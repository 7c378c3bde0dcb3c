package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const blockTrace = "../../testdata/mooncake-small.jsonl"

func TestCurveIsWrittenAsItsFileIsCalled(t *testing.T) {
	dir := t.TempDir()
	for name, begins := range map[string]string{"a.html": "<!DOCTYPE html>", "a.csv": "capacity_bytes,",
		"a.json": "{\n  \"files\"", "a.txt": "trace       ../../testdata/mooncake-small.jsonl: 60 requests"} {
		path := filepath.Join(dir, name)
		code, out, errs := call("", "curve", blockTrace, "-o", path)
		assert.Zero(t, code, errs)
		assert.Empty(t, out)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), begins), "%s: %.80s", name, text)
	}
	page, err := os.ReadFile(filepath.Join(dir, "a.html"))
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(page), "<figure>"))
	assert.NotContains(t, string(page), "NaN")
	code, out, _ := call("", "curve", "-format", "csv", blockTrace)
	assert.Zero(t, code)
	assert.True(t, strings.HasPrefix(out, "capacity_bytes,"))
}

func TestCurveTellsEveryMistake(t *testing.T) {
	code, out, errs := call("", "curve", "-drive", "x", "-warmup", "1", "-format", "text")
	assert.Equal(t, Usage, code)
	assert.Empty(t, out)
	assert.Equal(t, 3, strings.Count(errs, "kvreport curve: "), errs)
	for _, args := range [][]string{{"-format", "pdf", blockTrace}, {"-format", "html", blockTrace}} {
		code, _, errs := call("", append([]string{"curve"}, args...)...)
		assert.Equal(t, Usage, code)
		assert.Contains(t, errs, "-format")
	}
}

// The page about tools shows what the command prints of mooncake's synthetic trace, where somebody
// has that: KVTEST_MOONCAKE is its path.
func TestCurveOfThePage(t *testing.T) {
	path := os.Getenv("KVTEST_MOONCAKE")
	if path == "" {
		t.Skip("KVTEST_MOONCAKE does not name mooncake's synthetic trace")
	}
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "```curve-output\n$ go tool kvreport ")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	line, want, _ := strings.Cut(block, "\n")
	args := strings.Fields(line)
	for i, a := range args {
		if a == "mooncake.jsonl" {
			args[i] = path
		}
	}
	_, out, errs := call("", args...)
	assert.Empty(t, errs)
	assert.Equal(t, want, strings.Replace(out, path, "mooncake.jsonl", 1))
}
