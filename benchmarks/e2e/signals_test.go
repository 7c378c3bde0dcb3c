package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
)

// What README promises, of an idle machine. timesEnv=1 says that the machine is idle: then the times
// are checked, and tests run one after the other. Else they are only logged.
const (
	timesEnv      = "KVTEST_TIMES"
	durableWithin = 500 * time.Millisecond
	endWithin     = 2 * time.Second
)

// parallel lets a test run concurrently with others, except where times are measured.
func parallel(t *testing.T) {
	if os.Getenv(timesEnv) != "1" {
		t.Parallel()
	}
}

// stopping is how a run ended after something was done to it.
type stopping struct {
	outcome
	durable, end time.Duration // since then
}

// stop does something to a run and watches it end.
func (b *bench) stop(p *process, what func()) stopping {
	b.t.Helper()
	begun := time.Now()
	what()
	over := make(chan stopping, 1)
	// outcome may fail the test, which only its goroutine may do: Wait is called here, the rest
	// there
	go func() {
		_ = p.Cmd.Wait()
		over <- stopping{end: time.Since(begun)}
	}()
	var durable time.Duration
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case s := <-over:
			s.durable = durable
			s.outcome = outcome{code: p.ProcessState.ExitCode(), stdout: p.out.String(),
				stderr: p.errout.String()}
			if durable == 0 && len(resultFiles(b.t, b.results)) > 0 {
				s.durable = s.end
			}
			return s
		case <-tick.C:
			if durable == 0 && len(resultFiles(b.t, b.results)) > 0 {
				durable = time.Since(begun)
			}
		}
	}
}

// inTime logs the times, and reports whether they are as promised.
func (s stopping) inTime(t *testing.T) bool {
	t.Helper()
	t.Logf("result after %v, end after %v", s.durable.Round(time.Millisecond),
		s.end.Round(time.Millisecond))
	return os.Getenv(timesEnv) != "1" || s.durable < durableWithin && s.end < endWithin
}

// inTime plays a scene, and where times are measured repeats it until it is as fast as promised,
// three times at most.
func inTime(t *testing.T, scene func() stopping) {
	t.Helper()
	for try := 1; ; try++ {
		if scene().inTime(t) {
			return
		}
		if try == 3 {
			t.Errorf("not once in time: the result is to be there within %v, the end within %v",
				durableWithin, endWithin)
			return
		}
	}
}

// interrupted wants the marks of an interruption on the only result.
func interrupted(t testing.TB, b *bench) *result.Result {
	t.Helper()
	r := theResult(t, b.results)
	assert.Equal(t, result.StatusIncomplete, r.Status)
	assert.Equal(t, result.EndedBySignal, r.EndedBy)
	assert.NotEmpty(t, r.Error)
	assert.FileExists(t, filepath.Join(filepath.Dir(resultFiles(t, b.results)[0]), "summary.txt"))
	return r
}

// ending is how a run ends in some stage.
type ending struct {
	sig  syscall.Signal // which the process gets
	code int
	args []string // nil: those of long
	// how prepares the bench and returns another way to send the signal.
	how func(b *bench) (end func(p *process))
}

// endings has a row for each stage that waits in code of its own, and for each way in which a signal
// comes.
var endings = map[string]ending{
	"SIGINT":  {sig: syscall.SIGINT, code: 130},
	"SIGQUIT": {sig: syscall.SIGQUIT, code: 131},
	"populating": {sig: syscall.SIGTERM, code: 143, args: []string{"-test.bench=DecodeOnly",
		"-num-users=4", "-storage-capacity-gb=4"}},
	"preconditioning": {sig: syscall.SIGTERM, code: 143, args: []string{"-test.bench=Synthetic",
		"-precondition", "-storage-capacity-gb=1", "-precondition-size-gb=50"}},
	"ceiling": {sig: syscall.SIGTERM, code: 143, args: []string{
		"-test.bench=StorageCeiling/op=mixed", "-storage-capacity-gb=1"}},
	"buffered": {sig: syscall.SIGTERM, code: 143, args: []string{"-test.bench=MaxStorageStress",
		"-io=buffered", "-storage-capacity-gb=1"}},
	"pausing": {sig: syscall.SIGTERM, code: 143, args: []string{"-test.bench=Synthetic|MultiTurn",
		"-test.count=2", "-settle=10m"}},
}

// TestSignalsInEveryStage: a signal ends a run in any stage, with its result, and the summary is
// printed all the same.
func TestSignalsInEveryStage(t *testing.T) {
	parallel(t)
	for name, c := range endings {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			inTime(t, func() stopping {
				b, root, before := userBench(t)
				end := func(p *process) { require.NoError(t, p.Process.Signal(c.sig)) }
				if c.how != nil {
					end = c.how(b)
				}
				args := b.long()
				if c.args != nil {
					args = append(append(b.places(), "-test.benchtime=10m"), c.args...)
				}
				if b.command != nil {
					args = goFlags(args)
				}
				p := b.start(args...)
				if name == "pausing" {
					eventually(t, "a marker", func() bool {
						return exists(filepath.Join(b.cache, "rank_0/.kvbench.json"))
					})
				} else {
					b.working()
				}
				s := b.stop(p, func() { end(p) })
				assert.Equal(t, c.code, s.code)
				r := interrupted(t, b)
				assert.Contains(t, r.Error, c.sig.String())
				assert.Contains(t, s.stdout, "--- FAIL: Benchmark")
				assert.Contains(t, s.stdout, "result: "+resultFiles(t, b.results)[0]+"\n")
				assert.Contains(t, s.stdout+s.stderr, "incomplete (ended by signal)")
				if name == "pausing" { // one line for all
					assert.Equal(t, 1, strings.Count(s.stdout, "--- FAIL"))
					assert.Contains(t, s.stderr, "\nnot begun when the run was ended\n  3 trials of 2 benchmarks\n")
				}
				if b.command == nil {
					parse(t, s.stdout)
				} else {
					assert.Contains(t, s.stdout, "exit status 130", "the go command shows 1 for all of them")
				}
				s.leaves(b, root, before)
				return s
			})
		})
	}
}

// leaves requires that only the user's files are left. A run without a terminal removes its files for
// about a second, and cannot stop a flush: it reports what it left behind, and the next run removes that.
func (s stopping) leaves(b *bench, root string, before map[string]string) {
	b.t.Helper()
	if strings.Contains(s.stdout+s.stderr, "left behind ") {
		next := *b
		next.command, next.attr, next.files = nil, nil, nil
		next.ok(next.few(next.places()...)...)
	}
	assert.Equal(b.t, before, tree(b.t, root))
}

// TestASecondSignalEndsAtOnce even while the first one's result is being made. The process stands
// still while both are sent: on a busy machine it could end by the first before the second comes.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	b, root, before := userBench(t)
	p := b.start(b.long()...)
	b.working()
	require.NoError(t, p.Process.Signal(syscall.SIGSTOP))
	var state syscall.WaitStatus
	_, err := syscall.Wait4(p.Process.Pid, &state, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, state.Stopped())
	require.NoError(t, p.Process.Signal(os.Interrupt))
	s := b.stop(p, func() {
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.NoError(t, p.Process.Signal(syscall.SIGCONT))
	})
	// Go may see either of them first.
	assert.Contains(t, []int{130, 143}, s.code)
	assert.NotContains(t, s.stdout, "--- FAIL", "the process did not wait for its end")
	assert.Regexp(t, `\nleft behind [\d,]+ files \([0-9.]+ .iB\) in `+regexp.QuoteMeta(b.cache)+
		`/rank_0, which the next run there removes, as does rm -r `, s.stderr)
	t.Logf("end %v after the second signal", s.end)
	s.leaves(b, root, before)
}

// data is the absolute path of a file in testdata.
func data(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(testdata, name))
	require.NoError(t, err)
	return path
}
