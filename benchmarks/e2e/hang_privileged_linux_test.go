package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// TestADirectoryThatHangsEndsTheStart: while a directory of the parameters does not answer, standard
// error names it. A signal or -io-timeout ends the process.
func TestADirectoryThatHangsEndsTheStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir  string // the directory that hangs
		sig  syscall.Signal
		args []string
		code int
		says string
	}{
		{"results", syscall.SIGTERM, nil, 143,
			"nothing was run or made: the run was ended (terminated) while it looked at "},
		{"cache", 0, []string{"-io-timeout=4s"}, exitFailed,
			"nothing was run or made: the storage does not answer: the cache directory "},
	} {
		t.Run(c.dir, func(t *testing.T) {
			t.Parallel()
			dir, server := privtest.FuseDir(t)
			b := newBench(t)
			if c.dir == "cache" {
				b.cache = filepath.Join(dir, "kv")
			} else {
				b.results = filepath.Join(dir, "res")
			}
			server.Hang(t)
			p := b.start(append(append(b.places(), "-test.bench=MaxStorageStress"), c.args...)...)
			silent := regexp.MustCompile(`kvbench: no answer for \d+ s from the ` + c.dir +
				` directory ` + regexp.QuoteMeta(dir))
			eventually(t, "the name of the directory",
				func() bool { return silent.MatchString(p.errout.String()) })
			if c.sig != 0 {
				require.NoError(t, p.Process.Signal(c.sig))
			}
			o := p.end() // the directory still hangs
			assert.Equal(t, c.code, o.code)
			assert.Contains(t, o.stderr, c.says)
			assert.Empty(t, o.stdout)
			server.Answer(t)
			assert.NoDirExists(t, b.cache)
			assert.NoDirExists(t, b.results)
		})
	}
}

// TestADirectoryThatHangsBetweenTrials: the live line names it, and a signal ends the run. The trials
// before it keep their results.
func TestADirectoryThatHangsBetweenTrials(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	b := newBench(t)
	b.cache = filepath.Join(dir, "kv")
	s := b.terminal(200)
	p := b.start(append(append(b.places(), b.micro()...), "-test.bench=MultiTurn",
		"-test.count=1000", "-settle=1s", "-test.benchtime=1x")...)
	// The directory of the rank exists during a trial only. On a busy machine the next trial may have
	// begun before the directory hangs: then it continues and hangs once more, after another trial.
	for waits := false; !waits; {
		eventually(t, "the end of a trial", func() bool {
			return len(resultFiles(t, b.results)) > 0 && !exists(filepath.Join(b.cache, "rank_0"))
		})
		begun, before := time.Now(), len(s.String())
		server.Hang(t)
		eventually(t, "the wait on the live line, or the wrong moment", func() bool {
			shown := s.String()[before:]
			waits = strings.Contains(shown, ", waiting for an answer of the cache directory "+b.cache)
			return waits || strings.Contains(shown, "UNANSWERED for ") ||
				time.Since(begun) > 20*time.Second
		})
		if waits {
			require.NoError(t, p.Process.Signal(os.Interrupt))
			assert.Equal(t, 130, p.end().code) // the directory still hangs
		}
		server.Answer(t)
	}
	for _, path := range resultFiles(t, b.results) {
		assert.Equal(t, result.StatusComplete, readResult(t, path).Status)
	}
}

// TestAResultsDirectoryThatHangsLosesNoResult: the run prints the result on standard error when it
// stops waiting for the directory.
func TestAResultsDirectoryThatHangsLosesNoResult(t *testing.T) {
	t.Parallel()
	for _, ranks := range []string{"1", "2"} {
		t.Run(ranks, func(t *testing.T) {
			t.Parallel()
			dir, server := privtest.FuseDir(t)
			b := newBench(t)
			b.results = filepath.Join(dir, "res")
			s := b.terminal(200)
			p := b.start(append(append(b.places(), b.micro()...), "-test.bench=MaxStorageStress",
				"-test.benchtime=10m", "-ranks="+ranks)...)
			s.shows(t, ` s of 10m`)
			server.Hang(t)
			require.NoError(t, p.Process.Signal(os.Interrupt))
			if ranks == "1" {
				s.shows(t, "writing the result to "+b.results)
				eventually(t, "the end of the files", func() bool { return !exists(b.cache) })
			}
			o := p.end() // the directory still hangs
			assert.Equal(t, 130, o.code)
			assert.Contains(t, o.stderr, "the result of MaxStorageStress may be nowhere else than here, "+
				"because of this: the storage does not answer: "+b.results)
			assert.Equal(t, 1, strings.Count(o.stderr, "incomplete (ended by signal)"), "it is printed once")
		})
	}
}

// TestATraceThatHangsFreezesNothing: the live line shows it, and after a signal the result is written.
func TestATraceThatHangsFreezesNothing(t *testing.T) {
	t.Parallel()
	dir, server := privtest.FuseDir(t)
	text, err := os.ReadFile(data(t, "azure-small.csv"))
	require.NoError(t, err)
	trace := filepath.Join(dir, "azure.csv")
	require.NoError(t, os.WriteFile(trace, text, 0o644))
	b := newBench(t)
	s := b.terminal(200)
	p := b.start(append(append(b.places(), b.micro()...), "-test.bench=AzureTrace",
		"-test.benchtime=10m", "-replay-cycles=0", "-trace-speedup=100", "-azure-trace-path",
		trace)...)
	s.shows(t, ` s of 10m`)
	server.Hang(t)
	s.goesOn(t)
	require.NoError(t, p.Process.Signal(os.Interrupt))
	eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
	server.Answer(t)
	o := p.end()
	assert.Equal(t, 130, o.code, o.stderr)
	r := interrupted(t, b)
	assert.Contains(t, strings.Join(r.Warnings, "\n"), trace+" did not answer when the window ended")
	assert.Empty(t, r.Load)
	assert.Positive(t, r.Requests.Completed)
}

// hangs is storage that a test can stop in the middle of anything, until it calls answer.
type hangs struct {
	dir  string
	stop func() (answer func())
}

// hangingDisk is an ext4 on a disk that can hang.
func hangingDisk(t *testing.T) hangs {
	l := privtest.LoopFS(t, 2<<10, privtest.LoopOptions{CanHang: true, DirectIO: true,
		Times: privtest.Times{Read: time.Millisecond, Write: time.Millisecond}})
	return serverThatHangs(t, l.Dir, l.Server, l.Server.Answer)
}

// hangingServer is the directory of a server that can hang: calls that are no requests hang, too.
func hangingServer(t *testing.T) hangs {
	dir, server := privtest.FuseDir(t)
	return serverThatHangs(t, dir, server, server.Answer)
}

// abortedServer never answers again: an administrator aborts the connection.
func abortedServer(t *testing.T) hangs {
	dir, server := privtest.FuseDir(t)
	return serverThatHangs(t, dir, server, server.Abort)
}

func serverThatHangs(t *testing.T, dir string, server *privtest.Server, end func(testing.TB)) hangs {
	return hangs{dir, func() func() {
		server.Hang(t)
		return func() { end(t) }
	}}
}

// frozenDisk is an ext4 that an administrator freezes: not even SIGKILL ends a write.
func frozenDisk(t *testing.T) hangs {
	l := privtest.LoopFS(t, 2<<10, privtest.LoopOptions{DirectIO: true})
	return hangs{l.Dir, func() func() { return l.Freeze(t) }}
}

// hanging is a run whose storage hangs.
type hanging struct {
	name   string
	on     func(*testing.T) hangs
	engine string
	args   string
	stage  string // of the live line, "" in the window
	waits  int    // user, again or launcher
}

// What waits for a run.
const (
	user     = iota // a user at a terminal, until the storage answers
	again           // a user, until the second Ctrl-C
	launcher        // a launcher, which has the end within two seconds
)

// What a run does until it is stopped.
const (
	reads     = "-test.bench=StorageCeiling/op=read -storage-capacity-gb=0.125"
	requests  = "-test.bench=MaxStorageStress -storage-capacity-gb=1"
	preparing = "-test.bench=Synthetic -precondition -precondition-size-gb=50 -storage-capacity-gb=1"
)

// TestStorageThatHangsFreezesNothing: while the storage completes nothing, the live line goes on, and
// Ctrl-C writes the result with the unanswered requests. The process, whose threads are in the
// kernel, ends when the storage answers; under a launcher it says so. Each load, storage
// and engine stands here once.
func TestStorageThatHangsFreezesNothing(t *testing.T) {
	parallel(t)
	for _, c := range []hanging{
		{"reads", hangingDisk, "uring", reads, "", user},
		{"requests", hangingServer, "uring", requests, "", user},
		{"files of an engine", hangingServer, "psync", requests + " -layout=hicache-file", "", user},
		{"buffered", hangingDisk, "psync", requests + " -io=buffered", "", user},
		{"preparing", hangingDisk, "psync", preparing, "preconditioning ", user},
		{"aborted", abortedServer, "psync", requests, "", user},
		{"frozen", frozenDisk, "uring", requests, "", user},
		{"frozen, Ctrl-C again", frozenDisk, "psync", requests, "", again},
		{"frozen, launched", frozenDisk, "uring", requests, "", launcher},
		{"disk, launched", hangingDisk, "psync", requests, "", launcher},
		{"server, launched", hangingServer, "uring", requests, "", launcher},
		{"preparing, launched", frozenDisk, "psync", preparing, "preconditioning ", launcher},
	} {
		t.Run(c.name, func(t *testing.T) {
			parallel(t)
			inTime(t, func() stopping { return c.play(t) })
		})
	}
}

// play stops the storage in the middle of the run, presses Ctrl-C, and lets the storage answer.
func (c hanging) play(t *testing.T) (times stopping) {
	h := c.on(t)
	b := newBench(t)
	b.cache = filepath.Join(h.dir, "kv")
	b.env = append(b.env, "GOGC=1") // the collector is always at work
	if c.waits == launcher {
		b.env = append(b.env, "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1")
	}
	compared := c.name == "disk, launched"
	if compared { // by kvreport turns
		b.env = append(b.env, "KVREPORT_RUN=3 12 0 a")
	}
	s := b.terminal(200)
	press := func() {
		_, err := s.master.WriteString("\x03")
		require.NoError(t, err)
	}
	p := b.start(append(append(b.places(), "-test.benchtime=10m", "-io-engine="+c.engine),
		strings.Fields(c.args)...)...)
	says := func(text string) {
		eventually(t, text, func() bool { return strings.Contains(p.errout.String(), text) })
	}
	s.shows(t, ", "+c.stage+`[1-9]\d* s( of 10m|, \d)`)
	answer := h.stop()
	s.goesOn(t)
	if compared {
		says("no I/O completed in " + b.cache + " for 1")
		says(" s (run 3 of 12)\n")
		s.shows(t, "run 3 of 12 \\(a: .*no I/O completed for ")
	}
	// A signal goes to the first thread, which would not receive it in a request.
	eventually(t, "sleep of the first thread", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/stat", p.Process.Pid))
		require.NoError(t, err)
		return strings.Contains(string(text), ") S ")
	})
	begun := time.Now()
	press()
	eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
	times.durable = time.Since(begun)
	if c.waits != launcher {
		s.shows(t, "waiting for I/O in flight .*, Ctrl-C again leaves the files")
	}
	if c.waits == again {
		press()
	}
	if c.waits != user {
		begun = time.Now()
		says("\nleft behind ")
		if c.waits == launcher {
			says("\nthe kernel keeps this process until the storage has completed the ")
		}
		times.end = time.Since(begun)
	}
	answered := time.Now()
	answer()
	o := p.end()
	assert.Equal(t, 130, o.code)
	assert.Equal(t, c.waits == launcher, strings.Contains(o.stderr, "\nthe kernel keeps this process "))
	if c.waits == user {
		times.end = time.Since(answered)
	}
	r := interrupted(t, b)
	assert.Equal(t, c.engine, r.IO.Engine)
	checkStalls(t, b, r)
	if c.waits != user {
		require.NoError(t, os.RemoveAll(b.results))
		b.ok(b.few(b.places()...)...)
	}
	if left, err := os.ReadDir(b.cache); !errors.Is(err, syscall.ENOTCONN) { // aborted
		assert.Empty(t, left)
		assert.Equal(t, c.waits != user, strings.Contains(o.stderr, "left behind "))
	}
	return times
}

// goesOn waits until the live line has shown unanswered requests three times more.
func (s *screen) goesOn(t *testing.T) {
	t.Helper()
	hangs := regexp.MustCompile("UNANSWERED for |no I/O completed for ")
	shown := func() int { return len(hangs.FindAllString(s.String(), -1)) }
	before := shown()
	eventually(t, "unanswered requests on the live line", func() bool { return shown() > before+2 })
}

// shows waits until the live line matches. A busy machine skips seconds: a pattern must not name one.
func (s *screen) shows(t *testing.T, pattern string) {
	t.Helper()
	line := regexp.MustCompile(pattern)
	eventually(t, pattern+" on the live line", func() bool { return line.MatchString(s.String()) })
}

// checkStalls requires, in result and summary, a call that was in flight when the result was made.
// Which of the calls of a load that is depends on the moment at which the storage stops.
func checkStalls(t *testing.T, b *bench, r *result.Result) {
	t.Helper()
	require.NotNil(t, r.Stalls)
	for _, s := range r.Stalls.Longest {
		assert.True(t, strings.HasPrefix(s.Path, b.cache), s.Path)
	}
	i := slices.IndexFunc(r.Stalls.Longest, func(s result.Stall) bool { return !s.Answered })
	require.GreaterOrEqual(t, i, 0, r.Stalls.Longest)
	longest := r.Stalls.Longest[i]
	assert.GreaterOrEqual(t, longest.LengthNS, int64(3*time.Second))
	summary, err := os.ReadFile(filepath.Join(filepath.Dir(resultFiles(t, b.results)[0]),
		"summary.txt"))
	require.NoError(t, err)
	assert.Contains(t, string(summary), "NOT completed: "+longest.Operation)
}

// TestIOTimeoutEndsATrial: it fails, and no other trial begins.
func TestIOTimeoutEndsATrial(t *testing.T) {
	t.Parallel()
	h := hangingDisk(t)
	b := newBench(t)
	b.cache = filepath.Join(h.dir, "kv")
	p := b.start(append(b.places(), "-test.benchtime=10m", "-storage-capacity-gb=1",
		"-test.bench=MaxStorageStress|Synthetic", "-io-timeout=2s")...)
	b.working()
	answer := h.stop()
	eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
	eventually(t, "the end of the other benchmark",
		func() bool { return strings.Contains(p.out.String(), "FAIL: BenchmarkSynthetic") })
	answer()
	o := p.end()
	assert.Equal(t, exitFailed, o.code)
	assert.Contains(t, o.stdout, "not begun, because of an earlier trial: the storage "+
		"does not answer: ")
	r := theResult(t, b.results)
	assert.Equal(t, result.StatusFailed, r.Status)
	assert.Equal(t, result.EndedByError, r.EndedBy)
	assert.Regexp(t, `^the storage does not answer: .* of `+b.cache+
		`.*, for .*, longer than -io-timeout 2s: `, r.Error)
	require.NotNil(t, r.Stalls)
}
