package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
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

func TestWhatCannotWorkIsRefusedWithNumbers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	has(t, b.refused(append(b.places(), "-test.bench=Synthetic", "-storage-capacity-gb=0.5")...),
		"-storage-capacity-gb: must be at least", "one entry of 25000 tokens of tiny-1b",
		"given 0.5")
	has(t, b.refused(append(b.places(), "-test.bench=DecodeOnly", "-num-users=1000",
		"-storage-capacity-gb=1")...),
		"-storage-capacity-gb: must be at least", "-num-users at most 2")
	has(t, b.refused(append(b.places(), "-test.bench=Synthetic",
		"-storage-capacity-gb=1000000")...),
		"-storage-capacity-gb: must be at most", "GiB free", "given 1000000")
	has(t, b.refused(append(b.places(), "-test.bench=Synthetic", "-cpu-mem-gb=100000")...),
		"-cpu-mem-gb: must be at most", "available according to", "given 100000")
	// One size of a sweep that cannot work stops all of it.
	has(t, b.refused(append(b.places(), "-test.bench=Synthetic", "-sweep",
		"storage-capacity-gb=4,0.5")...), "at least", "given 0.5")
}

func TestForbiddenDirectories(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	link := filepath.Join(b.work, "link")
	require.NoError(t, os.Symlink("/etc", link))
	for _, dir := range []string{"/etc", "/etc/kvbench", "/proc/self", "/dev/shm/kv",
		"/usr/bin/../lib", "/lib/kv", link, filepath.Join(link, "kv")} {
		has(t, b.refused("-test.bench=Synthetic", "-results-dir", b.results, "-cache-dir", dir),
			"-cache-dir: must be", " is a system directory; ")
	}
	file := filepath.Join(b.work, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	has(t, b.refused("-test.bench=Synthetic", "-results-dir", b.results, "-cache-dir", file),
		"-cache-dir", "is not a directory")
	has(t, b.refused("-test.bench=Synthetic", "-results-dir", b.results, "-cache-dir=/dev/null"),
		"/dev/null is a device, not a directory: give a directory on a mounted filesystem")
}

func TestClosedDivision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(b.places(), "-test.bench=MaxStorageStress|LargeModel", "-division=closed",
		"-storage-capacity-gb=4")
	lines := b.refused(append(args, "-num-users=8")...)
	has(t, lines, "-num-users: must be 200 in the closed division (option 1), given 8")
	has(t, lines, "-num-users: must be 70 in the closed division (option 3), given 8")
	// With nothing but free parameters what remains are the places: results and cache may not share
	// a filesystem.
	lines = b.refused(append(b.places(), "-test.bench=MaxStorageStress", "-division=closed",
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
	assert.Regexp(t, `(?m)^-io +direct +`, o.stdout)
	assert.Contains(t, o.stdout, filepath.Join(b.work, "kvbench-results"))
	all := b.ok("-help-parameters").stdout
	assert.Contains(t, all, "-storage-capacity-gb")
	for _, bench := range params.Benchmarks() {
		assert.Regexp(t, `(?m)^`+bench.Name+` +\w.{20}`, all, "what it does")
	}
	for _, args := range [][]string{{"-help-parameters", "s3", "-num-users=3"},
		{"-help-parameters=S3"}, {"-num-users=3", "-help-parameters", "Object stores"}} {
		o = b.ok(args...)
		assert.Regexp(t, `(?m)^Object stores \(S3\)\n-s3-endpoint `, o.stdout)
		assert.NotRegexp(t, `(?m)^-num-users|^Knee`, o.stdout)
	}
	assert.Contains(t, b.ok("-help-parameters", "knee").stdout, "\nKnee ")
	assert.Contains(t, b.answered("-help-parameters", "nonsense"), `has "nonsense" in its name`)
	o = b.run("-help-parameters", "-io=fast")
	assert.Equal(t, exitParameters, o.code)
	assert.Contains(t, o.stderr, "-io: must be")
	assert.Contains(t, o.stdout, "-num-users", "the table is there all the same")
	assert.Equal(t, before, tree(t, b.work))
}

// Keys of the Python benchmark's file that have no effect here say so, in the run and before it.
func TestKeysWithoutEffectAreNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := filepath.Join(b.work, "python.yaml")
	require.NoError(t, os.WriteFile(path,
		[]byte(microConfig+"\nautoscaler:\n  min_users: 2\nsaturation_detection:\n  "+
			"history_window_size: 5\ndecode: {batch_size: 16}\n"), 0o644))
	args := append(b.places(), "-config", path, "-model", "micro", "-storage-capacity-gb", "0.25",
		"-test.bench=Synthetic", "-test.benchtime=5x")
	o := b.ok(append(args, "-help-parameters")...)
	assert.Regexp(t,
		`accepted without effect in .*python.yaml:\n  line \d+: autoscaler.min_users: the autoscaler begins with -num-users`, o.stdout)
	assert.Contains(t, o.stdout, "decode.batch_size = 16", "and this one acts")
	o = b.ok(args...)
	assert.Regexp(t,
		`warning +autoscaler.min_users \(line \d+ of .*python.yaml\) has no effect: the autoscaler begins with -num-users`, o.stderr)
	assert.Contains(t, o.stderr, "saturation_detection.history_window_size")
	assert.NotContains(t, o.stderr, "decode.batch_size (line")
}
