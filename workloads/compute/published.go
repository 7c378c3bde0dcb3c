package compute

import (
	"fmt"
	"slices"
	"strings"
)

// Rate is a published prefill rate, measured for a model on a number of GPUs of a kind.
type Rate struct {
	Model string // key of the model
	GPU   string // such as h100, or 2xh100 for two of them together
	Cost  Cost
	// Tokens is the one length at which it was measured, 0 of several.
	Tokens int
	// What describes the measurement. Source says who published it.
	What, Source string
}

// Published returns measured prefill rates, of the built-in models and of models that users define
// under these keys (-config, model_configs).
//
// Nearly all rates were measured at one length. So they have no part that grows with the square of the
// length: a shorter prompt is faster than the rate, and a longer prompt is slower. On the one H20 that
// was measured at two lengths the difference is a factor of three. Batched rates apply to a server that
// always has enough to do; a single request is slower. -prefill-rate sets another rate.
//
// Publications without a prefill rate of known GPUs are left out: gpt-oss-120b on two H100, 32,500
// tokens/s of input and output together, and DeepSeek-R1 on an unknown number of GB300.
func Published() []Rate {
	rate := func(perSecond float64) Cost { return Cost{PerToken: 1 / perSecond} }
	return []Rate{
		{"llama3.1-8b", "h100", rate(22_200), 20_000, "20,000 tokens in 0.9 s, one request",
			"github.com/ai-dynamo/dynamo issue 6101"},
		{"llama3.1-70b-instruct", "2xh100", rate(12_300), 5_000,
			"5,000 tokens in 406.8 ms, one request, Llama 3.3 70B fp8, which has the same layers",
			"NVIDIA NIM 1.8.0 benchmarks, by way of llm-guesstimator"},
		{"llama3.1-70b-instruct", "4xh100", rate(6_500), 131_072,
			"128K tokens in 20 s, one request, Llama 3 70B", "IBM Research blog"},
		{"llama3.1-70b-instruct", "32xgh200", rate(69_400), 32_768,
			"32,768 tokens in 472 ms, one request", "NVIDIA technical blog"},
		{"deepseek-v3", "8xh100", rate(52_300), 2_000,
			"prompts of 2,000 tokens, batched, expert parallel", "LMSYS blog, May 2025"},
		{"deepseek-v3", "8xh800", rate(32_200), 0,
			"production, batched, tokens found in the cache not counted",
			"DeepSeek open-infra-index, day 6"},
		{"deepseek-v3", "gb200", rate(26_156), 2_000,
			"prompts of 2,000 tokens, batched, per GPU of an NVL72, DeepSeek-R1",
			"LMSYS blog, September 2025"},
		{"deepseek-v3", "2xgb300", rate(2 * 22_476), 2_000,
			"prompts of 2,000 tokens, batched, DeepSeek-R1 in nvfp4", "vLLM blog, 2026-02-13"},
		{"qwen3-8b", "rtx4090", rate(7_443), 20_000, "20,000 tokens, one request, 1 output token",
			"GPUStack documentation"},
		{"deepseek-v3.2", "2xgb300", rate(2 * 7_360), 2_000,
			"prompts of 2,000 tokens, batched, in nvfp4", "vLLM blog, 2026-02-13"},
		{"qwen3-coder-next", "h200", rate(12_800), 262_144, "256K tokens in 20.4 s, one request, fp8",
			"millstoneai benchmarks"},
		{"qwen3-coder-30b-a3b", "h20", through(1_024, 0.078, 65_536, 15.2), 0,
			"1k tokens in 78 ms, 64k in 15.2 s, one request", "agentic-kvc"},
	}
}

// On returns the published rate of a model on a GPU, such as h100 or 2xh100, in upper or lower case.
// The error completes "must be …" and lists what has a rate.
func On(model, gpu string) (Rate, error) {
	var ofModel, others []string
	for _, r := range Published() {
		switch {
		case r.Model == model && r.GPU == strings.ToLower(gpu):
			return r, nil
		case r.Model == model:
			ofModel = append(ofModel, r.GPU)
		case !slices.Contains(others, r.Model):
			others = append(others, r.Model)
		}
	}
	if len(ofModel) > 0 {
		return Rate{}, fmt.Errorf("one of %s, for which there is a published rate of %s; "+
			"-prefill-rate takes a rate of your own", strings.Join(ofModel, ", "), model)
	}
	return Rate{}, fmt.Errorf("used with -model %s, because %s has no published rate here; "+
		"-prefill-rate takes a rate of your own", strings.Join(others, " or "), model)
}
