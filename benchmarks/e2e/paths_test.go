package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// few are the flags of the shortest possible run of Synthetic.
func (b *bench) few(args ...string) []string {
	return append(append(b.micro(), "-test.bench=Synthetic", "-test.benchtime=5x"), args...)
}

// cacheOf is the parameter in the result.
func cacheOf(t testing.TB, results string) string {
	t.Helper()
	return parameter(t, theResult(t, results), "cache-dir")
}

func parameter(t testing.TB, r *result.Result, name string) string {
	t.Helper()
	for _, p := range r.Parameters {
		if p.Name == name {
			return fmt.Sprint(p.Value)
		}
	}
	t.Errorf("no parameter %s", name)
	return ""
}

func TestRelativePathsOfTheGoCommand(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	root, err := filepath.Abs(moduleRoot)
	require.NoError(t, err)
	for _, c := range []struct {
		typed   string // where
		command []string
		base    string // what relative paths then mean
	}{
		{filepath.Join(root, "tiers"), []string{"go", "test", "../benchmarks"},
			filepath.Join(root, "tiers")},
		// as if typed there
		{os.TempDir(), []string{"go", "test", "-C", root, "./benchmarks"}, root},
	} {
		b := newBench(t)
		b.command = append(c.command, "-run=^$")
		args := goFlags(b.few())
		rel := func(path string) string {
			r, err := filepath.Rel(c.base, path)
			require.NoError(t, err)
			return r
		}
		args = append(args, "-cache-dir="+rel(b.cache), "-results-dir="+rel(b.results))
		b.dir = c.typed
		o := b.ok(args...)
		assert.Equal(t, b.cache, cacheOf(t, b.results), "%v", c.command)
		assert.Contains(t, o.stdout, "result: "+b.results)
		assert.False(t, exists(b.cache))
	}
}

func TestSweepsAreSubBenchmarks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.ok(b.few(append(b.places(), "-sweep=num-users=1,3", "-sweep=io-depth=1,2",
		"-test.count=2")...)...)
	results, _ := parse(t, o.stdout)
	count := make(map[string]int)
	for _, r := range results {
		name, parts := r.Name.Parts()
		assert.Equal(t, "Synthetic", string(name))
		key := ""
		for _, p := range parts[:2] {
			key += string(p)
		}
		count[key]++
		for _, c := range r.Config {
			assert.NotContains(t, []string{"num-users", "io-depth", "sweep"}, c.Key)
		}
	}
	assert.Equal(t, map[string]int{
		"/num-users=1/io-depth=1": 2, "/num-users=1/io-depth=2": 2, "/num-users=3/io-depth=1": 2,
		"/num-users=3/io-depth=2": 2,
	}, count)
	assert.Len(t, resultFiles(t, b.results), 8)
	one := theResult(t, filepath.Join(b.results, "Synthetic_num-users=3_io-depth=2/trial_1"))
	assert.Equal(t, "3", parameter(t, one, "num-users"))
	assert.Equal(t, "2", parameter(t, one, "io-depth"))
	assert.Equal(t, 1, one.Trial)

}

// TestADeadReaderDoesNotKillTheRun: the result is what matters.
func TestADeadReaderDoesNotKillTheRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.command = []string{"sh", "-c", `"$0" -test.run='^$' "$@" | head -n 1`, binary(t)}
	b.ok(b.few(b.places()...)...)
	assert.Equal(t, result.StatusComplete, theResult(t, b.results).Status)
	assert.False(t, exists(b.cache))
}

// TestAWindowWithoutAnyCompletion is an error that says what was slowest, not a rate of zero.
func TestAWindowWithoutAnyCompletion(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(append(b.places(), "-test.bench=MultiTurn", "-test.benchtime=5ms",
		"-test.count=2")...)
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout, "no request completed in the window of 5ms")
	assert.NotContains(t, o.stdout, "req/s\t")
	assert.NotContains(t, o.stdout, "PASS")
	assert.False(t, exists(b.cache))
	for _, f := range resultFiles(t, b.results) {
		assert.Equal(t, result.StatusFailed, readResult(t, f).Status)
	}
}

func TestArtifactsHoldACopy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out := filepath.Join(b.work, "out")
	require.NoError(t, os.Mkdir(out, 0o755))
	b.ok(b.few(append(b.places(), "-test.artifacts", "-test.outputdir="+out,
		"-test.count=2")...)...)
	copies, originals := resultFiles(t, out), resultFiles(t, b.results)
	assert.Len(t, copies, 2)
	assert.Len(t, originals, 2)
	texts := func(files []string) (list []string) {
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			list = append(list, string(text))
			assert.FileExists(t, filepath.Join(filepath.Dir(f), "summary.txt"))
		}
		return list
	}
	assert.ElementsMatch(t, texts(originals), texts(copies))
}
