package benchmarks

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
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
	scenario *params.Scenario // nil without one
	among    pattern          // -bench with a scenario: it selects among the lines of the jobs

	points  []*params.Values // of all selected benchmarks, each at every point of its sweep
	lines   []*line          // in the order of the output; with a scenario in that of its jobs
	groups  [][]*line        // lines whose trials take turns, including lines without output
	cpus    []int            // of -cpu
	ignored []string         // parameters that were set and have no effect

	storage map[*params.Values]kvbench.StorageConfig // of each point that can run

	time   time.Duration // that all trials are expected to take
	timeIs certainty
	places map[string]*place // in which the run writes, by the directories

	populations map[*params.Values]*result.Population // of each point, nil for unknown
	replayed    map[*params.Values]int64              // bytes that its I/O trace writes, 0 for unknown
}

func newPlan() *plan {
	return &plan{storage: map[*params.Values]kvbench.StorageConfig{}, places: map[string]*place{},
		populations: map[*params.Values]*result.Population{}, replayed: map[*params.Values]int64{}}
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

// add adds the lines of a benchmark that a job has, and that -bench and -skip select. It returns the names
// of all its lines.
func (p *plan) add(base *params.Values, suite Suite, job, skip pattern) (names []string) {
	turns := base.Bench.Name == result.BenchmarkEngines
	first := len(p.groups)
	for _, v := range base.Points {
		var lines []*line
		var selected []bool
		for _, part := range suite.parts(v) {
			l := &line{part: part, v: v, path: strings.Trim(v.Point+"/"+part.name, "/")}
			names, lines = append(names, l.name()), append(lines, l)
			selected = append(selected, job.matches(v.Point, l.name()) &&
				(p.among == nil || p.among.matches(v.Point, l.name())) && !skip.matches(v.Point, l.name()))
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
// all trials of a line, for one value of -cpu after the other, before the trials of the next line. It has
// an order of its own for the benchmarks: a scenario has one queue for all of its lines.
func (p *plan) schedule(count int) {
	together := 1
	if p.scenario != nil {
		together = len(p.groups)
	}
	for groups := range slices.Chunk(p.groups, max(1, together)) {
		for i := range max(1, len(p.cpus)) {
			procs, suffix := 0, ""
			if len(p.cpus) > 0 {
				procs = p.cpus[i]
			}
			if len(p.cpus) > 1 && procs != 1 {
				suffix = fmt.Sprintf("-%d", procs)
			}
			queue := new([]*trial)
			for _, turn := range p.turns(groups, count) {
				for _, l := range round(turn.group, turn.number) {
					t := &trial{line: l, number: turn.number, procs: procs, name: l.name() + suffix,
						queue: queue}
					l.group, l.trials = turn.group, append(l.trials, t)
					if l.bench != nil || l.skip != "" {
						continue // it does not wait for the others
					}
					if l.follows {
						t.source = (*queue)[len(*queue)-1]
					}
					*queue = append(*queue, t)
				}
			}
		}
	}
}

// turn is one trial of each line of a group.
type turn struct {
	group  []*line
	number int
}

// turns returns the order in which the groups of a queue run: all trials of a group, then those of the next
// one; or one trial of each group in turn, there and back, so that a drive that becomes slower over time
// affects all alike.
func (p *plan) turns(groups [][]*line, count int) (order []turn) {
	if p.scenario == nil || !p.scenario.InTurn {
		for _, group := range groups {
			for n := range count {
				order = append(order, turn{group, n})
			}
		}
		return order
	}
	for n := range count {
		for _, group := range groups {
			order = append(order, turn{group, n})
		}
		if n%2 == 1 {
			slices.Reverse(order[n*len(groups):])
		}
	}
	return order
}

// run runs the trials in the queue up to and including t, and reads that follow its writes. A read runs
// directly after its write: later only the files of the last trial would be left. Trials of a line whose
// first trial has failed do not run: the testing package does not call them.
func (t *trial) run(measure func(*trial) outcome) outcome {
	for t.outcome == nil || len(*t.queue) > 0 && (*t.queue)[0].source != nil {
		next := (*t.queue)[0]
		*t.queue = (*t.queue)[1:]
		if first := next.trials[0].outcome; first != nil && first.err != nil && len(next.group) == 1 {
			continue
		}
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
	notes := p.summary(time.Now())
	if p.directories() == 1 {
		p.table(out)
		notes = append([]string{""}, notes...)
	}
	for _, l := range p.lines {
		if why := cmp.Or(l.v.Skip(), l.part.skip); why != "" {
			notes = append(notes, "skipped: "+l.name()+" "+why)
		}
	}
	for _, name := range p.ignored {
		notes = append(notes, "set, and ignored: "+name)
	}
	_, err := fmt.Fprintln(out, strings.Join(append(notes, "Nothing was run."), "\n"))
	return err
}

// table prints a row for each line of the output that runs.
func (p *plan) table(out io.Writer) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "benchmark\ttrials\twindow\ttime\twrites\tusers\ttiers")
	for _, l := range p.lines {
		if l.v.Skip() != "" || l.part.skip != "" {
			continue
		}
		users := ""
		if l.v.Bench.Load == params.LoadUsers {
			users = strconv.Itoa(l.v.Users)
		}
		n, window := len(l.trials), params.Window{Length: l.window, Completions: l.v.Window.Completions}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%v%s\t%s\t%s%s\n", l.name(), n, window,
			roughly(time.Duration(n)*l.time), l.writtenIs, units.Bytes.Text(int64(n)*l.written),
			users, p.tiersOf(l.v), l.order())
	}
	_ = table.Flush()
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

// order returns a cell with the order of a line's trials, "" if they run one after the other.
func (l *line) order() string {
	switch {
	case l.follows:
		return "\treads the line above"
	case l.v.Bench.Name == result.BenchmarkEngines && len(l.group) > 1:
		return "\tin turn, at random"
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

// addJob adds the lines of a job that -bench and -skip select, and returns the names of all its lines.
func (s *session) addJob(p *plan, job selection, skip pattern) (names []string, bad params.Violations) {
	in := s.inputs
	in.Job = job.Job
	for _, in.Bench = range job.benches {
		base, err := s.set.Resolve(in)
		s.files.limit.Store(int64(base.IOTimeout))
		// The division and the sweep are known now, and so are the sub-benchmarks.
		before := len(p.lines)
		names = append(names, p.add(base, s.suite, job.pattern, skip)...)
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
			if !wrong.About("config", "cache-dir", "layout", "engine", "model", "block-trace-path", "checkpoint-model",
				"checkpoint-writes", "checkpoint-keep", "checkpoint-scale", "stream-size-gb") {
				s.files.what.Store(places(v))
				bad = bad.Merge(p.feasible(v).Except(wrong))
				s.files.what.Store(namedFiles)
			}
		}
	}
	return names, bad.Merge(job.nothing(names))
}

// alike returns violations for lines of several jobs that have one name, and for a line that would be a
// benchmark and a part of it.
func (p *plan) alike() (bad params.Violations) {
	seen := map[string]bool{}
	for _, l := range p.lines {
		name, whole, part := l.name(), l.v.Bench.Name, l.v.Bench.Name+"/"
		if seen[name] || seen[whole] || l.path == "" && seen[part] {
			bad = bad.Merge(params.Violations{fmt.Sprintf("%s: another job runs %s, too: give each a name",
				l.v.Job.Where, name)})
		}
		seen[name], seen[part] = true, true
	}
	return bad
}

// makePlan resolves the parameters of every selected benchmark of every job at every point of its sweep and
// checks them. The error lists every violation once, or says that nothing is selected.
func (s *session) makePlan() (*plan, error) {
	s.place()
	p := newPlan()
	jobs, scenario, bad := s.selections()
	skip, err := readPattern("-skip", flagValue("skip"))
	bad = bad.Merge(violations(err))
	if p.scenario = scenario; scenario != nil {
		p.among, err = readPattern("-bench", flagValue("bench"))
		bad = bad.Merge(violations(err))
	}
	var wrong params.Violations
	p.cpus, wrong = readCPUs(flagValue("cpu"))
	bad = bad.Merge(wrong).Merge(params.UnknownEnvironment(os.Environ()))
	var names []string
	for _, job := range jobs {
		theirs, more := s.addJob(p, job, skip)
		names, bad = append(names, theirs...), bad.Merge(more)
	}
	for _, a := range p.among {
		if !a.matched && len(names) > 0 {
			bad = append(bad, a.nothing("line of the scenario", names))
		}
	}
	if len(p.points) == 0 && len(bad) == 0 {
		bad = params.Violations{fmt.Sprintf("-skip %s leaves nothing of -bench %s", flagValue("skip"),
			flagValue("bench"))}
	}
	if len(p.points) == 0 {
		return nil, bad
	}
	// Check all benchmarks together: a file that two benchmarks would write, lines of one name, and
	// parameters that no benchmark uses.
	bad = bad.Merge(oneTrace(p.points)).Merge(p.alike())
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
	if bad := p.populate(); len(bad) > 0 {
		return nil, bad
	}
	p.foresee(s)
	return p, nil
}
