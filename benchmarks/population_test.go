package benchmarks

import (
	"encoding/csv"
	"os"
	"path/filepath"
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
	got, err := population(v)
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// A recording that a trial would refuse is refused before the run, in the same words.
func TestRecordingsAreReadBeforeARun(t *testing.T) {
	file := func(name string, lines ...string) string {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
		return path
	}
	azure := file("azure.csv", "TIMESTAMP,ContextTokens,GeneratedTokens", "2024-05-10 00:00:50,1000,10",
		"2024-05-10 00:00:10,1000,10", "2024-05-10 00:00:30,1000,10", "2024-05-10 00:00:00,1000,10")
	replay := file("io.csv", "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase", "9,Write,10,Tier-2,a,Prefill",
		"5,Write,10,Tier-2,b,Prefill", "1,Read,10,Tier-2,a,Decode")
	long := file("long.csv", "Timestamp,Request tokens,Response tokens\n"+strings.Repeat("1,5,5\n", 2000)+
		strings.Repeat("1,x,5\n", 50))
	chats := file("chats.json", `[{"conversations":[{"from":"human","value":"q"},{"from":"gpt","value":"a"}]},{"id":1}]`)
	for _, c := range []struct{ name, args, want string }{
		{"AzureTrace", "-trace-speedup=1 -azure-trace-path=" + azure,
			"3 of the first 4 rows are earlier than a row before them.*-trace-allow-malformed"},
		{"AzureTrace", "-trace-speedup=1 -trace-allow-malformed -azure-trace-path=" + azure, ""},
		{"AzureTrace", "-trace-speedup=0 -azure-trace-path=" + azure, ""},
		{"AzureTrace", "-sweep=trace-speedup=0,1 -azure-trace-path=" + azure, "3 of the first 4 rows are earlier"},
		{"AzureTrace", "-request-rate=5 -azure-trace-path=" + azure, ""},
		{"IOTraceReplay", "-io-trace-replay=" + replay, "2 of the first 3 rows are earlier"},
		{"IOTraceReplay", "-trace-speedup=0 -io-trace-replay=" + replay, ""},
		{"BurstGPT", "-burst-trace-path=" + long, `50|21 of the first .*rows are malformed, more than 1 %.*long.csv:2002: `},
		{"ShareGPT", "-dataset-path=" + chats, "1 of the first 2 rows are malformed.*chats.json:1: missing key"},
		{"BlockTrace", "-block-trace-path=../go.mod", "the format is unknown|invalid character"},
	} {
		v, err := resolved(t, c.name, append(strings.Fields(c.args), "-division=open", "-model=tiny-1b")...)
		if c.name == "IOTraceReplay" {
			v, err = resolved(t, c.name, append(strings.Fields(c.args), "-division=open")...)
		}
		require.NoError(t, err)
		p := newPlan()
		p.points = v.Points
		if bad := p.populate(); c.want == "" {
			assert.Empty(t, bad, c.args)
		} else if assert.Len(t, bad, 1, c.args) {
			assert.Regexp(t, "^-"+v.Bench.Needs+": .*("+c.want+")", bad[0])
		}
	}
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
		"StorageCeiling",
	} {
		name, args, _ := strings.Cut(command, " ")
		b.WriteString(command + "\n" + strings.Join(foreseen(t, name, args).opening(), "\n") + "\n\n")
	}
	golden.Check(t, "opening.txt", b.String())
}
