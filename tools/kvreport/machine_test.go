package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDedupNamesProblemsAndTheRestIsRead(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(good, make([]byte, 4096), 0o644))
	code, out, errs := call("", "dedup", good, filepath.Join(dir, "none"))
	assert.Equal(t, 2, code)
	assert.Contains(t, out, "files             1")
	assert.Contains(t, errs, "none: no such file")
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o644))
	code, out, errs = call("", "dedup", empty)
	assert.Equal(t, 2, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "no data")
	for _, args := range [][]string{nil, {"-max-blocks", "3", good}, {"-nope"}} {
		code, _, errs = call("", append([]string{"dedup"}, args...)...)
		assert.Equal(t, 2, code)
		assert.Equal(t, 1, strings.Count(errs, "\n"))
	}
}

func TestDiscoverThisMachine(t *testing.T) {
	code, out, errs := call("", "discover", t.TempDir())
	assert.Zero(t, code)
	assert.Empty(t, errs)
	assert.Contains(t, out, "memory")
	code, _, errs = call("", "discover", filepath.Join(t.TempDir(), "none"))
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "no such file")
	code, _, _ = call("", "discover", "a", "b")
	assert.Equal(t, 2, code)
}

func TestDatasizeSuggestsAFlag(t *testing.T) {
	code, _, errs := call("", "datasize", "-num-userss", "3")
	assert.Equal(t, 2, code)
	assert.Contains(t, errs, "did you mean")
	code, _, errs = call("", "datasize", "-num-users", "0", "-model", "lama")
	assert.Equal(t, 2, code)
	assert.Equal(t, 2, strings.Count(errs, "kvreport datasize: "), "a line for each mistake: %s",
		errs)
}
