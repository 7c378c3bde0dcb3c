package params

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
)

// closed refuses overrides in the closed division. A value that is given and equals the required
// one is no override.
func (r *resolver) closed() {
	if r.v.Division != Closed {
		return
	}
	for _, p := range r.v.rows {
		if p.has(free|action) || p.name == "config" || !r.v.Origin(p.name).byUser() ||
			r.refused[p.name] {
			continue
		}
		required, known := closedText(&p, r.in.Bench)
		if !known || p.value.String() == required {
			continue
		}
		shown := p.show(required)
		if _, ok := p.value.(path); ok || p.name == "sweep" {
			shown = "absent"
		}
		r.refuse(p.name, fmt.Sprintf("%s in the closed division%s", shown, optionNote(r.in.Bench)))
	}
}

func optionNote(b Bench) string {
	if b.Option == 0 {
		return ""
	}
	return fmt.Sprintf(" (option %d)", b.Option)
}

// closedText is what the closed division requires of a parameter, canonical. It is unknown for what
// an option decides when the benchmark is not an option.
func closedText(p *parameter, b Bench) (text string, known bool) {
	text, set := b.settings(Closed)[p.name]
	if !set {
		if b.Option == 0 && optionDecides(p.name) {
			return "", false
		}
		text = p.def[Closed.index()]
	}
	x := newValues("/").row(p.name).value
	err := x.Set(text)
	return x.String(), err == nil
}

func optionDecides(name string) bool {
	return slices.ContainsFunc(Benchmarks(), func(b Bench) bool {
		_, ok := b.settings(Closed)[name]
		return b.Option > 0 && ok
	})
}

// Differences lists what makes a run of the open division differ from the closed one. A benchmark
// that is no MLPerf option differs by that alone, before any parameter. Nil in the closed division
// itself.
func (v *Values) Differences() []result.Difference {
	if v.Division == Closed {
		return nil
	}
	var list []result.Difference
	if v.Bench.Option == 0 && v.Bench.Name != "" {
		var names []string
		for _, b := range Benchmarks() {
			if b.Option > 0 {
				names = append(names, b.Name)
			}
		}
		list = append(list, result.Difference{Name: "benchmark", Closed: strings.Join(names, ", "),
			Value: v.Bench.Name})
	}
	for _, p := range v.rows {
		if p.has(free|action) || p.name == "sweep" || p.name == "config" {
			continue
		}
		if required, known := closedText(&p, v.Bench); known && required != p.value.String() {
			list = append(list, result.Difference{Name: p.name, Closed: p.show(required),
				Value: p.show(p.value.String())})
		}
	}
	if !v.CPythonPopulation() && v.Bench.Load == LoadUsers {
		list = append(list, result.Difference{Name: "population", Closed: "drawn as CPython does",
			Value: "drawn from per-user streams"})
	}
	profile := slices.SortedFunc(slices.Values(v.profiles),
		func(a, b result.Parameter) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range profile {
		list = append(list, result.Difference{Name: p.Name, Closed: "default", Value: p.Value})
	}
	return list
}

// Comparable tells whether a parameter decides what a run measures: results in which it differs
// cannot be compared. Places (directories, ranks), what is only shown, and Go's own flags are not,
// and neither is a name that is no parameter.
func Comparable(name string) bool {
	p := find(name)
	return p != nil && !p.has(action|place|goFlag)
}
