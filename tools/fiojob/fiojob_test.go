package fiojob

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func call(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(args, bytes.NewReader(nil), &out, &errs)
	return code, out.String(), errs.String()
}

func TestOneJobGoesToStandardOutputOrAFile(t *testing.T) {
	code, out, errs := call("testdata/traced.json")
	require.Zero(t, code, errs)
	golden := "testdata/traced.fio"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out), 0o666))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), out)

	file := filepath.Join(t.TempDir(), "job.fio")
	code, out, errs = call("testdata/traced.json", "-o", file)
	require.Zero(t, code, errs)
	assert.Empty(t, out)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestSeveralJobsNeedADirectory(t *testing.T) {
	traced, err := os.ReadFile("testdata/traced.json")
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other.json") // a file named twice is read once
	require.NoError(t, os.WriteFile(other, traced, 0o666))
	code, _, errs := call("testdata/traced.json", "testdata/untraced.json", other)
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "untraced.json")
	assert.Contains(t, errs, "2 results were traced: give a directory with -o")
	dir := filepath.Join(t.TempDir(), "jobs")
	code, _, errs = call("testdata/traced.json", other, "-o", dir)
	require.Zero(t, code, errs)
	files, err := filepath.Glob(filepath.Join(dir, "*.fio"))
	require.NoError(t, err)
	assert.Len(t, files, 2)
}

func TestNothingToDistilIsSaid(t *testing.T) {
	code, out, errs := call("testdata/untraced.json")
	assert.Equal(t, 2, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "-enable-latency-tracing")
	code, _, errs = call("testdata/missing.json")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "missing.json")
}
