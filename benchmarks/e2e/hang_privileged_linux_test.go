package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench/result"
	"kvbench/tiers/privtest"
)

// hangs is storage that a test can stop in the middle of anything.
type hangs struct {
	dir  string
	stop func(pid int) (answer func())
}

// hangingDisk is an ext4 on a disk that can hang.
func hangingDisk(t *testing.T) hangs {
	l := privtest.LoopFS(t, 2<<10, privtest.LoopOptions{CanHang: true, DirectIO: true,
		Times: privtest.Times{Read: time.Millisecond, Write: time.Millisecond}})
	return hangs{l.Dir, func(int) func() {
		l.Server.Hang(t)
		return func() { l.Server.Answer(t) }
	}}
}

// hangingServer is the directory of a server that can hang: calls that are no requests hang, too.
func hangingServer(t *testing.T) hangs {
	dir, server := privtest.FuseDir(t)
	return hangs{dir, func(int) func() {
		server.Hang(t)
		return func() { server.Answer(t) }
	}}
}

// abortedServer is one that never answers again: an administrator aborts the connection.
func abortedServer(t *testing.T) hangs {
	dir, server := privtest.FuseDir(t)
	return hangs{dir, func(int) func() {
		server.Hang(t)
		return func() { server.Abort(t) }
	}}
}

// throttled is an ext4 on a device that gives a byte per second.
func throttled(t *testing.T) hangs {
	l := privtest.LoopFS(t, 2<<10, privtest.LoopOptions{DirectIO: true})
	th := privtest.ThrottleLoop(t, l, privtest.Rates{Read: 1, Write: 1})
	return hangs{l.Dir, func(pid int) func() {
		th.Add(t, pid)
		return func() { th.Lift(t) }
	}}
}

// freezing is an ext4 that can be frozen, as snapshots do, so that writes wait.
func freezing(t *testing.T) hangs {
	l := privtest.LoopFS(t, 2<<10, privtest.LoopOptions{})
	return hangs{l.Dir, func(int) func() { return l.Freeze(t) }}
}

// hanging is a run whose storage hangs.
type hanging struct {
	name   string
	on     func(*testing.T) hangs
	engine string
	args   string
	stalls string // the operations of which one has to hang
	stage  string // of the live line
}

// What a run does until it is stopped. StorageCeiling/op=write ends when its files are full, which
// is soon: blocks are written again and again.
const (
	reads    = "-test.bench=StorageCeiling/op=read -storage-capacity-gb=0.125"
	writes   = "-test.bench=BlockIO/op=write/size=64KiB -storage-capacity-gb=0.125"
	churn    = "-test.bench=StorageCeiling/op=churn -storage-capacity-gb=0.25"
	requests = "-test.bench=MaxStorageStress -storage-capacity-gb=1"
)

// hangingRuns are all that is tried.
func hangingRuns() (all []hanging) {
	for _, c := range []struct {
		name string
		on   func(*testing.T) hangs
	}{{"disk", hangingDisk}, {"server", hangingServer}} {
		for _, engine := range []string{"psync", "uring"} {
			all = append(all,
				hanging{"reads/" + c.name, c.on, engine, reads, "read", "running"},
				hanging{"writes/" + c.name, c.on, engine, writes, "write", "running"},
				hanging{"requests/" + c.name, c.on, engine, requests, "read|write", "running"})
		}
	}
	return append(all,
		hanging{"buffered", hangingDisk, "psync", requests + " -io=buffered", "read|write|flush",
			"running"},
		hanging{"preparing", hangingDisk, "psync", "-test.bench=Synthetic -precondition " +
			"-precondition-size-gb=50 -storage-capacity-gb=1", "write", "preconditioning"},
		hanging{"files of an engine", hangingServer, "psync", requests + " -layout=hicache-file",
			"read|write", "running"},
		hanging{"reads/aborted", abortedServer, "psync", reads, "read", "running"},
		hanging{"writes/aborted", abortedServer, "uring", writes, "write", "running"},
		hanging{"requests/aborted", abortedServer, "psync", requests, "read|write", "running"},
		hanging{"requests/aborted", abortedServer, "uring", requests, "read|write", "running"},
		hanging{"reads/throttled", throttled, "psync", reads, "read", "running"},
		hanging{"reads/throttled", throttled, "uring", reads, "read", "running"},
		hanging{"churn/throttled", throttled, "psync", churn, "read|write", "running"},
		hanging{"requests/frozen", freezing, "psync", requests, "write|create", "running"},
		hanging{"requests/frozen", freezing, "uring", requests, "write|create", "running"})
}

// TestStorageThatHangsFreezesNothing: while it answers nothing at all, the live line goes on, a
// signal makes the result, and that tells what was asked in vain. The process, whose threads are in
// the kernel, ends when the storage answers.
func TestStorageThatHangsFreezesNothing(t *testing.T) {
	for _, c := range hangingRuns() {
		t.Run(c.name+"/"+c.engine, func(t *testing.T) {
			if os.Getenv(timesEnv) != "1" { // else they would disturb each other
				t.Parallel()
			}
			inTime(t, func() stopping { return c.play(t) })
		})
	}
}

// play stops the storage in the middle of the run, sends a signal, and lets the storage answer.
func (c hanging) play(t *testing.T) (times stopping) {
	h := c.on(t)
	b := newBench(t)
	b.cache = filepath.Join(h.dir, "kv")
	b.env = append(b.env, "GOGC=1") // the collector is always at work
	s := b.terminal(200)
	p := b.start(append(append(b.places(), "-test.benchtime=10m", "-io-engine="+c.engine),
		strings.Fields(c.args)...)...)
	s.shows(t, ": "+c.stage+" 1s")
	answer := h.stop(p.Process.Pid)
	s.goesOn(t)
	// A signal goes to the first thread, which would not hear it in a request.
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/stat", p.Process.Pid))
	require.NoError(t, err)
	assert.Contains(t, string(text), ") S ")
	begun := time.Now()
	require.NoError(t, p.Process.Signal(os.Interrupt))
	eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
	s.shows(t, "waiting for what is in flight")
	times.durable = time.Since(begun) // and the live line knows of the signal
	answered := time.Now()
	answer()
	assert.Equal(t, 130, p.end().code)
	times.end = time.Since(answered)
	r := interrupted(t, b)
	assert.Equal(t, c.engine, r.IO.Engine)
	checkStalls(t, b, r, c.stalls)
	return times
}

// TestStorageThatHangsForLong, beyond all patience after a signal: when it answers the process
// ends, without a second one. What is still under way then gives its memory back after the trial.
func TestStorageThatHangsForLong(t *testing.T) {
	for _, c := range []struct {
		name   string
		on     func(*testing.T) hangs
		engine string
		until  string // the live line says
	}{
		{"disk", hangingDisk, "psync", `(flight|files) [3-9]s, `},
		{"server", hangingServer, "psync", `(flight|files) [3-9]s, `},
		{"server", hangingServer, "uring", `(flight|files) [3-9]s, `},
		// Before the passes give up, and when the engine is being closed.
		{"soon", hangingDisk, "uring", `(flight|files) [0-9]+s, `},
		{"later", hangingDisk, "uring", `(flight|files) [3-9]s, `},
	} {
		t.Run(c.name+"/"+c.engine, func(t *testing.T) {
			t.Parallel()
			h := c.on(t)
			b := newBench(t)
			b.cache = filepath.Join(h.dir, "kv")
			s := b.terminal(200)
			p := b.start(append(append(b.places(), "-test.benchtime=10m", "-workers=16",
				"-io-engine="+c.engine), strings.Fields(reads)...)...)
			s.shows(t, ": running 1s")
			answer := h.stop(p.Process.Pid)
			s.goesOn(t)
			_, err := s.master.WriteString("\x03") // typed
			require.NoError(t, err)
			eventually(t, "the result", func() bool { return len(resultFiles(t, b.results)) > 0 })
			until := regexp.MustCompile(c.until)
			eventually(t, c.until, func() bool { return until.MatchString(s.String()) })
			answer()
			assert.Equal(t, 130, p.end().code)
			r := interrupted(t, b)
			assert.Equal(t, c.engine, r.IO.Engine)
			checkStalls(t, b, r, "read")
		})
	}
}

// goesOn waits until it has told three times what is unanswered.
func (s *screen) goesOn(t *testing.T) {
	t.Helper()
	eventually(t, "what is unanswered on the live line",
		func() bool { return strings.Count(s.String(), "UNANSWERED for ") > 2 })
}

// shows waits until it has shown that.
func (s *screen) shows(t *testing.T, what string) {
	t.Helper()
	eventually(t, what+" on the live line",
		func() bool { return strings.Contains(s.String(), what) })
}

// checkStalls wants what was not answered when the result was made, with one of the operations.
func checkStalls(t *testing.T, b *bench, r *result.Result, operations string) {
	t.Helper()
	require.NotNil(t, r.Stalls)
	assert.GreaterOrEqual(t, r.Stalls.LongestNS, int64(3*time.Second))
	longest, unanswered := r.Stalls.Longest[0], ""
	assert.False(t, longest.Answered)
	for _, s := range r.Stalls.Longest {
		assert.True(t, strings.HasPrefix(s.Path, b.cache), s.Path)
		if !s.Answered {
			unanswered += s.Operation + "\n"
		}
	}
	assert.Regexp(t, "(?m)^("+operations+")$", unanswered)
	summary, err := os.ReadFile(filepath.Join(filepath.Dir(resultFiles(t, b.results)[0]),
		"summary.txt"))
	require.NoError(t, err)
	assert.Contains(t, string(summary), "NOT answered: "+longest.Operation)
}

// TestIOTimeoutEndsATrial, and no other is begun.
func TestIOTimeoutEndsATrial(t *testing.T) {
	for name, on := range map[string]func(*testing.T) hangs{"a disk": hangingDisk,
		"a server": hangingServer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := on(t)
			b := newBench(t)
			b.cache = filepath.Join(h.dir, "kv")
			p := b.start(append(b.places(), "-test.benchtime=10m", "-storage-capacity-gb=1",
				"-test.bench=MaxStorageStress|Synthetic", "-io-timeout=2s")...)
			b.working()
			answer := h.stop(p.Process.Pid)
			eventually(t, "the result",
				func() bool { return len(resultFiles(t, b.results)) > 0 })
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
		})
	}
}
