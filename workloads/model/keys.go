package model

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// fields are the keys of an object of a config.json. A key that may affect the KV-cache size is
// used, has a value that turns it off, is listed in keys.txt as harmless, or causes an error. Every
// wrong size so far came from an unknown key that was ignored, or from a missing one.
type fields struct {
	values map[string]json.RawMessage // keys whose value is null are left out
	read   map[string]bool
	subs   map[string]*fields
	err    error // of the first value that could not be read
}

// classDefaults maps a model_type to the values that a configuration may leave out, because they are the
// defaults of the type's class (huggingface/transformers, src/transformers/models/*/configuration_*.py,
// August 2026, or the model's own code). Some stand for layers that are not supported, so that such a file is refused.
var classDefaults = func() (types map[string]map[string]json.RawMessage) {
	if err := json.Unmarshal(defaultsJSON, &types); err != nil {
		panic(err)
	}
	return types
}()

// stringsOrNaN matches JSON strings, NaN and Infinity. Python writes NaN and Infinity, but JSON
// forbids them. They become null, because no size uses them.
var stringsOrNaN = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

func newFields(text []byte) (*fields, error) {
	f := &fields{read: map[string]bool{}, subs: map[string]*fields{}}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors on Windows write this mark
	text = stringsOrNaN.ReplaceAllFunc(text, func(s []byte) []byte {
		if s[0] == '"' {
			return s
		}
		return []byte("null")
	})
	if err := json.Unmarshal(text, &f.values); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	for key, value := range classDefaults[f.text("model_type")] {
		if _, given := f.values[key]; !given { // null is a value, too: it turns the default off
			f.values[key] = value
		}
	}
	maps.DeleteFunc(f.values, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	return f, nil
}

// parseLevels returns the objects of a configuration, from the text model's object to the outermost.
func parseLevels(text []byte) (levels []*fields, err error) {
	for text != nil && len(levels) < 4 {
		f, err := newFields(text)
		if err != nil {
			return nil, err
		}
		levels, text = append([]*fields{f}, levels...), nil
		for _, key := range []string{"text_config", "thinker_config", "llm_config",
			"language_config"} {
			if text == nil {
				text = f.values[key]
			}
		}
	}
	// Some files have the text model's dimensions outside, and an object without layers inside.
	if i := slices.IndexFunc(levels, (*fields).layered); i > 0 {
		levels = levels[i:]
	}
	return levels, nil
}

// layered reports whether the object has a number of layers.
func (f *fields) layered() bool {
	return slices.ContainsFunc([]string{"num_hidden_layers", "num_layers", "n_layer", "n_layers",
		"hybrid_override_pattern", "layers_block_type"}, func(k string) bool { return f.values[k] != nil })
}

// get decodes the value of the first key that is present into the variable that to points to.
func (f *fields) get(to any, keys ...string) (found string) {
	for _, key := range keys {
		f.read[key] = true
		if found == "" && f.values[key] != nil {
			found = key
		}
	}
	if found != "" && json.Unmarshal(f.values[found], to) != nil && f.err == nil {
		f.err = fmt.Errorf("%s has an unexpected type: %.40s", found, f.values[found])
	}
	return found
}

func (f *fields) nums(key string) (list []int) { f.get(&list, key); return list }
func (f *fields) flag(key string) (on bool)    { f.get(&on, key); return on }

// num returns a number. Sizes are products of these numbers, so num refuses values out of range.
func (f *fields) num(keys ...string) (n int) {
	if key := f.get(&n, keys...); (n < 0 || n > 1<<30) && f.err == nil {
		f.err = fmt.Errorf("%s is %d, want 0 to %d", key, n, 1<<30)
	}
	return n
}

// text returns a string value, or a number as text: some files use a number instead of a name.
func (f *fields) text(key string) string {
	f.read[key] = true
	return strings.Trim(string(f.values[key]), `"`)
}

func (f *fields) texts(key string) (list []string) {
	var texts []json.RawMessage
	f.get(&texts, key)
	for _, t := range texts {
		list = append(list, strings.Trim(string(t), `"`))
	}
	return list
}

// sub returns the nested object of this key.
func (f *fields) sub(key string) *fields {
	if f.subs[key] == nil {
		f.subs[key] = &fields{read: map[string]bool{}, subs: map[string]*fields{}}
		f.get(&f.subs[key].values, key)
	}
	return f.subs[key]
}

var (
	mayAffectSize = regexp.MustCompile(`(?i)layer|head|index|window|attn|attention|query|[gm]qa|` +
		`(^|_)(k|v|key|value)_dim|ssm|mamba|conv|linear|latent|compress|chunk|swa|sliding|sparse|` +
		`block|group|pattern|interval|period|hybrid|retention|memory|mixer|mla|local|global|every|` +
		`ratio|state|delta|gdn|gla|kda|rwkv|lru|rnn|lightning|stack|depth|merge|prun|evict|skip|` + moreCaches)
	// moreCaches matches keys that say what caches keep, how often layers run, or which layers share a
	// cache. The keys of the objects around the text model are searched for these words only.
	moreCaches = `kv|cache|loop|recur|repeat|passes|(^|_)steps?(_|$)|(^|_)iter|iters|cycle|unroll|` +
		`ponder|yoco|(^|_)ut(_|$)|source|shar(e|ing)|reuse|tied|equals|per_layer|encoder_decoder`
	changes = regexp.MustCompile(`(?i)` + moreCaches)
	// stores matches keys that no pattern with a * makes harmless.
	stores = regexp.MustCompile(`(?i)(^|[^q])kv|cache`)
	//go:embed keys.txt
	harmlessKeys string
	//go:embed defaults.json
	defaultsJSON []byte
	// offValues are values that turn something off.
	offValues = []string{"null", "false", "0", "0.0", `""`, "[]", "{}"}
)

// refusal returns an error for the first unknown key with one of the words, or else the first value that
// could not be read.
func (f *fields) refusal(words *regexp.Regexp) error {
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		known := func(pattern string) bool {
			match, err := path.Match(pattern, key)
			return err == nil && match && (pattern == key || !stores.MatchString(key))
		}
		if f.read[key] || !words.MatchString(key) || slices.Contains(offValues,
			string(f.values[key])) || slices.ContainsFunc(strings.Split(harmlessKeys, "\n"), known) {
			continue
		}
		advice := "if it does not, delete it from a copy of the file and use the copy"
		if changes.MatchString(key) {
			advice = "a copy of the file without it may give a wrong size"
		}
		return fmt.Errorf("unknown key %s may change the KV-cache size per token; %s", key, advice)
	}
	for _, s := range f.subs {
		if err := s.refusal(words); err != nil {
			return err
		}
	}
	return f.err
}
