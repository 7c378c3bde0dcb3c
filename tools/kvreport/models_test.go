package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// times is a list of JSON: so many of each value, one after the other.
func times(counted ...any) string {
	var list []string
	for i := 0; i < len(counted); i += 2 {
		for range counted[i+1].(int) {
			list = append(list, counted[i].(string))
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

const (
	linear  = `"linear_attention"`
	full    = `"full_attention"`
	slides  = `"sliding_attention"`
	sparse  = `"deepseek_sparse_attention"`
	noOp    = `{"attention": {"n_heads_in_group": null, "no_op": true}}`
	ofEight = `{"attention": {"n_heads_in_group": 8, "no_op": false, "window_length": null,
		"num_sink_tokens": null}, "ffn": {"no_op": false}}`
	// Gated delta nets of Qwen.
	delta = `"linear_num_key_heads": 16, "linear_key_head_dim": 128, "linear_num_value_heads": 48,
		"linear_value_head_dim": 128, "linear_conv_kernel_dim": 4`
)

// published are shapes of published configurations, with what their tokens take as it was counted
// by hand from the files themselves.
var published = []struct {
	name, config, quant string
	dtype               string // -kv-dtype
	bytes, state        int64
	says                string // part of the row
	words               string // how it was counted
}{
	{name: "Llama-3.3-Nemotron-Super-49B", config: `{"model_type": "nemotron-nas",
		"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
		"num_key_value_heads": null, "intermediate_size": null, "torch_dtype": "bfloat16",
		"block_configs": ` + times(ofEight, 49, noOp, 31) + `}`,
		bytes: 200704, says: "block_configs",
		words: "49 of 80 layers have attention; 64 heads in groups of 8 are 8 KV heads; " +
			"8192 ÷ 64 = 128; 49 × 2 × 8 × 128 × 2 B"},
	{name: "MiniMax-M2.7", config: `{"num_hidden_layers": 62, "hidden_size": 3072,
		"num_attention_heads": 48, "num_key_value_heads": 8, "head_dim": 128, "num_mtp_modules": 3,
		"mtp_transformer_layers": 1, "attn_type_list": ` + times("1", 62) + `}`,
		bytes: 253952, words: "62 × 2 × 8 × 128 × 2 B; a 1 in attn_type_list is full attention"},
	{name: "GLM-5.2-NVFP4", config: `{"num_hidden_layers": 78, "num_attention_heads": 64,
		"hidden_size": 6144, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 256,
		"index_head_dim": 128, "index_n_heads": 32, "index_topk": 2048, "index_topk_freq": 4,
		"num_nextn_predict_layers": 1, "layer_types": ` + times(sparse, 78) + `, "indexer_types": ` +
		times(`"full"`, 21, `"shared"`, 57) + `, "quantization_config": {"quant_method": "modelopt",
		"kv_cache_scheme": {"dynamic": false, "num_bits": 8, "type": "float"}}}`,
		bytes: 53940, says: "fp8 (declared by quantization_config: kv_cache_scheme)",
		words: "78 × (512 + 512 ÷ 128 × 4 + 64 × 2 = 656) + 21 × (128 + 4)"},
	{name: "Kimi-K3", config: `{"dtype": "bfloat16", "text_config": {"num_hidden_layers": 93,
		"num_attention_heads": 96, "num_key_value_heads": 96, "hidden_size": 7168,
		"kv_lora_rank": 512, "qk_rope_head_dim": 64, "mla_use_nope": true, "pruned_heads": {},
		"attn_res_block_size": 12, "linear_attn_config": {"num_heads": 96, "head_dim": 128,
		"short_conv_kernel_size": 4, "full_attn_layers": ` + times("4", 24) + `, "kda_layers": ` +
		times("1", 69) + `}, "quantization_config": {"kv_cache_scheme": null}}}`,
		bytes: 27648, state: 449_372_160, says: "linear_attn_config",
		words: "24 × (512 + 64) × 2 B; state 69 × (96 × 128 × 128 × 4 + 3 × 96 × 128 × 3 × 2)"},
	{name: "MiniMax-M3", config: `{"num_hidden_layers": 60, "hidden_size": 6144,
		"num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128,
		"sparse_attention_config": {"use_sparse_attention": true, "sparse_index_dim": 128,
		"sparse_attention_freq": ` + times("0", 3, "1", 57) + `, "sparse_disable_index_value": ` +
		times("0", 3, "1", 57) + `}}`,
		bytes: 137472, words: "60 × 2 × 4 × 128 × 2 + 57 index keys of 128 × 2"},
	{name: "Gemma-4-31B-NVFP4", config: `{"text_config": {"num_hidden_layers": 60,
		"hidden_size": 5376, "num_attention_heads": 32, "num_key_value_heads": 16,
		"head_dim": 256, "num_global_key_value_heads": 4, "global_head_dim": 512,
		"sliding_window": 1024, "attention_k_eq_v": true, "layer_types": ` +
		times(slides, 50, full, 10) + `}, "quantization_config": {"kv_cache_scheme":
		{"num_bits": 8, "type": "float"}}}`,
		bytes: 450560, says: "fp8 (declared by quantization_config: kv_cache_scheme)",
		words: "50 × 2 × 16 × 256 + 10 × 2 × 4 × 512, a byte each"},
	{name: "GLM-5.3-Flash", config: `{"text_config": {"num_hidden_layers": 45,
		"hidden_size": 4096, "num_attention_heads": 64, "num_key_value_heads": 64,
		"kv_lora_rank": 512, "qk_rope_head_dim": 0, "index_head_dim": 128, "index_n_heads": 32,
		"index_topk": 2048, "index_kpool": 4, "index_kpool_compress": true, "layer_types": ` +
		times(linear, 34, sparse, 11) + `, "linear_attn_config": {"num_heads": 64,
		"head_dim": 128, "short_conv_kernel_size": 4}}}`,
		bytes: 11968, state: 147_619_840,
		words: "11 × 512 × 2 + 11 × 128 × 2 ÷ 4; state 34 × (64 × 128 × 128 × 4 + " +
			"3 × 64 × 128 × 3 × 2)"},
	{name: "Qwen3.8-Flash-Next", config: `{"text_config": {"num_hidden_layers": 48,
		"hidden_size": 2560, "num_attention_heads": 24, "num_key_value_heads": 2,
		"head_dim": 256, "full_attention_interval": 4, ` + delta + `, "indexer_budget": 2048,
		"indexer_compress_ratio": 4, "indexer_head_dim": 128, "indexer_kv_heads": 1,
		"indexer_n_heads": 4, "layer_types": ` + times(linear, 36, full, 12) + `}}`,
		bytes: 25344, state: 58_834_944,
		words: "12 × 2 × 2 × 256 × 2 + 12 × 128 × 2 ÷ 4; state 36 × ((2 × 16 + 48) × 128 × 3 × 2 " +
			"+ 48 × 128 × 128 × 2)"},
	{name: "MiMo-V2-Flash", config: `{"num_hidden_layers": 48, "hidden_size": 4096,
		"num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128,
		"sliding_window_size": 128, "attention_chunk_size": 128, "swa_num_attention_heads": 64,
		"swa_num_key_value_heads": 8, "swa_head_dim": 192, "swa_v_head_dim": 128,
		"add_swa_attention_sink_bias": true, "hybrid_layer_pattern": ` + times("0", 9, "1", 39) + `}`,
		bytes: 222720, words: "9 × 4 × (192 + 128) × 2 + 39 × 8 × (192 + 128) × 2"},
	{name: "Nemotron-3-Ultra-550B", config: `{"hidden_size": 8192, "num_attention_heads": 64,
		"num_key_value_heads": 2, "head_dim": 128, "mamba_num_heads": 256, "mamba_head_dim": 64,
		"ssm_state_size": 128, "n_groups": 8, "conv_kernel": 4, "chunk_size": 128,
		"mamba_ssm_cache_dtype": "float32", "time_step_limit": [0.0, Infinity], "x": -Infinity,
		"mtp_layers_block_type": ["attention", "moe"], "some_loss": NaN, "layers_block_type": ` +
		times(`"mamba"`, 48, `"attention"`, 12, `"moe"`, 48) + `}`,
		bytes: 12288, state: 407_961_600, says: "layers_block_type",
		words: "12 × 2 × 2 × 128 × 2; state 48 × (256 × 64 × 128 × 4 + " +
			"(256 × 64 + 2 × 8 × 128) × 3 × 2)"},

	// The types that checkpoints declare, and that of the command line.
	{name: "FP8-Static", config: dense32B[:len(dense32B)-1] + `, "quantization_config":
		{"kv_cache_scheme": "FP8", "quant_algo": "FP8"}}`, bytes: 131072},
	{name: "quant-beside", config: dense32B, quant: `{"quantization": {"kv_cache_quant_algo":
		"FP8"}}`, bytes: 131072, says: "fp8 (declared by hf_quant_config.json: kv_cache_quant_algo)"},
	{name: "quant-null", config: dense32B, quant: `{"quantization": {"kv_cache_quant_algo": null}}`,
		bytes: 262144, says: "float16"},
	{name: "quant-beside-unread", config: dense32B[:len(dense32B)-1] + `, "quantization_config":
		{"quant_algo": "NVFP4"}}`, quant: `{"quantization": {"kv_cache_quant_algo": "FP8"}}`,
		bytes: 262144, says: "float16", words: "engines do not read the second file then"},
	{name: "quant-overruled", config: dense32B, quant: `{"quantization": {"kv_cache_quant_algo":
		"NVFP4"}}`, dtype: "bfloat16", bytes: 262144,
		says: "bfloat16 (-kv-dtype; the checkpoint declares nvfp4)"},
	{name: "unknown-overruled", config: dense32B, quant: `{"quantization":
		{"kv_cache_quant_algo": "W3"}}`, dtype: "fp8", bytes: 131072},
	{name: "MiniMax-M3-in-fp8", config: `{"num_hidden_layers": 4, "hidden_size": 64,
		"num_attention_heads": 2, "sparse_attention_config": {"use_sparse_attention": true,
		"sparse_index_dim": 8, "sparse_attention_freq": [0, 1, 1, 1],
		"sparse_disable_index_value": [0, 1, 1, 1]}}`, dtype: "fp8",
		bytes: 4*2*64 + 3*8*2, words: "keys of the index stay in bfloat16"},

	// By the class sources of mlx-lm, transformers and vLLM.
	{name: "Step-3.5-Flash", config: `{"num_hidden_layers": 45, "hidden_size": 4096,
		"num_attention_heads": 64, "num_attention_groups": 8, "head_dim": 128,
		"num_nextn_predict_layers": 3, "attention_other_setting": {"attention_type":
		"sliding_attention", "num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128},
		"sliding_window": 512, "layer_types": ` + times(full, 12, slides, 36) + `}`, bytes: 184320},
	{name: "Step3", config: `{"num_hidden_layers": 61, "hidden_size": 7168,
		"num_attention_heads": 64, "num_attention_groups": 1, "head_dim": 256}`,
		bytes: 61 * 2 * 256 * 2},
	{name: "Falcon-7b", config: `{"num_hidden_layers": 32, "hidden_size": 4544,
		"num_attention_heads": 71, "num_kv_heads": 71, "multi_query": true, "parallel_attn": true,
		"new_decoder_architecture": false}`, bytes: 8192},
	{name: "Falcon-40b", config: `{"num_hidden_layers": 60, "hidden_size": 8192,
		"num_attention_heads": 128, "num_kv_heads": 8, "multi_query": true,
		"new_decoder_architecture": true}`, bytes: 122880},
	{name: "Hunyuan-Large", config: `{"num_hidden_layers": 64, "hidden_size": 6400,
		"num_attention_heads": 80, "num_key_value_heads": 8, "attention_head_dim": 128,
		"use_cla": true, "cla_share_factor": 2, "use_mla": false}`, bytes: 32 * 2 * 8 * 128 * 2},
	{name: "Ring-flash-linear", config: `{"num_hidden_layers": 32, "hidden_size": 4096,
		"num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
		"layer_group_size": 8, "linear_silu": true, "group_norm_size": 4}`, bytes: 4 * 2 * 4 * 128 * 2, state: 28 * 32 * 128 * 128 * 2},
	{name: "EXAONE-4-32B", config: `{"num_hidden_layers": 64, "hidden_size": 5120,
		"num_attention_heads": 40, "num_key_value_heads": 8, "head_dim": 128,
		"sliding_window": 4096, "sliding_window_pattern": "LLLG"}`, bytes: 262144,
		says: "48 × 4096 B"},
	{name: "LongCat-Flash", config: `{"model_type": "longcat_flash", "num_layers": 28,
		"hidden_size": 6144, "num_attention_heads": 64, "kv_lora_rank": 512,
		"qk_rope_head_dim": 64, "attention_method": "MLA"}`, bytes: 64512},
	{name: "Gemma-3-4b", config: `{"model_type": "gemma3", "text_config": {"model_type":
		"gemma3_text", "num_hidden_layers": 34, "hidden_size": 2560, "sliding_window": 1024}}`,
		bytes: 139264},
	{name: "Gemma-3-12b", config: `{"text_config": {"model_type": "gemma3_text",
		"num_hidden_layers": 48, "hidden_size": 3840, "num_attention_heads": 16,
		"num_key_value_heads": 8}}`, bytes: 48 * 2 * 8 * 256 * 2},
	{name: "Bamba", config: `{"num_hidden_layers": 32, "hidden_size": 4096,
		"num_attention_heads": 32, "num_key_value_heads": 8, "attn_layer_indices": [9, 18, 27],
		"mamba_d_head": "auto", "mamba_expand": 2, "mamba_n_heads": 128, "mamba_d_state": 128,
		"mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_chunk_size": 256, "attn_rotary_emb": 64}`,
		bytes: 3 * 2 * 8 * 128 * 2,
		state: 29 * (8192*128*2 + (8192+2*128)*3*2)},
	{name: "Qwen3-Omni", config: `{"thinker_config": {"text_config": {"num_hidden_layers": 48,
		"hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4,
		"head_dim": 128}}}`, bytes: 98304},
	{name: "InternVL", config: `{"torch_dtype": "bfloat16", "llm_config": ` + dense32B + `}`,
		bytes: 262144},
	{name: "DeepSeek-VL2", config: `{"language_config": ` + dense32B + `}`, bytes: 262144},
	{name: "Llama-3.2-Vision", config: `{"text_config": {"num_hidden_layers": 40,
		"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
		"cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]}}`, bytes: 131072},
}

const dense32B = `{"num_hidden_layers": 64, "hidden_size": 5120, "num_attention_heads": 64,
	"num_key_value_heads": 8, "head_dim": 128}`

// row is a line of the table.
type row struct {
	line         string
	bytes, state string
}

// modelsOf lists the models below a directory.
func modelsOf(t *testing.T, dir string, args ...string) (rows map[string]row, code int) {
	t.Helper()
	code, out, _ := call("", append([]string{"models", dir}, args...)...)
	rows = map[string]row{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		rows[strings.TrimSuffix(filepath.Base(f[0]), "_config.json")] = row{line, f[1], f[2]}
	}
	return rows, code
}

// A new shape is a row of the table; curve says the same of the file.
func TestBytesOfPublishedConfigurations(t *testing.T) {
	dirs := map[string]string{}
	for _, p := range published {
		if dirs[p.dtype] == "" {
			dirs[p.dtype] = t.TempDir()
		}
		file := filepath.Join(dirs[p.dtype], p.name)
		require.NoError(t, os.WriteFile(file+"_config.json", []byte(p.config), 0o600))
		if p.quant != "" {
			require.NoError(t, os.WriteFile(file+"_hf_quant_config.json", []byte(p.quant), 0o600))
		}
	}
	for dtype, dir := range dirs {
		args := []string{"-kv-dtype", dtype}
		if dtype == "" {
			args = nil
		}
		rows, code := modelsOf(t, dir, args...)
		assert.Zero(t, code)
		for _, p := range published {
			if p.dtype != dtype {
				continue
			}
			r := rows[p.name]
			assert.Equal(t, strconv.FormatInt(p.bytes, 10), r.bytes, "%s: %s", r.line, p.words)
			assert.Equal(t, strconv.FormatInt(p.state, 10), r.state, "%s: %s", r.line, p.words)
			assert.Contains(t, r.line, p.says)
		}
	}
	code, out, errs := call("", "curve", blockTrace, "-model",
		filepath.Join(dirs[""], "quant-beside_config.json"))
	assert.Zero(t, code, errs)
	assert.Contains(t, out, "in fp8 (declared by hf_quant_config.json: kv_cache_quant_algo): "+
		"131,072 B per token")
}

// What is not understood is refused by the name of its key, and the others are listed all the same.
func TestConfigurationsThatAreNotUnderstood(t *testing.T) {
	dir := t.TempDir()
	const gqa = `"num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4,
		"num_key_value_heads": 2`
	const mla = `"num_hidden_layers": 4, "kv_lora_rank": 512, "qk_rope_head_dim": 64`
	want := map[string]string{}
	for text, key := range map[string]string{
		gqa + `, "attn_type_list": [1, 1, 0, 1]`:                                        "attn_type_list",
		gqa + `, "kv_merge_factor": 2`:                                                  "kv_merge_factor",
		gqa + `, "per_layer_heads": [2, 2, 2, 1]`:                                       "per_layer_heads",
		gqa + `, "lightning_indexer_dim": 64`:                                           "lightning_indexer_dim",
		gqa + `, "cache_sharing": true`:                                                 "cache_sharing",
		gqa + `, "index_head_dim": 128`:                                                 "index_head_dim",
		gqa + `, "layer_group_size": 3`:                                                 "layer_group_size",
		gqa + `, "num_layers": 8`:                                                       "num_layers",
		gqa + `, "sliding_window": [1, 2]`:                                              "sliding_window",
		gqa + `, "cross_attention_layers": [4]`:                                         "cross_attention_layers",
		gqa + `, "block_configs": [` + noOp + `]`:                                       "block_configs",
		gqa + `, "sliding_window": 8, "sliding_window_pattern": "LX"`:                   "sliding_window_pattern",
		gqa + `, "quantization_config": {"kv_cache_quant_algo": "W3"}`:                  "quantization_config: kv_cache_quant_algo",
		`"num_hidden_layers": 4, "kv_lora_rank": 512`:                                   "qk_rope_head_dim",
		mla + `, "index_head_dim": 128, "index_topk_freq": 4`:                           "index_topk_freq",
		mla + `, "index_head_dim": 128, "index_kpool": 4`:                               "index_kpool",
		mla + `, "index_head_dim": 128, "indexer_types": ["x", "full", "full", "full"]`: "indexer_types",
		mla + `, "index_topk": 2048`:                                                    "index_topk",
	} {
		name := strings.ReplaceAll(key, ": ", "-")
		want[name] = key
		file := filepath.Join(dir, name+"_config.json")
		require.NoError(t, os.WriteFile(file, []byte("{"+text+"}"), 0o600))
	}
	want["fine"] = ""
	require.NoError(t, os.WriteFile(filepath.Join(dir, "fine_config.json"),
		[]byte(`{`+gqa+`, "kv_merge_factor": null, "cache_sharing": false, "layer_norm_eps": 1e-5,
			"attention_dropout": 0.1, "vision_layers": 3}`), 0o600))
	rows, code := modelsOf(t, dir)
	assert.Equal(t, No, code)
	assert.Len(t, rows, 1+len(want)) // and the heading
	for name, key := range want {
		if key == "" {
			assert.Equal(t, "512", rows[name].bytes, "4 × 2 × 2 × 16 × 2 B: %s", rows[name].line)
			continue
		}
		_, reason, _ := strings.Cut(rows[name].line, "refused: ")
		assert.Contains(t, reason, key)
	}
	code, out, errs := call("", "models", dir)
	assert.Equal(t, No, code)
	assert.Contains(t, out, "refused: unknown key kv_merge_factor may change the KV-cache size per token")
	assert.Contains(t, errs, "18 of 19 configurations were refused")
	code, out, _ = call("", "models")
	assert.Zero(t, code)
	assert.Contains(t, out, "llama3.1-8b            131072       0               float16  gqa: 32 × 4096 B")
}

// Each file has its row, which says what to do, whatever is wrong with the others.
func TestModelsOfFilesThatAreWrong(t *testing.T) {
	const dims = `"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}`
	const fine = `{"num_hidden_layers": 4, ` + dims
	dir := t.TempDir()
	for _, c := range []struct {
		name, text, want string
		code             int
	}{
		{"nan", `{"num_hidden_layers": NaN, ` + dims, "refused: field num_hidden_layers is NaN", No},
		{"zero", `{"num_hidden_layers": 0, ` + dims,
			"refused: field num_hidden_layers is 0, want 1 to ", No},
		{"heads", `{"num_hidden_layers": 4, "hidden_size": 4096, "num_attention_heads": 32,
			"num_key_value_heads": 7}`, "refused: heads (32) is no multiple of kv_heads (7)", No},
		{"some_hf_quant", `{}`, "refused: it says how the checkpoint is quantized: give the " +
			"config.json", No},
		{"array", `[1]`, "unreadable: want a JSON object", Usage},
		{"cut", `{"num_hidden_layers": 4,`, "unreadable: the JSON has no end: the file is " +
			"truncated", Usage},
		{"empty", "", "unreadable: the file is empty", Usage},
		{"bom", "\ufeff" + fine, "512 0 float16 (assumed: the file names none)", Done},
	} {
		file := filepath.Join(dir, c.name+"_config.json")
		require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
		code, out, _ := call("", "models", "gpt-oss-20b", file)
		rows := strings.Split(strings.TrimSpace(out), "\n")
		assert.Equal(t, c.code, code, c.name)
		assert.Contains(t, rows[1], "gpt-oss-20b", "a model by its name")
		assert.Contains(t, strings.Join(strings.Fields(rows[2]), " "), c.want)
		assert.Equal(t, 1, strings.Count(rows[2], dir), "the path stands once: %s", rows[2])
	}
	code, out, _ := call("", "models", filepath.Join(dir, "none.json"), "gpt-oss-20b")
	assert.Equal(t, Usage, code)
	assert.Contains(t, out, "unreadable: no such file")
	assert.Contains(t, out, "gpt-oss-20b")
	// Next to config.json the others of models are listed, and those of tokenizers not.
	checkpoint := filepath.Join(dir, "checkpoint")
	require.NoError(t, os.Mkdir(checkpoint, 0o700))
	for name, text := range map[string]string{"config.json": fine, "x_config.json": fine,
		"tokenizer_config.json": "{}", "hf_quant_config.json": "{"} {
		require.NoError(t, os.WriteFile(filepath.Join(checkpoint, name), []byte(text), 0o600))
	}
	_, out, _ = call("", "models", checkpoint)
	assert.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 3, out)
	assert.Contains(t, out, "unreadable: hf_quant_config.json next to it: ")
	// The types are those of the benchmarks, and another is a mistake of the command line.
	for _, args := range [][]string{{"models"}, {"curve", blockTrace}, {"datasize"}} {
		code, out, errs := call("", append(args, "-kv-dtype", "nonsense")...)
		assert.Equal(t, Usage, code, args)
		assert.Empty(t, out)
		assert.Contains(t, errs, "auto, float32, float16, bfloat16, fp8, fp8_ds_mla, int8, int4, "+
			"nvfp4")
		code, _, errs = call("", append(args, "-kv-dtype", "float16")...)
		assert.Zero(t, code, errs)
	}
	// What the bytes of a token leave out is said, and what they have beyond it.
	states := filepath.Join(dir, "states.json")
	require.NoError(t, os.WriteFile(states, []byte(`{"num_hidden_layers": 32, "hidden_size": 2048,
		"num_attention_heads": 16, "num_key_value_heads": 2, "full_attention_interval": 4, `+delta+
		`}`), 0o600))
	_, out, errs := call("", "datasize", "-model", states)
	assert.Contains(t, out, "of every sequence besides the 8,192 B of each token", errs)
	_, out, errs = call("", "datasize", "-model", states, "-bench", "MultiTurn", "-engine", "vllm")
	assert.Contains(t, out, "without states a token has 8192 B", errs)
}
