package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
)

// TestBlocksInsideFiles: the lines, results and tables of BlockIO.
func TestBlocksInsideFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	o := b.run(append(b.places(), "-test.bench=BlockIO/op=(read|write)/size=64KiB",
		"-storage-capacity-gb=0.125", "-io-depth=5", "-test.benchtime=3000x")...)
	if o.code != 0 {
		require.Contains(t, o.stdout, "requests inside files need direct I/O")
		t.Skip("the filesystem of the temporary directory refuses direct I/O")
	}
	lines, _ := parse(t, o.stdout)
	require.Len(t, lines, 2)
	for _, l := range lines {
		for _, unit := range []string{"io/s", "cpu-sec/io"} {
			v, some := l.Value(unit)
			assert.True(t, some && v > 0, "%s of %s", unit, l.Name)
		}
	}
	paths := resultFiles(t, b.results)
	require.Len(t, paths, 2)
	for _, path := range paths {
		r := readResult(t, path)
		assert.EqualValues(t, 3000, r.Completions())
		assert.Equal(t, result.EndedByCount, r.EndedBy)
		assert.EqualValues(t, 64<<10, r.PlainIO.BlockBytes)
		assert.Equal(t, 5, r.Workload.Workers)
		sections := report.Sections(r)
		i := slices.IndexFunc(sections,
			func(s report.Section) bool { return s.Title == "Requests Inside Files" })
		require.GreaterOrEqual(t, i, 0)
		assert.Len(t, sections[i].Rows, 1)
	}
}

// TestTheKneeOfADirectory: what the summary shows of the grid, and that the result has it. In the
// quick division the grid takes some seconds.
func TestTheKneeOfADirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the grid takes seven seconds")
	}
	t.Parallel() // it waits for its measurements
	b := newBench(t)
	o := b.run(append(b.places(), "-test.bench=Knee/op=read",
		"-storage-capacity-gb=0.25", "-ceiling-size-gb=0.0625", "-test.benchtime=10x")...)
	if o.code != 0 {
		require.Contains(t, o.stdout, "requests inside files need direct I/O")
		t.Skip("the filesystem of the temporary directory refuses direct I/O")
	}
	lines, _ := parse(t, o.stdout)
	require.Len(t, lines, 1)
	bytes, some := lines[0].Value("knee-bytes")
	r := theResult(t, b.results)
	k := r.PlainIO.Knee
	require.NotNil(t, k)
	assert.Equal(t, k.InFlight, r.Workload.Workers, "the window measures it")
	assert.Equal(t, k.RequestBytes, r.PlainIO.BlockBytes)
	assert.NotEmpty(t, k.Points)
	summary, err := os.ReadFile(filepath.Join(filepath.Dir(resultFiles(t, b.results)[0]),
		"summary.txt"))
	require.NoError(t, err)
	assert.Contains(t, string(summary), "\ngrid        in flight, ")
	// Other work on this machine may use up the time.
	assert.Equal(t, k.Known(), some, o.stdout)
	if k.Known() {
		assert.EqualValues(t, k.Bytes(), bytes)
		assert.Contains(t, string(summary), "vLLM: n_read_threads (16)")
	} else {
		assert.Contains(t, string(summary), "not known: the time was up")
	}
}
