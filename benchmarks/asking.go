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

	"kvbench/benchmarks/clients"
	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/tiers/ioengine"
)

// question is how the filesystem is asked for something, which may never answer: a call that the
// kernel does not let go of keeps its thread, perhaps for ever. So another goroutine asks, and who
// asks waits for as long as it likes.
type question struct {
	ctx   context.Context      // its end ends the waiting
	about func() string        // what is asked just now
	limit func() time.Duration // of the silence, 0 = none
	// tell is called once a second when nothing was heard for ioengine.StallAfter, nil = never.
	tell func(about string, silent time.Duration)
	// ran tells of a thread for how long it has run. One that has not run since is in one call,
	// where one that counts a million files only takes long. nil: nothing is heard before the end.
	ran func(thread string) string
}

// look is how often a question is looked at. The thread's time is read as often, which costs some
// microseconds.
const look = 100 * time.Millisecond

// ask puts a question. The error of one that was given up is ctx's cause, or a
// kvbench.ErrUnanswered; what work does then, and whatever it writes, is nobody's any more.
func ask[T any](q question, work func() (T, error)) (answer T, err error) {
	type reply struct {
		answer T
		err    error
	}
	replies, thread := make(chan reply, 1), make(chan string, 1)
	go func() {
		// A thread of its own: what others run there would look like an answer. It goes back to
		// them with the answer, or stays in the kernel.
		if q.ran != nil {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			name, _ := os.Readlink("/proc/thread-self")
			thread <- name
		}
		a, err := work()
		replies <- reply{a, err}
	}()
	tick := time.NewTicker(look)
	defer tick.Stop()
	heard, told, at, ran := time.Now(), time.Duration(0), "", ""
	for {
		select {
		case r := <-replies:
			return r.answer, r.err
		case at = <-thread:
			ran = q.ran(at)
		case <-q.ctx.Done():
			return answer, context.Cause(q.ctx)
		case now := <-tick.C:
			if at != "" {
				if run := q.ran(at); run != ran {
					ran, heard, told = run, now, 0
				}
			}
			silent := now.Sub(heard)
			if limit := q.limit(); limit > 0 && silent > limit {
				return answer, unanswered(q.about(), silent, limit)
			}
			if q.tell != nil && silent >= ioengine.StallAfter && silent-told >= time.Second {
				told = silent
				q.tell(q.about(), silent)
			}
		}
	}
}

// unanswered is the error of a question that took longer than it may. Its words are those of a
// trial whose storage does not answer.
func unanswered(about string, silent, limit time.Duration) error {
	return fmt.Errorf("%w: %s, for %s, longer than -io-timeout %s: the kernel log (dmesg) "+
		"may say why; processes that wait for it end only when it answers, or is aborted",
		kvbench.ErrUnanswered, about, silent.Round(time.Millisecond), limit)
}

// threadRan is the time that a thread was on a processor, as text. Where the kernel does not tell
// (no Linux, or one without schedstat) it is always the same: the whole answer is then one call.
func threadRan(thread string) string {
	text, _ := os.ReadFile(filepath.Join("/proc", thread, "schedstat"))
	ran, _, _ := strings.Cut(string(text), " ")
	return ran
}

// places are the directories and files that a trial asks for.
// Nobody knows which of them is at fault: work asks for them one after the other.
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

// namedFiles is said where nobody knows yet which.
const namedFiles = "one of the files and directories that the parameters name"

// askFor asks what a trial needs to know before it begins, while the live line tells of it. The
// drive may have hung since the last trial, or while it rested, and no other is begun then.
func askFor[T any](ctx context.Context, v *params.Values, show func(kvbench.Snapshot),
	work func() (T, error)) (T, error) {
	q := question{ctx: ctx, ran: threadRan, about: func() string { return places(v) },
		limit: func() time.Duration { return v.IOTimeout }}
	if show != nil {
		q.tell = func(about string, silent time.Duration) {
			show(kvbench.Snapshot{Stage: "waiting for an answer of " + about, Elapsed: silent,
				Free: -1})
		}
	}
	return ask(q, work)
}

// patience is how long a process that ends waits for a filesystem that may have hung meanwhile.
const patience = 2 * time.Second

// soon asks what matters less than the end of the run.
func soon[T any](work func() (T, error)) (T, error) {
	ctx, stop := context.WithTimeoutCause(context.Background(), patience,
		fmt.Errorf("no answer for %s", patience))
	defer stop()
	return ask(question{ctx: ctx, limit: func() time.Duration { return 0 }}, work)
}

// inquiry is the state of the check of the parameters, for the goroutine that waits for it: the check
// goes through files and directories of all benchmarks, and only it knows which comes next.
type inquiry struct {
	what    atomic.Value                    // text: what is looked at now
	limit   atomic.Int64                    // ns: how long silence may last, 0 = no limit
	meeting atomic.Pointer[clients.Meeting] // the ranks that learn that this one has no part
}

func (i *inquiry) about() string { what, _ := i.what.Load().(string); return what }

func (i *inquiry) most() time.Duration { return time.Duration(i.limit.Load()) }
