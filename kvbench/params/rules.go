package params

import (
	_ "embed"
	"fmt"
	"math"
	"net"
	"net/netip"
	"reflect"
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

// comparisons are the requirements that a number meets or not. The bound is a value of the parameter's
// kind, or the name of another parameter or key.
var comparisons = map[string]func(x, bound float64) bool{
	"at most ":       func(x, bound float64) bool { return x <= bound },
	"at least ":      func(x, bound float64) bool { return x >= bound },
	"below ":         func(x, bound float64) bool { return x < bound },
	"a multiple of ": func(x, bound float64) bool { return math.Mod(x, bound) == 0 },
}

// requirements are those that are neither a value nor a comparison.
var requirements = map[string]func(*Values) bool{
	"an engine's": func(v *Values) bool { return v.EngineLayout().Tokens > 0 },
	"given":       func(v *Values) bool { return v.StorageBytes != 0 },
	"a size":      func(v *Values) bool { return !v.NoStorage() },
	"a time of at most validation_limits.max_duration_seconds": func(v *Values) bool {
		return v.Window.Length <= v.Limits.Window || v.Bench.Checkpoints() && !v.Changed("benchtime")
	},
	"packed=N":      func(v *Values) bool { return v.Packed() > 0 },
	"one directory": func(v *Values) bool { return len(v.CacheDirs) < 2 || v.Simulated() },
	"a name that does not end in .gz": func(v *Values) bool {
		return !strings.HasSuffix(v.IOTraceLog, ".gz")
	},
	"of engine or layout": func(v *Values) bool {
		return slices.ContainsFunc(v.Sweep, func(a Axis) bool {
			return a.Key == "engine" || a.Key == "layout"
		})
	},
	"a number of checkpoints, such as 5x,": func(v *Values) bool {
		_, _, within := v.CheckpointRuns()
		return within == 0
	},
	"0 or a multiple of 4KiB from 64KiB on": func(v *Values) bool {
		return v.S3.RangeSize == 0 || v.S3.RangeSize%4096 == 0 && v.S3.RangeSize >= 64<<10
	},
	"an address of the loopback, such as 127.0.0.1:9464,": func(v *Values) bool {
		host, _, err := net.SplitHostPort(v.MetricsListen)
		address, _ := netip.ParseAddr(host) // other names may mean any address, an empty one all of them
		return err != nil || host == "localhost" || address.IsLoopback()
	},
}

// allows reports whether a parameter meets one of the alternatives of a rule.
func (rule rule) allows(v *Values, name string) bool {
	if whole := requirements[rule.values]; whole != nil {
		return whole(v)
	}
	for want := range strings.SplitSeq(strings.ReplaceAll(rule.values, " or ", ", "), ", ") {
		meets := requirements[want]
		if want == v.Text(name) || want == "absent" && !v.Changed(name) || meets != nil && meets(v) {
			return true
		}
		for words, compare := range comparisons {
			bound, compares := strings.CutPrefix(want, words)
			if compares && compare(number(byName[name].at(v)), byName[name].bound(v, bound)) {
				return true
			}
		}
	}
	return false
}

// bound is the number that a text means: the value of another parameter, or one of this parameter's kind.
func (p *parameter) bound(v *Values, text string) float64 {
	if other := byName[strings.TrimPrefix(text, "-")]; other != nil {
		return number(other.at(v))
	}
	x, _ := p.kind.parse(text)
	return number(reflect.ValueOf(x))
}

func number(x reflect.Value) float64 { return x.Convert(reflect.TypeFor[float64]()).Float() }

// other returns the parameter or key to which a rule compares, as the rule has it, "" for none.
func (rule rule) other() string {
	for words := range comparisons {
		_, bound, _ := strings.Cut(rule.values, words)
		if byName[strings.TrimPrefix(bound, "-")] != nil {
			return bound
		}
	}
	return ""
}

// rules refuses values that break a rule. It ignores rules that name a benchmark that skips, and values
// that are refused already or that depend on a refused one.
func (r *resolver) rules() {
	for _, rule := range rules {
		i := slices.IndexFunc(rule.clauses, func(c clause) bool {
			return c.covers(r.v) && c.holds(r.v) && (!c.names(r.v.Bench) || r.v.Skip() == "") &&
				!slices.ContainsFunc(slices.Concat(c.benchmarks, c.conditions), r.v.unread)
		})
		other, values := rule.other(), rule.values
		if i < 0 || r.v.unread(other) {
			continue
		}
		if other != "" {
			values += " (" + r.v.Text(strings.TrimPrefix(other, "-")) + ")"
		}
		for _, name := range rule.names {
			if !rule.allows(r.v, name) {
				r.want(false, name, "%s%s: %s", values, rule.clauses[i].in(r.v.Bench), rule.why)
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
