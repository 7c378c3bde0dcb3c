package params

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/units"
)

// TestLimits has each limit on both sides.
func TestLimits(t *testing.T) {
	type args = []string
	for name, c := range map[string]struct {
		good, bad args // bad: every one alone is refused
		in        func(*Inputs, string)
	}{
		"num-users": {good: args{"1", "100000"},
			bad: args{"0", "-1", "100001", "1.5", "many", "", "1e3", "99999999999999999999"}},
		"gpu-mem-gb": {good: args{"0", "65536", "0.5", "512MiB"},
			bad: args{"-1", "65536.1", "4GB", "x", "NaN", "1e5"}},
		"cpu-mem-gb": {good: args{"0", "131072"}, bad: args{"-0.1", "131073"}},
		"storage-capacity-gb": {good: args{"0", "4096"},
			bad: args{"-4", "1e30", "99999999999999999999GiB"}},
		"request-rate": {good: args{"0", "0.5", "1000000"},
			bad: args{"-1", "NaN", "Inf", "fast"}},
		"prefill-rate":          {good: args{"0", "5000", "a=1e-05,b=1e-10"}, bad: args{"-1", "x"}},
		"trace-speedup":         {good: args{"0", "2.5"}, bad: args{"-0.5"}},
		"replay-cycles":         {good: args{"0", "3"}, bad: args{"-1"}},
		"precondition-size-gb":  {good: args{"0", "10"}, bad: args{"-1"}},
		"ceiling-size-gb":       {good: args{"0", "2.5"}, bad: args{"-1"}},
		"precondition-threads":  {good: args{"0", "8"}, bad: args{"-1"}},
		"max-concurrent-allocs": {good: args{"0", "16"}, bad: args{"-1"}},
		"max-requests":          {good: args{"0", "100"}, bad: args{"-1"}},
		"workers":               {good: args{"0", "16"}, bad: args{"-1", "100001"}},
		"io-depth":              {good: args{"1", "64"}, bad: args{"0", "-1", "1025"}},
		"chunk-size": {good: args{"4096", "1MiB", "2mib", "256MiB"},
			bad: args{"0", "1MB", "5000", "257MiB", "-4096", "1 parsec"}},
		"gpu-bandwidth-gbps": {good: args{"64", "0.5"}, bad: args{"0", "-1"}},
		"num-gpus":           {good: args{"1", "8"}, bad: args{"0"}},
		"tensor-parallel":    {good: args{"1"}, bad: args{"0", "2"}},
		"seed":               {good: args{"0", "43"}, bad: args{"-1", "x"}},
		"warmup":             {good: args{"0s", "24h"}, bad: args{"-1s", "25h", "5", "5 parsecs"}},
		"io-engine":          {good: args{"auto", "psync", "uring"}, bad: args{"libaio"}},
		"io-timeout":         {good: args{"0s", "30s"}, bad: args{"-1s", "25h"}},
		"settle":             {good: args{"90s"}, bad: args{"-1s"}},
		"nonce": {good: args{"random", "ff", strings.Repeat("a", 32)},
			bad: args{"", "xyz", strings.Repeat("a", 33)}},
		"precondition":     {good: args{"true", "0"}, bad: args{"yes", ""}},
		"cache-dir":        {good: args{"/mnt/kv"}, bad: args{"https://bucket/prefix"}},
		"gpu-backend":      {good: args{"simulated"}, bad: args{"cuda", "rocm"}},
		"verify":           {good: args{"none", "sample", "full"}, bad: args{"ful", ""}},
		"burst-trace-path": {bad: args{"nowhere.csv", "[", "no*.csv"}},
		"kv-dtype":         {good: args{"auto", "fp8", "nvfp4"}, bad: args{"int3", "", "fp8_ds_mla"}},
		"model": {good: args{"mistral-7b"},
			bad: args{"mistral7b", "none.json", "no/such/dir"}},
	} {
		for _, text := range c.good {
			good(t, Inputs{}, "-"+name+"="+text)
		}
		for _, text := range c.bad {
			texts := wrong(t, Inputs{}, "-"+name+"="+text)
			require.Len(t, texts, 1, "%s=%s: %v", name, text, texts)
			assert.True(t, strings.HasPrefix(texts[0], "-"+name+": must be "), texts[0])
			assert.Contains(t, texts[0], "(flag)")
		}
	}
	for _, text := range []string{"0s", "-1s", "24h1s", "0x", "-5x", "x", "5", "often"} {
		texts := wrong(t, Inputs{BenchTime: text})
		require.Len(t, texts, 1)
		assert.Contains(t, texts[0], "-benchtime: must be ")
	}
	good(t, Inputs{BenchTime: "24h"})
	assert.Contains(t, wrong(t, Inputs{Count: "-1"})[0],
		"-count: must be a whole number of at least 1")
}

// A benchmark without what it is named after would be another one under its name.
func TestBenchmarksAreWhatTheyAreNamedAfter(t *testing.T) {
	for _, c := range [][2]string{
		{"RAG", "-enable-rag=false"}, {"DecodeOnly", "-decode-only=false"},
		{"PrefillOnly", "-prefill-only=false"}, {"AutoscaleQoS", "-autoscaler-mode=capacity"},
		{"AutoscaleCapacity", "-enable-autoscaling=false"},
	} {
		name, _, _ := strings.Cut(c[1], "=")
		messages := wrong(t, Inputs{Bench: bench(t, c[0])}, c[1])
		require.Len(t, messages, 1, c)
		assert.Contains(t, messages[0], name)
		assert.Contains(t, messages[0], "with "+c[0]+", which is named after it")
	}
	for _, c := range [][2]string{{"RAG", "-enable-rag"}, {"Synthetic", "-enable-rag=false"}} {
		good(t, Inputs{Bench: bench(t, c[0])}, c[1])
	}
}

func TestRulesBetweenParameters(t *testing.T) {
	assert.Equal(t, []string{"-decode-only: must be false with -prefill-only (flag): they " +
		"exclude each other, given true (flag)"},
		wrong(t, Inputs{}, "-prefill-only", "-decode-only"))
	good(t, Inputs{}, "-tensor-parallel=8", "-num-gpus=8")
	assert.Equal(t, []string{"-tensor-parallel: must be in 1…4, the number of -num-gpus, given 8 " +
		"(flag)"}, wrong(t, Inputs{}, "-tensor-parallel=8", "-num-gpus=4"))
	assert.Equal(t, []string{"-gpu-mem-gb: must be at most 65536 GiB over all -num-gpus (8), " +
		"given 10000 (flag)"}, wrong(t, Inputs{}, "-gpu-mem-gb=10000", "-num-gpus=8"))
}

func TestTheRateOfAGPU(t *testing.T) {
	users := Inputs{Bench: bench(t, "MultiTurn")}
	v := good(t, users, "-gpu=H100", "-model=llama3.1-8b", "-division=open")
	cost, rate := v.Cost()
	assert.Equal(t, "22200", cost.String())
	assert.Equal(t, "h100", rate.GPU)
	v = good(t, users, "-prefill-rate=a=1e-05,b=1e-10")
	cost, rate = v.Cost()
	assert.Equal(t, "a=1e-05,b=1e-10", cost.String())
	assert.Empty(t, rate.GPU)
	assert.Equal(t, []string{"-gpu: must be one of 2xh100, 4xh100, 32xgh200, for which there is a " +
		"published rate of llama3.1-70b-instruct; -prefill-rate takes a rate of your own, given " +
		"h100 (flag)"}, wrong(t, users, "-gpu=h100", "-division=open",
		"-model=llama3.1-70b-instruct"))
	assert.Contains(t, wrong(t, users, "-gpu=h100")[0], "absent with tiny-1b, of which no rate")
	assert.Contains(t, wrong(t, users, "-gpu=h100", "-model=llama3.1-8b", "-prefill-rate=5")[0],
		"-gpu: must be absent with -prefill-rate")
	option := Inputs{Bench: bench(t, "MaxStorageStress")}
	for _, flag := range []string{"-prefill-rate=22200", "-gpu=h100"} {
		assert.Contains(t, wrong(t, option, "-division=closed", flag)[0],
			"in the closed division")
	}
}

func TestTheContextWindow(t *testing.T) {
	in := Inputs{Bench: bench(t, "MaxStorageStress")}
	v := good(t, in, "-division=open", "-model=llama2-7b")
	assert.Equal(t, 4096, v.ContextWindow())
	tokens, _ := v.LargestEntry()
	assert.Equal(t, 4096, tokens)
	assert.Equal(t, []string{"coding (up to 25000)", "document (up to 16384)"}, v.CutTemplates())
	v = good(t, in, "-division=closed")
	assert.Zero(t, v.ContextWindow(), "MLPerf's users have none")
	assert.Empty(t, v.CutTemplates())
	assert.Zero(t, good(t, in, "-division=quick").ContextWindow(), "tiny-1b is nobody's")
	file := writeFile(t, "m.yaml", "model_configs: {small: {num_layers: 1, hidden_dim: 64, "+
		"num_heads: 2, kv_heads: 1, context_window: 2048}}\n")
	assert.Equal(t, 2048, good(t, in, "-config="+file, "-model=small").ContextWindow())
}

func TestMessagesNameWhatWouldBeRight(t *testing.T) {
	for arg, want := range map[string]string{
		"-arrival=openloop": `-arrival: must be one of open-loop, closed-loop, did you mean "open-loop"?, given openloop (flag)`,
		"-gpu-backend=cuda": "-gpu-backend: must be simulated: this build has no CUDA tier " +
			"yet, given cuda (flag)",
		"-cache-dir=az://b/p": "-cache-dir: must be a directory or s3://BUCKET/PREFIX, with the " +
			"address of the store in -s3-endpoint (Azure's own interface is not spoken), given " +
			"az://b/p (flag)",
		"-chunk-size=1MB":  `-chunk-size: must be a size with a known unit (B, KiB, MiB, GiB, TiB; "MB" is unknown, did you mean "MiB"?), given 1MB (flag)`,
		"-settle=90":       "-settle: must be a time with its unit, did you mean 90s?, given 90 (flag)",
		"-num-users=":      `-num-users: must be a whole number in 1…100000, given "" (flag)`,
		"-cache-dir=":      "-cache-dir: is empty (flag): give a value, or leave it out",
		"-results-dir=":    "-results-dir: is empty (flag): give a value, or leave it out",
		"-config=":         "-config: is empty (flag): give a value, or leave it out",
		"-s3-ca-file=":     "-s3-ca-file: is empty (flag)",
		"-metrics-listen=": "-metrics-listen: is empty (flag)",
		"-sweep=cache-dir=,/a": `-sweep: must be a sweep of values that cache-dir can take ("" ` +
			"must be a value)",
		"-model=llama3.1-8": `did you mean "llama3.1-8b"?`,
		"-max-requests=-1": "-max-requests: must be a whole number of at least 0, given -1 " +
			"(flag)",
		"-cpu-mem-gb=200000":    "-cpu-mem-gb: must be a size in 0…131072 GiB, given 200000 (flag)",
		"-division=quik":        `-division: must be one of quick, open, closed, did you mean "quick"?, given quik (flag)`,
		"-config=/no/such.yaml": "-config: cannot read /no/such.yaml: no such file or directory",
	} {
		assert.Contains(t, wrong(t, Inputs{}, arg)[0], want, arg)
	}
}

// An empty variable of the environment counts as not set, as is usual there.
func TestEmptyVariablesAreNotSet(t *testing.T) {
	v := good(t, Inputs{Env: environment("KVBENCH_CACHE_DIR", "", "KVBENCH_RESULTS_DIR", "")})
	assert.Equal(t, FromDefault, v.Origin("cache-dir").Kind)
	assert.Contains(t, v.ResultsDir, "kvbench-results")
}

func TestTenWrongParametersGiveTenMessages(t *testing.T) {
	texts := wrong(t, Inputs{BenchTime: "soon",
		Env: environment("KVBENCH_ARRIVAL", "late", "KVBENCH_SEED", "-4")},
		"-num-users=0", "-gpu-mem-gb=70000", "-cpu-mem-gb=-1", "-io=fast",
		"-chunk-size=3GB", "-verify=maybe", "-precondition-threads=-2", "-cache-dir=s3://b")
	assert.Len(t, texts, 11, strings.Join(texts, "\n"))
	assert.Contains(t, strings.Join(texts, "\n"), "given late (environment KVBENCH_ARRIVAL)")
}

func TestTheCacheDirectoryIsCheckedWithoutTouchingAnything(t *testing.T) {
	in := Inputs{CheckCacheDir: func(dir string) error { return errors.New(dir + " lies in /etc") }}
	assert.Equal(t, []string{"-cache-dir: must be a directory that may be worked in (/etc/kv " +
		"lies in /etc), given /etc/kv (flag)"}, wrong(t, in, "-cache-dir=/etc/kv"))
	good(t, in)                             // the temporary directory is the suite's own
	good(t, Inputs{}, "-cache-dir=/etc/kv") // nobody asks
}

func TestAnEntryThatNeverFitsIsRefusedWithTheSizeThatWould(t *testing.T) {
	texts := wrong(t, Inputs{Bench: bench(t, "LargeModel")}, "-division=open",
		"-storage-capacity-gb=4")
	assert.Equal(t, []string{"-storage-capacity-gb: must be at least 7.63, because one entry of " +
		"25000 tokens of llama3.1-70b-instruct takes that many GiB (a smaller -model takes less), " +
		"given 4 (flag)"}, texts)
	good(t, Inputs{Bench: bench(t, "LargeModel")}, "-division=open", "-storage-capacity-gb=7.63")
	good(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-division=open", "-storage-capacity-gb=4")
	good(t, Inputs{Bench: bench(t, "LargeModel")}, "-division=open", "-storage-capacity-gb=4",
		"-num-gpus=8", "-tensor-parallel=8")
	good(t, Inputs{Bench: bench(t, "DataGen")}, "-division=open", "-storage-capacity-gb=0.1")
	texts = wrong(t, Inputs{Bench: bench(t, "MultiTurn")}, "-division=open", "-engine=vllm",
		"-model=gpt-oss-20b", "-storage-capacity-gb=0.0005")
	assert.Contains(t, texts[0], "must be at least 0.000733, because one entry of 16 tokens",
		"786,432 B")
	texts = wrong(t, Inputs{Bench: bench(t, "DecodeOnly")}, "-num-users=9")
	assert.Contains(t, texts[0], "must be at least 4.22, because decode-only reads 10 entries of "+
		"2048 tokens of each of 9 users (or -num-users at most 8), and is 4 (division quick)")
	v := good(t, Inputs{Bench: bench(t, "Synthetic")}, "-division=open")
	assert.Empty(t, v.CheckFit(100*units.GiB))
	assert.Equal(t, Violations{"-storage-capacity-gb: must be at least 3.06, because one entry of " +
		"25000 tokens of llama3.1-8b takes that many GiB (a smaller -model takes less); the free " +
		"space of the temporary directory leaves room for 1"}, v.CheckFit(units.GiB))
}

func TestTraceStart(t *testing.T) {
	file := writeFile(t, "trace", "")
	v := good(t, Inputs{Bench: bench(t, "AzureTrace")}, "-azure-trace-path="+file,
		"-trace-start=10m")
	assert.Equal(t, 10*time.Minute, v.TraceStart)
	assert.Equal(t, []string{"-trace-start: must be a time in 0s…86400000s, given -1s (flag)"},
		wrong(t, Inputs{}, "-trace-start=-1s"))
	assert.Equal(t, []string{"-trace-start: must be 0s with ShareGPT, whose conversations have " +
		"no times, given 60s (flag)"},
		wrong(t, Inputs{Bench: bench(t, "ShareGPT")}, "-dataset-path="+file, "-trace-start=60s"))
	assert.Equal(t, []string{"-trace-start: must be 0s with IOTraceReplay: rows after it would " +
		"read what rows before it wrote, given 60s (flag)"}, wrong(t,
		Inputs{Bench: bench(t, "IOTraceReplay")}, "-io-trace-replay="+file, "-trace-start=60s"))
	good(t, Inputs{Bench: bench(t, "ShareGPT")}, "-trace-start=60s") // it skips
	assert.Equal(t, "-trace-start: must be 0s in the closed division (option 1), given 60s (flag)",
		wrong(t, Inputs{Bench: bench(t, "MaxStorageStress")}, "-division=closed",
			"-trace-start=60s")[0])
}
