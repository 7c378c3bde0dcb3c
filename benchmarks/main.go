package benchmarks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kvbench/benchmarks/clients"
	"kvbench/benchmarks/metrics"
	"kvbench/kvbench"
	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/result"
	"kvbench/kvbench/version"
	"kvbench/tiers/workdir"
)

// session is what all benchmarks of one process share. Benchmarks run one after
// another on the testing package's goroutine, so it needs no lock.
type session struct {
	set      *params.Set
	inputs   params.Inputs
	leaves   map[string][]leaf // of each selected benchmark
	ctx      context.Context   // ends with a signal or the go command's death
	calls    map[string]int    // full benchmark name -> calls so far
	skipped  []string          // "BenchmarkX: why"
	failures []string          // "BenchmarkX: why", of trials without a result
	unheard  []string          // what was said in vain, and is not refused
	quick    bool              // the division is not one for a storage: see epilogue
	results  []*result.Result
	traces   map[string]*result.TraceFiles // path of a recording -> what lies there
	ceiling  map[string]plainio.Reached    // IOKey -> what plain I/O reached
	waiting  map[string]outcome            // name and trial -> what ran before its line's turn
	turns    map[string]int                // suffix of -cpu -> trials of Engines that have run
	lastOpt  int                           // the MLPerf option that ran last
	cpus     []int                         // of -cpu
	tty      *os.File                      // the controlling terminal, nil without
	removal  workdir.Removal               // of the files of the trial under way
	failed   bool                          // a benchmark has: see watch
	hung     error                         // the storage did not answer a trial: no other is begun
	cancel   context.CancelCauseFunc       // of ctx
	alone    atomic.Bool                   // who sits at the terminal waits for this process
	inquiry  inquiry

	unwritten unwritten // the result of the trial under way

	orders  *coordinate.Orders // of the coordinator that has started this process, nil for others
	first   *params.Values     // of the plans, also where something is wrong with them
	meeting *clients.Meeting   // of ranks that something else has started, nil for others
	printed [2]*os.File        // standard output and error, where others take their place
	clients *clients.Clients   // that this rank is one of, nil where it is alone
	metrics *metrics.Server    // nil without -metrics-listen
}

// outcome is what a trial came to. Without a result it did not begin.
type outcome struct {
	res  *result.Result
	err  error
	path string // of the result
}

// current is the session of this process. The testing package offers no other
// way from TestMain to a benchmark function.
var current *session

// Main is TestMain's body: it reads the flags, checks the parameters of every
// selected benchmark, prints the lines that benchstat needs, runs, and reports.
// It returns the exit code.
func Main(m *testing.M) int {
	// First of all, because everything else reads the environment, too.
	orders, err := coordinate.TakeOrders()
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
	case set.VersionRequested():
		fmt.Println("kvbench", version.Current())
		if version.Current() == version.Unknown {
			fmt.Println("(go test -c tells a binary its revision with -buildvcs=true; " +
				"those of make dist know theirs)")
		}
		return shown()
	}
	// Without -bench this is go test of the package, whose flags are nobody's business.
	filter, help := set.HelpRequested()
	if flagValue("test.bench") == "" && !help {
		return unitTests(m, line)
	}
	s := &session{
		set:    set,
		leaves: map[string][]leaf{}, calls: map[string]int{},
		ceiling: map[string]plainio.Reached{}, waiting: map[string]outcome{},
		turns:  map[string]int{},
		traces: map[string]*result.TraceFiles{},
		inputs: params.Inputs{
			Env:   os.LookupEnv,
			Stamp: fmt.Sprintf("%s-%d", time.Now().Format("20060102-150405"), os.Getpid()),
		},
		orders: orders,
	}
	if orders != nil {
		s.meets(clients.Started(orders))
	}
	// Read before run changes them.
	if line.benchtime.given {
		s.inputs.BenchTime = line.benchtime.typed
	}
	if line.count.given {
		s.inputs.Count = line.count.typed
	}
	line.benchtime.flag.Value, line.count.flag.Value = line.benchtime.own, line.count.own
	// From here on a signal ends the run in order: its result and its files are safe. Somebody who
	// waits for several ranks is not to wait for the cleaning of each of them.
	ctx, cancel, stop := watchSignals(func() bool { return s.alone.Load() && onTerminal() },
		s.lastWords)
	defer stop()
	s.ctx, s.cancel = ctx, cancel
	if help {
		return s.help(filter)
	}
	return s.run(m)
}

// unitTests are what runs without -bench: those of this package, by the go command or by name.
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
	if err := errors.Join(line.benchtime.giveBack(), line.count.giveBack()); err != nil {
		return refuse(err)
	}
	return m.Run()
}

// refuse says why nothing is done.
func refuse(err error) int {
	fmt.Fprintln(os.Stderr, "kvbench:", err)
	return exitParameters
}

func (s *session) run(m *testing.M) int {
	version.Current() // before the checkout has another commit
	// Nothing is made before every parameter of every benchmark is known to be right.
	plans, err := checked(s, s.check)
	if code, is := s.unchecked(err); is {
		return code
	}
	// The coordinator has checked the same, on its own host: what is wrong only here it does not
	// know.
	if err != nil && s.meeting != nil {
		s.meeting.Decline(err)
	}
	if violations(err) != nil {
		fmt.Fprint(os.Stderr, refusal(err))
		return exitParameters
	}
	if err != nil {
		return refuse(err)
	}
	s.setGoFlags(plans)
	s.alone.Store(len(plans) > 0 && plans[0].Alone())
	ctx := s.ctx
	s.openTerminal(plans)
	s.boundProcs() // before the testing package takes what is in force for its default of -cpu
	if err := s.serveMetrics(plans); err != nil {
		return refuse(err)
	}
	defer s.metrics.Close()
	// Nothing is printed before all ranks are there: without them there is no run to tell of.
	if err := s.join(plans); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench:", err)
		// Ctrl-C goes to all ranks: that one of them has died of it may be known first.
		if s.orders == nil && plans[0].Starts() {
			select {
			case <-ctx.Done():
			case <-time.After(signalTime):
			}
		}
		return interruptedCode(ctx, exitFailed)
	}
	if err := s.header(plans); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench: writing to standard output:", err)
		return exitFailed
	}
	current = s
	// Benchmark functions have no parameters but b: they find the session here.
	code := m.Run()
	if s.failed {
		code = max(code, exitFailed)
	}
	passed := code == 0
	// A trial that was under way has said why: when all were over nobody has.
	if code = interruptedCode(ctx, code); passed && code != 0 {
		fmt.Fprintf(os.Stderr, "\nthe run was ended: %v\n", context.Cause(ctx))
	}
	// All leave before anybody prints a summary: what a rank still does would be in nobody's log.
	s.clients.Leave()
	// A rank that has failed but lives has said so; rank 0's exit code is that of the run.
	if !s.clients.Coordinates() && ctx.Err() == nil {
		code = 0 // or a launcher would take the others along
	}
	s.epilogue()
	if what := s.left(); what != "" {
		fmt.Fprint(os.Stderr, "\n", what, "\n")
	}
	return code
}

// serveMetrics opens the endpoint where one is asked for: that of ranks which this run starts is
// rank 0's. Those that were started one by one may share a host, so that each has a port.
func (s *session) serveMetrics(plans []*params.Values) (err error) {
	if len(plans) == 0 || plans[0].MetricsListen == "" || s.orders != nil ||
		s.meeting != nil && plans[0].Rank != 0 { // rank 0 tells of all that meet
		return nil
	}
	address := plans[0].MetricsListen
	host, port, _ := net.SplitHostPort(address) // which has been checked
	if n, _ := strconv.Atoi(port); n > 0 && !plans[0].Starts() {
		address = net.JoinHostPort(host, strconv.Itoa(n+plans[0].Rank))
	}
	if s.metrics, err = metrics.Listen(address, version.Current()); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "kvbench: metrics until the run ends:", s.metrics.URL())
	return nil
}

// leaving is how long a run that was ended may still take to inform the other ranks.
const leaving = 2 * time.Second

// join is gather, which looks at the directories of all ranks: that they do not answer must not
// keep a signal from ending the run.
func (s *session) join(plans []*params.Values) error {
	ctx, stop := clients.Lasting(s.ctx, leaving)
	defer stop()
	none := func() time.Duration { return 0 } // -rendezvous-timeout says it
	_, err := ask(question{ctx: ctx, limit: none},
		func() (struct{}, error) { return struct{}{}, s.gather(plans) })
	return err
}

// gather starts the other ranks, or meets them, where there are several clients that know of each
// other. All but the coordinator print into a file from here on: what they say nobody has asked
// for.
func (s *session) gather(plans []*params.Values) (err error) {
	if len(plans) == 0 || s.meeting == nil && !plans[0].Starts() {
		return nil
	}
	v := plans[0]
	var dirs []string // of files that others may see
	if !v.Simulated() && !v.OnObjects() {
		dirs = cacheDirs(v)
	}
	s.clients, err = clients.Gather(clients.Config{Context: s.ctx, Cancel: s.cancel, Plans: plans,
		Meeting: s.meeting, Dirs: dirs, Base: s.inputs.Base, Stamp: s.inputs.Stamp})
	if err != nil {
		return err
	}
	// All ranks come to the same answer, and each to its end.
	if err := s.clients.Share(plans, feasible); err != nil {
		s.clients.Leave()
		return err
	}
	if s.clients.Coordinates() {
		return nil
	}
	s.tty = nil // the coordinator's
	s.clients.Adopt(plans)
	log, err := s.clients.Log(v.ResultsDir)
	if log != nil {
		// A crash still says so on the descriptor of old, where the launcher shows it. The runtime
		// must not close that, as it does with a file that nobody knows any more: an entry's would
		// get its number, and the crash would be written into it.
		s.printed = [2]*os.File{os.Stdout, os.Stderr}
		os.Stdout, os.Stderr = log, log
	}
	return err
}

// setGoFlags tells the testing package what to run, in its own words, which it takes.
func (s *session) setGoFlags(plans []*params.Values) {
	// Nothing is ever re-run: one call is one trial, its length is ours.
	_ = flag.Set("test.benchtime", "1x")
	// What is chosen of a benchmark is known; see each.
	names := slices.Collect(maps.Keys(s.leaves))
	_ = flag.Set("test.bench", "^Benchmark("+strings.Join(names, "|")+")$")
	_ = flag.Set("test.skip", "")
	// The closed division has three trials without being told.
	_ = flag.Set("test.count", strconv.Itoa(plans[0].Count))
}

// checked is what work finds out about the parameters and this machine. It may ask files and
// directories that do not answer: that is told once on standard error.
func checked[T any](s *session, work func() (T, error)) (T, error) {
	s.inquiry.what.Store(namedFiles)
	s.inquiry.limit.Store(int64(s.set.IOTimeout(s.inputs)))
	s.inputs.CheckCacheDir = func(dir string) error {
		s.inquiry.what.Store("the cache directory " + dir)
		defer s.inquiry.what.Store(namedFiles)
		return workdir.CheckPath(dir)
	}
	told := ""
	return ask(question{ctx: s.ctx, ran: threadRan, about: s.inquiry.about, limit: s.inquiry.most,
		tell: func(about string, silent time.Duration) {
			if about != told {
				told = about
				fmt.Fprintf(os.Stderr, "kvbench: no answer for %s from %s: nothing was begun yet, "+
					"Ctrl-C ends it\n", short(silent), about)
			}
		}}, work)
}

// unchecked ends a run whose parameters could not be checked, because it was ended or because
// something did not answer; false: that is not the reason.
func (s *session) unchecked(err error) (code int, is bool) {
	switch {
	case s.ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "kvbench: nothing was run or made: the run was ended (%v) while "+
			"it looked at %s\n", clients.Why(s.ctx), s.inquiry.about())
		return interruptedCode(s.ctx, exitFailed), true
	case errors.Is(err, kvbench.ErrUnanswered):
		if meeting := s.inquiry.meeting.Load(); meeting != nil {
			meeting.Decline(err)
		}
		fmt.Fprintln(os.Stderr, "kvbench: nothing was run or made:", err)
		return exitFailed, true
	}
	return 0, false
}

// check resolves every selected benchmark and every point of its sweep before
// anything is made. The error holds every violation once, or says that nothing
// is selected.
func (s *session) check() ([]*params.Values, error) {
	chosen, err := readChoice()
	if err != nil {
		return nil, err
	}
	selected, err := chosen.benchmarks()
	if err != nil {
		return nil, err
	}
	cpus, all := readCPUs(flagValue("test.cpu"))
	s.cpus, all = cpus, all.Merge(params.UnknownEnvironment(os.Environ()))
	s.place()
	var plans []*params.Values
	in := s.inputs
	for _, in.Bench = range selected {
		base, err := s.set.Resolve(in)
		s.inquiry.limit.Store(int64(base.IOTimeout))
		// Which sub-benchmarks there are is known now, with the division and the sweep.
		leaves := chosen.leaves(base)
		if len(leaves) == 0 {
			continue
		}
		bad := violations(err)
		all, plans = all.Merge(bad), append(plans, base.Points...)
		if s.first == nil && len(base.Points) > 0 {
			all = all.Merge(s.meet(base.Points[0]))
		}
		s.leaves[in.Bench.Name] = leaves
		// Each point of a sweep has its own needs: one of them may not fit this machine.
		// What is wrong with others of its values hides none of that, unless it says where to look.
		for _, v := range base.Points {
			s.quick = s.quick || describesNoStorage(v)
			if !bad.About("config", "cache-dir", "layout", "block-trace-path") {
				s.inquiry.what.Store(places(v))
				all = all.Merge(feasible(v).Except(bad))
				s.inquiry.what.Store(namedFiles)
			}
		}
	}
	if err := chosen.check(); err != nil {
		return nil, err
	}
	if len(plans) == 0 {
		return nil, errNothingLeft()
	}
	// Asked of all together: two benchmarks that would write the same file, and what nobody hears.
	bad, unheard := params.Unused(plans)
	s.unheard = unheard
	all = all.Merge(oneTrace(plans)).Merge(bad)
	asked := map[string]bool{}
	for _, v := range plans {
		if !asked[v.ResultsDir] && v.Skip() == "" {
			asked[v.ResultsDir] = true
			s.inquiry.what.Store("the results directory " + v.ResultsDir)
			all = all.Merge(writable(v.ResultsDir))
		}
	}
	if all = all.Merge(s.nothingRuns()); len(all) > 0 {
		return nil, all
	}
	return plans, nil
}

// nothingRuns says why each selected benchmark cannot run, if that is so of all: a run that
// measures nothing is not to pass. Where others run, they are listed at the end instead.
func (s *session) nothingRuns() (bad params.Violations) {
	for _, name := range slices.Sorted(maps.Keys(s.leaves)) {
		for _, l := range s.leaves[name] {
			why := l.v.Skip()
			if why == "" {
				return nil
			}
			at := strings.TrimSuffix(name+"/"+l.v.Point, "/")
			bad = bad.Merge(params.Violations{at + " cannot run: it " + why})
		}
	}
	return bad
}

// place finds where the command was typed.
func (s *session) place() {
	s.inputs.Base = launchDir()
	if s.orders != nil { // this is one of the ranks that a coordinator has started
		clients.Obey(s.orders, &s.inputs)
	}
}

// meet finds out where ranks meet that a launcher or the user has started.
func (s *session) meet(v *params.Values) params.Violations {
	s.first = v
	if !v.Meets() {
		return nil
	}
	m, err := clients.Where(v)
	if err != nil {
		return params.Violations{err.Error()}
	}
	s.meets(m)
	return nil
}

// meets makes this process a rank that reports to rank 0 why it cannot take part.
func (s *session) meets(m *clients.Meeting) {
	s.meeting = m
	s.inquiry.meeting.Store(m)
}

// help answers -help-parameters with the values in force, for the first
// selected benchmark if one is selected; with a filter, those with it in their names.
func (s *session) help(filter string) int {
	v, err := checked(s, func() (*params.Values, error) {
		s.place()
		in := s.inputs
		// Help for one benchmark shows what it sets itself; a broken pattern is no reason to
		// withhold it.
		if chosen, err := readChoice(); err == nil && len(chosen.bench) > 0 {
			if list, err := chosen.benchmarks(); err == nil {
				in.Bench = list[0]
			}
		}
		return s.set.Resolve(in)
	})
	if code, is := s.unchecked(err); is {
		return code
	}
	if err := v.WriteHelp(os.Stdout, filter); err != nil {
		return refuse(err)
	}
	bad := params.UnknownEnvironment(os.Environ()).Merge(violations(err))
	if len(bad) > 0 {
		fmt.Fprint(os.Stderr, refusal(bad))
		return exitParameters
	}
	return shown()
}

// shown is the exit code after what was asked for was printed. Without -bench or -v the go command
// prints nothing of a package that passes, so that it has to fail.
func shown() int {
	if !startedByGo() || flagValue("test.bench") != "" || flagValue("test.v") != "false" {
		return 0
	}
	fmt.Println("\n(The go command shows this output only when the test fails: ignore FAIL.)")
	return exitParameters
}

// violations are those in an error, nil where there are none.
func violations(err error) (bad params.Violations) {
	errors.As(err, &bad)
	return bad
}

// refusal is what stands on standard error when nothing is run.
func refusal(err error) string {
	return fmt.Sprintf("kvbench: nothing was run or made, because of the "+
		"parameters:\n%v\n(-help-parameters lists them all)\n", err)
}
