package trace

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/fio"
	"kvbench/tracing/host"
)

// Options are the options of kvreport trace.
type Options struct {
	Fio  string // file for the fio job, "" for none
	JSON string // file for the trace as a result, "" for none
	// Counting, if not nil, is called once when the window opens.
	Counting func()

	tracing  collector.Options
	duration time.Duration
	dir, dev string
	subject  string
}

// NewOptions adds the flags to a flag set.
func NewOptions(fs *flag.FlagSet) *Options {
	o := &Options{}
	fs.StringVar(&o.tracing.Comm, "comm", "", "process name")
	fs.IntVar(&o.tracing.PID, "pid", 0, "process id")
	fs.StringVar(&o.tracing.Cgroup, "cgroup", "", "directory of a cgroup")
	fs.DurationVar(&o.duration, "duration", 0, "how long; 0 = until Ctrl-C")
	fs.StringVar(&o.Fio, "fio", "", "file for the fio job")
	fs.StringVar(&o.JSON, "json", "", "file for the trace as a result")
	fs.StringVar(&o.dir, "dir", "", "only the device behind this directory")
	fs.StringVar(&o.dev, "dev", "", "only this block device")
	fs.StringVar((*string)(&o.tracing.Level), "level", "block", "block or file")
	return o
}

// NothingError is why there is nothing to report: tracing is not possible, or no request was seen.
type NothingError struct{ error }

// Unwrap returns the reason.
func (e *NothingError) Unwrap() error { return e.error }

// Run traces until the duration is over or ctx ends and writes the report to stdout. It returns the
// requested fio job and result file. If stderr is a terminal it has the live line; note gets messages.
func Run(ctx context.Context, opt *Options, stdout, stderr io.Writer, note func(string),
) (job string, document []byte, err error) {
	start := time.Now()
	t, met, ended, err := watch(ctx, opt, liveLine(stderr), note)
	if err != nil {
		return "", nil, err
	}
	// Report calls without block requests: memory or a server completed them. A fio job is made of
	// calls only if there is no device. With a device, a cache completed all calls, and a job would
	// load a device that had no load.
	calls := t.VFSRead.Count + t.VFSWrite.Count
	remote := opt.tracing.Device.Reason != ""
	if t.Capture.Requests() > 0 || calls > 0 {
		if err := t.WriteText(stdout, tracing.Application{Remote: remote}); err != nil {
			return "", nil, err
		}
	}
	if t.Capture.Requests() == 0 && (calls == 0 || !remote) {
		return "", nil, &NothingError{noRequest(opt, met)}
	}
	if opt.Fio != "" {
		job, err = fio.Job(t, fio.Input{Title: opt.subject})
	}
	if opt.JSON != "" && err == nil {
		document, err = opt.asResult(t, job, start, ended)
	}
	return job, document, err
}

// asResult returns the trace as a result file, so that other commands can read it. The benchmark is
// named Trace. The result has a window and the trace, but no workload. It is complete unless a signal
// ended the trace before the given duration.
func (opt *Options) asResult(t *tracing.Trace, job string, start time.Time, ended string,
) ([]byte, error) {
	seen, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	r := result.Result{SchemaVersion: result.SchemaVersion, Status: result.StatusComplete,
		EndedBy: ended, Benchmark: result.BenchmarkTrace,
		Name:     result.BenchmarkTrace + "/of=" + oneWord(opt.subject),
		Division: result.DivisionOpen, Count: 1, Ranks: 1, CompletionUnit: result.UnitOperation,
		StartTime: start.UTC().Format(time.RFC3339), WindowNS: t.Capture.WindowNS,
		ElapsedNS: t.Capture.WindowNS, DeviceLatencyTracing: seen, FioWorkload: job}
	if ended == result.EndedBySignal && opt.duration > 0 {
		r.Status = result.StatusIncomplete
	}
	return r.Encode()
}

// oneWord replaces characters that separate keys and values in a benchmark's name.
var oneWord = strings.NewReplacer(" ", "_", "/", "_", "=", "_", "-", "_").Replace

// noRequest returns an error with the likely reason why no request was seen.
func noRequest(opt *Options, met int) error {
	if met == 0 && opt.tracing.Comm != "" {
		return fmt.Errorf("no process named %s ran or was started; a name is what /proc/PID/comm "+
			"says, at most 15 characters", opt.tracing.Comm)
	}
	to, hint := "", " (-level file shows the calls)"
	if opt.tracing.Level == tracing.LevelFile {
		hint = ""
	}
	if opt.dir != "" {
		to = " to the device of " + opt.dir
	}
	return fmt.Errorf("no request of %s%s was seen: what memory answers makes none, and what is "+
		"written to the page cache becomes one half a minute later, or with sync%s", opt.subject,
		to, hint)
}

// Check returns every mistake in the options in one error, before tracing begins.
func (opt *Options) Check(rest []string) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	o := &opt.tracing
	named := o.Comm != "" || o.PID != 0 || o.Cgroup != ""
	check(len(rest) == 0, "unexpected arguments %q: the process is named by -comm or -pid", rest)
	check(named || opt.dev != "" || opt.dir != "", "say what to trace: -comm NAME, -pid N, "+
		"-cgroup DIR, or all users of a device with -dev DEVICE or -dir DIR")
	check(opt.dev == "" || opt.dir == "", "-dev and -dir both name the device: give one")
	check(opt.duration >= 0, "-duration %s must not be negative", opt.duration)
	// File-level tracing counts only calls of watched processes: it needs a process.
	check(named || o.Level != tracing.LevelFile, "-level file is for processes: name them with "+
		"-comm, -pid or -cgroup")
	// With a named process, trace only its requests. Otherwise trace the device and show which process
	// owns each request.
	o.Filter = tracing.FilterProcess
	if !named {
		o.Filter, o.ByOwner = tracing.FilterDevice, true
	}
	if o.Cgroup != "" {
		dir, err := host.FindCgroup(o.Cgroup)
		if err != nil {
			err = fmt.Errorf("-cgroup: %w", err)
		}
		o.Cgroup, errs = dir, append(errs, err)
	}
	if err := opt.tracing.Level.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("-level: %w", err))
		opt.tracing.Level = tracing.LevelBlock // so that its error is reported once
	}
	// Check the output files now: otherwise the trace would be lost.
	errs = append(errs, writable("-fio", opt.Fio), writable("-json", opt.JSON))
	if opt.dir != "" || opt.dev != "" {
		errs = append(errs, opt.chooseDevice())
	}
	switch {
	case o.Comm != "":
		opt.subject = "processes named " + o.Comm
	case o.PID != 0:
		opt.subject = fmt.Sprintf("process %d", o.PID)
	case o.Cgroup != "":
		opt.subject = "the cgroup " + o.Cgroup
	default:
		opt.subject = "all processes"
	}
	return errors.Join(append(errs, o.Validate())...)
}

// chooseDevice finds the device of -dev or the device behind -dir. A network filesystem has no device,
// so only calls can be traced.
func (o *Options) chooseDevice() (err error) {
	if o.dev != "" {
		if o.tracing.Device, err = host.NamedDevice(o.dev); err != nil {
			return fmt.Errorf("-dev %s: %w", o.dev, err)
		}
		return nil
	}
	if o.tracing.Device, err = host.BackingDevice(o.dir); err != nil {
		return fmt.Errorf("-dir %s: %w", o.dir, err)
	}
	if r := o.tracing.Device.Reason; r != "" && o.tracing.Level != tracing.LevelFile {
		return fmt.Errorf("-dir %s: %s; -level file traces the calls on its files", o.dir, r)
	}
	return nil
}

// writable returns an error if the file cannot be created. "" and "-" are no files.
func writable(option, file string) error {
	if file == "" || file == "-" {
		return nil
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return fmt.Errorf("%s %s is a directory: name a file", option, file)
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return fmt.Errorf("%s %s: there is no directory %s", option, file, filepath.Dir(file))
	}
	return nil
}
