package benchmarks

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

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
