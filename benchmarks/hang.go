package benchmarks

import (
	"bytes"
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

// access is what is being looked at in filesystems. One goroutine looks, and another reads it.
type access struct {
	what  atomic.Value // string: the files and directories
	limit atomic.Int64 // -io-timeout in ns, 0 = none
	// ran is how long a thread has run, as text; nil = threadRan.
	ran func(thread string) string
}

func (a *access) path() string { what, _ := a.what.Load().(string); return what }

// lookEvery is how often a thread is looked at, which costs some microseconds.
const lookEvery = 100 * time.Millisecond

// await runs work, which looks at filesystems that may hang, on a thread of its own, because a call
// that the kernel does not complete keeps its thread. It returns the cause of ctx when that ends, and
// a kvbench.ErrUnanswered when the thread has not run for longer than the limit: one that counts a
// million files runs. Work goes on then, and nothing that it writes may be read. Once a second show
// gets what has not answered for longer than ioengine.StallAfter; nil shows nothing.
func await[T any](ctx context.Context, a *access, show func(what string, silent time.Duration),
	work func() (T, error)) (answer T, err error) {
	type reply struct {
		answer T
		err    error
	}
	replies, thread := make(chan reply, 1), make(chan string, 1)
	go func() {
		runtime.LockOSThread() // what other goroutines run there would look like progress
		defer runtime.UnlockOSThread()
		name, _ := os.Readlink("/proc/thread-self")
		thread <- name
		answer, err := work()
		replies <- reply{answer, err}
	}()
	progress := a.ran
	if progress == nil {
		progress = threadRan
	}
	at := <-thread
	ran, since, shown := progress(at), time.Now(), time.Duration(0)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case r := <-replies:
			return r.answer, r.err
		case <-ctx.Done():
			return answer, context.Cause(ctx)
		case now := <-tick.C:
			if run := progress(at); run != ran {
				ran, since, shown = run, now, 0
			}
			silent := now.Sub(since)
			if limit := time.Duration(a.limit.Load()); limit > 0 && silent > limit {
				return answer, unanswered(a.path(), silent, limit)
			}
			if show != nil && silent >= ioengine.StallAfter && silent-shown >= time.Second {
				shown = silent
				show(a.path(), silent)
			}
		}
	}
}

// unanswered is the error of a filesystem that did not answer in time, in the words of a trial whose
// storage does not answer.
func unanswered(what string, silent, limit time.Duration) error {
	return fmt.Errorf("%w: %s, for %s, longer than -io-timeout %s: the kernel log (dmesg) "+
		"may say why; processes that wait for it end only when it answers, or is aborted",
		kvbench.ErrUnanswered, what, silent.Round(time.Millisecond), limit)
}

// threadRan is the time that a thread was on a processor. Where the kernel does not report it (no
// Linux, or one without schedstat) it never changes: all of the work is then one call.
func threadRan(thread string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", thread, "schedstat"))
	ran, _, _ := strings.Cut(string(text), " ")
	return ran
}

// places are the directories and files that a trial looks at, one after the other.
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

// patience is how long a process that ends waits for a filesystem that may have hung, and promptly
// for a reader of its output.
const (
	patience = 2 * time.Second
	promptly = 300 * time.Millisecond
)

// within runs work, which may hang, and reports whether it ended in time. What work writes may be read
// only if it did.
func within(limit time.Duration, work func()) (ended bool) {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	ended, _ = await(ctx, &access{}, nil, func() (bool, error) { work(); return true, nil })
	return ended
}

// unsaved is the result of the current trial until it is written: what hours have found must not be
// lost because the results directory hangs. The trial stops waiting for that, and a signal may come at
// any time: the first that takes the result prints it.
type unsaved struct {
	atomic.Pointer[result.Result]
	running atomic.Bool // a trial, and its result is not known
}

// print prints the summary of the result, if there is one.
func (u *unsaved) print(why string) {
	r := u.Swap(nil)
	if r == nil {
		return
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "\nthe result of %s may be nowhere else than here, because of this: %s\n\n",
		r.Name, why)
	if report.WriteSummary(&text, r) == nil {
		_, _ = os.Stderr.Write(text.Bytes())
	}
}
