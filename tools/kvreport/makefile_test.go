package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMakeScenariosMakesAPageOfWhatDidNotFail: the stub of go fails like a run with one failed trial, which has
// results, or like one that is refused.
func TestMakeScenariosMakesAPageOfWhatDidNotFail(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not on this machine")
	}
	dir := t.TempDir()
	stub, calls := filepath.Join(dir, "go"), filepath.Join(dir, "calls")
	require.NoError(t, os.WriteFile(stub, []byte("#!/bin/sh\necho \"$*\" | sed 's|"+dir+"/[a-z/]*[0-9-]*|OUT|g' >>"+calls+
		"\ncase $1 in test) [ -n \"$REFUSED\" ] || mkdir \"$8\"; exit 3;; esac\n"), 0o700))
	for _, arguments := range [][]string{{}, {"REFUSED=1", "OUT=" + dir + "/refused", "SCENARIOS=mine.yaml", "TIME=2s", "COUNT=3", "CACHE_DIR=/kv"},
		{"REFUSED=1", "OUT=" + dir + "/memory", "SCENARIOS=gpu-only cpu-only gpu-cpu", "CACHE_DIR=/kv"}} {
		out, err := exec.Command("make", append([]string{"-C", moduleRoot, "scenarios", "GO=" + stub, "OUT=" + dir},
			arguments...)...).CombinedOutput()
		require.Error(t, err, "%s", out)
		assert.Contains(t, string(out), "Error 3")
	}
	got, err := os.ReadFile(calls)
	require.NoError(t, err)
	assert.Equal(t, "test ./benchmarks -run ^$ -bench . -results-dir OUT -scenario "+
		"autoscale,capacity-autoscale,cpu-only,cpu-storage,gpu-cpu,gpu-cpu-storage,gpu-only,mlperf,production,"+
		"storage-only,storage-saturation\n"+
		"tool kvreport html OUT -o OUT/scenarios.html\ntool kvreport xlsx OUT -o OUT/scenarios.xlsx\n"+
		"test ./benchmarks -run ^$ -bench . -results-dir OUT -scenario mine.yaml -benchtime 2s -count 3 -cache-dir /kv\n"+
		"test ./benchmarks -run ^$ -bench . -results-dir OUT -scenario gpu-only,cpu-only,gpu-cpu\n", // no storage
		string(got))
}
