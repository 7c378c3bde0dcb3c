package benchmarks

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// part is one measurement of a benchmark at one point of its sweep. A benchmark without sub-benchmarks
// has one part without a name.
type part struct {
	name string // key=value elements of the line's name
	skip string // reason for which it cannot run, "" if it can
	// follows: each trial of this part reads what the same trial of the previous part wrote.
	follows bool
	// load returns the workload of a trial. It may change the trial's configuration.
	load func(*session, *trial, *kvbench.Config) (kvbench.Workload, error)
	// done, if not nil, gets the result of each trial of this rank, nil for a trial without a result.
	done func(*result.Result)
	// bench replaces load for a part that measures something without a result.
	bench func(*testing.B, *params.Values)
}

// Suite maps the names of benchmarks to functions that return their parts. A benchmark that is not in
// it replays requests.
type Suite map[string]func(*params.Values) []part

func (s Suite) parts(v *params.Values) []part {
	if parts := s[v.Bench.Name]; parts != nil {
		return parts(v)
	}
	return []part{{load: requestWorkload}}
}

// line is one line of the output: a part of a benchmark at a point of its sweep, with its trials.
type line struct {
	part
	v      *params.Values
	path   string        // name below the benchmark: the swept keys, then the part's own keys
	group  []*line       // lines whose trials take turns, including this line
	trials []*trial      // in the order in which the testing package calls them
	called int           // number of trials that the testing package has called
	ran    int           // number of trials that have run
	took   time.Duration // that they took together
	estimate
}

func (l *line) name() string { return strings.TrimSuffix(l.v.Bench.Name+"/"+l.path, "/") }

// trial is one run of a line.
type trial struct {
	*line
	number  int
	procs   int       // of -cpu, 0 = all
	name    string    // name of the line, with the suffix of -cpu
	queue   *[]*trial // trials of the group that have not run, in the order in which they run
	source  *trial    // trial whose files this trial reads, nil = none
	outcome *outcome  // nil until the trial has run
}

// plan describes what a run does. It is made and checked before the run starts.
type plan struct {
	points  []*params.Values // of all selected benchmarks, each at every point of its sweep
	lines   []*line          // in the order of the output
	groups  [][]*line        // lines whose trials take turns, including lines without output
	cpus    []int            // of -cpu
	ignored []string         // parameters that were set and have no effect
	quick   bool             // the numbers describe no storage

	storage map[*params.Values]kvbench.StorageConfig // of each point that can run

	time   time.Duration // that all trials are expected to take
	timeIs certainty
	places map[string]*place // in which the run writes, by the directories
}

func newPlan() *plan {
	return &plan{storage: map[*params.Values]kvbench.StorageConfig{}, places: map[string]*place{}}
}

// linesOf returns the lines of a benchmark.
func (p *plan) linesOf(bench string) (lines []*line) {
	for _, l := range p.lines {
		if l.v.Bench.Name == bench {
			lines = append(lines, l)
		}
	}
	return lines
}

// add adds the selected lines of a benchmark, and returns the names of all its lines.
func (p *plan) add(base *params.Values, suite Suite, bench, skip pattern) (names []string) {
	turns := base.Bench.Name == result.BenchmarkEngines
	first := len(p.groups)
	for _, v := range base.Points {
		var lines []*line
		var selected []bool
		for _, part := range suite.parts(v) {
			l := &line{part: part, v: v, path: strings.Trim(v.Point+"/"+part.name, "/")}
			names, lines = append(names, l.name()), append(lines, l)
			elements := strings.Split("Benchmark"+l.name(), "/")
			selected = append(selected, bench.matches(base.Sweep, elements...) &&
				!skip.matches(base.Sweep, elements...))
		}
		for i, l := range lines {
			// A selected read needs the trials that write its files, even if the line of these trials
			// is not selected.
			read := i+1 < len(lines) && lines[i+1].follows && selected[i+1]
			if selected[i] {
				p.lines = append(p.lines, l)
			}
			switch last := len(p.groups) - 1; {
			case !selected[i] && !read, v.Skip() != "": // the line has no trials
			case l.follows || turns && last >= first:
				p.groups[last] = append(p.groups[last], l)
			default:
				p.groups = append(p.groups, []*line{l})
			}
		}
	}
	return names
}

// schedule creates the trials of each line and the order in which they run. The testing package calls
// all trials of a line, for one value of -cpu after the other, before the trials of the next line.
func (p *plan) schedule(count int) {
	for _, group := range p.groups {
		for i := range max(1, len(p.cpus)) {
			procs, suffix := 0, ""
			if len(p.cpus) > 0 {
				procs = p.cpus[i]
			}
			if len(p.cpus) > 1 && procs != 1 {
				suffix = fmt.Sprintf("-%d", procs)
			}
			queue := new([]*trial)
			for n := range count {
				for _, l := range round(group, n) {
					t := &trial{line: l, number: n, procs: procs, name: l.name() + suffix, queue: queue}
					if l.follows {
						t.source = (*queue)[len(*queue)-1]
					}
					*queue = append(*queue, t)
					l.group, l.trials = group, append(l.trials, t)
				}
			}
		}
	}
}

// run runs the trials in the queue up to and including t, and reads that follow its writes. A read runs
// directly after its write: later only the files of the last trial would be left.
func (t *trial) run(measure func(*trial) outcome) outcome {
	for t.outcome == nil || len(*t.queue) > 0 && (*t.queue)[0].source != nil {
		next := (*t.queue)[0]
		*t.queue = (*t.queue)[1:]
		o := measure(next)
		next.outcome = &o
	}
	return *t.outcome
}

// round returns the order in which the lines of a group run trial n. A drive that becomes slower over
// time would bias the ranking of engines. So every second round has a new random order, and the round
// after it has the reverse order: a linear drift affects all lines alike.
func round(group []*line, n int) []*line {
	v := group[0].v
	if v.Bench.Name != result.BenchmarkEngines {
		return group
	}
	order := slices.Clone(group)
	for i, at := range rand.New(rand.NewPCG(uint64(v.Seed), uint64(n/2))).Perm(len(group)) {
		order[i] = group[at]
	}
	if n%2 == 1 {
		slices.Reverse(order)
	}
	return order
}

// write prints the plan: a row for each line of the output, the summary, then the skipped lines and the
// parameters that have no effect.
func (p *plan) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "benchmark\ttrials\twindow\ttime\twrites\ttiers\torder")
	notes := append([]string{""}, p.summary(time.Now())...)
	for _, l := range p.lines {
		if why := cmp.Or(l.v.Skip(), l.part.skip); why != "" {
			notes = append(notes, "skipped: "+l.name()+" "+why)
			continue
		}
		n, window := len(l.trials), params.Window{Length: l.window, Completions: l.v.Window.Completions}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%v%s\t%s\t%s\n", l.name(), n, window,
			roughly(time.Duration(n)*l.time), l.writtenIs, units.Bytes.Text(int64(n)*l.written),
			p.tiersOf(l.v), l.order())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, name := range p.ignored {
		notes = append(notes, "set, and ignored: "+name)
	}
	_, err := fmt.Fprintln(out, strings.Join(append(notes, "Nothing was run."), "\n"))
	return err
}

// tiersOf returns the tiers of a point with their capacities.
func (p *plan) tiersOf(v *params.Values) string {
	c := p.storage[v]
	storage := "storage"
	if v.Simulated() {
		storage = "simulated storage"
	}
	var tiers []string
	for i, capacity := range []int64{c.GPUBytes, c.CPUBytes, c.StorageBytes} {
		if capacity > 0 {
			name := [...]string{"gpu", "cpu", storage}[i]
			tiers = append(tiers, name+" "+units.Bytes.Text(capacity))
		}
	}
	return strings.Join(tiers, ", ")
}

// order returns a description of the order of a line's trials, "" if they run one after the other.
func (l *line) order() string {
	switch {
	case l.follows:
		return "each reads what a trial of the line above wrote"
	case l.v.Bench.Name == result.BenchmarkEngines && len(l.group) > 1:
		return fmt.Sprintf("one trial of each of %d engines in turn, in random order", len(l.group))
	}
	return ""
}

// check returns the reasons if no line can run: a run that measures nothing must not pass. If some
// lines can run, the epilogue lists the reasons of the skipped lines.
func (p *plan) check() (bad params.Violations) {
	for _, l := range p.lines {
		why := l.v.Skip()
		if why == "" {
			return nil
		}
		at := strings.TrimSuffix(l.v.Bench.Name+"/"+l.v.Point, "/")
		bad = bad.Merge(params.Violations{at + " cannot run: it " + why})
	}
	slices.Sort(bad)
	return bad
}

// pattern is the value of -bench or -skip, as alternatives.
type pattern []*alternative

// alternative selects names. Its elements, separated by slashes, match the elements of the name, one
// after the other, as in the testing package. The elements of a sweep, which follow the benchmark, may be
// left out: StorageCeiling/op=read selects StorageCeiling/io-depth=1/op=read.
type alternative struct {
	text     string // as it was typed
	elements []*regexp.Regexp
	matched  bool // the name of at least one line matched
}

// readPattern parses the value of -bench or -skip. An empty text has no alternatives.
func readPattern(flag, text string) (p pattern, err error) {
	if text == "" {
		return nil, nil
	}
	for _, alternate := range splitPattern(text, '|') {
		a := &alternative{text: alternate}
		for _, element := range splitPattern(alternate, '/') {
			re, err := regexp.Compile(element)
			if err != nil {
				return nil, fmt.Errorf("%s %q: %w", flag, text, err)
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

// matches reports whether an alternative matches a name of a sweep or a prefix of the name. It marks
// the alternatives that match.
func (p pattern) matches(sweep []params.Axis, name ...string) (matches bool) {
	for _, a := range p {
		if a.matches(sweep, name) {
			a.matched, matches = true, true
		}
	}
	return matches
}

func (a *alternative) matches(sweep []params.Axis, name []string) bool {
	at := 0
	for _, element := range a.elements {
		for at > 0 && at <= len(sweep) && at < len(name) && !element.MatchString(name[at]) {
			at++
		}
		if at >= len(name) || !element.MatchString(name[at]) {
			return false
		}
		at++
	}
	return true
}

// selected returns the benchmarks that -bench and -skip select by their first elements, in the order of
// the table of benchmarks. If an alternative selects none, the error lists the names of benchmarks.
func selected() (list []params.Bench, bench, skip pattern, err error) {
	if bench, err = readPattern("-bench", flagValue("bench")); err == nil {
		skip, err = readPattern("-skip", flagValue("skip"))
	}
	if err != nil {
		return nil, nil, nil, err
	}
	var names []string
	for _, b := range params.Benchmarks() {
		names = append(names, b.Name)
		takes := slices.ContainsFunc(bench, func(a *alternative) bool { return a.selects(b.Name) })
		if takes && !skip.matches(nil, "Benchmark"+b.Name) {
			list = append(list, b)
		}
	}
	// Check each alternative: the others would hide a typo in one.
	for _, a := range bench {
		if !slices.ContainsFunc(names, a.selects) {
			return nil, nil, nil, nothingSelected(a.text, "benchmark", names)
		}
	}
	if len(list) == 0 {
		err = errNothingLeft()
	}
	return list, bench, skip, err
}

// selects reports whether the first element matches a benchmark.
func (a *alternative) selects(bench string) bool {
	return a.elements[0].MatchString("Benchmark" + bench)
}

// nothingSelected returns the error for an alternative of -bench that selects none of the names. It
// lists the names, the most similar first.
func nothingSelected(selection, what string, names []string) error {
	word := strings.TrimPrefix(strings.Trim(selection, "^$()"), "Benchmark")
	distance := func(name string) int {
		_, d := units.Nearest(word, []string{name})
		return d
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return distance(a) - distance(b) })
	const most = 20
	more := ""
	if n := len(names) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("-bench %s selects no %s; there are, the nearest first, %s%s", selection,
		what, strings.Join(names[:min(most, len(names))], ", "), more)
}

func errNothingLeft() error {
	return fmt.Errorf("-skip %s leaves nothing of -bench %s", flagValue("skip"),
		flagValue("bench"))
}

// readCPUs parses Go's -cpu. The testing package would refuse a wrong list only after the header, with
// the exit code of a failure.
func readCPUs(list string) (cpus []int, bad params.Violations) {
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		n, err := strconv.Atoi(text)
		switch {
		case text == "": // the testing package ignores empty elements
		case err != nil || n < 1:
			return nil, params.Violations{fmt.Sprintf("-cpu: must be numbers of at least 1 with "+
				"commas between them, given %s (flag)", list)}
		default:
			cpus = append(cpus, n)
		}
	}
	return cpus, nil
}

// makePlan resolves the parameters of every selected benchmark at every point of its sweep and checks
// them. The error lists every violation once, or says that nothing is selected.
func (s *session) makePlan() (*plan, error) {
	selected, bench, skip, err := selected()
	if err != nil {
		return nil, err
	}
	p := newPlan()
	var bad params.Violations
	p.cpus, bad = readCPUs(flagValue("cpu"))
	bad = bad.Merge(params.UnknownEnvironment(os.Environ()))
	s.place()
	var names []string
	in := s.inputs
	for _, in.Bench = range selected {
		base, err := s.set.Resolve(in)
		s.files.limit.Store(int64(base.IOTimeout))
		// The division and the sweep are known now, and so are the sub-benchmarks.
		before := len(p.lines)
		names = append(names, p.add(base, s.suite, bench, skip)...)
		if len(p.lines) == before {
			continue
		}
		wrong := violations(err)
		bad = bad.Merge(wrong)
		if len(p.points) == 0 && len(base.Points) > 0 {
			bad = bad.Merge(s.meet(base.Points[0]))
		}
		p.points = append(p.points, base.Points...)
		// Check each point of a sweep, because each needs other resources. Skip this if the violations
		// so far are about the keys that the check depends on.
		for _, v := range base.Points {
			p.quick = p.quick || describesNoStorage(v)
			if !wrong.About("config", "cache-dir", "layout", "block-trace-path") {
				s.files.what.Store(places(v))
				bad = bad.Merge(p.feasible(v).Except(wrong))
				s.files.what.Store(namedFiles)
			}
		}
	}
	for _, a := range bench {
		if len(a.elements) > 1 && !a.matched {
			return nil, nothingSelected(a.text, "sub-benchmark", names)
		}
	}
	if len(p.points) == 0 {
		return nil, errNothingLeft()
	}
	// Check all benchmarks together: a file that two benchmarks would write, and parameters that no
	// benchmark uses.
	bad = bad.Merge(oneTrace(p.points))
	useless, ignored := params.Unused(p.points)
	p.ignored, bad = ignored, bad.Merge(useless)
	tried := map[string]bool{}
	for _, v := range p.points {
		if !tried[v.ResultsDir] && v.Skip() == "" {
			tried[v.ResultsDir] = true
			s.files.what.Store("the results directory " + v.ResultsDir)
			bad = bad.Merge(writable(v.ResultsDir))
		}
	}
	if bad = bad.Merge(p.check()); len(bad) > 0 {
		return nil, bad
	}
	p.schedule(p.points[0].Count)
	p.foresee(s)
	return p, nil
}
