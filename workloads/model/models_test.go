package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// sources are the names on Hugging Face of the built-in models.
var sources = map[string]string{
	"mistral-7b": "mistralai/Mistral-7B-v0.3", "llama2-7b": "meta-llama/Llama-2-7b-hf",
	"llama3.1-8b": "meta-llama/Llama-3.1-8B", "llama3.1-70b-instruct": "meta-llama/Llama-3.1-70B-Instruct",
	"deepseek-v3": "deepseek-ai/DeepSeek-V3", "qwen3-32b": "Qwen/Qwen3-32B",
	"gpt-oss-120b": "openai/gpt-oss-120b", "gpt-oss-20b": "openai/gpt-oss-20b",
}

// TestModelsPage compares the page of models with the built-in models and the published configurations.
// With -update it writes the page.
func TestModelsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Models\n\nWritten by `go test ./workloads/model -run ModelsPage -update` from the built-in " +
		"models and from configurations with which the tests compare published figures.\nBytes are those of " +
		"one token in the caches of all ranks. `go tool kvreport datasize -model KEY-OR-FILE` prints them " +
		"for any model;\n[README](README.md#bytes-per-token) says what counts.\n\n## Built-in models\n\n" +
		"`-model KEY`. The dimensions are those of the source's config.json; tiny-1b is invented.\n")
	table := func(first, last string) {
		b.WriteString("\n| " + first + " | attention | layers | KV heads | head or latent | B/token, 16 bits | " +
			"B/token, fp8 | " + last + " |\n|---|---|---|---|---|---|---|---|\n")
	}
	row := func(first string, m Model, last string) {
		heads, size := fmt.Sprint(m.KVHeads), fmt.Sprint(m.headDim())
		if m.Latents() {
			heads, size = "–", fmt.Sprintf("%d + %d", m.KVLoraRank, m.QKRopeHeadDim)
		}
		if m.Attention == CSA {
			size = fmt.Sprint(m.HeadDim)
		}
		bytes := func(dtype string) string {
			as, err := m.In(dtype)
			if err != nil {
				return "refused"
			}
			return fmt.Sprint(as.BytesPerToken())
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s | %s |\n", first, m.Attention, m.Layers, heads, size,
			bytes("float16"), bytes("fp8"), last)
	}
	table("key", "source")
	for _, m := range BuiltIn() {
		source := sources[m.Key]
		require.Equal(t, m.Key == "tiny-1b", source == "", "%s has no source", m.Key)
		if source != "" {
			source = "[" + source + "](https://huggingface.co/" + source + ")"
		}
		row("`"+m.Key+"` "+m.Name, m, cmp.Or(source, "–"))
	}
	b.WriteString("\n## Published configurations\n\nOthers need their config.json. For these a test has the " +
		"published figure: layers × bytes at 16 bits, and the key that says which layers keep tokens.\n")
	table("name", "16 bits")
	for _, name := range slices.Sorted(maps.Keys(published)) {
		m, err := config(t, name, "").In("float16")
		require.NoError(t, err)
		row(name, m, m.Arithmetic())
	}
	golden.Check(t, "../../MODELS.md", b.String())
}
