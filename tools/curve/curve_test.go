package curve

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

const smallTrace = "../../testdata/mooncake-small.jsonl"

// run is the answer to a command line.
func run(args ...string) (*Report, error) {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	o := NewOptions(fs)
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	return Run(o, fs.Args())
}

func textOf(t *testing.T, args ...string) string {
	t.Helper()
	r, err := run(args...)
	require.NoError(t, err)
	return r.Text()
}

func TestText(t *testing.T) {
	golden.Check(t, "small.txt", textOf(t, smallTrace))
	golden.Check(t, "drive.txt", textOf(t, "-drive", "960GB", "-capacities", "0.25,2,4GiB",
		"-model", "llama3.1-70b-instruct", "-tensor-parallel", "8", "-warmup", "5s",
		"-trace-speedup", "2", smallTrace))
}

// All ranks have their tiers in one: eight ranks keep eight times one rank's bytes, and for a model
// with fewer heads than ranks more than the model's bytes per token.
func TestAllRanks(t *testing.T) {
	one, err := run("-model", "llama3.1-70b-instruct", "-tensor-parallel", "8", smallTrace)
	require.NoError(t, err)
	all, err := run("-model", "llama3.1-70b-instruct", "-tensor-parallel", "8", "-tp-io", "all",
		smallTrace)
	require.NoError(t, err)
	assert.Equal(t, 8*one.FootprintBytes, all.FootprintBytes)
	assert.Equal(t, 8*one.Bytes, all.Bytes)
	assert.Equal(t, one.IdealHitRatio, all.IdealHitRatio)
	assert.Contains(t, textOf(t, "-tensor-parallel", "16", "-tp-io", "all", smallTrace),
		"131,072 B per token, of which 16 ranks keep 262,144: all bytes are those of all ranks")
	for _, args := range [][]string{{"-tp-io", "some"}, {"-tp-io", "all", "-tp-rule", "mlperf"},
		{"-tp-io", "all", "-model", "deepseek-v3"}} {
		_, err := run(append(args, "-tensor-parallel", "8", smallTrace)...)
		assert.ErrorContains(t, err, "-tp-io: must be one", args)
	}
}

// Capacities in tokens follow from the model's bytes: the ratios of a capacity in tokens do not
// depend on the model.
func TestRatiosAreOfTokens(t *testing.T) {
	small, err := run("-capacities", "4GiB", smallTrace)
	require.NoError(t, err)
	large, err := run("-capacities", "10GiB", "-model", "llama3.1-70b-instruct", smallTrace)
	require.NoError(t, err)
	at := func(r *Report) (p Point) {
		for _, p = range r.Points {
			if p.Asked {
				return p
			}
		}
		return p
	}
	assert.EqualValues(t, 32768, at(small).Tokens)
	assert.Equal(t, at(small).Tokens, at(large).Tokens)
	assert.Equal(t, at(small).Hits, at(large).Hits)
	assert.InDelta(t, *at(small).DriveWrites, *at(large).DriveWrites, 1e-6)
	assert.Equal(t, small.IdealHitRatio, large.IdealHitRatio)
	half, err := run("-capacities", "2GiB", "-kv-dtype", "fp8", smallTrace)
	require.NoError(t, err)
	assert.Equal(t, at(small).Hits, at(half).Hits)
	_, err = run("-model", "deepseek-v3", "-kv-dtype", "int4", smallTrace)
	assert.ErrorContains(t, err, "-kv-dtype: must be a type that this model can have")
}

// The report names the bytes that a model keeps per sequence and not per token: they may be more
// than all others.
func TestStatesAreReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"num_hidden_layers": 2, "num_attention_heads": 2,
		"num_key_value_heads": 2, "head_dim": 64, "full_attention_interval": 2,
		"linear_num_key_heads": 2, "linear_key_head_dim": 64, "linear_num_value_heads": 2,
		"linear_value_head_dim": 64, "linear_conv_kernel_dim": 4}`), 0o644))
	text := textOf(t, "-model", path, smallTrace)
	assert.Contains(t, text, ": 512 B per token\n")
	assert.Contains(t, text, "Not counted: the model keeps 18.2 KiB of every sequence besides")
	assert.NotContains(t, textOf(t, smallTrace), "Not counted")
}

// The columns of the CSV are the keys of a point, with the values of its JSON.
func TestCellsHaveTheKeysOfThePoints(t *testing.T) {
	r, err := run("-drive", "1TB", smallTrace)
	require.NoError(t, err)
	heads, rows := r.Cells()
	require.Len(t, rows, len(r.Points))
	for i, p := range r.Points {
		keys := map[string]any{}
		for k, name := range heads {
			keys[name] = rows[i][k]
		}
		want, err := json.Marshal(p)
		require.NoError(t, err)
		got, err := json.Marshal(keys)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got))
	}
}

func TestPage(t *testing.T) {
	r, err := run(smallTrace)
	require.NoError(t, err)
	p := r.Page()
	require.Len(t, p.Charts(), 2)
	r.DurationS = 3600
	require.Len(t, r.Page().Charts(), 3, "an hour shows the wear of a day")
	hits := p.Charts()[0]
	assert.Len(t, hits.Lines, 3)
	assert.Equal(t, *r.IdealHitRatio, hits.Lines[0].Y[len(hits.Lines[0].Y)-1])
	require.Len(t, hits.Marks, 1)
	assert.Len(t, p.Parts[0].Rows, len(r.rows()))
}

// A trace of one moment has no rates: they are dashes.
func TestNoTimeNoRates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(
		`{"timestamp": 5, "input_length": 1024, "output_length": 1, "hash_ids": [1, 2]}`), 0o644))
	r, err := run(path)
	require.NoError(t, err)
	p := r.Points[len(r.Points)-1]
	for _, v := range []*float64{p.Read, p.Write, p.PeakRead, p.PeakWrite, p.DriveWrites,
		p.OfIdeal} {
		assert.Nil(t, v)
	}
	assert.Nil(t, r.Knee)
	assert.Contains(t, textOf(t, path), "–")
	assert.Len(t, r.Page().Charts(), 1, "axes without a number are not drawn")
}

// All mistakes come together, before a file is read.
func TestMistakes(t *testing.T) {
	_, err := run("-model", "lama", "-tensor-parallel", "0", "-tp-rule", "x", "-capacities", "4GB,0",
		"-drive", "96", "-warmup", "5", "-trace-start", "-1s", "-trace-speedup", "0",
		"/none.jsonl")
	for _, flag := range []string{"-model: ", "-tensor-parallel: ", "-tp-rule: ",
		`-capacities: must be a size with a known unit`, "-capacities: must be above 0",
		`-drive: must be a size such as 3.84TB`, "-warmup: ", "-trace-start: ", "-trace-speedup: ",
		"/none.jsonl"} {
		assert.ErrorContains(t, err, flag)
	}
	assert.Equal(t, 9, strings.Count(err.Error(), "\n"))
	_, err = run()
	assert.ErrorContains(t, err, "no trace: name files")
	_, err = run("-warmup", "10h", smallTrace)
	assert.ErrorContains(t, err, "no request is left of 60 rows: -warmup 10h0m0s passes them all")
}

func TestDrives(t *testing.T) {
	for text, want := range map[string]int64{"3.84TB": 3840e9, "960gb": 960e9, "1 PB": 1e15,
		"2TiB": 2 << 40, "0TB": 0, "x": 0, "3840": 0, "NaNTB": 0, "1e30TB": 0} {
		got, err := driveSize(text)
		assert.Equal(t, want == 0, err != nil, text)
		if err == nil {
			assert.Equal(t, want, got, text)
		}
	}
}
