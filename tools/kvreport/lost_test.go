package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNoResultIsLostInADirectory: whatever reads a directory ends with an error that names a file
// that may be a damaged result, under any name. JSON of other programs is left out.
func TestNoResultIsLostInADirectory(t *testing.T) {
	dir := ranks(t, t.TempDir(), "64KiB", 1)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	whole, err := os.ReadFile(files[0])
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "out")
	commands := [][]string{{"html", dir, "-o", out}, {"xlsx", dir, "-o", out}, {"csv", dir},
		{"json", dir}, {"gate", "-old", dir, "-new", dir, "-allow-few"}, {"device", dir},
		{"fio", dir}}
	damaged := filepath.Join(dir, "disk-a.json")
	for want, data := range map[string][]byte{
		"truncated JSON":             whole[:len(whole)/2],
		"disk-a.json:1: it is empty": {},
		"invalid character 'x'":      bytes.Replace(whole, []byte(":"), []byte("x"), 1),
		"unsupported result schema \"9.": bytes.Replace(whole, []byte(`version": "`),
			[]byte(`version": "9.`), 1),
	} {
		require.NoError(t, os.WriteFile(damaged, data, 0o600))
		for _, args := range commands {
			code, _, errs := call("", args...)
			assert.Equal(t, Usage, code, "%v with %s", args, want)
			assert.Contains(t, errs, want, args)
			assert.Contains(t, errs, damaged, args)
			assert.Contains(t, errs, "repair, move or remove this file", args)
			assert.NoFileExists(t, out)
		}
	}
	require.NoError(t, os.Remove(damaged))
	require.NoError(t, os.WriteFile(files[0], whole[:len(whole)/2], 0o600))
	code, _, errs := call("", "aggregate", dir)
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, "truncated JSON")
	assert.Contains(t, errs, "repair, move or remove this file")
	require.NoError(t, os.WriteFile(files[0], whole, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "absent"), damaged))
	code, _, errs = call("", "csv", dir)
	assert.Equal(t, Usage, code)
	assert.Contains(t, errs, damaged+": no such file", "what cannot be opened may be a result")
	require.NoError(t, os.Remove(damaged))
	for name, other := range map[string]string{"fio.json": `{"fio version": "fio-3.33"}`,
		"list.json": `[1, 2]`, "log.json": "{\"a\": 1}\n{\"a\": 2}\n",
		"run.json": `{"summary": {}}`, "config.json": `{"schema_version": 7}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(other), 0o600))
	}
	code, _, errs = call("", "csv", dir)
	assert.Equal(t, Done, code)
	assert.Empty(t, errs)
}

// A result that is there and damaged is named, by what reads directories, and by what reads texts,
// whose lines stand for themselves.
func TestDamagedResultsAreNamed(t *testing.T) {
	dir := ranks(t, t.TempDir(), "64KiB", 1)
	files, err := filepath.Glob(filepath.Join(dir, "*", "trial_0", "rank_0", "*.json"))
	require.NoError(t, err)
	damaged := files[0]
	whole, err := os.ReadFile(damaged)
	require.NoError(t, err)
	text := file(t, header, "BenchmarkB 1 5 ns/op\n--- BENCH: BenchmarkB\n    r.go:1: result: /gone/r.json\n",
		"BenchmarkA 1 5 ns/op\n--- BENCH: BenchmarkA\n    r.go:1: result: ", damaged, "\n")
	out := filepath.Join(t.TempDir(), "out")
	for want, data := range map[string][]byte{": it is empty": {},
		": truncated JSON": whole[:len(whole)/2]} {
		require.NoError(t, os.WriteFile(damaged, data, 0o600))
		code, _, errs := call("", "aggregate", dir)
		assert.Equal(t, Usage, code)
		assert.Contains(t, errs, damaged)
		assert.Contains(t, errs, want)
		assert.Contains(t, errs, "repair, move or remove this file")
		for _, args := range [][]string{{"html", text, "-o", out}, {"csv", text},
			{"gate", "-old", text, "-new", text, "-allow-few"}} {
			code, _, errs := call("", args...)
			assert.Equal(t, Done, code, errs)
			assert.Contains(t, errs, "result "+damaged+" cannot be read"+want, args)
		}
		assert.Contains(t, textOf(t, out), "2 of 2 results have no readable result file")
	}
}
