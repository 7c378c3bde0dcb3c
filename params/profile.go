package params

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// profile builds the users' profile: the defaults, then the benchmark's keys, then the file's.
func (r *resolver) profile() {
	draft := newProfileDraft()
	keys := append(r.benchKeys(), r.file.keys...)
	origins := make(map[string]Origin)
	last := make(map[string]Parameter) // the file wins over the benchmark
	var order []string
	for _, k := range keys {
		k.key.set(draft, k.value)
		if _, ok := last[k.key.name]; !ok {
			order = append(order, k.key.name)
		}
		last[k.key.name] = Parameter{k.key.name, k.text, k.origin.String()}
		origins[k.key.name] = k.origin
	}
	for _, name := range order {
		r.v.profiles = append(r.v.profiles, last[name])
	}
	r.v.Profile = draft.profile
	r.v.GenerationTime = draft.timing[r.v.GenerationMode]
	r.v.Models, r.v.Notes = r.file.models, r.file.notes
	slices.SortStableFunc(r.v.Notes, func(a, b Note) int { return cmp.Compare(a.Line, b.Line) })
	for _, err := range draft.profile.Validate() {
		text := err.Error()
		if where := firstOf(origins); where != "" {
			text = where + ": " + text
		}
		r.bad = append(r.bad, Violation{Text: text})
	}
}

// firstOf is the file:line of one of the keys from the file, the best hint there is when only the whole profile is wrong.
func firstOf(origins map[string]Origin) string {
	for _, name := range slices.Sorted(maps.Keys(origins)) {
		if o := origins[name]; o.Kind == FromFile {
			path, _, _ := cutLine(o.Where)
			return path
		}
	}
	return ""
}

// cutLine splits file:line.
func cutLine(where string) (path, line string, ok bool) {
	if i := strings.LastIndexByte(where, ':'); i >= 0 {
		return where[:i], where[i+1:], true
	}
	return where, "", false
}

// benchKeys are the profile keys among the benchmark's settings.
func (r *resolver) benchKeys() []configKey {
	var keys []configKey
	for _, name := range slices.Sorted(maps.Keys(r.bench)) {
		key := schemaIndex[name]
		if key == nil || key.set == nil {
			continue
		}
		origin := Origin{FromBenchmark, r.in.Bench.Name}
		var doc yaml.Node
		err := yaml.Unmarshal([]byte(r.bench[name]), &doc)
		if err == nil && len(doc.Content) == 1 {
			var value keyValue
			if value, err = key.read(doc.Content[0]); err == nil {
				keys = append(keys, configKey{key, value, r.bench[name], origin})
				continue
			}
		}
		r.bad = append(r.bad, Violation{Name: name, Required: key.kind.String(), Given: r.bench[name], Origin: origin})
	}
	return keys
}
