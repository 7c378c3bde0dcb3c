package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"kvbench/tools/load"
	"kvbench/tools/trace"
)

// runTrace traces other processes until the time is over. Ctrl-C and SIGTERM end the tracing, not
// the report.
func runTrace(c *Call) func([]string) error {
	opt := trace.NewOptions(c.FlagSet)
	return func(rest []string) error {
		if err := opt.Check(rest); err != nil {
			return err
		}
		// The signal ends the tracing; the report covers the time until then.
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		// Notes stand between live lines and must not be lost in them.
		job, document, err := trace.Run(ctx, opt, c.stdout, c.stderr, c.say)
		if err != nil {
			c.say(strings.TrimPrefix(err.Error(), "trace: ")) // the command's name says it
			if nothing := new(trace.NothingError); errors.As(err, &nothing) {
				return errNo
			}
			return errSaid
		}
		// The trace first: a job can be made of it again.
		if opt.JSON != "" {
			if err := c.writeText(opt.JSON, string(document)); err != nil {
				return err
			}
		}
		return c.writeTraced(job, opt.Fio)
	}
}

// writeTraced writes the job to its file. On standard output an empty line separates it from the
// report.
func (c *Call) writeTraced(job, path string) (err error) {
	switch path {
	case "":
	case load.Stdin:
		_, err = fmt.Fprint(c.stdout, "\n", job)
	default:
		if err = c.writeText(path, job); err == nil {
			_, err = fmt.Fprintf(c.stdout, "fio job: %s\n", path)
		}
	}
	return err
}
