package benchmarks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tiers/ioengine"
)

// access holds the names of the files or directories that a goroutine accesses now. That goroutine sets
// them, and the goroutine in await reads them.
type access struct {
	what  atomic.Value // string: names of the files and directories, for messages
	limit atomic.Int64 // -io-timeout in ns, 0 = none
	// ran returns the CPU time of a thread, as text; nil = threadRan.
	ran func(thread string) string
}

func (a *access) path() string { what, _ := a.what.Load().(string); return what }

// lookEvery is the interval at which await reads the CPU time of a thread. One read takes some microseconds.
const lookEvery = 100 * time.Millisecond

// await runs work on its own thread and returns its answer. Work accesses filesystems that may hang: a system
// call that the kernel does not complete blocks its thread. await returns early in two cases:
//
//   - with the cause of ctx, when ctx ends;
//   - with kvbench.ErrUnanswered, when the CPU time of the thread has not grown for longer than the limit. The
//     CPU time of a thread that counts a million files grows.
//
// When the CPU time has not grown for ioengine.StallAfter, await calls show once a second with the names of
// the files.
func await[T any](ctx context.Context, a *access, show func(what string, silent time.Duration),
	work func() (T, error)) (T, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	ran := a.ran
	if ran == nil {
		ran = threadRan
	}
	thread := make(chan string, 1)
	name, last, since, shown := "", "", time.Now(), time.Duration(0)
	look := func() {
		if name == "" {
			name = <-thread
		}
		if now := ran(name); now != last {
			last, since, shown = now, time.Now(), 0
		}
		silent := time.Since(since)
		if limit := time.Duration(a.limit.Load()); limit > 0 && silent > limit {
			end(kvbench.Unanswered(a.path(), silent, limit))
		}
		if silent >= ioengine.StallAfter && silent-shown >= time.Second {
			shown = silent
			show(a.path(), silent)
		}
	}
	var answer T
	var err error
	if !kvbench.Guard(ctx, lookEvery, look, func() {
		runtime.LockOSThread() // other goroutines on this thread would add to its CPU time
		defer runtime.UnlockOSThread()
		own, _ := os.Readlink("/proc/thread-self")
		thread <- own
		answer, err = work()
	}) {
		var none T
		return none, context.Cause(ctx)
	}
	return answer, err
}

// threadRan returns the CPU time of a thread in ns, as text. Without /proc or schedstat it returns "" each time.
// The limit of await then counts from the start of work.
func threadRan(thread string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", thread, "schedstat"))
	ran, _, _ := strings.Cut(string(text), " ")
	return ran
}

// places returns the names of the directories and files that a trial accesses, for messages.
func places(v *params.Values) string {
	var names []string
	if !v.Simulated() && !v.OnObjects() {
		for _, dir := range cacheDirs(v) {
			names = append(names, "the cache directory "+dir)
		}
	}
	if path := v.Text(v.Bench.Needs); v.Bench.Needs != "" && path != "" {
		names = append(names, path)
	}
	if len(names) == 0 {
		return namedFiles
	}
	return strings.Join(names, " or ")
}

const namedFiles = "one of the files and directories that the parameters name"

// A process that ends, or that ran no benchmark, waits at most patience for a filesystem that may hang
// and for other ranks, which need its message or still remove files. It waits at most promptly for the
// reader of its output. (kvbench/watchdog.go has the times of a trial.)
const (
	patience = 2 * time.Second
	promptly = 300 * time.Millisecond
)

// inPatience returns patience for every reason of an end.
func inPatience(error) time.Duration { return patience }

// within runs work and reports whether work ended within the limit. work may hang. If within returns
// false, the caller must not read anything that work writes.
func within(limit time.Duration, work func()) (ended bool) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	return kvbench.Guard(ctx, limit, func() {}, work)
}

// printUnsaved prints the summary of a result that may not have been written, so that hours of measuring are
// not lost.
func printUnsaved(r *result.Result, why string) {
	if summary, err := report.Summary(r); err == nil {
		fmt.Fprintf(os.Stderr, "\nthe result of %s may be nowhere else than here, because of this: %s\n\n%s",
			r.Name, why, summary)
	}
}
