package main

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
// ended. watched is the number of watched processes. ended is the reason of the end, as in a result.
// Nothing stays in the kernel.
func (c *Call) watch(ctx context.Context, o *traceOptions,
) (t *tracing.Trace, watched int, ended string, err error) {
	tracer, err := collector.Start(ctx, o.collector)
	if err != nil {
		return nil, 0, "", err
	}
	defer func() { err = errors.Join(err, tracer.Close()) }()
	if u := tracer.Unavailable(); u != nil {
		return nil, 0, "", &exit{No, u}
	}
	if watched, _ = tracer.Watched(); watched == 0 && o.collector.Comm != "" {
		c.say(fmt.Sprintf("no process named %s runs yet, waiting for one to start", o.collector.Comm))
	}
	if err := tracer.OpenWindow(); err != nil {
		return nil, 0, "", err
	}
	if o.counting != nil {
		o.counting()
	}
	var course tracing.Recorder
	show := liveLine(c.stderr)
	ended = o.untilEnd(ctx, tracer, func(t *tracing.Trace) {
		course.Record(t)
		show(t)
	})
	// Close the window before the report is made.
	if err := tracer.CloseWindow(); err != nil {
		return nil, 0, "", err
	}
	show(nil)
	if ended == result.EndedByInput {
		c.say(o.subject + " has ended, with all its children")
	}
	watched, _ = tracer.Watched()
	if t, err = tracer.Snapshot(); t != nil {
		t.Course = course.Course(t)
	}
	return t, watched, ended, err
}

// untilEnd waits for the end of tracing and returns its reason. see gets a snapshot every second.
func (o *traceOptions) untilEnd(ctx context.Context, tracer *collector.Collector,
	see func(*tracing.Trace)) string {
	var timeout <-chan time.Time
	if o.duration > 0 {
		timeout = time.After(o.duration)
	}
	for ticks := time.Tick(tick); ; {
		select {
		case <-timeout:
			return result.EndedByDeadline
		case <-ctx.Done():
			return result.EndedBySignal
		case <-ticks:
			if t, err := tracer.Snapshot(); err == nil {
				see(t)
			}
			// A process name may start again; a process id does not.
			if _, running := tracer.Watched(); running == 0 && o.collector.PID != 0 {
				return result.EndedByInput
			}
		}
	}
}

// liveLine returns a function that shows a snapshot on one line of the terminal, and clears the line
// for nil. If stderr is no terminal, the function does nothing.
func liveLine(stderr io.Writer) func(*tracing.Trace) {
	if !onTerminal(stderr) {
		return func(*tracing.Trace) {}
	}
	return func(t *tracing.Trace) {
		text := ""
		if t != nil {
			text = live(t)
		}
		fmt.Fprint(stderr, "\r\x1b[K", text)
	}
}

// onTerminal reports whether a person reads a stream at a terminal.
func onTerminal(stream io.Writer) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// live returns a snapshot as a line of less than 80 characters: a wrapped line could not be cleared.
func live(t *tracing.Trace) string {
	p := &t.Capture
	line := fmt.Sprintf("%s: %d reads, %d writes, %s, depth %.1f",
		p.Window().Round(time.Second), p.Read.Requests, p.Write.Requests,
		tracing.Size(p.Read.Bytes+p.Write.Bytes), p.Read.MeanDepth+p.Write.MeanDepth)
	if h := t.D2CRead; h.P99 != nil {
		line += fmt.Sprintf(", read p99 %.0f µs", *h.P99)
	}
	return line
}
