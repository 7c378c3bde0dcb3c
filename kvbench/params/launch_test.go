package params

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"kvbench/kvbench/group"
)

// launchedBy is what a process with variables, A=1 B=2, is run with.
func launchedBy(env string) Inputs {
	var list []string
	for v := range strings.FieldsSeq(env) {
		name, value, _ := strings.Cut(v, "=")
		list = append(list, name, value)
	}
	return Inputs{Env: environment(list...)}
}

// TestRanks: the script ranks has the rest. The families of launchers have a test of their own.
func TestRanks(t *testing.T) {
	v := good(t, launchedBy("PMI_RANK=1 PMI_SIZE=2"))
	assert.Equal(t, "environment PMI_RANK", v.Origin("rank").String())
	assert.Equal(t, uint64(43), v.StreamSeed())
	started := &group.Launched{Rank: group.Value{Text: "3", Variable: "X"},
		Size: group.Value{Text: "4", Variable: "X"}, Local: group.Value{Text: "4",
			Variable: "X"}}
	v = good(t, Inputs{Agent: started}, "-ranks=4", "-rank-failure=continue")
	assert.False(t, v.Starts())
	assert.Equal(t, [3]int{3, 4, 4}, [3]int{v.Rank, v.Ranks, v.LocalRanks})
}

// Ranks that meet learn how many of them are on their host, unless it was given. Those that do not meet
// take it that all are.
func TestRanksThatMeetKnowTheirHost(t *testing.T) {
	env := []string{"PMI_RANK", "1", "PMI_SIZE", "4"}
	v := good(t, benchOf(t, "Checkpoint", env...), "-checkpoint-shift=host")
	assert.Equal(t, 1, v.LocalRanks, "at least")
	news, bad := v.Meet(2)
	assert.True(t, news)
	assert.Empty(t, bad)
	assert.Equal(t, 2, v.LocalRanks)
	news, _ = v.Meet(4)
	assert.False(t, news)
	assert.Equal(t, 2, v.LocalRanks)

	v = good(t, benchOf(t, "Checkpoint", env...), "-checkpoint-shift=host")
	_, bad = v.Meet(4)
	assert.Contains(t, bad.Error(), "-checkpoint-shift: must be a number where all ranks are on "+
		"one host")
	v = good(t, Inputs{Env: environment(env...)}, "-local-ranks=3")
	news, _ = v.Meet(4)
	assert.False(t, news)
	assert.Equal(t, 3, v.LocalRanks)
	v = good(t, Inputs{Env: environment(env...)}, "-rendezvous=none")
	news, _ = v.Meet(0)
	assert.False(t, news)
	assert.Equal(t, 4, v.LocalRanks)
}
