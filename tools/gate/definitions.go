package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"kvbench/tools/comparable"
)

// definitions are the settings that matter, by name.
type definitions map[string]string

// Mismatch is one setting in which two results differ.
type Mismatch struct {
	Bench, Name string
	Old, New    string
}

// String says it in one line.
func (m Mismatch) String() string {
	return fmt.Sprintf("%s: %s is %s in one and %s in the other", m.Bench, m.Name, m.Old, m.New)
}

// define merges the settings of one more result.
func (b *bench) define(config []comparable.Setting) {
	if b.defs == nil {
		b.defs = make(definitions)
		for _, s := range comparable.OfName(withoutCPU(b.name)) {
			b.defs[s.Name] = s.Value
		}
	}
	for _, s := range config {
		if !comparable.Matters(s.Name) {
			continue
		}
		if have, known := b.defs[s.Name]; known && have != s.Value {
			m := Mismatch{b.name, s.Name, have, s.Value}
			if !slices.Contains(b.conflicts, m) {
				b.conflicts = append(b.conflicts, m)
			}
			continue
		}
		b.defs[s.Name] = s.Value
	}
}

// mismatches compares the settings of one benchmark on both sides, and of the results of each side among themselves.
func mismatches(name string, old, new *bench, ignore []string) []Mismatch {
	ignored := func(setting string) bool { return slices.Contains(ignore, setting) && !comparable.Defines(setting) }
	var list []Mismatch
	for _, b := range []*bench{old, new} {
		for _, m := range b.conflicts {
			if !ignored(m.Name) {
				list = append(list, m)
			}
		}
	}
	all := maps.Clone(old.defs)
	maps.Copy(all, new.defs)
	if all[comparable.Division] != "" {
		all[comparable.WriteDevice] = "" // follows from it where nobody says it
	}
	inOld, inNew := old.effective(), new.effective()
	for key := range all {
		a, aKnown := inOld(key)
		b, bKnown := inNew(key)
		if aKnown && bKnown && a != b && !ignored(key) {
			list = append(list, Mismatch{name, key, a, b})
		}
	}
	slices.SortFunc(list, func(a, b Mismatch) int {
		return cmp.Or(cmp.Compare(comparable.Order(a.Name), comparable.Order(b.Name)), cmp.Compare(a.Old, b.Old))
	})
	return list
}

// effective looks up what was said, else the default.
func (b *bench) effective() func(name string) (string, bool) {
	defaults := comparable.Defaults(withoutCPU(b.name), b.defs[comparable.Division])
	return func(name string) (string, bool) {
		if v, ok := b.defs[name]; ok {
			return v, true
		}
		v, ok := defaults[name]
		return v, ok
	}
}
