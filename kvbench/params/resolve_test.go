package params

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

func TestOverridesAreWhatTheUserSet(t *testing.T) {
	file := writeFile(t, "c.yaml", "parameters:\n  num-users: 20\n  seed: 7\n  io-depth: 3\n")
	in := Inputs{Bench: bench(t, "MaxStorageStress"),
		Env: environment("KVBENCH_NUM_USERS", "30", "KVBENCH_SEED", "8", "KVBENCH_WORKERS", "")}
	v := good(t, in, "-num-users", "40", "-config", file)
	assert.Equal(t, []result.Parameter{{Name: "num-users", Value: "40", Origin: "flag"},
		{Name: "io-depth", Value: "3", Origin: file + ":4"}}, v.Overrides())
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
}

func TestFieldSize(t *testing.T) {
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
