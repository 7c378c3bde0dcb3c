package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

func TestWriteDocument(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	const text = "BenchmarkA 1 5 ns/op\nBenchmarkA 1 six ns/op\nBenchmarkB 1 7 ns/op\n"
	run := func(fail error, args ...string) (code int, errs string) {
		var b strings.Builder
		c := newCall("thing", args, strings.NewReader(text), nil, &b)
		code = c.end(document(c,
			func(w io.Writer, records []*load.Record, t *stats.Table) error {
				_, err := io.WriteString(w, records[0].Name+t.Benchmarks[len(t.Benchmarks)-1].Name)
				return errors.Join(err, fail)
			}))
		return code, b.String()
	}
	code, errs := run(nil, "-", "-o", out)
	assert.Equal(t, Done, code)
	assert.Contains(t, errs, "kvreport thing: stdin:2:", "a bad line is named, the rest is read")
	assert.Contains(t, errs, "kvreport thing: 2 of 2 results have no result file: ")
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, "AB", string(data))

	for _, args := range [][]string{{"-"}, {"-o", out}, {filepath.Join(dir, "none"), "-o", out}} {
		code, errs = run(nil, args...)
		assert.Equal(t, Usage, code)
		assert.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	code, errs = run(errors.New("it broke"), "-", "-o", out)
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "it broke")
	data, err = os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, "AB", string(data), "the file of before stays as it was")
}

func TestDocumentsRefuseTwoFormats(t *testing.T) {
	const old = "../load/testdata/option_2/trial_0/rank_0/kvcache_results_20261120_103902.json"
	for _, name := range []string{"html", "xlsx"} {
		out := filepath.Join(t.TempDir(), "x")
		code, _, errs := call("", name, old, alone(t, "2.0"), "-o", out)
		assert.Equal(t, Usage, code)
		assert.Contains(t, errs, old+" is of result format 1, ")
		assert.NoFileExists(t, out)
		code, _, errs = call("", name, old, "../load/testdata/python.json", "-o", out)
		assert.Equal(t, Done, code, errs)
	}
	// An archive compares nothing.
	code, _, errs := call("", "json", old, alone(t, "2.0"))
	assert.Equal(t, Done, code, errs)
}

func TestDocuments(t *testing.T) {
	for name, want := range map[string]string{"html": "2 of 3 results have no result file",
		"xlsx": "2 of 3 results have no result file"} {
		dir := t.TempDir()
		out := filepath.Join(dir, "x")
		code, _, errs := call("", name, "../load/testdata/bench.txt", "-o", out)
		assert.Equal(t, Done, code)
		assert.Contains(t, errs, want)
		require.NoError(t, os.Remove(out))
		zero := filepath.Join(dir, "zero")
		require.NoError(t, os.WriteFile(zero, nil, 0o644))
		const python = "../load/testdata/python.json"
		for _, args := range [][]string{{zero, "-o", out}, {python},
			{python, "-o", filepath.Join(dir, "a", "b")}} {
			code, _, errs := call("", append([]string{name}, args...)...)
			assert.Equal(t, Usage, code)
			assert.Equal(t, 1, strings.Count(errs[strings.LastIndex(errs[:len(errs)-1], "\n")+1:],
				"\n"), errs)
		}
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		assert.Len(t, left, 1)
	}
}
