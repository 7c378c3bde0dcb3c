package params

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
)

// closed refuses overrides in the closed division. A value that is given and equals the required
// one is no override: a script may spell all of them out.
func (r *resolver) closed() {
	if r.v.Division != Closed {
		return
	}
	for _, d := range r.v.departures() {
		if d.name == "config" || !r.v.Origin(d.name).byUser() || r.refused[d.name] {
			continue
		}
		shown := d.show(d.required)
		if d.required == "" { // a file, or a sweep
			shown = "absent"
		}
		r.refuse(d.name, fmt.Sprintf("%s in the closed division%s", shown, optionNote(r.in.Bench)))
	}
}

// optionNote names the option in a message: each requires something else.
func optionNote(b Bench) string {
	if b.Option == 0 {
		return ""
	}
	return fmt.Sprintf(" (option %d)", b.Option)
}

// departure is a parameter that is not what the closed division requires.
type departure struct {
	parameter
	required string
}

// departures compares the values with those of the closed division, text by text. What an option
// decides is not compared when the benchmark is none: each option requires something else.
func (v *Values) departures() (list []departure) {
	closed := newValues("/")
	settings := v.Bench.settings(Closed)
	for i, p := range v.rows {
		text, set := settings[p.name]
		if p.has(free, action) || !set && v.Bench.Option == 0 && optionDecides(p.name) {
			continue
		}
		if !set {
			text = p.def[Closed.index()]
		}
		required := closed.rows[i].value
		if err := required.Set(text); err == nil && required.String() != p.value.String() {
			list = append(list, departure{p, required.String()})
		}
	}
	return list
}

// optionDecides tells whether the options set a parameter, so that without one nothing can be said.
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
	// Nothing is compared before this is said: the closed division has three benchmarks.
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
	for _, d := range v.departures() {
		if d.name != "sweep" && d.name != "config" { // what they set is compared
			list = append(list, result.Difference{Name: d.name, Closed: d.show(d.required),
				Value: d.show(d.value.String())})
		}
	}
	// Not a parameter: the closed division draws its users as the Python program does, number by
	// number, so that both serve the same conversations.
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
	return p != nil && !p.has(action, place, goFlag)
}
