package benchmarks

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/group"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/tiers/workdir"
)

// session holds what all benchmarks of one process share. The benchmarks run one after another, so
// session needs no lock.
type session struct {
	set     *params.Set
	suite   Suite
	inputs  params.Inputs
	files   access // accessed before the run and between trials
	*plan          // nil until makePlan has returned
	results []*result.Result

	ctx    context.Context // ends with a signal or the go command's death
	cancel context.CancelCauseFunc
	signal atomic.Int64 // that ended the run, 0 = none
	alone  atomic.Bool  // no other rank: a user at the terminal waits for this process

	skipped   []string                      // "BenchmarkX: why"
	traces    map[string]*result.TraceFiles // by the path of a recording
	ceiling   map[string]plainio.Reached    // by params.Values.IOKey: what plain I/O reached
	lastOpt   int                           // the MLPerf option that ran last
	paused    *int64                        // ns between that one and the current trial, nil without a pause
	tty       *os.File                      // the controlling terminal, nil without one
	compared  comparedRun                   // this run of kvreport turns
	removal   workdir.Removal               // removal of the current trial's files
	running   atomic.Bool                   // a trial runs and has no result yet
	unsaved   atomic.Pointer[result.Result] // the result of the current trial until it is written
	path      atomic.Value                  // path of the result, "" until it is written
	unwritten map[*result.Result]error      // results that were not written, and why
	kept      string                        // why the kernel keeps this process, "" if it does not
	failed    bool                          // a benchmark failed, see watch
	hung      error                         // error of a trial whose storage did not answer, see attempt
	meeting   atomic.Pointer[group.Meeting] // for ranks that this process does not start
	printed   [2]*os.File                   // standard output and error, if a log replaces them
	terminal  *os.File                      // standard output if a person reads it, see screen
	clients   *clients                      // nil if there is only this rank
	metrics   *metricsServer                // nil without -metrics-listen
}

// scenarios are the built-in scenarios. Another file there is another one.
//
//go:embed scenarios/*.yaml
var scenarios embed.FS

// current is the session of this process. It is a variable because the testing package passes nothing
// from TestMain to a benchmark function.
var current *session

// Main is the body of TestMain. It reads the flags, makes and checks the plan, prints the lines that
// benchstat needs, runs the benchmarks, and prints the summaries. It returns the exit code.
func Main(m *testing.M, suite Suite) int {
	meeting, err := group.TakeMeeting() // before anything else reads the environment
	if err != nil {
		return refuse(err)
	}
	// Register the flags before the testing package parses them in m.Run.
	set, err := readCommandLine(flag.CommandLine, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		flag.Usage()
		return 0
	case err != nil:
		return refuse(err)
	case set.Requested("version"):
		fmt.Println("kvbench", result.Version())
		if result.Version() == result.UnknownVersion {
			fmt.Printf("(%s)\n", result.VersionRemedy)
		}
		return shown()
	}
	filter, help := set.HelpRequested()
	if slices.Contains(set.Typed(), "scenario") && flagValue("bench") == "" && !help {
		if startedByGo() {
			return refuse(errors.New("-scenario runs nothing with the go command unless -bench selects " +
				"its lines: add -bench . for all"))
		}
		_ = flag.Set(testPrefix+"bench", ".")
		_ = flag.Set(testPrefix+"run", cmp.Or(typed("run"), "^$"))
	}
	if flagValue("bench") == "" && !help {
		return unitTests(m, set)
	}
	s := &session{set: set, suite: suite, compared: readComparedRun(os.Getenv("KVREPORT_RUN")),
		ceiling: map[string]plainio.Reached{}, unwritten: map[*result.Result]error{}, traces: map[string]*result.TraceFiles{},
		inputs: params.Inputs{Env: os.Getenv, BenchTime: typed("benchtime"),
			Count: typed("count"), Scenarios: scenarios, Machine: machine(),
			Stamp: fmt.Sprintf("%s-%d", time.Now().Format("20060102-150405"), os.Getpid())}}
	s.meeting.Store(meeting)
	// From here on the first signal ends the run in order: it writes the result and removes the files.
	defer s.watchSignals()()
	if help {
		return s.help(filter)
	}
	return s.run(m)
}

// unitTests runs the tests of this package, which is what a run without -bench does.
func unitTests(m *testing.M, set *params.Set) int {
	if flags := set.Typed(); len(flags) > 0 {
		return refuse(fmt.Errorf("-%s is for benchmarks, and none is selected: -bench says which, "+
			"such as -bench MaxStorageStress, or -bench . for all", flags[0]))
	}
	// Without arguments the binary prints a help text: its tests need the data in the source tree.
	if len(os.Args) == 1 {
		fmt.Fprint(os.Stderr, howToRun)
		return exitParameters
	}
	return m.Run()
}

// refuse prints why nothing is run. It returns exitParameters.
func refuse(err error) int {
	if violations(err) != nil {
		err = fmt.Errorf("nothing was run or made, because of the parameters:\n%w\n"+
			"(-help-parameters lists them all)", err)
	}
	fmt.Fprintln(os.Stderr, "kvbench:", err)
	return exitParameters
}

// violations returns the violations in an error, nil if there are none.
func violations(err error) (bad params.Violations) {
	errors.As(err, &bad)
	return bad
}

func (s *session) run(m *testing.M) int {
	result.Version() // cache the version before the checkout changes
	current = s
	plan, err := checked(s, s.makePlan)
	if err != nil || s.ctx.Err() != nil {
		return s.unchecked(err)
	}
	s.plan = plan
	if plan.scenario != nil && plan.scenario.About != "" {
		fmt.Fprintln(os.Stderr, plan.scenario.About)
	}
	if s.set.Requested("dry-run") {
		if err := plan.write(os.Stdout); err != nil {
			return refuse(err)
		}
		return 0
	}
	s.setGoFlags()
	s.alone.Store(s.points[0].Alone())
	s.openTerminal()
	s.boundProcs() // before the testing package takes its default of -cpu
	if err := s.serveMetrics(); err != nil {
		return refuse(err)
	}
	defer s.metrics.close()
	// Print nothing before all ranks are connected: without them there is no run.
	if err := s.join(); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench:", err)
		// Ctrl-C goes to all ranks. This process may notice the death of a rank before it gets the
		// signal.
		if s.points[0].Starts() {
			select {
			case <-s.ctx.Done():
			case <-time.After(signalTime):
			}
		}
		return max(s.exitCode(exitFailed), exitFailed)
	}
	end := s.screen()
	if err := s.header(); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench: writing to standard output:", err)
		return exitFailed
	}
	if s.clients.coordinates() && (s.plan.time > shortRun || s.points[0].Simulated()) {
		if plan.scenario != nil {
			plan.table(os.Stderr)
		}
		fmt.Fprintln(os.Stderr, strings.Join(s.summary(time.Now()), "\n"))
	}
	code := m.Run()
	end()
	if s.failed {
		code = max(code, exitFailed)
	}
	passed := code == 0
	// A trial that was ended has printed the reason. Here no trial was ended.
	if code = s.exitCode(code); passed && code != 0 {
		fmt.Fprintf(os.Stderr, "\nthe run was ended: %v\n", context.Cause(s.ctx))
	}
	// All ranks leave before any rank prints a summary: no log has what a rank does later.
	s.clients.leave()
	s.epilogue()
	if s.kept != "" {
		fmt.Fprint(os.Stderr, "\n", s.kept, "\n")
	}
	if what := s.left(); what != "" {
		fmt.Fprint(os.Stderr, "\n", what, "\n")
	}
	return code
}

// setGoFlags sets the testing package's flags to the plan. The testing package then calls each selected
// benchmark once per trial.
func (s *session) setGoFlags() {
	var names []string
	for _, l := range s.lines {
		names = append(names, l.v.Bench.Name)
	}
	for name, value := range map[string]string{"benchtime": "1x", "skip": "",
		"bench": "^Benchmark(" + strings.Join(names, "|") + ")$",
		"count": strconv.Itoa(s.points[0].Count)} {
		_ = flag.Set(testPrefix+name, value)
	}
}

// serveMetrics opens the metrics endpoint of -metrics-listen. If the ranks are connected, only rank 0
// has an endpoint, for all ranks. Ranks that are not connected may share a host, so rank N uses the
// port plus N.
func (s *session) serveMetrics() (err error) {
	v := s.points[0]
	if v.MetricsListen == "" || s.meeting.Load() != nil && v.Rank != 0 {
		return nil
	}
	address := v.MetricsListen
	host, port, _ := net.SplitHostPort(address) // the parameters have checked it
	if n, _ := strconv.Atoi(port); n > 0 && !v.Starts() {
		address = net.JoinHostPort(host, strconv.Itoa(n+v.Rank))
	}
	if s.metrics, err = listenMetrics(address); err == nil {
		fmt.Fprintln(os.Stderr, "kvbench: metrics until the run ends:", s.metrics.url())
	}
	return err
}

// join calls gather. A signal ends join even if gather hangs in a directory.
func (s *session) join() error {
	ctx, stop := kvbench.After(s.ctx, inPatience)
	defer stop()
	var err error
	if !kvbench.Guard(ctx, patience, func() {}, func() { err = s.gather() }) {
		return context.Cause(ctx)
	}
	return err
}

// checked runs work, which checks the parameters and this machine. If a file or directory does not
// answer, checked prints its name once to standard error.
func checked[T any](s *session, work func() (T, error)) (T, error) {
	s.files.what.Store(namedFiles)
	s.files.limit.Store(int64(s.set.IOTimeout(s.inputs)))
	s.inputs.CheckCacheDir = func(dir string) error {
		s.files.what.Store("the cache directory " + dir)
		defer s.files.what.Store(namedFiles)
		return workdir.CheckPath(dir)
	}
	shown := ""
	return await(s.ctx, &s.files, func(what string, silent time.Duration) {
		if what != shown {
			shown = what
			fmt.Fprintf(os.Stderr, "kvbench: no answer for %s from %s: nothing was begun yet, "+
				"Ctrl-C ends it\n", short(silent), what)
		}
	}, work)
}

// unchecked prints why nothing is run: the run was ended, something did not answer, or the parameters
// are wrong. It returns the exit code.
func (s *session) unchecked(err error) int {
	if s.ctx.Err() != nil {
		fmt.Fprintf(os.Stderr, "kvbench: nothing was run or made: the run was ended (%v) while "+
			"it looked at %s\n", whyEnded(s.ctx), s.files.path())
		return s.exitCode(exitFailed)
	}
	// The coordinator has checked only its own host: tell it what is wrong here.
	if meeting := s.meeting.Load(); meeting != nil {
		decline(meeting, err)
	}
	if errors.Is(err, kvbench.ErrUnanswered) {
		fmt.Fprintln(os.Stderr, "kvbench: nothing was run or made:", err)
		return exitFailed
	}
	return refuse(err)
}

// place sets the directory in which the user typed the command.
func (s *session) place() {
	s.inputs.Base = launchDir()
	if m := s.meeting.Load(); m != nil && m.Started {
		obey(m, &s.inputs)
	}
}

// meet finds the address of the coordinator for ranks that a launcher or the user has started.
func (s *session) meet(v *params.Values) params.Violations {
	if !v.Meets() {
		return nil
	}
	m, err := meetingOf(v)
	if err != nil {
		return params.Violations{err.Error()}
	}
	s.meeting.Store(m)
	return nil
}

// help prints -help-parameters with the values in force for the first selected benchmark, if there is
// one. With a filter it prints only the parameters whose names contain the filter.
func (s *session) help(filter string) int {
	v, err := checked(s, func() (*params.Values, error) {
		s.place()
		in := s.inputs
		// With a wrong pattern print the help, too.
		if jobs, _, _ := s.selections(); len(jobs) > 0 && len(jobs[0].benches) > 0 {
			in.Job, in.Bench = jobs[0].Job, jobs[0].benches[0]
		}
		return s.set.Resolve(in)
	})
	if err != nil && violations(err) == nil || s.ctx.Err() != nil {
		return s.unchecked(err)
	}
	if err := v.WriteHelp(os.Stdout, filter); err != nil {
		return refuse(err)
	}
	if bad := params.UnknownEnvironment(os.Environ()).Merge(violations(err)); len(bad) > 0 {
		return refuse(bad)
	}
	return shown()
}

// shown returns the exit code after the text that the user asked for was printed. Without -bench or -v
// the go command prints no output of a package that passes, so shown returns a failure.
func shown() int {
	if !startedByGo() || flagValue("bench") != "" || flagValue("v") != "false" {
		return 0
	}
	fmt.Println("\n(The go command shows this output only when the test fails: ignore FAIL.)")
	return exitParameters
}
