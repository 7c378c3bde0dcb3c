package benchmarks

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"kvbench/benchmarks/clients"
	"kvbench/kvbench"
)

// Exit codes of the binary (go test shows 1 for all that are not 0). A signal's is 128 and its
// number; a started rank that lives to its end has 0, whatever became of its trials.
const (
	exitFailed     = 1
	exitParameters = 2
)

// The kernel gives a signal of the process to its first thread, whatever that one is at
// (complete_signal in kernel/signal.c). Were it in a request that a device does not answer, nobody
// would hear the signal until another thread gets one of the runtime's: seconds later, or never. So
// that thread is the main goroutine's, which makes no requests; only an init can keep it from
// others.
func init() { runtime.LockOSThread() }

// stopped is the cause of a context that a signal ended.
type stopped struct{ sig syscall.Signal }

func (s stopped) Error() string { return s.sig.String() }

// watchSignals returns a context, and what ends it for another reason, that ends with the first
// SIGINT, SIGTERM or SIGQUIT, with SIGHUP (the terminal is gone; nohup keeps it from us), or when
// the go command that started us dies. Its cause is a kvbench.Interrupted, whose Attended attended
// decides. A second signal ends the process at once, after last; the next start cleans up.
func watchSignals(attended func() bool, last func()) (_ context.Context,
	cancel context.CancelCauseFunc, stop func()) {
	signalled, came := withSignal(context.Background())
	ctx, cancel := context.WithCancelCause(signalled)
	// A dead reader of our output must not kill the run before its result is
	// safe: writes then fail with EPIPE instead.
	signal.Ignore(syscall.SIGPIPE)
	// Room for two: the second must not be lost while the first is being served.
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	go func() {
		os.Exit(128 + int(twoSignals(got, func(sig syscall.Signal) {
			came.Store(int64(sig))
			cancel(kvbench.Interrupted{Why: stopped{sig},
				Attended: sig != syscall.SIGHUP && attended()})
		}, last)))
	}()
	watchParent(ctx, os.Getppid, isGoCommand,
		func() { cancel(kvbench.Interrupted{Why: errParentGone}) })
	return ctx, cancel, func() { cancel(nil); signal.Stop(got) }
}

// echo is how soon after a signal the same one is no second one. timeout(1) sends its signal to
// the process and then to the group in which that is; a person who means it takes longer.
const echo = 50 * time.Millisecond

// twoSignals calls first for the first signal, and returns the second one after it has called last.
func twoSignals(got <-chan os.Signal, first func(syscall.Signal), last func()) syscall.Signal {
	sig, _ := (<-got).(syscall.Signal)
	came := time.Now()
	first(sig)
	for {
		again, _ := (<-got).(syscall.Signal)
		if again != sig || time.Since(came) >= echo {
			last()
			return again
		}
	}
}

// withSignal is a context that knows the number of the signal that ended the run, 0 before.
func withSignal(ctx context.Context) (context.Context, *atomic.Int64) {
	came := new(atomic.Int64)
	return context.WithValue(ctx, signalKey{}, came), came
}

type signalKey struct{}

// signalTime is how long a run whose ranks have not all come waits for a signal of its own.
const signalTime = 500 * time.Millisecond

// interruptedCode is the exit code of a run that a signal ended, else code.
func interruptedCode(ctx context.Context, code int) int {
	if ctx.Err() == nil {
		return code
	}
	// Not the cause alone: Ctrl-C goes to all ranks, and that one of them has died of it may be
	// known before the own signal was heard.
	if came, is := ctx.Value(signalKey{}).(*atomic.Int64); is && came.Load() > 0 {
		return 128 + int(came.Load())
	}
	// Another rank was lost, or the coordinator: no signal came to this process.
	if clients.Ended(ctx) {
		return max(code, exitFailed)
	}
	return 128 + int(syscall.SIGTERM)
}

var errParentGone = errors.New("the go command that started this run has ended")

// parentPoll is how often the parent is looked at: its death must end a run within two seconds,
// cleaning included.
const parentPoll = 100 * time.Millisecond

// watchParent calls gone, once, when the go command that started this process dies: a run whose
// terminal is gone would load the storage for nobody until its window ends. Started by anything
// else (a shell, mpirun) the process may well outlive its parent. It watches until ctx ends.
//
// It polls getppid: the kernel's own signal (PR_SET_PDEATHSIG) comes when the *thread* that forked
// dies, which a go command's may at any time.
func watchParent(ctx context.Context, parent func() int, isGo func(pid int) bool, gone func()) {
	pid := parent()
	if !isGo(pid) {
		return
	}
	go func() {
		tick := time.NewTicker(parentPoll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if parent() != pid { // orphans get another parent at once
					gone()
					return
				}
			}
		}
	}()
}
