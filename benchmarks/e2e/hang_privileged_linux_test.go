package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	stage  string // of the live line
}

// What a run does until it is stopped.
const (
	reads    = "-test.bench=StorageCeiling/op=read -storage-capacity-gb=0.125"
	requests = "-test.bench=MaxStorageStress -storage-capacity-gb=1"
)

// TestStorageThatHangsFreezesNothing: while the storage completes nothing, the live line goes on, and
// a signal writes the result with the unanswered requests. The process, whose threads are in the
// kernel, ends when the storage answers. Each load, storage and engine stands here once.
func TestStorageThatHangsFreezesNothing(t *testing.T) {
	parallel(t)
	for _, c := range []hanging{
		{"reads", hangingDisk, "uring", reads, "running"},
		{"requests", hangingServer, "uring", requests, "running"},
		{"files of an engine", hangingServer, "psync", requests + " -layout=hicache-file", "running"},
		{"buffered", hangingDisk, "psync", requests + " -io=buffered", "running"},
		{"preparing", hangingDisk, "psync", "-test.bench=Synthetic -precondition " +
			"-precondition-size-gb=50 -storage-capacity-gb=1", "preconditioning"},
		{"aborted", abortedServer, "psync", requests, "running"},
		{"frozen", freezing, "psync", requests, "running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parallel(t)
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
	s.shows(t, ": "+c.stage+" [1-9]")
	answer := h.stop(p.Process.Pid)
	s.goesOn(t)
	// A signal goes to the first thread, which would not receive it in a request.
	eventually(t, "sleep of the first thread", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/stat", p.Process.Pid))
		require.NoError(t, err)
		return strings.Contains(string(text), ") S ")
	})
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
	checkStalls(t, b, r)
	return times
}

// goesOn waits until the live line has shown unanswered requests three times more.
func (s *screen) goesOn(t *testing.T) {
	t.Helper()
	shown := func() int { return strings.Count(s.String(), "UNANSWERED for ") }
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
	assert.Contains(t, string(summary), "NOT answered: "+longest.Operation)
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
	answer := h.stop(p.Process.Pid)
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
