package params

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result"
)

// closed refuses overrides in the closed division. A given value that equals the required value is no
// override.
func (r *resolver) closed() {
	if r.v.Division != Closed {
		return
	}
	// -bench Checkpoint selects the stream, too, which skips.
	if r.v.Bench.Checkpoints() && !r.v.inClosed() {
		return
	}
	where := "in the closed division"
	if n := r.in.Bench.Option; n > 0 { // each requires something else
		where += fmt.Sprintf(" (option %d)", n)
	}
	for _, p := range table {
		required, fixed := r.v.required(p)
		if !fixed || required == r.v.text(p) || p.name == "config" || !r.v.Changed(p.name) {
			continue
		}
		shown := cmp.Or(required, "absent") // a file, or a sweep
		// What its benchmarks take as their length is no length of a checkpoint.
		if p.name == "benchtime" && r.v.Bench.Checkpoints() {
			shown = fmt.Sprintf("absent, because %s checkpoints are written and read, however "+
				"long that takes,", find("checkpoint-writes").def[Closed])
		}
		rehearsed := ""
		if _, rehearsable := rehearsal[p.name]; rehearsable && r.in.Bench.Option > 0 {
			rehearsed = ", or another with -rehearse"
		}
		r.want(false, p.name, "%s %s%s", shown, where, rehearsed)
	}
}

// optionSettings has the parameters that every MLPerf option sets. Their values differ between options.
var optionSettings = benchmarks[0].set[Closed]

// rehearsal has the defaults that a rehearsal changes. Only these may be overridden. The window is
// 30 s because in less time some drives complete no request of 200 users.
var rehearsal = map[string]string{"benchtime": "30s", "settle": "0s"}

// OptionPause is the pause between two MLPerf options of one closed run: the pause of Rules
// 6.3.2.1 before and after each trial. Rules 6.6.1 says 20 s in passing; the longer one satisfies both.
const OptionPause = 90 * time.Second

// Notice returns the notice that every output must have. It is empty for quick and open.
func (v *Values) Notice() string {
	switch {
	case v.Rehearse:
		return result.RehearsalNotice
	case v.Division == Closed:
		return result.ClosedNotice
	}
	return ""
}

// closedNeeds is the parameter that the closed division requires for checkpoints: a type of accelerator
// whose memory could hold them.
const closedNeeds = "checkpoint-accelerator-type"

// closedModel reports whether the closed division has the benchmark, once
// -checkpoint-accelerator-type is given.
func (b Bench) closedModel() bool { return b.Name == "Checkpoint" }

// inClosed reports whether the benchmark is part of the closed division. In a closed run it also needs
// the parameter closedNeeds.
func (v *Values) inClosed() bool {
	return v.Bench.Option > 0 || v.Bench.closedModel() &&
		(v.Division != Closed || v.Checkpoint.AcceleratorType != "")
}

// required returns the value that the closed division requires of a parameter, and whether it requires
// one. A parameter of optionSettings is free in a benchmark that is no MLPerf option.
func (v *Values) required(p *parameter) (text string, fixed bool) {
	_, option := optionSettings[p.name]
	text, set := v.Bench.set[Closed][p.name]
	if !set {
		text = p.def[Closed]
	}
	_, rehearsable := rehearsal[p.name]
	return text, !(p.has(free, action) || v.Bench.closedModel() && p.has(submitter) ||
		v.Rehearse && rehearsable || option && !set && v.Bench.Option == 0)
}

// requiredAnyway reports whether a parameter has the value that the closed division requires.
func (v *Values) requiredAnyway(p *parameter) bool {
	text, fixed := v.required(p)
	_, option := optionSettings[p.name]
	return v.Division == Closed && !p.key() && !(fixed && text != v.text(p)) &&
		!(option && v.Bench.Option == 0 && v.inClosed())
}

// Recorded compares the parameters of a result with these values of the closed division. It returns a
// violation for each difference.
func (v *Values) Recorded(list []result.Parameter) (bad Violations) {
	closed := *v
	for _, r := range list {
		closed.Rehearse = closed.Rehearse || r.Name == "rehearse" && fmt.Sprint(r.Value) == "true"
	}
	for _, r := range list {
		p := find(r.Name) // nil: another version's
		if p == nil {
			continue
		}
		if text, fixed := closed.required(p); fixed && p.show(text) != fmt.Sprint(r.Value) {
			bad = append(bad, fmt.Sprintf("%s: must be %s in the closed division, given %v",
				p.label(), cmp.Or(text, "absent"), r.Value))
		}
	}
	return bad
}

// Differences lists what makes a run of the open division differ from the closed one. A benchmark
// that is no MLPerf option differs by that alone, before any parameter. Nil in the closed division
// itself.
func (v *Values) Differences() []result.Difference {
	if v.Division == Closed {
		return nil
	}
	var list []result.Difference
	// The closed division has four benchmarks. Another one differs before any parameter is compared.
	if !v.inClosed() && v.Bench.Name != "" {
		var names []string
		for _, b := range benchmarks {
			if b.Option > 0 || b.closedModel() {
				names = append(names, b.Name)
			}
		}
		list = append(list, result.Difference{Name: "benchmark", Closed: strings.Join(names, ", "),
			Value: v.Bench.Name})
	}
	for _, p := range table {
		switch required, fixed := v.required(p); {
		// What a sweep and a file set is compared.
		case !fixed || required == v.text(p), p.name == "sweep", p.name == "config":
		case p.name == "io" && v.OnObjects(): // where it means nothing: see storage, below
		default:
			list = append(list, result.Difference{Name: p.name, Closed: p.show(required),
				Value: p.show(v.text(p))})
		}
	}
	// It is a place, and no place of the closed division.
	if v.OnObjects() && !v.Bench.Checkpoints() {
		list = append(list, result.Difference{Name: "storage", Closed: "a directory",
			Value: "an object store"})
	}
	// Not a parameter: the closed division draws its users as the Python program does, number by
	// number, so that both serve the same conversations.
	if !v.CPythonPopulation() && v.Bench.Load == LoadUsers {
		list = append(list, result.Difference{Name: "population", Closed: "drawn as CPython does",
			Value: "drawn from per-user streams"})
	}
	profile := slices.SortedFunc(slices.Values(v.profileKeys()),
		func(a, b result.Parameter) int { return cmp.Compare(a.Name, b.Name) })
	for _, p := range profile {
		if !byName[p.Name].has(place) {
			list = append(list, result.Difference{Name: p.Name, Closed: "default", Value: p.Value})
		}
	}
	return list
}

// Comparable reports whether results can be compared only if they have the same value of a parameter. It
// returns false for directories, ranks, output options, Go's own flags, and names that are no parameter.
func Comparable(name string) bool {
	p := find(name)
	return p != nil && !p.has(action, place, goFlag)
}
