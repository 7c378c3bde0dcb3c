package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// callFio runs kvreport fio.
func callFio(args ...string) (code int, stdout, stderr string) {
	return call("", append([]string{"fio"}, args...)...)
}

func TestOneJobGoesToStandardOutputOrAFile(t *testing.T) {
	code, out, errs := callFio("testdata/fio/traced.json")
	require.Zero(t, code, errs)
	golden.Check(t, "fio/traced.fio", out)
	want := out

	file := filepath.Join(t.TempDir(), "job.fio")
	code, out, errs = callFio("testdata/fio/traced.json", "-o", file)
	require.Zero(t, code, errs)
	assert.Empty(t, out)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

func TestSeveralJobsNeedADirectory(t *testing.T) {
	traced, err := os.ReadFile("testdata/fio/traced.json")
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other.json") // a file named twice is read once
	require.NoError(t, os.WriteFile(other, traced, 0o666))
	code, _, errs := callFio("testdata/fio/traced.json", "testdata/fio/untraced.json", other)
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "untraced.json")
	assert.Contains(t, errs, "2 results were traced: give a directory with -o")
	dir := filepath.Join(t.TempDir(), "jobs")
	code, _, errs = callFio("testdata/fio/traced.json", other, "-o", dir)
	require.Zero(t, code, errs)
	files, err := filepath.Glob(filepath.Join(dir, "*.fio"))
	require.NoError(t, err)
	assert.Len(t, files, 2)
}

func TestNothingToDistilIsSaid(t *testing.T) {
	code, out, errs := callFio("testdata/fio/untraced.json")
	assert.Equal(t, 2, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "-enable-latency-tracing")
	code, _, errs = callFio("../load/testdata/python.json")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "save what bpftrace prints")
	code, _, errs = callFio("testdata/fio/missing.json")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "missing.json")
}

func TestBpftraceTexts(t *testing.T) {
	const text = "../load/testdata/bpftrace/drifted.txt"
	code, out, errs := callFio(text)
	require.Zero(t, code, errs)
	golden.Check(t, "fio/drifted.fio", out)

	code, out, errs = callFio(text, "-window", "6s")
	require.Zero(t, code, errs)
	assert.Contains(t, out, "the given window of 6s")

	dir := filepath.Join(t.TempDir(), "jobs")
	code, _, errs = callFio(text, "testdata/fio/traced.json", "-o", dir)
	require.Zero(t, code, errs)
	assert.FileExists(t, filepath.Join(dir, "drifted.fio"))

	data, err := os.ReadFile(text)
	require.NoError(t, err)
	code, piped, complaints := call(string(data), "fio", "-")
	require.Zero(t, code, complaints)
	assert.Contains(t, piped, "the bpftrace text stdin")
}

func TestWindowIsChecked(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-window", "-1s", "testdata/fio/traced.json"},
			"-window -1s must not be negative"},
		{[]string{"-window", "300", "testdata/fio/traced.json"}, "-window"},
		{[]string{"-window", "300s", "testdata/fio/traced.json"}, "-window is for bpftrace texts"},
	} {
		code, out, errs := callFio(c.args...)
		assert.Equal(t, 2, code, "%q", c.args)
		assert.Empty(t, out)
		assert.Contains(t, errs, c.says)
	}
}

func TestABpftraceTextThatIsCutOffNamesTheLine(t *testing.T) {
	data, err := os.ReadFile("../load/testdata/bpftrace/drifted.txt")
	require.NoError(t, err)
	cut := filepath.Join(t.TempDir(), "cut.txt")
	require.NoError(t, os.WriteFile(cut, data[:500], 0o666))
	code, out, errs := callFio(cut)
	assert.Equal(t, 2, code)
	assert.Empty(t, out)
	assert.Regexp(t, `cut\.txt:\d+: @bssplit_read_kb: ".*" is no bucket`, errs)
}

// A result whose counts somebody has edited is refused with its name, and no reason to fall over.
func TestAnEditedTraceIsRefused(t *testing.T) {
	traced, err := os.ReadFile("testdata/fio/traced.json")
	require.NoError(t, err)
	var doc map[string]any
	require.NoError(t, json.Unmarshal(traced, &doc))
	d2c := doc["device_latency_tracing"].(map[string]any)["d2c_read_us"].(map[string]any)
	d2c["buckets"] = []any{}
	edited, err := json.Marshal(doc)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "edited.json")
	require.NoError(t, os.WriteFile(file, edited, 0o666))
	code, out, errs := callFio(file)
	assert.Equal(t, 2, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "edited.json")
	assert.Contains(t, errs, "d2c_read_us")
	assert.Contains(t, errs, "and the buckets hold 0")
}
