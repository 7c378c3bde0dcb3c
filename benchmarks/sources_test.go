package benchmarks

import (
	"flag"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/workloads/model"
	"kvbench/workloads/traces"
)

// A benchmark of recordings that is added is not read as those of another.
func TestEveryBenchmarkOfRecordingsHasAFormatOfItsOwn(t *testing.T) {
	whose := map[string]string{}
	for _, b := range params.Benchmarks() {
		v := &params.Values{Bench: b, Tokenizer: "chars"}
		v.Profile.ShareGPT.CharsPerToken = 4
		format, err := traceFormat(v)
		if b.Load != params.LoadTrace {
			assert.Error(t, err, b.Name)
			continue
		}
		require.NoError(t, err)
		if b.Name == result.BenchmarkEngines { // which ranks what BlockTrace replays
			assert.Equal(t, "BlockTrace", whose[format.Name])
			continue
		}
		assert.Empty(t, whose[format.Name], "%s is that of %s too", format.Name, b.Name)
		whose[format.Name] = b.Name
	}
	assert.Len(t, whose, 4)
}

// What a model keeps of a sequence and not of tokens is told where a load would have had it.
func TestModelsWithStatesAreTold(t *testing.T) {
	v := &params.Values{TensorParallel: 1, IOTraceLog: "x", Model: model.Model{Key: "m", Layers: 2,
		KVHeads: 2, HeadDim: 64, Attention: model.GQA, StateBytes: 3 << 20}}
	for _, load := range []params.Load{params.LoadUsers, params.LoadTrace} {
		v.Bench.Load = load
		assert.Contains(t, warnings(v), "m keeps 3 MiB of every sequence besides the 1,024 B of "+
			"each token, as states or as its last tokens: no entry has that")
	}
	v.Bench.Load = params.LoadNone
	assert.Empty(t, warnings(v))
}

// What is said of live sessions is refused where a trace has none, and heard where it has.
func TestLiveSessionsOfATraceThatHasThem(t *testing.T) {
	with, without := "../testdata/session-small.json", "../testdata/mooncake-small.jsonl"
	values := func(path string, args ...string) *params.Values {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		set := params.Register(fs)
		require.NoError(t, fs.Parse(append(args, "-block-trace-path="+path)))
		bench, _ := params.Benchmark("BlockTrace")
		dir, err := os.Getwd()
		require.NoError(t, err)
		v, err := set.Resolve(params.Inputs{Bench: bench, Base: dir})
		require.NoError(t, err)
		return v
	}
	both := []string{"-num-users=3", "-arrival=closed-loop"}
	assert.Empty(t, sessionsOnly(values(with, both...)))
	assert.Empty(t, sessionsOnly(values(without)))
	bad := sessionsOnly(values(without, both...))
	require.Len(t, bad, 1)
	assert.Contains(t, bad[0], "-num-users and -arrival closed-loop: must be absent")
	assert.Contains(t, bad[0], "mooncake-small.jsonl has none")
	for args, want := range map[string]any{both[0]: &traces.Trace{}, both[1]: &traces.Sessions{}} {
		s, err := source(values(with, args))
		require.NoError(t, err)
		assert.IsType(t, want, s)
		require.NoError(t, s.(io.Closer).Close())
	}
	v := values(with, both[1])
	assert.Equal(t, v.Users, v.WorkerCount(), "each may wait for an answer")
}
