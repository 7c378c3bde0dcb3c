package params

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed rules.txt
var rulesText string

// rule ties parameters to others.
type rule struct {
	names   []string
	values  string // that they may have, as they are printed
	clauses []clause
	why     string
}

// rules are refused, skips make a benchmark skip.
var rules, skips = func() (rules, skips []rule) {
	list := &rules
	for line := range strings.Lines(registered.Replace(rulesText)) {
		c := strings.Split(line, " |")
		switch {
		case strings.HasPrefix(line, "## "):
			list = &skips
		case len(c) > 1:
			*list = append(*list, rule{strings.Fields(c[0]), strings.TrimSpace(c[1]),
				clauses(strings.TrimSpace(c[2])), strings.TrimSpace(c[3])})
		}
	}
	return rules, skips
}()

// allows reports whether a parameter has one of the values.
func (rule rule) allows(v *Values, name string) bool {
	words := strings.Split(strings.ReplaceAll(rule.values, " or ", ", "), ", ")
	return slices.Contains(words, v.Text(name)) || words[0] == "absent" && !v.Typed(name)
}

// rules refuses values that break a rule. It ignores rules that name a benchmark that skips, and values
// that are refused already.
func (r *resolver) rules() {
	for _, rule := range rules {
		i := slices.IndexFunc(rule.clauses, func(c clause) bool {
			return c.covers(r.v) && c.holds(r.v) && (!c.names(r.v.Bench) || r.v.Skip() == "") &&
				!slices.ContainsFunc(c.conditions, func(condition string) bool {
					name, _, _ := strings.Cut(condition, "=")
					return r.v.refused[name]
				})
		})
		for _, name := range rule.names {
			if i >= 0 && !rule.allows(r.v, name) {
				r.want(false, name, "%s %s: %s", rule.values, rule.clauses[i].in(r.v.Bench), rule.why)
			}
		}
	}
}

// Skip returns why the benchmark cannot run with these values, with the flag that it needs. It returns
// "" if the benchmark can run.
func (v *Values) Skip() string {
	// Skipped, not refused: -bench . in any division runs what can run.
	if v.Division == Closed && v.Bench.Name != "" && !v.inClosed() {
		if v.Bench.closedModel() {
			return "needs -" + closedNeeds + " in the closed division (b200 or mi355)"
		}
		return "is not in the closed division, which has MLPerf options 1 to 3 and Checkpoint " +
			"only: use -division open"
	}
	for _, rule := range skips {
		for _, name := range rule.names {
			if !rule.allows(v, name) && slices.ContainsFunc(rule.clauses,
				func(c clause) bool { return c.covers(v) && c.holds(v) }) {
				needs := "-" + name + " " + rule.values
				if rule.values == "absent" {
					needs = "no -" + name
				}
				return fmt.Sprintf("needs %s, given %s (%s): %s", needs, v.Text(name),
					v.Origin(name), rule.why)
			}
		}
	}
	if needs := v.Bench.Needs; needs != "" && v.Text(needs) == "" {
		return "needs -" + needs
	}
	return ""
}
