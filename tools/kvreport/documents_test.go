package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// No command replaces what it reads: a file, a link to it, what is in a directory or matches a
// pattern, or the result files that a text names.
func TestNoOutputReplacesAnInput(t *testing.T) {
	dir := ranks(t, t.TempDir(), "64KiB", 1)
	found, err := filepath.Glob(filepath.Join(dir, "*", "trial_0", "rank_0", "*.json"))
	require.NoError(t, err)
	result := found[0]
	in := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	v := in("v.txt", header+lines("A", "read-B/s", 1e9, 6))
	named := in("named.txt", header+"BenchmarkSynthetic 1 5 ns/op\n--- BENCH: BenchmarkSynthetic\n"+
		"    run.go:1: result: "+result+"\n")
	soft, hard := filepath.Join(dir, "soft.txt"), filepath.Join(dir, "hard.txt")
	require.NoError(t, os.Symlink(v, soft))
	require.NoError(t, os.Link(v, hard))
	data, err := os.ReadFile(blockTrace)
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "traces"), 0o700))
	trace := in("traces/trace.jsonl", string(data))
	job := in("traced.fio", "")
	data, err = os.ReadFile("testdata/fio/traced.json")
	require.NoError(t, err)
	traced := in("traced.json", string(data))
	const input = " is one of the inputs; give another name"
	const lost = " holds a benchmark result, which would be lost"
	for _, c := range []struct {
		args []string
		out  string
		says string
	}{
		{[]string{"html", v}, v, input}, {[]string{"xlsx", v}, v, input}, {[]string{"csv", v}, v, input},
		{[]string{"json", v}, v, input}, {[]string{"html", v}, soft, input},
		{[]string{"csv", soft}, hard, input}, {[]string{"csv", filepath.Join(dir, "v*")}, v, input},
		{[]string{"html", dir}, result, lost}, {[]string{"csv", named}, result, lost},
		{[]string{"aggregate", dir}, result, lost}, {[]string{"fio", traced}, traced, input},
		{[]string{"curve", trace}, trace, input}, {[]string{"curve", filepath.Dir(trace)}, trace, input},
		{[]string{"convert", trace}, trace, input},
		{[]string{"convert", filepath.Dir(trace)}, trace, input},
	} {
		before, err := os.ReadFile(c.out)
		require.NoError(t, err)
		code, out, errs := call("", append(c.args, "-o", c.out)...)
		assert.Equal(t, Usage, code, c)
		assert.Empty(t, out)
		assert.Contains(t, errs, "-o "+c.out+c.says)
		assert.Equal(t, 1, strings.Count(errs, "\n"), errs)
		after, err := os.ReadFile(c.out)
		require.NoError(t, err)
		assert.Equal(t, before, after, c)
	}
	for range 2 { // what a command wrote, it may write again
		for _, args := range [][]string{{"html", v, "-o", filepath.Join(dir, "page.html")},
			{"aggregate", dir}, {"json", v, "-o", filepath.Join(t.TempDir(), "all.json")},
			{"fio", traced, "-o", job}} {
			code, _, errs := call("", args...)
			assert.Equal(t, Done, code, errs)
		}
	}
	_, _, errs := call("", "csv", v, "-o", filepath.Join(dir, "none", "x.csv"))
	assert.Contains(t, errs, "x.csv: directory "+filepath.Join(dir, "none")+": no such file or "+
		"directory\n")
}

func TestDocuments(t *testing.T) {
	for name, want := range map[string]string{"html": "2 of 3 results have no readable result file",
		"xlsx": "2 of 3 results have no readable result file"} {
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
