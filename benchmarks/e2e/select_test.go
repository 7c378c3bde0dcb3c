package e2e

import (
	"path/filepath"
	"regexp"
	"slices"
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

func TestPatternsSelectPointsOfASweep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(append(b.micro(), b.places()...), "-test.benchtime=5x", "-test.cpu=1",
		"-sweep=io-depth=1,2")
	o := b.ok(append(args, "-test.bench=StorageCeiling/op=read")...)
	assert.Equal(t, []string{"StorageCeiling/io-depth=1/op=read",
		"StorageCeiling/io-depth=2/op=read"}, names(t, o.stdout))
	o = b.ok(append(args, "-test.bench=StorageCeiling/op=read/io-depth=2")...)
	assert.Equal(t, []string{"StorageCeiling/io-depth=2/op=read"}, names(t, o.stdout))
}

// One point that cannot run does not take the others with it, whichever comes first.
func TestUnsuitablePointsOfASweepAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(b.micro(), "-results-dir", b.results, "-test.benchtime=5x", "-test.cpu=1",
		"-test.count=2", "-io-depth=1", "-test.bench=BlockIO/op=read/size=64KiB")
	o := b.ok(append(args, "-cache-dir", b.cache, "-sweep=io=buffered,direct")...)
	assert.Equal(t, []string{"BlockIO/io=direct/op=read/size=64KiB"}, names(t, o.stdout))
	assert.Contains(t, o.stderr, "\nskipped benchmarks\n  BenchmarkBlockIO/io=buffered: needs -io direct, "+
		"given buffered (sweep): it reads and writes places inside files, past the page cache\n")
	assert.Equal(t, 1, strings.Count(o.stderr, "BenchmarkBlockIO/io=buffered"))
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

// answered wants a refusal of at most four lines: exit code 2, nothing run or made.
func (b *bench) answered(args ...string) string {
	b.t.Helper()
	before := tree(b.t, b.work)
	o := b.run(args...)
	assert.Equal(b.t, exitParameters, o.code, "%v\n%s%s", args, o.stdout, o.stderr)
	assert.Empty(b.t, o.stdout, "%v", args)
	assert.Equal(b.t, before, tree(b.t, b.work), "something was made")
	assert.LessOrEqual(b.t, strings.Count(o.stderr, "\n"), 4, o.stderr)
	return o.stderr
}

// The refusal of a pattern that selects nothing lists the benchmarks, before anything runs.
func TestPatternsThatSelectNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(append(b.micro(), b.places()...), "-test.benchtime=5x")
	for pattern, want := range map[string]string{
		"Foo":                          "-bench Foo selects no benchmark; there are, the nearest first, ",
		"Synthetic|BenchmarkDecodOnly": "-bench BenchmarkDecodOnly selects no benchmark; there are, the nearest first, DecodeOnly, ",
		"StorageCeiling/op=raed":       "no sub-benchmark; there are, the nearest first, StorageCeiling/op=read, ",
	} {
		assert.Contains(t, b.answered(append(args, "-test.bench="+pattern)...), want, pattern)
	}
	assert.Contains(t, b.answered(append(args, "-test.bench=StorageCeiling/op=read",
		"-test.skip=/op=(read|write)")...), "-skip /op=(read|write) leaves nothing of")
	assert.Contains(t, b.answered(append(args, "-test.bench=Synthetic", "-test.skip=(")...),
		`-skip "("`)
}

// What -skip takes out is not asked for its needs, and a pattern runs only what it selects: Go
// also calls functions to see whether something lies below.
func TestSkipIsHonoured(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(append(b.micro(), b.places()...), "-test.benchtime=5x", "-test.cpu=1")
	// Tier and others would want room for 64 files of 16 MiB in a capacity of 256 MiB: no needs.
	o := b.ok(append(args, "-test.bench=Synthetic|DecodeOnly|StorageCeiling", "-num-users=1",
		"-test.skip=DecodeOnly|StorageCeiling/op=[^r]")...)
	assert.Equal(t, []string{"StorageCeiling/op=read", "Synthetic"}, sorted(names(t, o.stdout)))
	// Windows of moments are no ceiling.
	assert.Nil(t, theResult(t, filepath.Join(b.results, "Synthetic")).Ceiling)
}

// sorted is a list in order.
func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

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
