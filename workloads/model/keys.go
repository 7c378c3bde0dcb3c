package model

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// fields are the keys of an object of a config.json. Each key that speaks of what layers keep is
// read, is known to change nothing, or is refused: keys that were ignored because nobody knew them
// have been the reason of every wrong size.
type fields struct {
	of   map[string]json.RawMessage // without those that are null
	read map[string]bool
	subs map[string]*fields
	err  error // the first value whose form is not known
}

// pythonFloats are texts, which stay as they are, and the numbers that Python writes and JSON does
// not have. None of them is the size of anything.
var pythonFloats = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

func newFields(text []byte) (*fields, error) {
	f := &fields{read: map[string]bool{}, subs: map[string]*fields{}}
	err := json.Unmarshal(pythonFloats.ReplaceAllFunc(text, func(s []byte) []byte {
		if s[0] == '"' {
			return s
		}
		return []byte("null")
	}), &f.of)
	maps.DeleteFunc(f.of, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	return f, err
}

// parseLevels are the objects of a configuration, from that of the text model to the outermost.
func parseLevels(text []byte) (levels []*fields, err error) {
	for text != nil && len(levels) < 4 {
		f, err := newFields(text)
		if err != nil {
			return nil, err
		}
		levels, text = append([]*fields{f}, levels...), nil
		for _, key := range []string{"text_config", "thinker_config", "llm_config",
			"language_config"} {
			if text == nil && f.of["num_hidden_layers"] == nil && f.of["num_layers"] == nil {
				text = f.of[key]
			}
		}
	}
	return levels, nil
}

// get fills to from the first of these keys that is there.
func (f *fields) get(to any, keys ...string) {
	found := ""
	for _, key := range keys {
		f.read[key] = true
		if found == "" && f.of[key] != nil {
			found = key
		}
	}
	if found != "" && json.Unmarshal(f.of[found], to) != nil && f.err == nil {
		f.err = fmt.Errorf("%s is %.40s: that form is not known here", found, f.of[found])
	}
}

func (f *fields) nums(key string) (list []int) { f.get(&list, key); return list }
func (f *fields) flag(key string) (on bool)    { f.get(&on, key); return on }

// num bounds what others multiply.
func (f *fields) num(keys ...string) (n int) {
	if f.get(&n, keys...); (n < 0 || n > 1<<30) && f.err == nil {
		f.err = fmt.Errorf("%s is %d, want 0 to %d", keys[0], n, 1<<30)
	}
	return n
}

// text is also that of a number: some files write one where others have a word.
func (f *fields) text(key string) string {
	f.read[key] = true
	return strings.Trim(string(f.of[key]), `"`)
}

func (f *fields) texts(key string) (list []string) {
	var texts []json.RawMessage
	f.get(&texts, key)
	for _, t := range texts {
		list = append(list, strings.Trim(string(t), `"`))
	}
	return list
}

// sub is an object inside.
func (f *fields) sub(key string) *fields {
	if f.subs[key] == nil {
		f.subs[key] = &fields{read: map[string]bool{}, subs: map[string]*fields{}}
		f.get(&f.subs[key].of, key)
	}
	return f.subs[key]
}

var (
	speaksOfCaches = regexp.MustCompile(`layer|head|index|cache|kv|window|attn|attention|query|` +
		`ssm|mamba|conv|linear|latent|compress|chunk|swa|sliding|sparse|block|group|pattern|` +
		`interval|period|hybrid|recurrent|retention|memory|mixer|(^|_)cla(_|$)`)
	//go:embed keys.txt
	harmless string
	// off are values that turn something off.
	off = []string{"null", "false", "0", "0.0", `""`, "[]", "{}"}
)

// refusal is an error that names the first key that may change what layers keep and is not known,
// or whose value is not.
func (f *fields) refusal() error {
	for _, key := range slices.Sorted(maps.Keys(f.of)) {
		known := func(pattern string) bool {
			match, err := path.Match(pattern, key)
			return err == nil && match
		}
		if f.read[key] || !speaksOfCaches.MatchString(key) || slices.Contains(off,
			string(f.of[key])) || slices.ContainsFunc(strings.Split(harmless, "\n"), known) {
			continue
		}
		return fmt.Errorf("%s is not known here and may change what layers keep of a token; if it "+
			"does not, remove it from a copy of the file", key)
	}
	for _, s := range f.subs {
		if err := s.refusal(); err != nil {
			return err
		}
	}
	return f.err
}
