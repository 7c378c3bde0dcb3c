package stats

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"

	"kvbench/tools/load"
)

// build reads each text as a run.
func build(t *testing.T, texts ...string) *Table {
	var records []*load.Record
	var units benchfmt.UnitMetadataMap
	for i, text := range texts {
		list, out, err := load.All([]string{"-"}, load.Options{Stdin: strings.NewReader(text)})
		require.NoError(t, err)
		for _, r := range list {
			r.Source = fmt.Sprintf("run%d", i)
		}
		records, units = append(records, list...), out
	}
	return Build(records, units)
}

func lines(name, unit string, values ...float64) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "Benchmark%s 1 %g %s\n", name, v, unit)
	}
	return b.String()
}

func TestMedianIntervalAndSpread(t *testing.T) {
	tab := build(t, lines("A-2", "read-B/s", 6, 1, 5, 2, 4, 3)+lines("A-2", "read-p95-ns", 5e6))
	require.Len(t, tab.Benchmarks, 1)
	b := tab.Benchmarks[0]
	assert.Equal(t, "A", b.Name, "GOMAXPROCS is no part of the name")
	m := b.Headlines()[0]
	assert.Equal(t, "read-B/s", m.Unit)
	c := m.Cells[0]
	assert.Equal(t, 3.5, c.Summary.Center)
	assert.Equal(t, []float64{1, 6}, []float64{c.Summary.Lo, c.Summary.Hi})
	assert.InDelta(t, math.Sqrt(3.5)/3.5, c.CV, 1e-12)
	assert.Equal(t, []float64{6, 1, 5, 2, 4, 3}, c.Values, "in the order of the trials")
	one := b.Metric("read-p95-sec").Cells[0]
	assert.True(t, math.IsInf(one.Summary.Hi, 1))
	assert.True(t, math.IsNaN(one.CV))
}

// Reads that are as fast as before hide no loss of writes.
func TestAMixHasTwoHeadlines(t *testing.T) {
	var texts []string
	for _, write := range []float64{10, 1} {
		text := ""
		for i := range 6 {
			text += fmt.Sprintf("BenchmarkA/op=mixed 1 %d read-B/s %g write-B/s\n", 10+i, write*float64(10+i))
			text += fmt.Sprintf("BenchmarkC 1 %d read-B/s %g write-B/s\n", 10+i, write*float64(10+i))
			text += fmt.Sprintf("BenchmarkB/op=churn 1 %d read-B/s %g write-B/s\n", 10+i, write*float64(10+i))
		}
		texts = append(texts, text)
	}
	var rows []string
	for _, h := range build(t, texts...).Headlines() {
		rows = append(rows, fmt.Sprint(h.Row(), " ", h.Cells[1].Change.Judged(Alpha)))
	}
	assert.Equal(t, []string{"A/op=mixed read 0", "A/op=mixed write -1", "C 0",
		"B/op=churn read 0", "B/op=churn write -1"}, rows)
}

func TestHolmOverHeadlines(t *testing.T) {
	old, other := "", ""
	for i := range 3 {
		old += lines(fmt.Sprintf("B%d-2", i), "read-B/s", 1, 2, 3, 4, 5, 6)
		other += lines(fmt.Sprintf("B%d-4", i), "read-B/s", 11, 12, 13, 14, 15, 16)
	}
	// Three trials cannot be a loss, and do not hide the others' losses.
	old += lines("Few-2", "read-B/s", 1, 2, 3) + lines("B0-2", "hit-ratio", 1, 2, 3, 4, 5, 6)
	other += lines("Few-2", "read-B/s", 11, 12, 13)
	other += lines("B0-4", "hit-ratio", 11, 12, 13, 14, 15, 16)
	tab := build(t, old, other)
	const p = 0.0021645021645021645 // the least of six against six
	for i := range 3 {
		c := tab.Benchmarks[i].Headlines()[0].Cells[1].Change
		assert.InDelta(t, p, c.P, 1e-12)
		assert.InDelta(t, 3*p, c.Adjusted, 1e-12)
		assert.Equal(t, 1, c.Judged(Alpha))
		assert.InDelta(t, 13.5/3.5-1, c.Ratio, 1e-9, "of the medians that are shown")
	}
	alone := tab.Benchmarks[0].Metric("hit-ratio").Cells[1].Change
	assert.False(t, alone.Headline)
	assert.InDelta(t, alone.P, alone.Adjusted, 0)
	assert.Zero(t, alone.Judged(Alpha), "it is shown, and not judged")
	assert.Equal(t, 1, tab.Benchmarks[0].Metric("hit-ratio").Better)
}
