package benchmarks

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"kvbench/benchmarks/clients"
	"kvbench/kvbench"
)

// Exit codes of the binary (go test shows 1 for all that are not 0). That of a signal is 128 and its
// number. A rank that another process started and that lives to its end has 0, whatever its trials
// came to.
const (
	exitFailed     = 1
	exitParameters = 2
)

// The kernel gives a signal of the process to its first thread (complete_signal in kernel/signal.c).
// In a request that a device does not answer that thread would not take it, and no other thread does
// until the runtime signals one, seconds later or never. So the main goroutine, which makes no
// requests, keeps the first thread; only an init can do that.
func init() { runtime.LockOSThread() }

// stopped is the cause of a context that a signal ended.
type stopped struct{ sig syscall.Signal }

func (s stopped) Error() string { return s.sig.String() }

var (
	errInterrupted = errors.New("interrupted")
	errParentGone  = errors.New("the go command that started this run has ended")
)

// watchSignals gives the session its context, which ends with the first SIGINT, SIGTERM or SIGQUIT,
// with SIGHUP (the terminal is gone; nohup keeps it from the process), or when the go command that
// started the process dies. A second signal ends the process at once; the next start cleans up.
func (s *session) watchSignals() (stop func()) {
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	// A dead reader of the output must not kill the run before its result is written: writes fail
	// with EPIPE instead.
	signal.Ignore(syscall.SIGPIPE)
	got := make(chan os.Signal, 2) // the second must not be lost while the first is handled
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	go func() {
		os.Exit(128 + int(twoSignals(got, func(sig syscall.Signal) {
			s.signal.Store(int64(sig))
			// A user who waits for several ranks does not wait for the cleaning of each.
			attended := sig != syscall.SIGHUP && s.alone.Load() && onTerminal()
			s.cancel(kvbench.Interrupted{Why: stopped{sig}, Attended: attended})
		}, s.lastWords)))
	}()
	watchParent(s.ctx, os.Getppid, isGoCommand,
		func() { s.cancel(kvbench.Interrupted{Why: errParentGone}) })
	return func() { s.cancel(nil); signal.Stop(got) }
}

// echo is how soon after a signal the same one is no second one. timeout(1) sends its signal to the
// process and then to its group; a person takes longer.
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

// signalTime is how long a run whose ranks have not all come waits for a signal of its own.
const signalTime = 500 * time.Millisecond

// exitCode is that of an ended run, else code.
func (s *session) exitCode(code int) int {
	switch sig := s.signal.Load(); {
	case s.ctx.Err() == nil:
		return code
	// The cause may be another rank: Ctrl-C goes to all ranks, and that one of them died of it may
	// be known first.
	case sig > 0:
		return 128 + int(sig)
	case clients.Ended(s.ctx): // a rank was lost; no signal came to this process
		return max(code, exitFailed)
	}
	return 128 + int(syscall.SIGTERM)
}

// parentPoll is how often the parent is looked at: a run ends within two seconds of its death,
// cleaning included.
const parentPoll = 100 * time.Millisecond

// watchParent calls gone, once, when the go command that started this process dies: without it the run
// would load the storage until its window ends. A process that something else started (a shell, mpirun)
// may outlive its parent. It watches until ctx ends.
//
// It polls getppid: the kernel's signal (PR_SET_PDEATHSIG) comes when the thread dies that forked, which
// a thread of the go command may at any time.
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
