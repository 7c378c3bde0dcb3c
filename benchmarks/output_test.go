package benchmarks

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// A binary without a revision is reported before hours are measured for a submission.
func TestNoCodeImage(t *testing.T) {
	option, _ := params.Benchmark("MaxStorageStress")
	plan := func(division params.Division) []*params.Values {
		return []*params.Values{{Division: division, Bench: option}}
	}
	assert.Contains(t, noImage(plan(params.Closed), "unknown"),
		"does not know its revision, so that kvreport submission can make no code image; measure "+
			"with go test ./benchmarks in a git checkout, a binary of make dist")
	assert.Empty(t, noImage(plan(params.Closed), strings.Repeat("0", 40)))
	assert.Empty(t, noImage(plan(params.Open), "unknown"))
}

func TestAPathIsOneWordOfAShell(t *testing.T) {
	assert.Equal(t, "/mnt/nvme0/kv-cache_1/rank_0", word("/mnt/nvme0/kv-cache_1/rank_0"),
		"a plain one is left as people type it")
	for _, path := range []string{"/mnt/two words", "/mnt/it's", "/mnt/$HOME/*", "/mnt/a;b&c|d", "/mnt/\n",
		"/mnt/~(x)[y]{z}\"`#!\\", ""} {
		out, err := exec.Command("sh", "-c", "printf '<%s>' "+word(path)).Output()
		require.NoError(t, err)
		assert.Equal(t, "<"+path+">", string(out))
	}
}

// Of the trials of each benchmark one is told in full: the first that is complete.
func TestOneTrialIsToldInFull(t *testing.T) {
	of := func(name, status string) *result.Result {
		return &result.Result{Name: name, Status: status}
	}
	const done, failed = result.StatusComplete, result.StatusFailed
	assert.Equal(t, []bool{false, true, true, false, false, true},
		wholes([]*result.Result{of("a", failed), of("b", done), of("a", done), of("a", done),
			of("b", failed), of("c", failed)}))
	assert.Equal(t, []bool{true, false}, wholes([]*result.Result{of("a", failed), of("a", failed)}))
	assert.Empty(t, wholes(nil))
}
