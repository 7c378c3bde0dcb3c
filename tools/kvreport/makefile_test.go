package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMakeTiersMakesAPageOfWhatDidNotFail: the stub of go fails like a run of the suite with one
// failed trial.
func TestMakeTiersMakesAPageOfWhatDidNotFail(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not on this machine")
	}
	dir := t.TempDir()
	stub, calls := filepath.Join(dir, "go"), filepath.Join(dir, "calls")
	require.NoError(t, os.WriteFile(stub, []byte("#!/bin/sh\necho \"$1 $2 $3\" >>"+calls+
		"\ncase \"$*\" in *StorageCeiling*) exit 1;; esac\n"), 0o700))
	out, err := exec.Command("make", "-C", moduleRoot, "tiers", "GO="+stub,
		"OUT="+dir).CombinedOutput()
	require.Error(t, err, "%s", out)
	assert.Contains(t, string(out), "some trials failed: "+dir+"/tiers.txt says why")
	got, err := os.ReadFile(calls)
	require.NoError(t, err)
	assert.Equal(t, "test ./benchmarks -run\ntest ./benchmarks -run\ntest ./benchmarks -run\n"+
		"tool kvreport html\ntool kvreport xlsx\n", string(got))
}
