package benchmarks

import (
	"encoding/csv"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tools/golden"
)

// The population of the closed division is the one of MLPerf's program, user by user.
func TestThePopulationOfTheClosedDivision(t *testing.T) {
	f, err := os.Open("../testdata/mlperf-users-seed-42-49.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	v, err := resolved(t, "MaxStorageStress", "-division=closed")
	require.ErrorContains(t, err, "-benchtime: must be 300s") // alone: the users are those of an option
	want := &result.Population{Classes: map[string]int64{}}
	for _, row := range rows {
		if row[0] == "42" {
			context, _ := strconv.Atoi(row[2])
			answer, _ := strconv.Atoi(row[3])
			want.Add(context, answer)
			want.Classes[row[5]]++
		}
	}
	assert.EqualValues(t, v.Users, want.Contexts)
	assert.Equal(t, want, population(v))
}

// What a user reads of the loads before a run, and in each summary. -update writes it.
func TestTheOpening(t *testing.T) {
	var b strings.Builder
	for _, command := range []string{
		"Synthetic -num-users=3 -gpu-mem-gb=141 -num-gpus=8 -tensor-parallel=8 -cpu-mem-gb=1",
		"Synthetic -profile=agentic -num-users=2 -ranks=2",
		"DecodeOnly -num-users=2 -model=tiny-1b",
		"RAG -sweep=num-users=1,2,3,4,5 -max-requests=5",
		"AutoscaleQoS -precondition -precondition-size-gb=1 -disable-multi-turn",
		"ShareGPT -dataset-path=../testdata/sharegpt-small.json",
		"ShareGPT -dataset-path=../testdata/sharegpt-small.json -max-conversations=2 -tokenizer=chars",
		"BurstGPT -burst-trace-path=../testdata/burstgpt*.csv -trace-start=1h -sweep=io-depth=1,2",
		"AzureTrace -azure-trace-path=../testdata/azure-small.csv -gpu=h100",
		"BlockTrace -block-trace-path=../testdata/session-small.json -arrival=closed-loop",
		"BlockTrace -block-trace-path=../go.mod",
		"StorageCeiling",
	} {
		name, args, _ := strings.Cut(command, " ")
		b.WriteString(command + "\n" + strings.Join(foreseen(t, name, args).opening(), "\n") + "\n\n")
	}
	golden.Check(t, "opening.txt", b.String())
}
