package main

import (
	"errors"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/tiertest"
	"kvbench/tools/golden"
	"kvbench/tracing/nvml"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"kvreport": main}) }

// sequential is a test whose scripts do not run concurrently: they share the working directory.
type sequential struct{ *testing.T }

func (sequential) Parallel()     {}
func (sequential) Verbose() bool { return testing.Verbose() }

func (s sequential) Run(name string, script func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { script(sequential{t}) })
}

// run runs a command line and returns its exit code. It starts no process, because to start 250 took
// most of the time; "exec kvreport" starts one, with the script's standard input and environment.
func run(ts *testscript.TestScript, args []string) int {
	here, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(here)) }()
	return Main(args, strings.NewReader(""), ts.Stdout(), ts.Stderr())
}

// TestScripts runs testdata/script: what users type, and what they get. The scripts have commands
// of their own:
//
//	kvreport ARGUMENT…     runs kvreport in this process, which has to end with exit code 0
//	exits N COMMAND…       runs kvreport here, or a program with exec, and expects the exit code
//	lines STREAM N         counts the lines that the last command wrote to stdout or stderr
//	bench FILE SPEC…       appends benchmark text: SPEC is "NAME UNIT CENTRE TRIALS", "blocks NAME
//	                       CENTRE SPREAD TRIALS" for trials in turns, or a line as it is
//	results DIR CHUNK X    writes the example of ranks_test.go
//	text PAGE FILE         writes the text of a page
//	sheet BOOK SHEET FILE  writes the values of a workbook's sheet, with | between them
func TestScripts(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	drivers := t.TempDir()
	uncompiled := tiertest.CompileCards(drivers)
	testscript.RunT(sequential{t}, testscript.Params{
		Dir: "testdata/script", UpdateScripts: golden.Update(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("TRACES", filepath.Join(here, "../../testdata"))
			env.Setenv("LOAD", filepath.Join(here, "../load/testdata"))
			env.Setenv("GATE", filepath.Join(here, "../gate/testdata"))
			env.Setenv("FIO", filepath.Join(here, "testdata/fio"))
			env.Setenv("DRIVERS", drivers)
			env.Setenv("GOLDEN", filepath.Join(here, "../golden/testdata"))
			return nil
		},
		// [cards]: the drivers of the tests are in $DRIVERS, and this build uses them.
		Condition: func(string) (bool, error) {
			_, err := nvml.Cards()
			return uncompiled == nil && !strings.Contains(fmt.Sprint(err), "this build has no NVML"), nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				code := 0
				if args[1] == "kvreport" {
					code = run(ts, args[2:])
				} else if err := ts.Exec(args[2], args[3:]...); err != nil {
					exit, ok := errors.AsType[*exec.ExitError](err)
					if !ok {
						ts.Fatalf("%v", err)
					}
					code = exit.ExitCode()
				}
				if strconv.Itoa(code) != args[0] {
					ts.Fatalf("exit code %d, want %s", code, args[0])
				}
			},
			"kvreport": func(ts *testscript.TestScript, _ bool, args []string) {
				if code := run(ts, args); code != Done {
					ts.Fatalf("exit code %d", code)
				}
			},
			"lines": func(ts *testscript.TestScript, _ bool, args []string) {
				if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
					ts.Fatalf("%d lines, want %s", n, args[1])
				}
			},
			"bench": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(benchText(ts.MkAbs(args[0]), args[1:]))
			},
			"results": func(ts *testscript.TestScript, _ bool, args []string) {
				factor, err := strconv.ParseFloat(args[2], 64)
				ts.Check(err)
				ranks(t, ts.MkAbs(args[0]), args[1], factor)
			},
			"text": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[1]),
					[]byte(html.UnescapeString(textOf(t, ts.MkAbs(args[0])))), 0o600))
			},
			"sheet": func(ts *testscript.TestScript, _ bool, args []string) {
				rows := strings.Join(sheet(t, ts.MkAbs(args[0]), args[1]), "\n") + "\n"
				ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(rows), 0o600))
			},
		},
	})
}

const header = "kvbench-format: 2\ndivision: quick\nseed: 42\nUnit read-B/s better=higher\nUnit " +
	"write-B/s better=higher\nUnit read-p95-ns better=lower\npkg: kvbench/benchmarks\n"

var trialsOf = regexp.MustCompile(`^(\S+) (\S+) ([0-9.e]+) (\d+)$`)

// benchText appends benchmark output to a file, and begins a new file with the header.
func benchText(path string, specs []string) error {
	var b strings.Builder
	if _, err := os.Stat(path); err != nil {
		b.WriteString(header)
	}
	for _, spec := range specs {
		var name string
		var centre, spread float64
		var n int
		if _, err := fmt.Sscanf(spec, "blocks %s %g %g %d", &name, &centre, &spread, &n); err == nil {
			b.WriteString(turns(name, centre, spread, n))
			continue
		}
		m := trialsOf.FindStringSubmatch(spec)
		if m == nil {
			b.WriteString(spec + "\n")
			continue
		}
		centre, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return err
		}
		n, err = strconv.Atoi(m[4])
		if err != nil {
			return err
		}
		b.WriteString(lines(m[1], m[2], centre, n))
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(b.String())
	return errors.Join(err, f.Close())
}

// lines are a benchmark's output of n trials: values around a centre, the same in every run of the
// test.
func lines(name, unit string, centre float64, n int) string {
	var b strings.Builder
	for i := range n {
		v := centre * (1 + 0.01*float64((i*7)%5-2) + 0.001*float64(i))
		fmt.Fprintf(&b, "Benchmark%s-2\t1\t%.0f ns/op\t%.0f %s\t%.0f read-p95-ns\n", name, 1e15/v,
			v, unit, 4e15/v)
	}
	return b.String()
}

// turns are a benchmark's output of n trials of a side that takes turns, two to a turn, on a
// machine whose speed halves from turn to turn.
func turns(name string, centre, spread float64, n int) string {
	var b strings.Builder
	for i := range n {
		v := centre / math.Exp2(float64(i/2)) * (1 + spread*float64((i*7)%5-2))
		fmt.Fprintf(&b, "turn: %d\nBenchmark%s-2 1 %.0f read-B/s\n", 1+i/2, name, v)
	}
	return b.String()
}
