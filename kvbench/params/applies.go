package params

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvbench/tiers"
)

// clause is one alternative of the benchmarks and conditions to which a parameter applies. It is printed
// as "synthetic users, Tier with -enable-rag and -autoscaler-mode=qos".
type clause struct {
	benchmarks []string // names, also of groups and situations; "": all
	// A condition is a situation, a parameter -NAME that must not have its default value, or -NAME=VALUE,
	// where VALUE may be a prefix with a star. After "without" none of the conditions may hold.
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

// situations are named conditions that depend on several parameters, or on more than a text. After "with"
// they begin with a, an, no or several.
var situations = map[string]func(*Values) bool{
	"an engine's -layout":    func(v *Values) bool { return v.EngineLayout().Tokens > 0 },
	"a -layout of the suite": func(v *Values) bool { return v.EngineLayout().Tokens == 0 },
	"an engine's objects (-layout or -engine)": func(v *Values) bool {
		return v.CutTokens() != 0
	},
	"no engine's objects": func(v *Values) bool { return v.CutTokens() == 0 && !v.nameless() },
	"a -layout of the other kind of I/O": func(v *Values) bool {
		l := v.EngineLayout()
		return l.Tokens > 0 && !l.Either && v.Direct() != l.Direct
	},
	"a benchmark of no block trace": func(v *Values) bool {
		return v.Bench.Name != "" && !v.Bench.Blocks()
	},
	"a -layout without files of layers": func(v *Values) bool { return !v.EngineLayout().Layerwise },
	"a -layout whose ranks are not documented": func(v *Values) bool {
		return v.EngineLayout().Ranks == tiers.RanksUnsaid
	},
	"a -model of unlike layers": func(v *Values) bool {
		return !v.refused["model"] && !v.Model.Alike()
	},
	"a -model of one layer": func(v *Values) bool {
		return !v.refused["model"] && v.Model.Layers < 2
	},
	"a -model with an @ in its name": func(v *Values) bool { return strings.Contains(v.EngineName(), "@") },
	"several directories": func(v *Values) bool {
		return len(v.CacheDirs) > 1 && !v.Simulated() && !v.refused["cache-dir"]
	},
	"several ranks":                       func(v *Values) bool { return v.Ranks > 1 },
	"more than 255 tensor-parallel ranks": func(v *Values) bool { return v.TensorParallel > 255 },
	"a benchmark without users": func(v *Values) bool {
		return v.Bench.Name != "" && v.Bench.Load != LoadUsers
	},
	"a trace without gaps in virtual time": func(v *Values) bool {
		return v.Simulated() && v.Bench.Load == LoadTrace && v.TraceSpeedup == 0 &&
			v.RequestRate == 0 && v.MaxRequests == 0
	},
	"-io-trace-log alone": func(v *Values) bool {
		return v.IOTraceLog != "" && v.Device == nil
	},
	"no system_prompt_tokens":    func(v *Values) bool { return len(v.Profile.SystemPromptTokens) == 0 },
	"no agent_prompt_tokens":     func(v *Values) bool { return len(v.Profile.Sessions.AgentPrompts) == 0 },
	"no documents":               func(v *Values) bool { return v.Profile.Sessions.Documents == 0 },
	"ranks that this run starts": (*Values).Starts,
	"ranks that do not meet":     func(v *Values) bool { return !v.meets },
	"a single client":            (*Values).Alone,
}

// conditions finds where the conditions of a clause begin: at a parameter or a situation.
var conditions = regexp.MustCompile(`(?:^| )(with|without) (-.*|(?:an?|no|several) .*)`)

// clauses reads a column of the table.
func clauses(column string) (list []clause) {
	for text := range strings.SplitSeq(column, "; ") {
		c := clause{}
		if found := conditions.FindStringSubmatch(text); found != nil {
			c.without, c.conditions = found[1] == "without", strings.Split(found[2], " and ")
			text = strings.TrimSuffix(text, found[0])
		}
		c.benchmarks = strings.Split(text, ", ")
		list = append(list, c)
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
		// A refused text may have met it, or not: what depends on it is not wrong, too.
		return !v.unread(condition) && meets(v, condition) == c.without
	})
}

// unread reports whether a condition or situation is about a parameter whose text was refused.
func (v *Values) unread(condition string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(condition, "-"), "=")
	return v.refused[name] || ofLayout.MatchString(condition) && v.refusedAny("engine", "layout") ||
		ofRanks.MatchString(condition) && v.refusedAny("rank", "ranks", "rendezvous")
}

func (v *Values) refusedAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return v.refused[name] })
}

// Situations that depend on the layout, which an engine may set, and on how ranks meet.
var ofLayout, ofRanks = regexp.MustCompile("layout|engine's"), regexp.MustCompile("^ranks that|a single client")

func meets(v *Values, condition string) bool {
	if situation := situations[condition]; situation != nil {
		return situation(v)
	}
	name, value, valued := strings.Cut(condition[1:], "=")
	text := v.Text(name)
	begin, prefix := strings.CutSuffix(value, "*")
	return !valued && text != find(name).def[v.Division] ||
		valued && (text == value || prefix && strings.HasPrefix(text, begin))
}

// in returns the text of the clause in a message about a benchmark.
func (c clause) in(b Bench) string {
	list := slices.DeleteFunc(slices.Clone(c.benchmarks), func(name string) bool {
		return situations[name] == nil && (name == "" || name != b.Name)
	})
	word := map[bool]string{false: " with ", true: " without "}[c.without]
	if list = append(list, c.conditions...); len(list) == 0 {
		return ""
	}
	return word + strings.Join(list, " and ")
}

// appliesTo names the benchmarks to which a parameter applies.
func (p *parameter) appliesTo() string { return cmp.Or(p.scope, "all") }

// Applies reports whether a parameter or a key of the YAML file has an effect on a run with these
// values.
func (v *Values) Applies(name string) bool {
	return slices.ContainsFunc(byName[name].applies,
		func(c clause) bool { return c.covers(v) && c.holds(v) })
}

// Unused returns the parameters that the user changed or swept and that have no effect on any of the plans.
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
		section, _, _ := strings.Cut(p.name, ".")
		swept, without := unusedSweep(plans, p.name)
		from := plans[0].Origin("sweep")
		if n := len(without); n > 0 && (n < len(selected) || from.kind < FromFlag) {
			notes = append(notes, fmt.Sprintf("the sweep of %s, by %s: it is for %s", p.name,
				some(without), p.appliesTo()))
		} else if n > 0 {
			given := setting{p.name + "=" + strings.Join(swept, ","), from}
			bad = append(bad, violation("-sweep", given, fmt.Sprintf("of another parameter: %s is for %s, "+
				"and -bench selects %s", p.name, p.appliesTo(), some(selected))))
		}
		var seen []setting // the jobs of a scenario may have several
		for _, v := range plans {
			given := v.given[p.name]
			if !v.Changed(p.name) || given.origin.kind == FromSweep || slices.Contains(seen, given) {
				continue
			}
			seen = append(seen, given)
			switch {
			case p.has(idle), v.requiredAnyway(p), sections[section],
				slices.ContainsFunc(plans, func(other *Values) bool {
					return other.given[p.name] == given && other.Applies(p.name)
				}):
			case p.key():
				sections[section] = true
				notes = append(notes, fmt.Sprintf("section %s (%s) is for %s", section, given.origin,
					p.appliesTo()))
			case !v.Flag(p.name):
				notes = append(notes, fmt.Sprintf("%s = %s (%s) is for %s", p.name, given.text, given.origin,
					p.appliesTo()))
			default:
				bad = append(bad, violation("-"+p.name, given, fmt.Sprintf("absent: it is for %s, and -bench "+
					"selects %s", p.appliesTo(), some(selected))))
			}
		}
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
