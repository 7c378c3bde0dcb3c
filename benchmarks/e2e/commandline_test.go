package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The refusal of an unknown flag has three lines: the flag, the nearest one, where all are listed.
func TestUnknownFlagsAreRefusedInThreeLines(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct{ flag, want string }{
		{"-num-user=3", "unknown flag -num-user\n  did you mean -num-users?\n"},
		{"-recycle", "unknown flag -recycle\n  it was removed: -layout slots overwrites in place\n"},
		{"-duration=60s", "unknown flag -duration\n  it is -benchtime here, such as -benchtime 60s\n"},
		{"-benchtime=60s", "in the binary Go's own flags have a prefix: -test.benchtime\n"},
		{"-test.benchtim=60s", "did you mean -test.benchtime?\n"},
		{"-xyzzy-frotz-plugh", "unknown flag -xyzzy-frotz-plugh\n  -help-parameters"},
		{"-test.v=maybe", "-test.v: cannot be \"maybe\""},
	} {
		text := b.answered("-test.bench=Synthetic", c.flag)
		assert.Contains(t, text, c.want)
		assert.Contains(t, text, "-help-parameters lists")
	}
	assert.Contains(t, b.answered("-test.bench=Synthetic", "-cache-dir"),
		"flag needs an argument: -cache-dir")
}

// Go ends the flags at the first word that is none, and would ignore what follows.
func TestStrayWordsAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	assert.Contains(t, b.answered("-test.bench=RAG", "-enable-rag", "true", "-num-users=2",
		"-cache-dir", b.cache), "\"true\" behind -enable-rag is no flag: everything after it would "+
		"be ignored\n  did you mean -enable-rag=true?\n")
	assert.Contains(t, b.answered("-enable-rag", "true", "-test.bench=RAG"),
		"did you mean -enable-rag=true?", "although -bench stands behind it")
	assert.Contains(t, b.answered("-num-users=2", "Synthetic"), "\"Synthetic\" is no flag")
	assert.NoDirExists(t, b.cache)
}

// The binary has no tests of its own to run: their data lie in the source.
func TestTheBinaryAloneSaysHowToRunIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.command = []string{binary(t)}
	text := b.run()
	assert.Equal(t, exitParameters, text.code)
	assert.Empty(t, text.stdout)
	assert.Contains(t, text.stderr, "kvbench.test -test.run '^$' -test.bench MaxStorageStress")
	assert.Contains(t, b.answered("-cache-dir", b.cache),
		"-cache-dir is for benchmarks, and none is selected: -bench says which")
	o := b.ok("-version")
	assert.True(t, strings.HasPrefix(o.stdout, "kvbench "), o.stdout)
	assert.Empty(t, o.stderr)
	// A binary that was kept is not made of the commit in whose checkout it runs.
	for path, text := range map[string]string{"go.mod": "module kvbench\n",
		".git/HEAD": strings.Repeat("a1", 20) + "\n"} {
		path = filepath.Join(b.work, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	assert.Equal(t, o.stdout, b.ok("-version").stdout)
}

// Environment and file serve several runs: values that one run ignores are listed once.
func TestIgnoredValuesOfTheEnvironmentAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env = append(b.env, "KVBENCH_RAG_NUM_DOCS=3", "KVBENCH_SEED=7")
	o := b.ok(b.few(append(b.places(), "-test.count=2")...)...)
	assert.Equal(t, 1, strings.Count(o.stderr, "\nset, and ignored by this run\n  "+
		"rag-num-docs = 3 (environment KVBENCH_RAG_NUM_DOCS) is for synthetic users "+
		"with -enable-rag\n"), o.stderr)
	assert.NotContains(t, o.stderr, "KVBENCH_SEED)")
	// benchstat would make two tables of equal numbers
	assert.NotContains(t, o.stdout, "\nrag-num-docs: ")
	assert.Contains(t, o.stdout, "\nseed: 7\n")
	assert.FileExists(t, filepath.Join(b.results, "Synthetic", "trial_1", "rank_0", "summary.txt"))
}

// A run whose results directory cannot be written would fail only at its end.
func TestTheResultsDirectoryIsTriedBeforeTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(b.work, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	has(t, b.refused("-test.bench=StorageCeiling|Synthetic", "-cache-dir", b.cache, "-results-dir",
		file), "-results-dir: must be a directory in which 4 MiB can be written, given "+file,
		"is no directory")
	// With everything else that is wrong.
	lines := b.refused("-test.bench=Synthetic", "-results-dir", file, "-num-users=0",
		"-storage-capacity-gb=100000000")
	has(t, lines, "-num-users: must be a whole number in")
	has(t, lines, "-storage-capacity-gb: must be at most")
	has(t, lines, "-results-dir: must be a directory")
	assert.Len(t, lines, 3)
}

// The quick division only shows that everything works: a user who gives a directory wants more.
func TestQuickNumbersSayThatTheyDescribeNoStorage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const loud = "\nTHESE NUMBERS DESCRIBE NO STORAGE\n  -cache-dir was given and -division was not."
	assert.Contains(t, b.ok(b.few(b.places()...)...).stderr, loud)
	r := theResult(t, b.results)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), "its numbers describe no storage; add "+
		"-division open")
	for _, args := range [][]string{{"-division=quick", "-cache-dir", b.cache},
		{"-division=open", "-cache-dir", b.cache}, {}} {
		o := b.ok(b.few(append(args, "-results-dir", filepath.Join(b.work, "more"))...)...)
		assert.NotContains(t, o.stderr, "DESCRIBE NO STORAGE", args)
		assert.NotContains(t, o.stderr, "describe no storage", args)
	}
}
