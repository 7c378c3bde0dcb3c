package trace

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/fio"
	"kvbench/tracing/host"
)

// Options say what to watch, and for how long.
type Options struct {
	Fio string // where the job goes; empty: nowhere

	tracing  collector.Options
	duration time.Duration
	dir      string
	subject  string
}

// NewOptions adds the flags of the options to a flag set.
func NewOptions(fs *flag.FlagSet) *Options {
	o := &Options{}
	fs.StringVar(&o.tracing.Comm, "comm", "", "process name")
	fs.IntVar(&o.tracing.PID, "pid", 0, "process id")
	fs.DurationVar(&o.duration, "duration", 0, "how long; 0 = until Ctrl-C")
	fs.StringVar(&o.Fio, "fio", "", "file for the fio job")
	fs.StringVar(&o.dir, "dir", "", "only the device behind this directory")
	fs.StringVar((*string)(&o.tracing.Level), "level", "block", "block or file")
	return o
}

// NothingError says why there is nothing to report: tracing is not possible here, or no request was
// seen.
type NothingError struct{ error }

// Unwrap returns the reason.
func (e *NothingError) Unwrap() error { return e.error }

// Run watches until the time is over or ctx ends, writes the report, and returns the fio job when
// one is asked for. The live line goes to stderr if that is a terminal; note is for what should be
// known meanwhile.
func Run(ctx context.Context, opt *Options, stdout, stderr io.Writer, note func(string)) (string,
	error) {
	t, met, err := watch(ctx, opt, liveLine(stderr), note)
	if err != nil {
		return "", err
	}
	// Calls without requests are worth a report: they were answered by memory.
	if t.Capture.Requests() > 0 || t.VFSRead.Count+t.VFSWrite.Count > 0 {
		if err := t.WriteText(stdout, tracing.Application{}); err != nil {
			return "", err
		}
	}
	if t.Capture.Requests() == 0 {
		return "", &NothingError{noRequest(opt, met)}
	}
	if opt.Fio == "" {
		return "", nil
	}
	return fio.Job(t, fio.Input{Title: opt.subject})
}

// noRequest says why there is nothing to report, as far as that is known. An empty report is read
// as a fault of the tool.
func noRequest(opt *Options, met int) error {
	if met == 0 && opt.tracing.Comm != "" {
		return fmt.Errorf("no process named %s ran or was started; a name is what /proc/PID/comm "+
			"says, at most 15 characters", opt.tracing.Comm)
	}
	to, hint := "", " (-level file shows the calls)"
	if opt.dir != "" {
		to, hint = " to the device of "+opt.dir, ""
	}
	return fmt.Errorf("no request of %s%s was seen: what memory answered makes none, nor do "+
		"writes that the page cache makes later%s", opt.subject, to, hint)
}

// Check reports every mistake, before anything is touched.
func (opt *Options) Check(rest []string) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(len(rest) == 0, "unexpected arguments %q: the process is named by -comm or -pid", rest)
	check((opt.tracing.Comm == "") != (opt.tracing.PID == 0), "give either -comm NAME or -pid N")
	check(opt.duration >= 0, "-duration %s must not be negative", opt.duration)
	opt.tracing.Filter = tracing.FilterProcess
	if err := opt.tracing.Level.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("-level: %w", err))
		opt.tracing.Level = tracing.LevelBlock // it is said
	}
	// The trace is gone when its job cannot be written: better to know a minute earlier.
	errs = append(errs, writable(opt.Fio))
	if opt.dir != "" {
		errs = append(errs, opt.chooseDevice())
	}
	opt.subject = fmt.Sprintf("process %d", opt.tracing.PID)
	if c := opt.tracing.Comm; c != "" {
		opt.subject = "processes named " + c
	}
	if opt.tracing.Comm == "" || opt.tracing.PID == 0 { // both is said above
		errs = append(errs, opt.tracing.Validate())
	}
	return errors.Join(errs...)
}

// chooseDevice finds the device behind a directory. A network filesystem has none, and a trace
// that waits for its requests would wait for ever.
func (o *Options) chooseDevice() (err error) {
	if o.tracing.Device, err = host.BackingDevice(o.dir); err != nil {
		return fmt.Errorf("-dir %s: %w", o.dir, err)
	}
	if r := o.tracing.Device.Reason; r != "" {
		return fmt.Errorf("-dir %s: %s", o.dir, r)
	}
	return nil
}

// writable looks at the place of the job before tracing begins.
func writable(file string) error {
	if file == "" || file == "-" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("-fio %s is a directory: name a file", file)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return fmt.Errorf("-fio %s: there is no directory %s", file, filepath.Dir(file))
	}
	return nil
}
