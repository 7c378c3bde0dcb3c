package params

import (
	"fmt"
	"slices"
	"strings"
)

// hearing is who hears a parameter: benchmarks, while switches are on. The table has it as "users
// BurstGPT if enable-rag autoscaler-mode=qos", several of them with semicolons between.
type hearing struct {
	who []string // of groups, or names of benchmarks
	// switches are parameters of which each must not have its default, or have the value that
	// follows its name, of which a star is any end, or, with an exclamation mark before it, have
	// its default.
	switches []string
}

// groups are the benchmarks that hear the same, by the words that the table and -help-parameters
// have for them.
var groups = []struct {
	name, title string
	has         func(Bench) bool
}{
	{"users", "synthetic users", func(b Bench) bool { return b.Load == LoadUsers }},
	{"traces", "recorded requests", func(b Bench) bool { return b.Load == LoadTrace }},
	{"requests", "all with requests",
		func(b Bench) bool { return b.Load == LoadUsers || b.Load == LoadTrace }},
	{"entries", "all with entries", func(b Bench) bool {
		return b.Name != "DataGen" && !b.Checkpoints()
	}},
	{"checkpoints", "checkpoints", Bench.Checkpoints},
	{"storage", "all with storage", func(b Bench) bool { return b.Name != "DataGen" }},
}

// hearings reads a column of the table.
func hearings(column string) (list []hearing) {
	for clause := range strings.SplitSeq(column, ";") {
		who, switches, _ := strings.Cut(clause, " if ")
		if strings.TrimSpace(who) != "" {
			list = append(list, hearing{strings.Fields(who), strings.Fields(switches)})
		}
	}
	return list
}

// by tells whether a benchmark is one of those who hear, be the switches on or not.
func (h hearing) by(b Bench) bool {
	return slices.ContainsFunc(h.who, func(word string) bool {
		for _, g := range groups {
			if g.name == word {
				return g.has(b)
			}
		}
		return word == b.Name
	})
}

// on tells whether its switches are, at these values.
func (h hearing) on(v *Values) bool {
	return !slices.ContainsFunc(h.switches, func(s string) bool {
		name, off := strings.CutPrefix(s, "!")
		name, wanted, valued := strings.Cut(name, "=")
		text := v.Text(name)
		if begin, any := strings.CutSuffix(wanted, "*"); any {
			// A text that was refused may have been meant so: what goes with it is not wrong, too.
			return !strings.HasPrefix(text, begin) && !v.row(name).refused
		}
		if valued {
			return text != wanted
		}
		return (text == v.row(name).def[v.Division]) != off
	})
}

// String names those who hear: "synthetic users, Tier with -enable-rag".
func (h hearing) String() string {
	var who []string
	for _, word := range h.who {
		for _, g := range groups {
			if g.name == word {
				word = g.title
			}
		}
		who = append(who, word)
	}
	text := strings.Join(who, ", ")
	for i, s := range h.switches {
		s, off := strings.CutPrefix(s, "!")
		switch {
		case i > 0:
			text += " and -" + s
		case off:
			text += " without -" + s
		default:
			text += " with -" + s
		}
	}
	return text
}

// hearers names everybody who hears a parameter.
func (p *parameter) hearers() string {
	var parts []string
	for _, h := range p.heard {
		parts = append(parts, h.String())
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, "; ")
}

// Hearers names everybody who hears a parameter, as -help-parameters does.
func Hearers(name string) string { return find(name).hearers() }

// Hears tells whether a parameter, or a key of the YAML file, can change anything of a run with
// these values.
func (v *Values) Hears(name string) bool { return v.hears(v.row(name)) }

func (v *Values) hears(p *parameter) bool {
	return len(p.heard) == 0 || slices.ContainsFunc(p.heard,
		func(h hearing) bool { return h.by(v.Bench) && h.on(v) })
}

// Unheard says what a person set and no run of the plans hears: all benchmarks that were selected,
// at all points of their sweeps, those that will skip included. What was typed is refused, because
// who types a flag means this run. What the environment and the YAML file say is noted, because
// they serve other runs too.
//
// In the closed division what says no more than it requires anyway passes, as in [Set.Resolve].
func Unheard(plans []*Values) (bad Violations, notes []string) {
	var selected []string
	for _, v := range plans {
		if name := v.Bench.Name; !slices.Contains(selected, name) {
			selected = append(selected, name)
		}
	}
	for i := range rows {
		name := rows[i].name
		if slices.ContainsFunc(plans, func(v *Values) bool { return v.Hears(name) }) {
			continue
		}
		// Nobody hears it: what each of them was given is the same.
		v := plans[0]
		p := v.row(name)
		given := p.given
		_, differs := v.required(p)
		_, decides := decided[name] // what options require, each something else
		required := v.Division == Closed && !differs &&
			!(decides && v.Bench.Option == 0 && v.inClosed())
		if !given.origin.byUser() || required {
			continue
		}
		if given.origin.Kind < FromFlag {
			notes = append(notes, fmt.Sprintf("%s = %s (%s) is for %s", name, given.text,
				given.origin, p.hearers()))
			continue
		}
		bad = append(bad, violation("-"+name, given, fmt.Sprintf("absent: it is for %s, and %s",
			p.hearers(), deaf(p, selected, plans))))
	}
	sweeps, some := unheardSweeps(selected, plans)
	return append(bad, sweeps...), slices.Concat(notes, some, unheardKeys(plans))
}

// unheardSweeps says which sweeps nobody hears, or only some.
func unheardSweeps(selected []string, plans []*Values) (bad Violations, notes []string) {
	deafTo := map[string][]string{} // benchmarks by what is swept
	var all []Axis
	for _, v := range plans {
		for _, a := range v.Unswept {
			if !slices.ContainsFunc(all, func(b Axis) bool { return a.Key == b.Key }) {
				all = append(all, a)
			}
			if !slices.Contains(deafTo[a.Key], v.Bench.Name) {
				deafTo[a.Key] = append(deafTo[a.Key], v.Bench.Name)
			}
		}
	}
	for _, a := range all {
		p, sweep := plans[0].row(a.Key), plans[0].row("sweep").given
		given := setting{a.Key + "=" + strings.Join(a.Values, ","), sweep.origin}
		switch names := deafTo[a.Key]; {
		case len(names) < len(selected):
			notes = append(notes, fmt.Sprintf("the sweep of %s, by %s: it is for %s",
				a.Key, some(names), p.hearers()))
		case sweep.origin.Kind < FromFlag:
			notes = append(notes, fmt.Sprintf("sweep = %s (%s) is for %s", given.text,
				given.origin, p.hearers()))
		default:
			bad = append(bad, violation("-sweep", given, fmt.Sprintf("of another parameter: %s is "+
				"for %s, and %s", a.Key, p.hearers(), deaf(p, selected, plans))))
		}
	}
	return bad, notes
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

// unheardKeys notes the sections of the YAML file of which no run hears what they set. A section is
// told once: files of the Python benchmark have all of them.
func unheardKeys(plans []*Values) (notes []string) {
	if len(plans) == 0 {
		return nil
	}
	told := map[string]bool{}
	for i, k := range plans[0].keys {
		section, _, _ := strings.Cut(k.name, ".")
		if !k.given.origin.byUser() || k.has(idle) || told[section] ||
			slices.ContainsFunc(plans, func(v *Values) bool { return v.hears(&v.keys[i]) }) {
			continue
		}
		told[section] = true
		notes = append(notes, fmt.Sprintf("section %s (%s) is for %s", section, k.given.origin,
			k.hearers()))
	}
	return notes
}

// deaf says why the selected benchmarks do not hear a parameter: a switch is off, or they never do.
func deaf(p *parameter, selected []string, plans []*Values) string {
	for _, v := range plans {
		for _, h := range p.heard {
			switch {
			case !h.by(v.Bench):
			case len(h.switches) > 0 && strings.HasPrefix(h.switches[0], "!"):
				return v.Bench.Name + " runs with that"
			default:
				return v.Bench.Name + " runs without that"
			}
		}
	}
	return "-bench selects " + some(selected)
}
