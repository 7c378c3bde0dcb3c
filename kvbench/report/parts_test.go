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
