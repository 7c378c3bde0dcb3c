package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// names are the benchmarks of the lines, each once.
func names(t *testing.T, stdout string) (list []string) {
	results, _ := parse(t, stdout)
	seen := map[string]bool{}
	for _, r := range results {
		if name := string(r.Name); !seen[name] {
			seen[name] = true
			list = append(list, name)
		}
	}
	return list
}

// One point that cannot run does not take the others with it, whichever comes first.
func TestUnsuitablePointsOfASweepAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.ok(append(append(b.micro(), b.places()...), "-test.benchtime=30x", "-test.cpu=1",
		"-test.count=2", "-io-depth=5", "-test.bench=BlockIO/op=read/size=64KiB",
		"-sweep=io=buffered,direct")...)
	assert.Equal(t, []string{"BlockIO/io=direct/op=read/size=64KiB"}, names(t, o.stdout))
	assert.Contains(t, o.stderr, "\nskipped benchmarks\n  BenchmarkBlockIO/io=buffered: needs -io direct, "+
		"given buffered (sweep): it reads and writes places inside files, past the page cache\n")
	assert.Equal(t, 1, strings.Count(o.stderr, "BenchmarkBlockIO/io=buffered"))
	paths := resultFiles(t, b.results)
	require.Len(t, paths, 2)
	for _, path := range paths {
		r := readResult(t, path)
		assert.Equal(t, []any{5, int64(30), int64(64 << 10)},
			[]any{r.Workload.Workers, r.Completions(), r.PlainIO.BlockBytes})
	}
}

// -plan lists the lines with trials, windows and storage, and what is skipped. It makes no directory.
func TestPlanRunsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(b.places(), "-test.bench=StorageCeiling/op=read|ShareGPT|DataGen", "-test.benchtime=90s",
		"-test.count=2", "-plan")
	o := b.ok(append(args, "-sweep=io-depth=1,2", "-storage-capacity-gb=0.25")...)
	for _, depth := range []string{"1", "2"} {
		assert.Regexp(t, `(?m)^StorageCeiling/io-depth=`+depth+`/op=read +2 +90s +256 MiB in `+
			regexp.QuoteMeta(b.cache)+` *$`, o.stdout)
	}
	assert.Contains(t, o.stdout, "6 trials. Their windows take 9m0s in all;")
	assert.Contains(t, o.stdout, "\nskipped: ShareGPT/io-depth=1 needs -dataset-path\n")
	assert.NoDirExists(t, b.cache)
	assert.NoDirExists(t, b.results)
	// What could not run is refused, as it would be without -plan.
	o = b.run(append(args, "-storage-capacity-gb=1000000")...)
	assert.Equal(t, 2, o.code)
	assert.Contains(t, o.stderr, "-storage-capacity-gb: must be at most")
}

// A memory tier is as large as was given; what does not fit into it is listed. Its line has the
// percentiles of its entries.
func TestMemoryTiersAreAsLargeAsGiven(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.ok(append(b.places(), "-test.bench=Tier/tier=[cg]pu/op=read/size=1", "-test.cpu=1",
		"-test.benchtime=500x", "-cpu-mem-gb=0.03125", "-gpu-mem-gb=0.03125", "-workers=20")...)
	for _, tier := range []string{"gpu", "cpu"} {
		name := "Tier/tier=" + tier + "/op=read/size=1"
		assert.Contains(t, o.stderr, "\n  Benchmark"+name+"6MiB: needs a "+tier+" tier of at least "+
			"64 MiB, 4 entries; -"+tier+"-mem-gb gives it 32 MiB\n")
		r := theResult(t, filepath.Join(b.results, strings.ReplaceAll(name, "/", "_")+"MiB"))
		assert.EqualValues(t, 32<<20, *r.Tiers[0].CapacityBytes)
		assert.Contains(t, r.Warnings, "15 of 20 workers run: the "+tier+" tier has no room for "+
			"more entries of 1 MiB")
		assert.Regexp(t, `(?m)^Benchmark`+name+`MiB .* read-p50-ns`, o.stdout)
	}
	assert.Len(t, names(t, o.stdout), 2)
}

// -cpu 1,2 are two benchmarks: each has its own trials and its own place.
func TestSeveralCPUsHaveTrialsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.ok(b.few(append(b.places(), "-test.cpu=1,2", "-test.count=2")...)...)
	assert.Equal(t, []string{"Synthetic", "Synthetic-2"}, names(t, o.stdout))
	assert.NotContains(t, o.stderr, "trial 3")
	require.Len(t, resultFiles(t, b.results), 4)
	for _, name := range []string{"Synthetic", "Synthetic-2"} {
		// Trial 0 too, although the testing package sets its processors only after the first call.
		for trial := range 2 {
			r := theResult(t, filepath.Join(b.results, name, "trial_"+string(rune('0'+trial))))
			assert.Equal(t, name, r.Name)
			assert.Equal(t, trial, r.Trial)
			assert.Equal(t, map[string]int{"Synthetic": 1, "Synthetic-2": 2}[name],
				r.Environment.GOMAXPROCS)
		}
		assert.FileExists(t, filepath.Join(b.results, name, "trial_1", "rank_0", "summary.txt"))
	}
}

func TestSweepsAreSubBenchmarks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out := filepath.Join(b.work, "out")
	require.NoError(t, os.Mkdir(out, 0o755))
	o := b.ok(b.few(append(b.places(), "-sweep=num-users=1,3", "-sweep=io-depth=1,2",
		"-test.count=2", "-test.artifacts", "-test.outputdir="+out)...)...)
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
	texts := func(dir string) (list []string) {
		for _, f := range resultFiles(t, dir) {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			list = append(list, string(text))
			assert.FileExists(t, filepath.Join(filepath.Dir(f), "summary.txt"))
		}
		return list
	}
	assert.Len(t, texts(b.results), 8)
	assert.ElementsMatch(t, texts(b.results), texts(out), "the artifacts hold a copy")
	one := theResult(t, filepath.Join(b.results, "Synthetic_num-users=3_io-depth=2/trial_1"))
	assert.Equal(t, "3", parameter(t, one, "num-users"))
	assert.Equal(t, "2", parameter(t, one, "io-depth"))
	assert.Equal(t, 1, one.Trial)
}
