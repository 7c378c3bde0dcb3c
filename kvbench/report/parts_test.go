package report

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/result"
)

func TestShownKeepsTheEnds(t *testing.T) {
	for _, c := range []struct {
		n, most int
		want    string
	}{{0, 9, "[]"}, {1, 9, "[0]"}, {3, 9, "[0 1 2]"}, {20, 5, "[0 4 9 14 19]"}, {2, 1, "[0]"}} {
		rows := make([]int, c.n)
		for i := range rows {
			rows[i] = i
		}
		assert.Equal(t, c.want, fmt.Sprint(shown(rows, c.most)))
	}
}

func TestCheckpointRuns(t *testing.T) {
	run := result.CheckpointRun{Index: 1, DurationNS: 1e9, Bytes: 1 << 30}
	c := &result.Checkpoint{Model: "llama3-8b", Scale: 64,
		Reads: []result.CheckpointRun{run, run}}
	table := checkpointRuns(&result.Result{Checkpoint: c})
	assert.Len(t, table.Rows, 2)
	assert.Len(t, table.Rows[0], len(table.Columns))
	assert.NotEmpty(t, table.Words)
	assert.Empty(t, checkpointRuns(&result.Result{}).Rows)
}

// The text has a matrix with marks, page and workbook a row for each cell.
func TestTheGridOfAKnee(t *testing.T) {
	const mib = 1 << 20
	k := &result.Knee{RequestBytes: mib, InFlight: 1, Best: 2000 * mib, EndedBy: result.KneeGrid,
		Points: []result.KneePoint{
			{RequestBytes: 4096, InFlight: 1, Rate: 30 * mib, Min: 29 * mib, Max: 31 * mib,
				Rounds: 3},
			{RequestBytes: mib, InFlight: 1, Rate: 1910 * mib, Min: 1900 * mib, Max: 1920 * mib,
				Rounds: 3},
			{RequestBytes: mib, InFlight: 2, Rate: 2000 * mib, Min: 1915 * mib, Max: 2100 * mib,
				Rounds: 3}}}
	r := &result.Result{PlainIO: &result.PlainIO{Knee: k}}
	assert.Equal(t, `
grid        in flight, GiB/s                   4 KiB               1 MiB
            1                 0.0293 (0.0283–0.0303)  * 1.87 (1.86–1.88)
            2                                      –  = 1.95 (1.87–2.05)
`, "\n"+kneeGrid(r).String())
	marks := func() (out []any) {
		for _, row := range knee(r).Rows {
			out = append(out, row[8])
		}
		return out
	}
	assert.Equal(t, []any{"", "knee", "equal within the spread"}, marks())
	k.EndedBy = result.KneeTime
	assert.Equal(t, []any{"", "best so far", "equal within the spread"}, marks())
	assert.Empty(t, kneeGrid(&result.Result{}).Rows)
}
