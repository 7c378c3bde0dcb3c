package params

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

func TestQuickNeedsNothing(t *testing.T) {
	v := good(t, Inputs{})
	assert.Equal(t, Quick, v.Division)
	assert.Equal(t, Window{Length: 2 * time.Second}, v.Window)
	assert.Equal(t, 1, v.Count)
	assert.Equal(t, "tiny-1b", v.Model.Key)
	assert.Equal(t, 4, v.Users)
	assert.Equal(t, 4*units.GiB, v.StorageBytes)
	assert.Zero(t, v.GPUBytes)
	assert.Zero(t, v.CPUBytes)
	assert.True(t, v.Direct())
	assert.False(t, v.ClosedLoop())
	assert.False(t, v.Overtaking())
	assert.False(t, v.CPythonPopulation())
	assert.Empty(t, v.CacheDirs)
	assert.Equal(t, "/base/kvbench-results/<time>-<pid>", v.ResultsDir)
	assert.Equal(t, []int{0, 1, 1}, []int{v.Rank, v.Ranks, v.LocalRanks})
	assert.Empty(t, v.Skip())
}

func TestOptionsTakeTheirParametersInOpenAndKeepTheirCharacterInQuick(t *testing.T) {
	v := good(t, Inputs{Bench: bench(t, "StorageThroughput")}, "-division", "open")
	assert.Equal(t, []any{"llama3.1-8b", 100, 4 * units.GiB, 16, true},
		[]any{v.Model.Key, v.Users, v.CPUBytes, v.MaxConcurrentAllocs, v.Batched()})
	assert.Equal(t, "benchmark StorageThroughput", v.Origin("cpu-mem-gb").String())
	assert.Equal(t, 30*time.Second, v.Window.Length)
	v = good(t, Inputs{Bench: bench(t, "StorageThroughput")})
	assert.Equal(t, units.GiB/2, v.CPUBytes)
	v = good(t, Inputs{Bench: bench(t, "LargeModel")})
	assert.Equal(t, "gpt-oss-20b", v.Model.Key)
	v = good(t, Inputs{Bench: bench(t, "MultiTurn")})
	assert.InDelta(t, 0.05, v.Profile.NewConversation, 0)
}

func TestTheStrongerLayerWins(t *testing.T) {
	file := writeFile(t, "c.yaml", "parameters:\n  num-users: 20\n  seed: 7\n  io-depth: 3\n")
	in := Inputs{Bench: bench(t, "MaxStorageStress"),
		Env: environment("KVBENCH_NUM_USERS", "30", "KVBENCH_SEED", "8", "KVBENCH_WORKERS", "")}
	v := good(t, in, "-num-users", "40", "-config", file)
	for name, want := range map[string][2]string{
		"num-users":             {"40", "flag"},
		"seed":                  {"8", "environment KVBENCH_SEED"},
		"io-depth":              {"3", file + ":4"},
		"max-concurrent-allocs": {"4", "benchmark MaxStorageStress"},
		"io":                    {"direct", "division quick"},
		"verify":                {"none", "default"},
		"workers":               {"0", "default"},
	} {
		assert.Equal(t, want, [2]string{v.Text(name), v.Origin(name).String()}, name)
	}
	assert.Equal(t, []result.Parameter{{Name: "num-users", Value: "40", Origin: "flag"},
		{Name: "io-depth", Value: "3", Origin: file + ":4"}}, v.Overrides())
	assert.Equal(t, 40, good(t, in, "-num-users", "1", "-num-users", "40").Users,
		"the last of a repeated flag counts")
}

func TestRelativePathsMeanTheDirectoryOfTheCommand(t *testing.T) {
	base := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(base, "c.yaml"),
		[]byte("parameters: {results-dir: out}"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(base, "t.csv"), nil, 0o600))
	v := good(t, Inputs{Base: base, Env: environment("KVBENCH_CACHE_DIR", "kv/../kv2")}, "-config",
		"c.yaml", "-azure-trace-path", "*.csv")
	assert.Equal(t, filepath.Join(base, "c.yaml"), v.ConfigFile)
	assert.Equal(t, filepath.Join(base, "kv2"), v.CacheDir())
	assert.Equal(t, filepath.Join(base, "out"), v.ResultsDir)
	assert.Equal(t, filepath.Join(base, "*.csv"), v.AzureTracePath)
}

func TestDefaultResultsDirectoryNamesTimeAndProcess(t *testing.T) {
	v := good(t, Inputs{Stamp: "20261120-090507-77"})
	assert.Equal(t, "/base/kvbench-results/20261120-090507-77", v.ResultsDir)
	assert.Equal(t, v.ResultsDir, v.Text("results-dir"))
}

func TestBenchtimeIsATimeOrANumberOfRequests(t *testing.T) {
	assert.Equal(t, Window{Length: 90 * time.Second}, good(t, Inputs{BenchTime: "1m30s"}).Window)
	v := good(t, Inputs{BenchTime: "500x", Count: "2"})
	assert.Equal(t, Window{Completions: 500}, v.Window)
	assert.Equal(t, 2, v.Count)
}

func TestModelsComeFromKeyFileOrConfigJSON(t *testing.T) {
	config :=
		`{"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "torch_dtype": "float32"}`
	path := writeFile(t, "config.json", config)
	v := good(t, Inputs{Base: filepath.Dir(path)}, "-model", "config.json")
	assert.Equal(t, path, v.ModelName)
	assert.EqualValues(t, 2*2*16*2*4, v.Model.BytesPerToken())
	assert.Equal(t, path, v.Text("model"))
}

// The type of cached numbers is the model's own unless it is given, and one that it can have.
func TestTypeOfCachedNumbers(t *testing.T) {
	sized := func(args ...string) int64 { return good(t, Inputs{}, args...).Sizer().BytesPerToken }
	assert.EqualValues(t, 131072, sized("-model", "llama3.1-8b"))
	assert.EqualValues(t, 65536, sized("-model", "llama3.1-8b", "-kv-dtype", "fp8"))
	assert.EqualValues(t, 67584, sized("-model", "llama3.1-8b", "-kv-dtype", "int8"))
	assert.EqualValues(t, 61*656, sized("-model", "deepseek-v3", "-kv-dtype", "fp8_ds_mla"))
	bad := wrong(t, Inputs{}, "-model", "deepseek-v3", "-kv-dtype", "int4")
	assert.Len(t, bad, 1)
	assert.Contains(t, bad[0], "-kv-dtype")
	assert.Contains(t, bad[0], "dtype int4 is of keys and values by head")
	closed := wrong(t, Inputs{Bench: bench(t, "LargeModel")}, "-division", "closed", "-kv-dtype",
		"fp8")
	assert.Contains(t, closed[0], "-kv-dtype: must be auto in the closed division")
}

func TestGenerationModeChoosesItsTime(t *testing.T) {
	assert.Zero(t, good(t, Inputs{}).GenerationTime)
	assert.Equal(t, 2*time.Millisecond,
		good(t, Inputs{}, "-generation-mode", "fast").GenerationTime)
	assert.Equal(t, 30*time.Millisecond,
		good(t, Inputs{}, "-generation-mode", "realistic").GenerationTime)
}

func TestWorkersFollowUsersUnlessGiven(t *testing.T) {
	assert.Equal(t, 4, good(t, Inputs{}).WorkerCount())
	assert.Equal(t, 500, good(t, Inputs{}, "-num-users", "9000").WorkerCount())
	assert.Equal(t, 16, good(t, Inputs{Bench: bench(t, "AzureTrace")}).WorkerCount())
	assert.Equal(t, 3, good(t, Inputs{}, "-workers", "3").WorkerCount())
}

func TestBenchmarksSkipWithTheFlagTheyNeed(t *testing.T) {
	assert.Equal(t, "needs -azure-trace-path",
		good(t, Inputs{Bench: bench(t, "AzureTrace")}).Skip())
	v := good(t, Inputs{Bench: bench(t, "Synthetic")}, "-division", "closed")
	assert.Contains(t, v.Skip(), "-division open")
	v = good(t, Inputs{Bench: bench(t, "BlockIO")}, "-io", "buffered")
	assert.Contains(t, v.Skip(), "needs -io direct, given buffered (flag)")
	assert.Empty(t, good(t, Inputs{Bench: bench(t, "BlockIO")}).Skip())
	assert.Empty(t, good(t, Inputs{Bench: bench(t, "Knee")}).Skip())
	assert.Contains(t, good(t, Inputs{Bench: bench(t, "Knee")}, "-ranks", "2").Skip(),
		"would search against each other: run it without -ranks")
}

func TestPlainIOIsToldHowManyAreInFlight(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  int
	}{
		{nil, 0}, {[]string{"-io-depth", "8"}, 8}, {[]string{"-workers", "5"}, 5},
		{[]string{"-workers", "5", "-io-depth", "8"}, 40},
		{[]string{"-division", "open", "-io-depth", "8"}, 8},
	} {
		v := good(t, Inputs{Bench: bench(t, "BlockIO")}, c.flags...)
		assert.Equal(t, c.want, v.InFlight(), "%v", c.flags)
	}
	v := good(t, Inputs{Bench: bench(t, "BlockIO")})
	assert.EqualValues(t, 512<<20, v.FieldSize(4<<30))
	v = good(t, Inputs{Bench: bench(t, "BlockIO")}, "-division", "open")
	assert.EqualValues(t, 8<<30, v.FieldSize(1<<40))
	assert.EqualValues(t, 2<<30, v.FieldSize(4<<30), "half of the tier")
	v = good(t, Inputs{Bench: bench(t, "BlockIO")}, "-division", "open", "-ceiling-size-gb", "20")
	assert.EqualValues(t, 20<<30, v.FieldSize(1<<40))
}

func TestNonceIsRandomOrGiven(t *testing.T) {
	assert.Equal(t, [16]byte{15: 0x1f}, good(t, Inputs{}, "-nonce", "1F").TrialNonce())
	v := good(t, Inputs{})
	assert.NotEqual(t, v.TrialNonce(), v.TrialNonce())
}

func TestViolationsAreToldOnce(t *testing.T) {
	assert.Equal(t, Violations{"a", "b"}, Violations{"a"}.Merge(Violations{"a", "b", "b"}))
}

// Metrics are served on this machine alone, unless somebody says that others may read them.
func TestMetricsAddress(t *testing.T) {
	for _, address := range []string{"127.0.0.1:9464", "127.0.0.1:0", "[::1]:9464", "localhost:80",
		"127.3.4.5:65535"} {
		assert.Equal(t, address, good(t, Inputs{}, "-metrics-listen", address).MetricsListen)
	}
	for _, address := range []string{"0.0.0.0:9464", "[::]:9464", ":9464", "192.168.1.2:9464",
		"db.example.org:9464", "localhost.example.org:1"} {
		assert.Contains(t, wrong(t, Inputs{}, "-metrics-listen", address)[0],
			"-metrics-listen: must be an address of the loopback, such as 127.0.0.1:9464, "+
				"without -metrics-remote")
		good(t, Inputs{}, "-metrics-listen", address, "-metrics-remote")
	}
	for _, address := range []string{"9464", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:65536",
		"127.0.0.1:-1", "::1:9464"} {
		assert.Contains(t, wrong(t, Inputs{}, "-metrics-listen", address)[0],
			"-metrics-listen: must be HOST:PORT, such as 127.0.0.1:9464")
	}
	// Ranks that were started one by one add their number.
	assert.NotEmpty(t, wrong(t, Inputs{}, "-metrics-listen", "127.0.0.1:65530", "-rank=6",
		"-ranks=8"))
}
