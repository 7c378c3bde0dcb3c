package benchmarks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tiers/workdir"
)

// Exit codes of the binary (go test shows 1 for all that are not 0).
const (
	exitFailed     = 1
	exitParameters = 2
)

// session is what all benchmarks of one process share. Benchmarks run one after
// another on the testing package's goroutine, so it needs no lock.
type session struct {
	set     *params.Set
	inputs  params.Inputs
	points  map[string][]*params.Values // of each selected benchmark, at each point of its sweep
	ctx     context.Context             // ends with a signal or the go command's death
	calls   map[string]int              // full benchmark name -> calls so far
	pattern string                      // -bench as it was typed
	offered []string                    // sub-benchmarks that there are
	ran     map[string]bool
	skipped []string // "BenchmarkX: why"
	results []*result.Result
	ceiling map[string]result.Ceiling // cache directory -> what plain I/O reached
	lastOpt int                       // the MLPerf option that ran last
	cpus    []int                     // of -cpu
	tty     *os.File                  // the controlling terminal, nil without
}

// current is the session of this process. The testing package offers no other
// way from TestMain to a benchmark function.
var current *session

// Main is TestMain's body: it reads the flags, checks the parameters of every
// selected benchmark, prints the lines that benchstat needs, runs, and reports.
// It returns the exit code.
func Main(m *testing.M) int {
	// The flags have to be there before the testing package parses, which m.Run would do.
	set := params.Register(flag.CommandLine)
	flag.Parse()
	pattern := flagValue("test.bench")
	// Without -bench this is go test of the package, whose flags are nobody's business.
	if pattern == "" && !set.HelpRequested() {
		return m.Run() // the unit tests of this package
	}
	s := &session{
		set:    set,
		points: map[string][]*params.Values{},
		calls:  map[string]int{}, ran: map[string]bool{}, pattern: pattern,
		ceiling: map[string]result.Ceiling{},
		cpus:    readCPUs(flagValue("test.cpu")),
		inputs: params.Inputs{
			Base: launchDir(), Env: os.LookupEnv, CheckCacheDir: workdir.CheckPath,
			Stamp: fmt.Sprintf("%s-%d", time.Now().Format("20060102-150405"), os.Getpid()),
		},
	}
	// Read before run changes them.
	readGoFlags(&s.inputs)
	if set.HelpRequested() {
		return s.help()
	}
	return s.run(m)
}

func (s *session) run(m *testing.M) int {
	selected, err := selectBenchmarks(s.pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kvbench:", err)
		return exitParameters
	}
	// Nothing is made before every parameter of every benchmark is known to be right.
	plans, err := s.check(selected)
	if err != nil {
		fmt.Fprint(os.Stderr, refusal(err))
		return exitParameters
	}
	s.setGoFlags(plans)
	// From here on a signal ends the run in order: its result and its files are safe.
	ctx, stop := watchSignals()
	defer stop()
	s.ctx = ctx
	s.openTerminal(plans)
	if err := s.header(plans); err != nil {
		fmt.Fprintln(os.Stderr, "kvbench: writing to standard output:", err)
		return exitFailed
	}
	current = s
	// Benchmark functions have no parameters but b: they find the session here.
	code := m.Run()
	s.epilogue()
	return interruptedCode(ctx, code)
}

// setGoFlags tells the testing package what to run, in its own words, which it takes.
func (s *session) setGoFlags(plans []*params.Values) {
	// Nothing is ever re-run: one call is one trial, its length is ours.
	_ = flag.Set("test.benchtime", "1x")
	if len(plans) > 0 {
		_ = flag.Set("test.bench", arrange(s.pattern, plans[0].Sweep))
	}
	// The closed division has three trials without being told.
	if len(plans) > 0 && s.inputs.Count == 0 {
		_ = flag.Set("test.count", strconv.Itoa(plans[0].Count))
	}
}

// check resolves every selected benchmark and every point of its sweep before
// anything is made. The error holds every violation once.
func (s *session) check(selected []params.Bench) ([]*params.Values, error) {
	var all params.Violations
	var plans []*params.Values
	in := s.inputs
	for _, in.Bench = range selected {
		base, err := s.set.Resolve(in)
		if bad := params.Violations(nil); errors.As(err, &bad) {
			all = all.Merge(bad)
			continue
		}
		s.points[in.Bench.Name] = base.Points
		// Each point of a sweep has its own needs: one of them may not fit this machine.
		for _, v := range base.Points {
			plans = append(plans, v)
			if v.Skip() == "" {
				all = all.Merge(feasible(v))
			}
		}
	}
	// Asked of all together: two benchmarks that would write the same file.
	all = all.Merge(oneTrace(plans))
	if len(all) > 0 {
		return nil, all
	}
	return plans, nil
}

// help answers -help-parameters with the values in force, for the first
// selected benchmark if one is selected.
func (s *session) help() int {
	in := s.inputs
	// Help for one benchmark shows what it sets itself; a broken pattern is no reason to withhold
	// it.
	if list, err := selectBenchmarks(s.pattern); s.pattern != "" && err == nil && len(list) > 0 {
		in.Bench = list[0]
	}
	v, err := s.set.Resolve(in)
	if v.WriteHelp(os.Stdout) != nil {
		return exitFailed
	}
	if err != nil {
		fmt.Fprint(os.Stderr, refusal(err))
		return exitParameters
	}
	return 0
}

// refusal is what stands on standard error when nothing is run.
func refusal(err error) string {
	return fmt.Sprintf("kvbench: nothing was run or made, because of the "+
		"parameters:\n%v\n(-help-parameters lists them all)\n", err)
}
