package e2e

import (
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"kvbench/tools/golden"
)

// TestScripts runs testdata/script: what users type, and what they get. The scripts have commands
// of their own:
//
//	exits N COMMAND…    runs a command that ends with that exit code
//	kvbench N ARG…      runs the binary, which ends with that exit code and begins with -test.run=^$
//	refused ARG…        the same with exit code 2: it says so in a few lines, and makes and prints
//	                    nothing else
//	result DIR          copies the only result below a directory to result.json
//
// Arguments in capitals stand for several: SMALL are entries of kilobytes, HERE a cache and a results
// directory, FEW the shortest possible run of Synthetic, CHECKPOINT a small checkpoint. $PORT is a free
// port of this host.
func TestScripts(t *testing.T) {
	t.Parallel()
	program := binary(t)
	traces, err := filepath.Abs(testdata)
	require.NoError(t, err)
	arguments := func(ts *testscript.TestScript, words []string) (args []string) {
		small := []string{"-config=" + ts.MkAbs("micro.yaml"), "-storage-capacity-gb=0.25"}
		for _, word := range words {
			switch word {
			case "SMALL":
				args = append(args, small...)
			case "HERE":
				args = append(args, "-cache-dir="+ts.MkAbs("cache"), "-results-dir="+ts.MkAbs("results"))
			case "FEW":
				args = append(append(args, small...), "-test.bench=Synthetic", "-test.benchtime=5x")
			case "CHECKPOINT":
				args = append(args, smallCheckpoint...)
			default:
				args = append(args, word)
			}
		}
		return args
	}
	exits := func(ts *testscript.TestScript, want, command string, args []string) {
		err, code := ts.Exec(command, args...), 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exit.ExitCode()
		} else {
			ts.Check(err)
		}
		if strconv.Itoa(code) != want {
			ts.Fatalf("exit code %d, want %s", code, want)
		}
	}
	var mu sync.Mutex
	outputs := map[string][]string{} // by directory
	run := func(ts *testscript.TestScript, want string, words []string) {
		exits(ts, want, program, append([]string{"-test.run=^$"}, arguments(ts, words)...))
		mu.Lock()
		defer mu.Unlock()
		outputs[ts.MkAbs(".")] = append(outputs[ts.MkAbs(".")], ts.ReadFile("stdout"))
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: golden.Update(),
		Setup: func(env *testscript.Env) error {
			env.Setenv("KVBENCH", program)
			env.Setenv("TRACES", traces)
			env.Setenv("PORT", freePort(t))
			env.Defer(func() {
				mu.Lock()
				defer mu.Unlock()
				checkResultsBelow(t, env.WorkDir, outputs[env.WorkDir])
			})
			return os.WriteFile(filepath.Join(env.WorkDir, "micro.yaml"), []byte(microConfig), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				exits(ts, args[0], args[1], args[2:])
			},
			"kvbench": func(ts *testscript.TestScript, _ bool, args []string) {
				run(ts, args[0], args[1:])
			},
			"result": func(ts *testscript.TestScript, _ bool, args []string) {
				files := resultFiles(t, ts.MkAbs(args[0]))
				if len(files) != 1 {
					ts.Fatalf("results: %q", files)
				}
				text, err := os.ReadFile(files[0])
				ts.Check(err)
				ts.Check(os.WriteFile(ts.MkAbs("result.json"), text, 0o600))
			},
			"refused": func(ts *testscript.TestScript, _ bool, args []string) {
				before := tree(t, ts.MkAbs("."))
				run(ts, strconv.Itoa(exitParameters), args)
				if ts.ReadFile("stdout") != "" || strings.Count(ts.ReadFile("stderr"), "\n") > 5 {
					ts.Fatalf("a refusal is a few lines on standard error")
				}
				if !reflect.DeepEqual(before, tree(t, ts.MkAbs("."))) {
					ts.Fatalf("something was made")
				}
			},
		},
	})
}

// freePort is a port of this host at which nothing listens, below those of outgoing connections.
func freePort(t testing.TB) string {
	for {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
}
