package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// refused runs with parameters that cannot work: exit code 2, a message, no
// benchmark, and nothing made. It returns the messages, one per line.
func (b *bench) refused(args ...string) []string {
	b.t.Helper()
	before := tree(b.t, b.work)
	o := b.run(args...)
	assert.Equal(b.t, exitParameters, o.code, "%v\n%s%s", args, o.stdout, o.stderr)
	assert.Empty(b.t, o.stdout, "%v", args)
	assert.Equal(b.t, before, tree(b.t, b.work), "something was made")
	lines := strings.Split(strings.TrimSpace(o.stderr), "\n")
	require.Greater(b.t, len(lines), 2, o.stderr)
	assert.Equal(b.t, "kvbench: nothing was run or made, because of the parameters:", lines[0])
	assert.Contains(b.t, lines[len(lines)-1], "-help-parameters")
	return lines[1 : len(lines)-1]
}

// has wants one of the lines to contain all the words.
func has(t *testing.T, lines []string, words ...string) {
	t.Helper()
	for _, line := range lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return
		}
	}
	t.Errorf("no message has %q:\n%s", words, strings.Join(lines, "\n"))
}

func TestTenWrongParametersGiveTenMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	config := filepath.Join(b.work, "wrong.yaml")
	require.NoError(t, os.WriteFile(config, []byte("parameters:\n  num-gpus: 0\n  verfy: full\n"),
		0o644))
	b.env = append(b.env, "KVBENCH_TRACE_SPEEDUP=-1", "KVBENCH_WARMUP=25h")
	lines := b.refused(append(b.places(), "-test.bench=.", "-test.benchtime=25h", "-config", config,
		"-num-users=0", "-cpu-mem-gb=-1", "-io=fast", "-chunk-size=1000", "-nonce=zz",
		"-prefill-only", "-decode-only")...)
	assert.Len(t, lines, 11) // the tenth and eleventh are the file's
	has(t, lines, "-num-users: must be", "100000", "given 0", "flag")
	has(t, lines, "-cpu-mem-gb: must be", "131072", "given -1")
	has(t, lines, "-io: must be", "direct, buffered", "given fast")
	has(t, lines, "-chunk-size: must be", "given 1000")
	has(t, lines, "-nonce: must be", "given zz")
	has(t, lines, "-decode-only: must be false with -prefill-only")
	has(t, lines, "-benchtime: must be", "24h", "25h")
	has(t, lines, "-trace-speedup: must be", "given -1", "KVBENCH_TRACE_SPEEDUP")
	has(t, lines, "-warmup: must be", "25h", "KVBENCH_WARMUP")
	has(t, lines, "num-gpus", "given 0", config+":2")
	has(t, lines, "verfy", "3", "verify")
}

// TestClosedDivision: parameters that are free are accepted, but results and cache may not share a
// filesystem.
func TestClosedDivision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lines := b.refused(append(b.places(), "-test.bench=MaxStorageStress", "-division=closed",
		"-storage-capacity-gb=4", "-keep-files", "-progress=none", "-seed=42")...)
	require.Len(t, lines, 1)
	has(t, lines, "-results-dir: must be on another filesystem than the cache directory", b.results,
		b.cache)
}

func TestHelpParameters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env = append(b.env, "KVBENCH_SEED=7")
	before := tree(t, b.work)
	o := b.ok("-help-parameters", "-test.bench=LargeModel", "-division=open", "-num-users=3")
	assert.Regexp(t, `(?m)^-seed +7 +environment KVBENCH_SEED +42 `, o.stdout)
	assert.Regexp(t, `(?m)^-num-users +3 +flag `, o.stdout)
	assert.Regexp(t, `(?m)^-model +llama3.1-70b-instruct +benchmark LargeModel `, o.stdout)
	assert.Contains(t, o.stdout, filepath.Join(b.work, "kvbench-results"))
	o = b.ok("-num-users=3", "-help-parameters", "Object stores")
	assert.Regexp(t, `(?m)^Object stores \(S3\)\n-s3-endpoint `, o.stdout)
	assert.NotRegexp(t, `(?m)^-num-users|^Knee`, o.stdout)
	assert.Contains(t, b.answered("-help-parameters", "nonsense"), `has "nonsense" in its name`)
	o = b.run("-help-parameters", "-io=fast")
	assert.Equal(t, exitParameters, o.code)
	assert.Contains(t, o.stderr, "-io: must be")
	assert.Contains(t, o.stdout, "-num-users", "the table is there all the same")
	assert.Equal(t, before, tree(t, b.work))
}
