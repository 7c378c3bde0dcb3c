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

// The text's curve has all pairs of the knee's size, and what came near of others: the fewest bytes
// in flight, and the fastest.
func TestTheCurveOfAKneeHasWhatWasNear(t *testing.T) {
	k := &result.Knee{RequestBytes: 65536, InFlight: 8, Best: 100, EndedBy: result.KneePlateau,
		Points: []result.KneePoint{{RequestBytes: 4096, InFlight: 1, Rate: 10},
			{RequestBytes: 4096, InFlight: 64, Rate: 50},
			{RequestBytes: 65536, InFlight: 4, Rate: 60},
			{RequestBytes: 65536, InFlight: 8, Rate: 99},
			{RequestBytes: 1 << 20, InFlight: 1, Rate: 91},
			{RequestBytes: 1 << 20, InFlight: 2, Rate: 95},
			{RequestBytes: 1 << 20, InFlight: 4, Rate: 98},
			{RequestBytes: 65536, InFlight: 128, Rate: 30}}}
	r := &result.Result{PlainIO: &result.PlainIO{Knee: k}}
	rows := func() (out [][2]any) {
		for _, row := range curve(r).Rows {
			out = append(out, [2]any{row[0], row[1]})
		}
		return out
	}
	const small, large = int64(65536), int64(1 << 20)
	assert.Equal(t, [][2]any{{small, int64(4)}, {small, int64(8)}, {small, int64(128)},
		{large, int64(1)}, {large, int64(4)}}, rows())
	assert.Equal(t, "knee", curve(r).Rows[1][7])
	k.EndedBy = result.KneeTime
	assert.Equal(t, "best so far", curve(r).Rows[1][7])
	assert.Len(t, knee(r).Rows, len(k.Points))
	assert.Empty(t, curve(&result.Result{}).Rows)
}
