package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"kvbench/kvbench/result"
	"kvbench/tracing"
	"kvbench/tracing/collector"
)

// tick is the interval of the live line and of the check for ended processes.
const tick = time.Second

// watch traces until the duration is over, ctx is done, or the process of -pid and its children have
// ended. met is the number of watched processes. ended is the reason of the end, as in a result. say
// gets a snapshot every second, and nil at the end. note gets messages.
func watch(ctx context.Context, opt *Options, say func(*tracing.Trace),
	note func(string)) (t *tracing.Trace, met int, ended string, err error) {
	c, err := collector.Start(ctx, opt.tracing)
	if err != nil {
		return nil, 0, "", err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if u := c.Unavailable(); u != nil {
		return nil, 0, "", &NothingError{u}
	}
	if met, _ = c.Watched(); met == 0 && opt.tracing.Comm != "" {
		note(fmt.Sprintf("no process named %s runs yet, waiting for one to start",
			opt.tracing.Comm))
	}
	if err := c.OpenWindow(); err != nil {
		return nil, 0, "", err
	}
	if opt.Counting != nil {
		opt.Counting()
	}
	// Close the window before the report is made.
	var course tracing.Recorder
	ended = loop(ctx, opt, c, func(t *tracing.Trace) {
		course.Look(t)
		say(t)
	})
	if err := c.CloseWindow(); err != nil {
		return nil, 0, "", err
	}
	say(nil)
	if ended == result.EndedByInput {
		note(opt.subject + " has ended, with all its children")
	}
	met, _ = c.Watched()
	if t, err = c.Snapshot(); t != nil {
		t.Course = course.Course(t)
	}
	return t, met, ended, err
}

// loop waits for the end of tracing and returns its reason.
func loop(ctx context.Context, opt *Options, c *collector.Collector,
	say func(*tracing.Trace)) string {
	var timeout <-chan time.Time
	if opt.duration > 0 {
		timeout = time.After(opt.duration)
	}
	for ticks := time.Tick(tick); ; {
		select {
		case <-timeout:
			return result.EndedByDeadline
		case <-ctx.Done():
			return result.EndedBySignal
		case <-ticks:
			if t, err := c.Snapshot(); err == nil {
				say(t)
			}
			// A process name may start again; a process id does not.
			if _, running := c.Watched(); running == 0 && opt.tracing.PID != 0 {
				return result.EndedByInput
			}
		}
	}
}

// liveLine returns a function that shows a snapshot on one line of the terminal, and clears the line
// for nil. If stderr is no terminal, the function does nothing.
func liveLine(stderr io.Writer) func(*tracing.Trace) {
	f, ok := stderr.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func(*tracing.Trace) {}
	}
	return func(t *tracing.Trace) {
		text := ""
		if t != nil {
			text = live(t)
		}
		fmt.Fprint(f, "\r\x1b[K", text)
	}
}

// live returns a snapshot as a line of less than 80 characters: a wrapped line could not be cleared.
func live(t *tracing.Trace) string {
	p := &t.Capture
	line := fmt.Sprintf("%s: %d reads, %d writes, %.2f GiB, depth %.1f",
		p.Window().Round(time.Second), p.Read.Requests, p.Write.Requests,
		tracing.GiB(p.Read.Bytes+p.Write.Bytes), p.Read.MeanDepth+p.Write.MeanDepth)
	if h := t.D2CRead; h.P99 != nil {
		line += fmt.Sprintf(", read p99 %.0f µs", *h.P99)
	}
	return line
}
