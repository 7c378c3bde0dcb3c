package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"kvbench/tools/trace"
)

// traceCommand watches a process that somebody else started.
var traceCommand = Command{
	Name:  "trace",
	Args:  "-comm NAME|-pid N [-duration 60s] [-fio FILE] [-dir DIR] [-level block|file]",
	Short: "block requests of a running process, and a fio job of them",
	Run:   runTrace,
}

// runTrace watches until the time is over. Ctrl-C and SIGTERM end the tracing, not the report.
func runTrace(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flags("trace")
	opt := trace.NewOptions(fs)
	rest, err := parse(fs, args)
	if err == nil {
		err = opt.Check(rest)
	}
	if err != nil {
		return fail(stderr, "trace", err)
	}
	// The signal ends the watching; what was seen until then is reported.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Notes stand between live lines and must not be lost in them.
	note := func(text string) { fmt.Fprintf(stderr, "kvreport trace: %s\n", text) }
	job, err := trace.Run(ctx, opt, stdout, stderr, note)
	if err != nil {
		// said already
		fail(stderr, "trace", errors.New(strings.TrimPrefix(err.Error(), "trace: ")))
		if nothing := new(trace.NothingError); errors.As(err, &nothing) {
			return No
		}
		return Usage
	}
	if err := writeTraced(job, opt.Fio, stdout); err != nil {
		return fail(stderr, "trace", err)
	}
	return Done
}

// writeTraced puts the job where it is asked for. On standard output an empty line separates it
// from the report.
func writeTraced(job, path string, stdout io.Writer) (err error) {
	switch path {
	case "":
	case "-":
		_, err = fmt.Fprint(stdout, "\n", job)
	default:
		if err = writeText(path, job); err == nil {
			_, err = fmt.Fprintf(stdout, "fio job: %s\n", path)
		}
	}
	return err
}
