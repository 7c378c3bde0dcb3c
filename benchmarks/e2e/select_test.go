package e2e

import (
	"path/filepath"
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
	assert.NotContains(t, o.stderr, "selects none")
	o = b.ok(append(args, "-test.bench=StorageCeiling/op=read/io-depth=2")...)
	assert.Equal(t, []string{"StorageCeiling/io-depth=2/op=read"}, names(t, o.stdout))
}

// A pattern that selects nothing says so, and what there is to select.
func TestPatternsThatSelectNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	args := append(append(b.micro(), b.places()...), "-test.benchtime=5x")
	o := b.ok(append(args, "-test.bench=StorageCeiling/op=raed")...)
	assert.Empty(t, names(t, o.stdout))
	assert.Contains(t, o.stderr,
		"-bench StorageCeiling/op=raed selects none of these sub-benchmarks, "+
			"of which nothing ran\n"+
			"  StorageCeiling/op=read\n  StorageCeiling/op=write\n  StorageCeiling/op=mixed\n")
	o = b.ok(append(args, "-sweep=num-users=1,3", "-test.bench=Synthetic/num-users=2")...)
	assert.Contains(t, o.stderr, "nothing ran\n  Synthetic/num-users=1\n  Synthetic/num-users=3\n")
	assert.False(t, exists(b.results))
}

// -cpu 1,2 are two benchmarks: each has its own trials and its own place.
func TestSeveralCPUsHaveTrialsOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.ok(b.few(append(b.places(), "-test.cpu=1,2", "-test.count=2")...)...)
	assert.Equal(t, []string{"Synthetic", "Synthetic-2"}, names(t, o.stdout))
	for _, of := range []string{"trial 1 of 2", "trial 2 of 2"} {
		assert.Contains(t, o.stderr, of)
	}
	assert.NotContains(t, o.stderr, "trial 3")
	require.Len(t, resultFiles(t, b.results), 4)
	for _, name := range []string{"Synthetic", "Synthetic-2"} {
		r := theResult(t, filepath.Join(b.results, name, "trial_1"))
		assert.Equal(t, name, r.Name)
		assert.Equal(t, 1, r.Trial)
		// the first call of all, too, although the testing package sets its processors only after
		// it
		for trial := range 2 {
			r := theResult(t, filepath.Join(b.results, name, "trial_"+string(rune('0'+trial))))
			assert.Equal(t, map[string]int{"Synthetic": 1, "Synthetic-2": 2}[name],
				r.Environment.GOMAXPROCS)
		}
		assert.FileExists(t, filepath.Join(b.results, name, "trial_1", "rank_0", "summary.txt"))
	}
}
