package benchmarks

import (
	"io"
	"os"
	"path/filepath"
	"strings"
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

// What a model keeps of a sequence and not of tokens is reported where a load would have had it.
func TestModelsWithStatesAreReported(t *testing.T) {
	v := &params.Values{TensorParallel: 1, IOTraceLog: "x", Model: model.Model{Key: "m", Layers: 2,
		KVHeads: 2, HeadDim: 64, Attention: model.GQA, StateBytes: 3 << 20}}
	for _, load := range []params.Load{params.LoadUsers, params.LoadTrace} {
		v.Bench.Load = load
		assert.Contains(t, warningsOf(v), "m keeps 3 MiB of every sequence besides the 1,024 B of "+
			"each token, as states or as its last tokens: no entry has that")
	}
	v.Bench.Load = params.LoadNone
	assert.Empty(t, warningsOf(v))
}

// All keys without effect of a configuration of the Python benchmark are one warning.
// An engine is for benchmarks with requests: plain I/O next to them has nothing of it.
func TestPlainIOHasNoWarningOfAnEngine(t *testing.T) {
	for bench, want := range map[string]string{"StorageCeiling": "", "BlockIO": "", "MaxStorageStress": "where the tier is full"} {
		v, err := resolved(t, bench, "-division=open", "-engine=vllm")
		require.NoError(t, err)
		text := strings.Join(warningsOf(v), "\n")
		assert.Equal(t, want != "", text != "", text)
		assert.Contains(t, text, want)
	}
}

func TestKeysWithoutEffectAreOneWarning(t *testing.T) {
	const config = "../kvbench/params/testdata/python.yaml"
	v, err := resolved(t, "Synthetic", "-division=open", "-config="+config)
	require.NoError(t, err)
	dir, err := os.Getwd()
	require.NoError(t, err)
	assert.Equal(t, warnings{"without effect here: 19 keys of " + filepath.Join(dir, config) + " (in prefill_timing, " +
		"eviction, gpu_backend, prefix_cache, conversation, autoscaler, saturation_detection); -help-parameters " +
		"has the reasons"}, warningsOf(v))
}

// What cannot do what it is there for is refused with the parameters, before a window is lost.
func TestRunsOfNoUseAreRefusedWithTheParameters(t *testing.T) {
	trace := "../testdata/mooncake-small.jsonl"
	files := []string{"-block-trace-path=" + trace, "-cache-dir=" + t.TempDir(), "-storage-capacity-gb=1",
		"-model=llama3.1-8b"}
	unusable := t.TempDir()
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		text, err := os.ReadFile(trace)
		require.NoError(t, err)
		if name == "b.jsonl" {
			text = []byte("1\n")
		}
		require.NoError(t, os.WriteFile(unusable+"/"+name, text, 0o666))
	}
	virtual := []string{"-simulate-device=read=1GiB/s,write=1GiB/s", "-replay-cycles=1"}
	for _, c := range []struct {
		args []string
		want string // "" = nothing is wrong
	}{
		{[]string{"-block-trace-path=" + unusable}, unusable + "/b.jsonl"},
		{append(virtual, "-block-trace-path="+unusable), unusable + "/b.jsonl"},
		{[]string{"-engine=vllm", "-cpu-mem-gb=0.0001"}, "-cpu-mem-gb: must be at least 0.003, " +
			"because an object of 16 tokens takes 2 MiB and the tier keeps 80 % of its size"},
		{[]string{"-engine=vllm", "-cpu-mem-gb=0.003"}, ""},
		{[]string{"-engine=vllm", "-gpu-mem-gb=0.0001", "-num-gpus=2"}, "-gpu-mem-gb: must be at " +
			"least 0.002, "},
		{[]string{"-cpu-mem-gb=0.07"}, "-cpu-mem-gb: must be at least 0.079, because an object " +
			"of 512 tokens takes 64 MiB"},
		{[]string{"-cpu-mem-gb=0.079"}, ""},
		{append(virtual, "-cpu-mem-gb=0.07"), "-cpu-mem-gb: "},
	} {
		v, err := resolved(t, "BlockTrace", append(files, c.args...)...)
		require.NoError(t, err)
		p := newPlan()
		p.points = []*params.Values{v}
		bad := strings.Join(p.feasible(v).Merge(p.populate()), "\n")
		assert.Equal(t, c.want == "", bad == "", "%v: %s", c.args, bad)
		assert.Contains(t, bad, c.want)
	}
}

// Parameters of live sessions are refused where a trace has none, and apply where it has.
func TestLiveSessionsOfATraceThatHasThem(t *testing.T) {
	with, without := "../testdata/session-small.json", "../testdata/mooncake-small.jsonl"
	values := func(path string, args ...string) *params.Values {
		v, err := resolved(t, "BlockTrace", append(args, "-block-trace-path="+path)...)
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
	for args, want := range map[string]any{both[0]: &traces.Trace{}, both[1]: &traces.Live{}} {
		s, err := source(values(with, args), 0)
		require.NoError(t, err)
		assert.IsType(t, want, s)
		require.NoError(t, s.(io.Closer).Close())
	}
	v := values(with, both[1])
	assert.Equal(t, v.Users, v.WorkerCount(), "each may wait for an answer")
}
