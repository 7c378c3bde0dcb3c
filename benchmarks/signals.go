package benchmarks

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"kvbench/kvbench"
	"kvbench/tiers/clock"
)

// Exit codes of the binary (go test shows 1 for all that are not 0).
const (
	exitFailed     = 1   // a benchmark failed, or another rank was lost
	exitParameters = 2   // nothing was run, because of the parameters
	exitSignal     = 128 // plus the number of the signal; SIGTERM if the go command has ended
)

// The kernel gives a signal of the process to its first thread (complete_signal in kernel/signal.c). A thread
// in a request that the device does not answer takes no signal. Another thread takes it only when the runtime
// signals that thread, seconds later or never. So the first thread must make no requests: the main
// goroutine, which makes none, keeps it. Only an init function can lock the main goroutine to that thread.
func init() { runtime.LockOSThread() }

// stopped is the cause of a context that a signal ended.
type stopped struct{ sig syscall.Signal }

func (s stopped) Error() string { return s.sig.String() }

var errParentGone = errors.New("the go command that started this run has ended")

// watchSignals creates the session's context. The context ends with the first SIGINT, SIGTERM, SIGQUIT
// or SIGHUP (the terminal is gone; nohup ignores SIGHUP), or when the go command that started the
// process dies. A second signal ends the process at once: the next start removes the files.
func (s *session) watchSignals() (stop func()) {
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	// A closed output pipe must not kill the run before its result is written. With SIGPIPE ignored,
	// writes fail with EPIPE.
	signal.Ignore(syscall.SIGPIPE)
	got := make(chan os.Signal, 2) // the second must not be lost while the first is handled
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	go func() {
		os.Exit(exitSignal + int(twoSignals(got, func(sig syscall.Signal) {
			s.signal.Store(int64(sig))
			// A run of one rank that a user watches may clean up for a long time: the user can end it
			// with a second Ctrl-C. The user of several ranks does not wait for the cleanup of each.
			attended := sig != syscall.SIGHUP && s.alone.Load() && onTerminal()
			s.cancel(kvbench.Interrupted{Why: stopped{sig}, Attended: attended})
		}, s.lastWords)))
	}()
	if isGoCommand(os.Getppid()) {
		go s.watchParent(os.Getppid())
	}
	return func() { s.cancel(nil); signal.Stop(got) }
}

// echo is the time after a signal within which the same signal does not count as a second one. timeout(1)
// sends its signal to the process and then to its group. A person takes longer to press Ctrl-C twice.
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

// signalTime is how long a process whose ranks failed to meet waits for a signal of its own. Ctrl-C goes to
// all ranks, and this process may notice the death of a rank before it gets the signal.
const signalTime = 500 * time.Millisecond

// exitCode returns the exit code of a run whose benchmarks have ended with code.
func (s *session) exitCode(code int) int {
	switch sig := s.signal.Load(); {
	// The exit code of rank 0 is the run's. Another rank has reported its failure, and a launcher would end
	// the others with it.
	case s.ctx.Err() == nil && !s.clients.coordinates():
		return 0
	case s.ctx.Err() == nil:
		return code
	// The signal decides, even if the context was ended by the loss of another rank. Ctrl-C goes to all
	// ranks, and this process may notice the death of one before its own signal.
	case sig > 0:
		return exitSignal + int(sig)
	case ofOthers(s.ctx): // a rank was lost; no signal came to this process
		return max(code, exitFailed)
	}
	return exitSignal + int(syscall.SIGTERM)
}

// parentPoll is the interval at which watchParent checks the parent. A run ends within two seconds of
// the parent's death, including the removal of files.
const parentPoll = 100 * time.Millisecond

// watchParent ends the run when the go command that started this process dies. Otherwise the run would load
// the storage until its window ends. A process that something else started (a shell, mpirun) may outlive
// its parent.
//
// It polls getppid instead of asking the kernel for a signal (PR_SET_PDEATHSIG). The kernel sends that signal
// when the thread dies that forked this process, and a thread of the go command may die at any time.
func (s *session) watchParent(pid int) {
	for os.Getppid() == pid { // orphans get another parent at once
		if clock.NewWall().Sleep(s.ctx, parentPoll) != nil {
			return
		}
	}
	s.cancel(kvbench.Interrupted{Why: errParentGone})
}
