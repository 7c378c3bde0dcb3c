package benchmarks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/environment"
	"kvbench/kvbench/group"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/tiers/workdir"
)

// session is what all benchmarks of one process share. They run one after another, so that it needs no
// lock.
type session struct {
	set     *params.Set
	suite   Suite
	inputs  params.Inputs
	files   access // before the run and between trials
	*plan          // nil until it is known
	results []*result.Result

	ctx    context.Context // ends with a signal or the go command's death
	cancel context.CancelCauseFunc
	signal atomic.Int64 // that ended the run, 0 = none
	alone  atomic.Bool  // no other rank: a user at the terminal waits for this process

	skipped   []string                      // "BenchmarkX: why"
	failures  []string                      // "BenchmarkX: why", of trials without a result
	traces    map[string]*result.TraceFiles // by the path of a recording
	ceiling   map[string]plainio.Reached    // by params.Values.IOKey: what plain I/O reached
	lastOpt   int                           // the MLPerf option that ran last
	tty       *os.File                      // the controlling terminal, nil without one
	removal   workdir.Removal               // of the files of the current trial
	running   atomic.Bool                   // a trial runs and has no result yet
	unsaved   atomic.Pointer[result.Result] // the result of the current trial until it is written
	path      atomic.Value                  // where it was written, "" until then
	unwritten map[*result.Result]error      // results that were not written, and why
	kept      string                        // why the kernel keeps this process, "" if it does not
	failed    bool                          // a benchmark has, see watch
	hung      error                         // the storage did not answer a trial: no other is begun
	meeting   atomic.Pointer[group.Meeting] // of ranks that this process does not start
	printed   [2]*os.File                   // standard output and error, where a log replaces them
	clients   *clients                      // the ranks of the run, nil = this one is alone
	metrics   *metricsServer                // nil without -metrics-listen
}

// current is the session of this process: the testing package passes nothing from TestMain to a
// benchmark function.
var current *session

// Main is TestMain's body: it reads the flags, makes and checks the plan, prints the lines that
// benchstat needs, runs, and reports. It returns the exit code.
func Main(m *testing.M, suite Suite) int {
	meeting, err := group.TakeMeeting() // before anything else reads the environment
	if err != nil {
		return refuse(err)
	}
	// The flags have to be there before the testing package parses, which m.Run would do.
	line, err := readCommandLine(flag.CommandLine, os.Args[1:])
	set := line.params
	switch {
	case errors.Is(err, flag.ErrHelp):
		flag.Usage()
		return 0
	case err != nil:
		return refuse(err)
	case set.Requested("version"):
		fmt.Println("kvbench", environment.Version())
		if environment.Version() == environment.UnknownVersion {
			fmt.Println("(go test -c gives a binary its revision with -buildvcs=true; " +
				"those of make dist have theirs)")
		}
		return shown()
	}
	filter, help := set.HelpRequested()
	if flagValue("bench") == "" && !help {
		return unitTests(m, line)
	}
	s := &session{set: set, suite: suite,
		ceiling: map[string]plainio.Reached{}, unwritten: map[*result.Result]error{}, traces: map[string]*result.TraceFiles{},
		inputs: params.Inputs{Env: os.LookupEnv, BenchTime: line.benchtime.typed,
			Count: line.count.typed,
			Stamp: fmt.Sprintf("%s-%d", time.Now().Format("20060102-150405"), os.Getpid())}}
	s.meeting.Store(meeting)
	// From here on a signal ends the run in order: its result is written and its files are removed.
	defer s.watchSignals()()
	if help {
		return s.help(filter)
	}
	return s.run(m)
}

// unitTests runs what runs without -bench: the tests of this package.
func unitTests(m *testing.M, line *commandLine) int {
	if typed := line.params.Typed(); len(typed) > 0 {
		return refuse(fmt.Errorf("-%s is for benchmarks, and none is selected: -bench says which, "+
			"such as -bench MaxStorageStress, or -bench . for all", typed[0]))
	}
	// The binary alone has no tests to run: their data lies in the source.
	if len(os.Args) == 1 {
		fmt.Fprint(os.Stderr, howToRun)
		return exitParameters
	}
	if err := errors.Join(line.benchtime.err, line.count.err); err != nil {
		return refuse(err)
	}
	return m.Run()
}

// refuse says why nothing is done.
func refuse(err error) int {
	if violations(err) != nil {
		err = fmt.Errorf("nothing was run or made, because of the parameters:\n%w\n"+
			"(-help-parameters lists them all)", err)
	}
	fmt.Fprintln(os.Stderr, "kvbench:", err)
	return exitParameters
}

// violations are those in an error, nil where there are none.
func violations(err error) (bad params.Violations) {
	errors.As(err, &bad)
	return bad
}

func (s *session) run(m *testing.M) int {
	environment.Version() // before the checkout has another commit
	plan, err := checked(s, s.makePlan)
	if err != nil || s.ctx.Err() != nil {
		return s.unchecked(err)
	}
	s.plan = plan
	if s.set.Requested("plan") {
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
	// Nothing is printed before all ranks are there: without them there is no run.
	if err := s.join(); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench:", err)
		// Ctrl-C goes to all ranks: that one of them died of it may be known first.
		if s.points[0].Starts() {
			select {
			case <-s.ctx.Done():
			case <-time.After(signalTime):
			}
		}
		return max(s.exitCode(exitFailed), exitFailed)
	}
	if err := s.header(); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench: writing to standard output:", err)
		return exitFailed
	}
	current = s
	code := m.Run()
	if s.failed {
		code = max(code, exitFailed)
	}
	passed := code == 0
	// A trial that was ended has said why; here none was.
	if code = s.exitCode(code); passed && code != 0 {
		fmt.Fprintf(os.Stderr, "\nthe run was ended: %v\n", context.Cause(s.ctx))
	}
	// All leave before any prints a summary: what a rank did later would be in no log.
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

// setGoFlags makes the testing package run the plan: it calls the functions of the benchmarks, which
// run their lines, as often as there are trials, each once.
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

// serveMetrics opens the endpoint if there is to be one: rank 0's shows the ranks that this run starts
// or that meet. Ranks that do not meet may share a host, so that each has a port.
func (s *session) serveMetrics() (err error) {
	v := s.points[0]
	if v.MetricsListen == "" || s.meeting.Load() != nil && v.Rank != 0 {
		return nil
	}
	address := v.MetricsListen
	host, port, _ := net.SplitHostPort(address) // which has been checked
	if n, _ := strconv.Atoi(port); n > 0 && !v.Starts() {
		address = net.JoinHostPort(host, strconv.Itoa(n+v.Rank))
	}
	if s.metrics, err = listenMetrics(address); err == nil {
		fmt.Fprintln(os.Stderr, "kvbench: metrics until the run ends:", s.metrics.url())
	}
	return err
}

// join calls gather, which looks at the directories of all ranks: a signal ends the run also where
// they hang.
func (s *session) join() error {
	ctx, stop := kvbench.After(s.ctx, inPatience)
	defer stop()
	var err error
	if !kvbench.Guard(ctx, patience, func() {}, func() { err = s.gather() }) {
		return context.Cause(ctx)
	}
	return err
}

// checked runs work, which finds out about the parameters and this machine. Standard error shows once
// which file or directory does not answer.
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

// unchecked says why nothing is done: the run was ended, something did not answer, or the parameters are
// wrong.
func (s *session) unchecked(err error) int {
	if s.ctx.Err() != nil {
		fmt.Fprintf(os.Stderr, "kvbench: nothing was run or made: the run was ended (%v) while "+
			"it looked at %s\n", whyEnded(s.ctx), s.files.path())
		return s.exitCode(exitFailed)
	}
	// The coordinator has checked the same on its own host, and does not know what is wrong here.
	if meeting := s.meeting.Load(); meeting != nil {
		decline(meeting, err)
	}
	if errors.Is(err, kvbench.ErrUnanswered) {
		fmt.Fprintln(os.Stderr, "kvbench: nothing was run or made:", err)
		return exitFailed
	}
	return refuse(err)
}

// place finds where the command was typed.
func (s *session) place() {
	s.inputs.Base = launchDir()
	if m := s.meeting.Load(); m != nil && m.Started {
		obey(m, &s.inputs)
	}
}

// meet finds out where ranks meet that a launcher or the user has started.
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

// help prints -help-parameters with the values in force, for the first selected benchmark if there is
// one; with a filter, those with it in their names.
func (s *session) help(filter string) int {
	v, err := checked(s, func() (*params.Values, error) {
		s.place()
		in := s.inputs
		// A wrong pattern is no reason to withhold the help.
		if list, _, _, err := selected(); err == nil {
			in.Bench = list[0]
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

// shown is the exit code after what the user wants to see was printed. Without -bench or -v the go
// command prints nothing of a package that passes, so that it has to fail.
func shown() int {
	if !startedByGo() || flagValue("bench") != "" || flagValue("v") != "false" {
		return 0
	}
	fmt.Println("\n(The go command shows this output only when the test fails: ignore FAIL.)")
	return exitParameters
}
