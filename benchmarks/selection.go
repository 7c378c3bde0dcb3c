package benchmarks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
)

// pattern is the value of -bench or -skip, as alternatives.
type pattern []*alternative

// alternative selects names. Its elements, separated by slashes, match the elements of the name, one
// after the other, as in the testing package. The elements of a job and a sweep, which follow the benchmark,
// may be left out: StorageCeiling/op=read selects StorageCeiling/io-depth=1/op=read.
type alternative struct {
	from     string // the flag, or the place in a file
	text     string // as it was typed
	elements []*regexp.Regexp
	matched  bool // the name of at least one line matched
}

// readPattern parses the value of -bench or -skip. An empty text has no alternatives. The error is a violation.
func readPattern(from, text string) (p pattern, err error) {
	if text == "" {
		return nil, nil
	}
	for _, alternate := range splitPattern(text, '|') {
		a := &alternative{from: from, text: alternate}
		for _, element := range splitPattern(alternate, '/') {
			re, err := regexp.Compile(element)
			if err != nil {
				return nil, params.Violations{fmt.Sprintf("%s %q: %v", from, text, err)}
			}
			a.elements = append(a.elements, re)
		}
		p = append(p, a)
	}
	return p, nil
}

// splitPattern splits s at each sep outside of brackets and parentheses, as the testing package does:
// (a/b|c) is one element.
func splitPattern(s string, sep byte) []string {
	var parts []string
	depth, square, from := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case c == '[':
			square++
		case c == ']' && square > 0:
			square--
		case c == '(' && square == 0:
			depth++
		case c == ')' && square == 0 && depth > 0:
			depth--
		case c == sep && depth == 0 && square == 0:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}

// matches reports whether an alternative matches the name of a line or a prefix of the name, in which the
// elements of point may be left out. It marks the alternatives that match.
func (p pattern) matches(point, name string) (matches bool) {
	elements := strings.Split("Benchmark"+name, "/")
	optional := 0
	if point != "" {
		optional = strings.Count(point, "/") + 1
	}
	for _, a := range p {
		if a.matches(optional, elements) {
			a.matched, matches = true, true
		}
	}
	return matches
}

func (a *alternative) matches(optional int, name []string) bool {
	at := 0
	for _, element := range a.elements {
		for at > 0 && at <= optional && at < len(name) && !element.MatchString(name[at]) {
			at++
		}
		if at >= len(name) || !element.MatchString(name[at]) {
			return false
		}
		at++
	}
	return true
}

// selection is a job with the benchmarks that it selects. Without a scenario the job is -bench.
type selection struct {
	*params.Job
	pattern pattern
	benches []params.Bench // in the order of the table of benchmarks
}

// selections returns the jobs of the run and the benchmarks that they select by their first elements.
func (s *session) selections() (list []selection, scenario *params.Scenario, bad params.Violations) {
	jobs := []*params.Job{{Bench: flagValue("bench"), Where: "-bench"}}
	if scenario, bad = s.set.Scenario(s.inputs); scenario != nil {
		jobs = scenario.Jobs
	} else if len(bad) > 0 {
		return nil, nil, bad
	}
	for _, job := range jobs {
		pattern, err := readPattern(job.Where, job.Bench)
		to := selection{Job: job, pattern: pattern}
		for _, b := range params.Benchmarks() {
			if slices.ContainsFunc(pattern, func(a *alternative) bool { return a.selects(b.Name) }) {
				to.benches = append(to.benches, b)
			}
		}
		list, bad = append(list, to), bad.Merge(violations(err))
	}
	return list, scenario, bad
}

// nothing returns a violation for each alternative that matched none of the lines of a job. It lists those
// that there are: the others would hide a typo in one.
func (to selection) nothing(lines []string) (bad params.Violations) {
	var benches []string
	for _, b := range params.Benchmarks() {
		benches = append(benches, b.Name)
	}
	for _, a := range to.pattern {
		switch {
		case a.matched:
		case slices.ContainsFunc(benches, a.selects):
			bad = append(bad, a.nothing("sub-benchmark", lines))
		default:
			bad = append(bad, a.nothing("benchmark", benches))
		}
	}
	return bad
}

// selects reports whether the first element matches a benchmark.
func (a *alternative) selects(bench string) bool {
	return a.elements[0].MatchString("Benchmark" + bench)
}

// nothing returns the violation of an alternative that selects none of the names.
func (a *alternative) nothing(what string, names []string) string {
	word := strings.TrimPrefix(strings.Trim(a.text, "^$()"), "Benchmark")
	hint := units.Suggestion(word, names)
	if name, begins := strings.CutPrefix(a.text, "^"); begins && !strings.HasPrefix(name, "Benchmark") {
		hint += "; names begin with Benchmark, as in ^Benchmark" + name
	}
	const most = 20
	more := ""
	if n := len(names) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s %s selects no %s%s; there are %s%s", a.from, a.text, what,
		hint, strings.Join(names[:min(most, len(names))], ", "), more)
}
