package benchmarks

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"kvbench/kvbench"
)

// stopped is the cause of a context that a signal ended.
type stopped struct{ sig syscall.Signal }

func (s stopped) Error() string { return s.sig.String() }

// watchSignals returns a context that ends with the first SIGINT, SIGTERM or
// SIGQUIT, with SIGHUP (the terminal is gone; nohup keeps it from us), or when
// the go command that started us dies. A second signal ends the process at
// once; the next start cleans up.
func watchSignals() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	// A dead reader of our output must not kill the run before its result is
	// safe: writes then fail with EPIPE instead.
	signal.Ignore(syscall.SIGPIPE)
	got := make(chan os.Signal, 2)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(got, syscall.SIGHUP)
	}
	watched, stopWatch := watchParent(ctx)
	go func() {
		sig, _ := (<-got).(syscall.Signal)
		cancel(kvbench.Interrupted{Why: stopped{sig}})
		sig, _ = (<-got).(syscall.Signal)
		os.Exit(128 + int(sig))
	}()
	go func() {
		<-watched.Done()
		if errors.Is(context.Cause(watched), errParentGone) {
			cancel(kvbench.Interrupted{Why: errParentGone})
		}
	}()
	return ctx, func() { stopWatch(); signal.Stop(got) }
}

// interruptedCode is the exit code of a run that a signal ended, else code.
func interruptedCode(ctx context.Context, code int) int {
	if ctx.Err() == nil {
		return code
	}
	var s stopped
	if errors.As(context.Cause(ctx), &s) {
		return 128 + int(s.sig)
	}
	return 128 + int(syscall.SIGTERM)
}
