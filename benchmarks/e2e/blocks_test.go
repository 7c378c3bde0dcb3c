package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
)

// TestBlocksInsideFiles: what one types, and what it says.
func TestBlocksInsideFiles(t *testing.T) {
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
		tables := report.Tables(r)
		require.Len(t, tables, 1)
		assert.Equal(t, "Block I/O", tables[0].Sheet)
		assert.Len(t, tables[0].Rows, 1)
	}
}
