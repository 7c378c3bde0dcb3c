package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kvbench/kvbench/merge"
)

// Engine is a result of an inference engine's own benchmark, which kvbench did not run.
type Engine struct {
	File    string
	Program string
	Model   string
	Numbers [len(EngineNumbers)]any // float64, or nil if the file has no such number
	Others  string                  // all other values of the file
}

// EngineNumbers are the numbers that the programs have in common. Times are in nanoseconds.
var EngineNumbers = [...]string{"requests", "requests/s", "tokens/s", "generated tokens/s", "TTFT mean",
	"TTFT p50", "TTFT p99"}

// FirstTime is the index of the first of EngineNumbers that is a time.
const FirstTime = 4

// engines are the programs whose results are read. keys are in all files of the program, and together in no
// file of another program. model is the key of the model, and numbers are the keys of EngineNumbers. unit is
// the unit of times. The keys are those of vLLM 0.13 and of LMCache's revision of July 2026.
var engines = []struct {
	program, keys, model string
	numbers              [len(EngineNumbers)]string
	unit                 float64
}{
	{"vllm bench serve", "request_throughput output_throughput total_token_throughput", "model_id",
		[...]string{"completed", "request_throughput", "total_token_throughput", "output_throughput",
			"mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms"}, ms},
	{"vllm bench throughput", "num_requests total_num_tokens requests_per_second tokens_per_second", "",
		[...]string{"num_requests", "requests_per_second", "tokens_per_second", "", "", "", ""}, ms},
	// Its tokens are the generated tokens, without the prompts.
	{"validate_lmcache.sh", "backend num_prompts total_tokens requests_per_second tokens_per_second", "",
		[...]string{"num_prompts", "requests_per_second", "", "tokens_per_second", "", "", ""}, ms},
	{"lmcache bench engine", "results.successful_requests results.output_throughput", "config.model",
		[...]string{"results.successful_requests", "", "", "results.output_throughput",
			"results.mean_ttft_ms", "results.p50_ttft_ms", "results.p99_ttft_ms"}, ms},
	{"LMCache long_doc_qa.py", "query_ttft_per_prompt query_round_time_per_prompt", "",
		[...]string{"", "", "", "", "query_ttft_per_prompt", "", ""}, 1000 * ms},
}

// engineResults reads the results of a file that kvbench did not write. A file of vllm bench serve
// -append-result has several.
func (r *reader) engineResults(data []byte, name string) error {
	values := json.NewDecoder(bytes.NewReader(data))
	for {
		var tree map[string]any
		if err := values.Decode(&tree); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return merge.Located(name, data, err)
		}
		e, err := engineResult(tree)
		if err != nil {
			return fmt.Errorf("%s:1: %w", name, err)
		}
		if r.Engines == nil {
			return fmt.Errorf("%s:1: %w of kvbench, but of %s, which kvreport html and xlsx show",
				name, errEngine, e.Program)
		}
		e.File = name
		*r.Engines = append(*r.Engines, e)
		r.records++
	}
}

// errEngine reports a result of an engine's benchmark to a command that does not show it.
var errEngine = errors.New("it is no result")

// engineResult finds the program that wrote a result.
func engineResult(tree map[string]any) (e Engine, err error) {
	values := map[string]any{}
	flatten(values, "", tree)
	var sought []string
	for _, p := range engines {
		sought = append(sought, p.program+" ("+p.keys+")")
		if slices.ContainsFunc(strings.Fields(p.keys), func(key string) bool { return values[key] == nil }) {
			continue
		}
		e.Program = p.program
		e.Model, _ = values[p.model].(string)
		delete(values, p.model)
		for i, key := range p.numbers {
			v, ok := values[key].(float64)
			if !ok {
				continue
			}
			if i >= FirstTime {
				v *= p.unit
			}
			e.Numbers[i] = v
			delete(values, key)
		}
		var others []string
		for _, key := range slices.Sorted(maps.Keys(values)) {
			others = append(others, fmt.Sprintf("%s %v", key, values[key]))
		}
		e.Others = strings.Join(others, ", ")
		return e, nil
	}
	return e, fmt.Errorf("%w; nor does it have the keys of %s", merge.ErrNoResult,
		strings.Join(sought, ", "))
}

// flatten adds the values of a tree by dotted key. Of a list it adds only the number of values.
func flatten(to map[string]any, prefix string, tree map[string]any) {
	for key, v := range tree {
		switch v := v.(type) {
		case map[string]any:
			flatten(to, prefix+key+".", v)
		case []any:
			to[prefix+key] = strconv.Itoa(len(v)) + " values"
		case nil:
		default:
			to[prefix+key] = v
		}
	}
}
