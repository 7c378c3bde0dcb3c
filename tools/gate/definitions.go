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

// define merges the settings of one more result. Settings that do not matter were left out before.
func (s *Side) define(b *bench, config []comparable.Setting) {
	if b.defs != nil && same(config, b.last) {
		return
	}
	b.last = config
	if b.defs == nil {
		b.defs = s.definitions(config)
		for _, swept := range comparable.OfName(withoutCPU(b.name)) {
			b.put(swept)
		}
		return
	}
	for _, setting := range config {
		have, known := b.defs[setting.Name]
		if m := (Mismatch{b.name, setting.Name, have, setting.Value}); known && have != setting.Value {
			if !slices.Contains(b.conflicts, m) {
				b.conflicts = append(b.conflicts, m)
			}
		} else if !known {
			b.put(setting)
		}
	}
}

// put adds a setting to definitions that may be shared.
func (b *bench) put(s comparable.Setting) {
	if !b.own {
		b.defs, b.own = maps.Clone(b.defs), true
	}
	b.defs[s.Name] = s.Value
}

// definitions makes a map of settings, one for all benchmarks that have the same.
func (s *Side) definitions(config []comparable.Setting) definitions {
	if len(config) == 0 {
		return definitions{}
	}
	d, known := s.shared[&config[0]]
	if !known {
		d = make(definitions, len(config))
		for _, setting := range config {
			d[setting.Name] = setting.Value
		}
		if s.shared == nil {
			s.shared = make(map[*comparable.Setting]definitions)
		}
		if len(s.shared) < 1000 { // result files have settings of their own each
			s.shared[&config[0]] = d
		}
	}
	return d
}

func same(a, b []comparable.Setting) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// mismatches compares the settings of one benchmark on both sides, and of the results of each side among themselves.
func mismatches(name string, old, new *bench, ignore []string, defaults *comparable.Defaults) []Mismatch {
	if len(old.conflicts)+len(new.conflicts) == 0 && maps.Equal(old.defs, new.defs) {
		return nil
	}
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
	inOld, inNew := old.effective(defaults), new.effective(defaults)
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
func (b *bench) effective(c *comparable.Defaults) func(name string) (string, bool) {
	defaults := c.Of(withoutCPU(b.name), b.defs[comparable.Division])
	return func(name string) (string, bool) {
		if v, ok := b.defs[name]; ok {
			return v, true
		}
		v, ok := defaults[name]
		return v, ok
	}
}
