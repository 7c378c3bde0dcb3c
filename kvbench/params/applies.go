package params

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// clause is one alternative of the benchmarks and conditions to which a parameter applies. It is printed
// as "synthetic users, Tier with -enable-rag and -autoscaler-mode=qos".
type clause struct {
	benchmarks []string // names, also of groups and situations; "": all
	// A condition is the name of a parameter that must not have its default value, or NAME=VALUE, where
	// VALUE may be a prefix with a star. After "without" the parameters must have their default values.
	conditions []string
	without    bool
}

// groups are the benchmarks to which the same parameters apply.
var groups = map[string]func(Bench) bool{
	"synthetic users":   func(b Bench) bool { return b.Load == LoadUsers },
	"recorded requests": func(b Bench) bool { return b.Load == LoadTrace },
	"all with requests": func(b Bench) bool { return b.Load == LoadUsers || b.Load == LoadTrace },
	"all with entries":  func(b Bench) bool { return b.Name != "DataGen" && !b.Checkpoints() },
	"checkpoints":       Bench.Checkpoints,
	"all with storage":  func(b Bench) bool { return b.Name != "DataGen" },
}

// situations are named conditions that depend on several parameters.
var situations = map[string]func(*Values) bool{
	"an engine's -layout":    func(v *Values) bool { _, is := v.EngineLayout(); return is },
	"a -layout of the suite": func(v *Values) bool { _, is := v.EngineLayout(); return !is },
	"an engine's objects (-layout or -engine)": func(v *Values) bool {
		return v.CutTokens() != 0
	},
	"a benchmark without users": func(v *Values) bool {
		return v.Bench.Name != "" && v.Bench.Load != LoadUsers
	},
	"-io-trace-log alone": func(v *Values) bool {
		return v.IOTraceLog != "" && v.Device == nil
	},
	"ranks that this run starts": (*Values).Starts,
	"ranks that do not meet":     func(v *Values) bool { return !v.meets && !v.refused["ranks"] },
	"a single client":            func(v *Values) bool { return v.Alone() && !v.refused["ranks"] },
}

// clauses reads a column of the table.
func clauses(column string) (list []clause) {
	for text := range strings.SplitSeq(column, "; ") {
		benchmarks, with, _ := strings.Cut(" "+text, " with -")
		benchmarks, without, is := strings.Cut(benchmarks, " without -")
		conditions := strings.ReplaceAll(with+without, " and -", " ")
		if text != "" {
			names := strings.Split(strings.TrimSpace(benchmarks), ", ")
			list = append(list, clause{names, strings.Fields(conditions), is})
		}
	}
	return list
}

// covers reports whether the clause has the benchmark, a group of it or the situation.
func (c clause) covers(v *Values) bool {
	return slices.ContainsFunc(c.benchmarks, func(name string) bool {
		group, situation := groups[name], situations[name]
		return name == v.Bench.Name || name == "" || group != nil && group(v.Bench) ||
			situation != nil && situation(v)
	})
}

// names reports whether the clause has the benchmark's own name.
func (c clause) names(b Bench) bool { return b.Name != "" && slices.Contains(c.benchmarks, b.Name) }

// holds reports whether the conditions are met by these values.
func (c clause) holds(v *Values) bool {
	return !slices.ContainsFunc(c.conditions, func(condition string) bool {
		name, value, valued := strings.Cut(condition, "=")
		text := v.Text(name)
		met := text != find(name).def[v.Division]
		if valued { // a refused text may have meant it: what depends on it is not wrong, too
			begin, prefix := strings.CutSuffix(value, "*")
			met = text == value || prefix && strings.HasPrefix(text, begin) || v.refused[name]
		}
		return met == c.without
	})
}

// in returns the text of the clause in a message about a benchmark.
func (c clause) in(b Bench) string {
	var list []string
	for _, name := range c.benchmarks {
		if name != "" && name == b.Name || situations[name] != nil {
			list = append(list, name)
		}
	}
	for _, condition := range c.conditions {
		list = append(list, "-"+condition)
	}
	word := map[bool]string{false: "with ", true: "without "}[c.without]
	return word + strings.Join(list, " and ")
}

// appliesTo names the benchmarks to which a parameter applies.
func (p *parameter) appliesTo() string { return cmp.Or(p.scope, "all") }

// Applies reports whether a parameter or a key of the YAML file has an effect on a run with these
// values.
func (v *Values) Applies(name string) bool {
	clauses := byName[name].applies
	return len(clauses) == 0 || slices.ContainsFunc(clauses,
		func(c clause) bool { return c.covers(v) && c.holds(v) })
}

// Unused returns the parameters that the user set or swept and that have no effect on any of the plans.
// plans has all selected benchmarks at all points of their sweeps. A flag without effect is a violation.
// A variable or a key of the YAML file without effect is only a note, because it may be for other runs.
// A sweep that applies to some of the benchmarks is also a note.
//
// In the closed division a value that the division requires is no violation, as in [Set.Resolve].
func Unused(plans []*Values) (bad Violations, notes []string) {
	var selected []string
	for _, v := range plans {
		selected = with(selected, v.Bench.Name)
	}
	sections := map[string]bool{} // noted once: files of the Python benchmark have all of them
	for _, p := range slices.Concat(table, keys) {
		v, name, required := plans[0], p.name, "absent: it"
		given := v.given[name]
		swept, without := unusedSweep(plans, name)
		switch section, _, _ := strings.Cut(name, "."); {
		case len(without) > 0 && len(without) < len(selected):
			notes = append(notes, fmt.Sprintf("the sweep of %s, by %s: it is for %s", name,
				some(without), p.appliesTo()))
			continue
		case len(without) > 0:
			given = setting{name + "=" + strings.Join(swept, ","), v.Origin("sweep")}
			name, required = "sweep", "of another parameter: "+name
		// It applies to none: what each of them was given is the same.
		case slices.ContainsFunc(plans, func(v *Values) bool { return v.Applies(name) }),
			!given.origin.byUser(), p.has(idle), v.requiredAnyway(p), sections[section]:
			continue
		case p.key():
			sections[section] = true
			notes = append(notes, fmt.Sprintf("section %s (%s) is for %s", section, given.origin,
				p.appliesTo()))
			continue
		}
		if given.origin.Kind < FromFlag {
			notes = append(notes, fmt.Sprintf("%s = %s (%s) is for %s", name, given.text,
				given.origin, p.appliesTo()))
			continue
		}
		bad = append(bad, violation("-"+name, given, fmt.Sprintf("%s is for %s, and %s", required,
			p.appliesTo(), p.whyUnused(selected, plans))))
	}
	return bad, notes
}

// unusedSweep returns the values of a sweep, and the benchmarks to which the sweep does not apply.
func unusedSweep(plans []*Values, name string) (values, benchmarks []string) {
	for _, v := range plans {
		for _, a := range v.Unswept {
			if a.Key == name {
				values, benchmarks = a.Values, with(benchmarks, v.Bench.Name)
			}
		}
	}
	return values, benchmarks
}

// with adds a name that is not in the list.
func with(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// some names a few of many.
func some(names []string) string {
	const most = 3
	text := strings.Join(names[:min(most, len(names))], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// whyUnused returns why a parameter does not apply to the selected benchmarks: a condition is not met,
// or the parameter never applies to them.
func (p *parameter) whyUnused(selected []string, plans []*Values) string {
	for _, v := range plans {
		for _, c := range p.applies {
			switch {
			case !c.covers(v):
			case c.without:
				return v.Bench.Name + " runs with that"
			default:
				return v.Bench.Name + " runs without that"
			}
		}
	}
	return "-bench selects " + some(selected)
}
