package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// few are the flags of the shortest possible run of Synthetic.
func (b *bench) few(args ...string) []string {
	return append(append(b.micro(), "-test.bench=Synthetic", "-test.benchtime=5x"), args...)
}

// cacheOf is the parameter as the result tells it.
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

func TestRelativePathsMeanWhereTheCommandWasTyped(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func(b *bench) []string{
		"flag": func(b *bench) []string { return []string{"-cache-dir=kv/here"} },
		"environment": func(b *bench) []string {
			b.env = append(b.env,
				"KVBENCH_CACHE_DIR=kv/here")
			return nil
		},
		"file": func(b *bench) []string {
			text := strings.Replace(microConfig, "model: micro", "model: micro, cache-dir: kv/here", 1)
			require.NoError(t, os.WriteFile(filepath.Join(b.work, "here.yaml"), []byte(text),
				0o644))
			return []string{"-config=here.yaml"}
		},
		"flag before environment": func(b *bench) []string {
			b.env = append(b.env, "KVBENCH_CACHE_DIR=elsewhere")
			return []string{"-cache-dir=kv/../kv/here"}
		},
	} {
		b := newBench(t)
		b.ok(b.few(give(b)...)...)
		results := filepath.Join(b.work, "kvbench-results")
		assert.Equal(t, filepath.Join(b.work, "kv/here"), cacheOf(t, results), name)
		assert.False(t, exists(filepath.Join(b.work, "kv")), name)
		files := resultFiles(t, results)
		rel, err := filepath.Rel(results, files[0])
		require.NoError(t, err)
		assert.Regexp(t,
			`^\d{8}-\d{6}-\d+/Synthetic/trial_0/rank_0/kvcache_results_\d{8}_\d{6}\.json$`, rel)
	}
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
		{root, []string{"go", "test", "kvbench/benchmarks"}, root},
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
	// The binary itself, started by hand inside a module.
	b := newBench(t)
	b.dir = filepath.Join(root, "testdata")
	assert.Contains(t, b.ok("-help-parameters").stdout, filepath.Join(b.dir, "kvbench-results"))
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

	b = newBench(t) // of an option
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=LargeModel", "-test.benchtime=3x",
		"-sweep=num-users=4,8")...)
	assert.Equal(t, "4", parameter(t,
		theResult(t, filepath.Join(b.results, "option_3_num-users=4/trial_0/rank_0")), "num-users"))
	assert.Equal(t, "8", parameter(t,
		theResult(t, filepath.Join(b.results, "option_3_num-users=8/trial_0/rank_0")), "num-users"))

	b = newBench(t) // of the seed, which has a line of its own
	o = b.ok(b.few(append(b.places(), "-sweep=seed=1,2")...)...)
	assert.NotContains(t, o.stdout, "\nseed: ")
	assert.EqualValues(t, 2, theResult(t, filepath.Join(b.results, "Synthetic_seed=2")).Seed)

	b = newBench(t) // one of them by name, as go test selects sub-benchmarks
	b.ok(b.few(append(b.places(), "-sweep=num-users=1,3",
		"-test.bench=Synthetic/num-users=3")...)...)
	assert.Equal(t, "3", parameter(t, theResult(t, b.results), "num-users"))
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

func TestSharedFilesystemsAreOfNoConcernInTheOpenDivision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok(b.few(append(b.places(), "-division=open", "-num-users=2")...)...)
	r := theResult(t, b.results)
	assert.Equal(t, "open", r.Division)
	assert.NotContains(t, strings.Join(r.Warnings, "\n"), "share a filesystem")
	assert.NotEmpty(t, r.DiffersFromClosed)
}

func TestCountsEndATrial(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=Synthetic",
		"-test.benchtime=50x")...)
	r := theResult(t, b.results)
	assert.Equal(t, result.EndedByCount, r.EndedBy)
	assert.EqualValues(t, 50, r.RequestsCompleted)

	b = newBench(t)
	b.ok(append(append(b.micro(), b.places()...), "-test.bench=Synthetic", "-max-requests=30")...)
	r = theResult(t, b.results)
	assert.Equal(t, result.EndedByMaxRequests, r.EndedBy)
	assert.EqualValues(t, 30, r.RequestsCompleted)

	b = newBench(t)
	b.ok(append(append(b.micro(), b.places()...),
		"-test.bench=Tier/tier=storage/op=write/size=1MiB", "-test.benchtime=9x")...)
	r = theResult(t, b.results)
	assert.Equal(t, result.EndedByCount, r.EndedBy)
	assert.EqualValues(t, 9, r.Requests.Operations)
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
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		r, err := result.Parse(text)
		require.NoError(t, err)
		assert.Equal(t, result.StatusFailed, r.Status)
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
	for i := range copies {
		one, err := os.ReadFile(copies[i])
		require.NoError(t, err)
		var same bool
		for _, f := range originals {
			other, err := os.ReadFile(f)
			require.NoError(t, err)
			same = same || string(one) == string(other)
		}
		assert.True(t, same)
		assert.FileExists(t, filepath.Join(filepath.Dir(copies[i]), "summary.txt"))
	}
}
