package model

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBytesPerToken(t *testing.T) {
	want := map[string]int64{
		"tiny-1b":               24576,
		"mistral-7b":            131072,
		"llama2-7b":             524288,
		"llama3.1-8b":           131072,
		"llama3.1-70b-instruct": 327680,
		"deepseek-v3":           70272,
		"qwen3-32b":             262144,
		"gpt-oss-120b":          73728,
		"gpt-oss-20b":           49152,
	}
	require.Len(t, BuiltIn(), len(want))
	for _, m := range BuiltIn() {
		assert.NoError(t, m.Validate())
		assert.True(t, m.Alike(), m.Key)
		assert.Equal(t, want[m.Key], m.BytesPerToken(), m.Key)
		assert.Equal(t, m.Key == "tiny-1b", m.Window == 0, "all windows are published, except that of the made-up model")
	}
}

func TestModelValidateListsEverything(t *testing.T) {
	err := Model{Key: "x", Layers: 0, KVHeads: -1, Attention: "mqa", DType: "int3"}.Validate()
	assert.ErrorContains(t, err, `model "x": layers is 0, must be 1 to`)
	assert.ErrorContains(t, err, `attention type "mqa" is unknown`)
	assert.ErrorContains(t, err, `dtype "int3" is unknown, must be one of bf16`)

	err = Model{Key: "x", Layers: 4, Hidden: 100, Heads: 3, KVHeads: 3, Attention: MHA}.Validate()
	assert.ErrorContains(t, err, "hidden (100) is no multiple of heads (3): give head_dim")

	err = Model{Key: "x", Layers: 4, Hidden: 64, Heads: 4, KVHeads: 2, Attention: MHA}.Validate()
	assert.ErrorContains(t, err, "with fewer it is gqa")

	err = Model{Key: "x", Layers: 1 << 20, Hidden: 64, Heads: 4, KVHeads: 1 << 20, HeadDim: 1 << 20,
		Attention: GQA}.Validate()
	assert.ErrorContains(t, err, "a token takes more than")

	err = Model{Key: "x", Layers: 4, Attention: MLA, QKRopeHeadDim: -1}.Validate()
	assert.ErrorContains(t, err, "kv_lora_rank is 0")
	assert.ErrorContains(t, err, "qk_rope_head_dim is -1")
}

func TestSizer(t *testing.T) {
	gqa, err := Find("llama3.1-8b", nil)
	require.NoError(t, err)
	mla, err := Find("deepseek-v3", nil)
	require.NoError(t, err)
	tests := []struct {
		model Model
		tp    int
		rule  TPRule
		want  int64 // bytes of 1000 tokens
	}{
		{gqa, 0, TPEngine, 131072000},
		{gqa, 1, TPEngine, 131072000},
		{gqa, 4, TPEngine, 32768000},
		{gqa, 8, TPEngine, 16384000},
		{gqa, 16, TPEngine, 16384000}, // eight KV heads cannot be spread further
		{gqa, 16, TPMLPerf, 8192000},
		{gqa, 3, TPMLPerf, 43690667}, // 43,690,666.67 rounded up
		{mla, 8, TPEngine, 70272000}, // latents are replicated
		{mla, 8, TPMLPerf, 8784000},
	}
	for _, test := range tests {
		assert.Equal(t, test.want, NewSizer(test.model, test.tp, test.rule).Bytes(1000), "%s tp %d %s",
			test.model.Key, test.tp, test.rule)
	}
	// Ten bytes over three ranks are four for each.
	of := Sizer{BytesPerToken: 10, Divisor: 3, Ranks: 3}
	assert.EqualValues(t, 12, of.Bytes(1))
	assert.EqualValues(t, 4, of.One().Bytes(1))
	assert.Zero(t, Sizer{}.Bytes(5))
}

func TestFindModel(t *testing.T) {
	own := Model{Key: "llama3.1-8b", Layers: 1, Hidden: 64, Heads: 4, KVHeads: 4, Attention: MHA}
	m, err := Find("llama3.1-8b", []Model{own})
	require.NoError(t, err)
	assert.Equal(t, 1, m.Layers, "a user's model goes before the built-in one")

	_, err = Find("llama9", nil)
	assert.ErrorContains(t, err, `model "llama9" is unknown: give one of tiny-1b, `)
	assert.ErrorContains(t, err, "config.json")

	_, err = Find(filepath.Join(t.TempDir(), "absent.json"), nil)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// TestConfigs runs the scripts of testdata: configurations, and what they mean. The line
// hf_quant_config.json begins the file of that name next to it, and kv-dtype=TYPE is the user's type.
// -rewrite updates the scripts.
func TestConfigs(t *testing.T) {
	short := strings.NewReplacer("{gqa", `{"num_hidden_layers": 2, "num_attention_heads": 2, `+
		`"num_key_value_heads": 2, "head_dim": 4`, "{N}", `{"attention": {"n_heads_in_group": null, `+
		`"no_op": true}}`, "{E}", `{"attention": {"n_heads_in_group": 8, "no_op": false, `+
		`"window_length": null, "num_sink_tokens": null}, "ffn": {"no_op": false}}`)
	datadriven.Walk(t, "testdata/configs", func(t *testing.T, script string) {
		datadriven.RunTest(t, script, func(t *testing.T, d *datadriven.TestData) string {
			dir := t.TempDir()
			path := filepath.Join(dir, "config.json")
			text, quant, two := strings.Cut(short.Replace(d.Input), "hf_quant_config.json\n")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			if two {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "hf_quant_config.json"),
					[]byte(quant), 0o600))
			}
			m, err := Find(path, nil)
			byDir, again := Find(dir, nil)
			assert.Equal(t, err, again)
			assert.Equal(t, m, byDir)
			if err == nil {
				assert.Equal(t, path, m.Key)
				assert.NotEmpty(t, m.Name)
				dtype := OwnType
				d.MaybeScanArgs(t, "kv-dtype", &dtype)
				m, err = m.In(dtype)
			}
			if err != nil {
				return "error: " + strings.ReplaceAll(err.Error(), path, "config.json") + "\n"
			}
			return fmt.Sprintf("%d B, %d B of a sequence, %s, %s, window %d, alike %v: %s\n",
				m.BytesPerToken(), m.FixedBytes(), m.Attention, cmp.Or(m.StoredAs, m.dtype()), m.Window,
				m.Alike(), m.Arithmetic())
		})
	})
}

// FuzzModelConfig: any text gives a valid model or an error.
func FuzzModelConfig(f *testing.F) {
	f.Add([]byte(`{"text_config":{"num_hidden_layers":2,"kv_lora_rank":512,"qk_rope_head_dim":64}}`))
	for _, text := range published {
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"num_hidden_layers":null,"text_config":{"text_config":{}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parse(string(text))
		if err == nil && m.BytesPerToken() <= 0 {
			t.Errorf("%q gives a model of %d bytes per token", text, m.BytesPerToken())
		}
	})
}
