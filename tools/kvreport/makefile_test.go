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
	require.NoError(t, os.WriteFile(stub, []byte("#!/bin/sh\n[ $1 = env ] && exit\necho \"$*\" | sed 's|"+dir+"/[a-z/]*[0-9-]*|OUT|g' >>"+calls+
		"\ncase $1 in test) [ -n \"$REFUSED\" ] || mkdir \"$8\"; exit 3;; esac\n"), 0o700))
	for _, arguments := range [][]string{{}, {"REFUSED=1", "OUT=" + dir + "/refused", "SCENARIOS=mine.yaml", "TIME=2s", "COUNT=3", "CACHE_DIR=/kv"},
		{"REFUSED=1", "OUT=" + dir + "/memory", "SCENARIOS=gpu-only cpu-only gpu-cpu", "CACHE_DIR=/kv"}} {
		out, err := exec.Command("make", append([]string{"-C", moduleRoot, "scenarios", "GO=" + stub, "OUT=" + dir},
			arguments...)...).CombinedOutput()
		require.Error(t, err, "%s", out)
		assert.Contains(t, string(out), "Error 3")
	}
	// A flag replaces the scenarios' values in all, also "none".
	out, err := exec.Command("make", "-C", moduleRoot, "scenarios", "GO="+stub, "OUT="+dir, "SCENARIOS=gpu-only mlperf cpu-only",
		"ARGS=-storage-capacity-gb 4").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "make scenarios: -storage-capacity-gb would give gpu-only cpu-only a storage tier: "+
		"SCENARIOS='mlperf' leaves them out\n")
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

// TestMakeDrives: the stub of go compiles a program that plans, and its turns leave a text. Earlier output moves aside.
func TestMakeDrives(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not on this machine")
	}
	t.Setenv("MAKEFLAGS", "") // of the make that runs the tests
	dir := t.TempDir()
	stub, out := filepath.Join(dir, "go"), filepath.Join(dir, "out")
	require.NoError(t, os.WriteFile(stub, []byte("#!/bin/sh\ncase $3 in\n"+
		"-ldflags) printf '#!/bin/sh\\necho the plan; echo Nothing was run.' >"+out+"/bench.test; chmod +x "+out+"/bench.test;;\n"+
		"turns) echo turns; echo text >"+out+"/a.txt;;\n*) echo $3;;\nesac\n"), 0o700))
	run := func(arguments ...string) string {
		made, err := exec.Command("make", append([]string{"-s", "-C", moduleRoot, "drives", "GO=" + stub, "DRIVES_OUT=" + out},
			arguments...)...).CombinedOutput()
		return string(made) + map[bool]string{true: "failed"}[err != nil]
	}
	const compiling = "compiling the benchmarks: the first time this takes about two minutes\n"
	assert.Contains(t, run("A=/x", "B=/x/"), "make drives: A and B are both /x: give a directory on each of two drives\n")
	assert.NoDirExists(t, out)
	assert.Equal(t, compiling+"the plan\nNothing was run.\n", run("A=/x", "B=/y", "ARGS=-dry-run"))
	whole := compiling + "the plan\nturns\nhtml\nquote\nthe page with plots: " + out + "/drives.html\n"
	assert.Equal(t, whole, run("A=/x", "B=/y"))
	assert.FileExists(t, out+"/.gitignore")
	run("A=/x", "B=/y", "ARGS=-dry-run")
	assert.FileExists(t, out+"/a.txt", "a plan leaves the results")
	assert.Regexp(t, "^the earlier output is in "+out+`\.\d+-\d+`+"\n"+whole+"$", run("A=/x", "B=/y"))
	earlier, err := filepath.Glob(out + ".*/a.txt")
	require.NoError(t, err)
	assert.Len(t, earlier, 1)
}

// TestMakeGateNeedsAnotherRevision: it ends before it makes or moves anything.
func TestMakeGateNeedsAnotherRevision(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("make is not on this machine")
	}
	out := filepath.Join(t.TempDir(), "gate")
	made, err := exec.Command("make", "-C", moduleRoot, "gate", "BASE=origin/nosuch", "GATE_OUT="+out).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(made), "make gate BASE=origin/nosuch: git knows no such revision here: name a commit, a branch or a tag")
	assert.NotContains(t, string(made), "fatal")
	assert.NoDirExists(t, out)
}
