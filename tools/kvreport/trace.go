package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/fio"
	"kvbench/tracing/host"
)

// traceOptions are the options of kvreport trace.
type traceOptions struct {
	collector collector.Options
	duration  time.Duration
	dir, dev  string
	fio, json string // files for the fio job and for the trace as a result, "" for none
	subject   string // what is traced, in words
	counting  func() // if not nil, it is called once when the window opens
}

func newTraceOptions(c *Call) *traceOptions {
	o := &traceOptions{}
	c.StringVar(&o.collector.Comm, "comm", "", "")
	c.IntVar(&o.collector.PID, "pid", 0, "")
	c.StringVar(&o.collector.Cgroup, "cgroup", "", "")
	c.DurationVar(&o.duration, "duration", 0, "")
	c.StringVar(&o.fio, "fio", "", "")
	c.StringVar(&o.json, "json", "", "")
	c.StringVar(&o.dir, "dir", "", "")
	c.StringVar(&o.dev, "dev", "", "")
	c.StringVar((*string)(&o.collector.Level), "level", "block", "")
	return o
}

// runTrace traces processes or a device. The duration, Ctrl-C, SIGTERM, or the end of the process of -pid
// and of its children end the tracing; the report covers the time until then.
func runTrace(c *Call) func([]string) error {
	o := newTraceOptions(c)
	return func(rest []string) error {
		if err := o.check(rest); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return c.trace(ctx, o)
	}
}

// check returns all mistakes in the options, before tracing begins.
func (o *traceOptions) check(rest []string) error {
	var wrong mistakes
	p := &o.collector
	named := p.Comm != "" || p.PID != 0 || p.Cgroup != ""
	wrong.check(len(rest) == 0, "unexpected arguments %q: the process is named by -comm or -pid", rest)
	wrong.check(named || o.dev != "" || o.dir != "", "say what to trace: -comm NAME, -pid N, "+
		"-cgroup DIR, or all users of a device with -dev DEVICE or -dir DIR")
	wrong.check(o.dev == "" || o.dir == "", "-dev and -dir both name the device: give one")
	wrong.check(o.duration >= 0, "-duration %s must not be negative", o.duration)
	// File-level tracing counts only calls of watched processes.
	wrong.check(named || p.Level != tracing.LevelFile, "-level file is for processes: name them with "+
		"-comm, -pid or -cgroup")
	// Without a process, all requests of the device are traced, with the process that owns each.
	p.Filter, p.ByOwner = tracing.FilterProcess, !named
	if !named {
		p.Filter = tracing.FilterDevice
	}
	if p.Cgroup != "" {
		dir, err := host.FindCgroup(p.Cgroup)
		wrong.check(err == nil, "-cgroup: %w", err)
		p.Cgroup = dir
	}
	if err := p.Level.Validate(); err != nil {
		wrong.check(false, "-level: %w", err)
		p.Level = tracing.LevelBlock // Validate below would report it again
	}
	// A missing directory would lose the trace.
	for _, out := range [][2]string{{"-fio", o.fio}, {"-json", o.json}} {
		if file := out[1]; file != "" && file != load.Stdin {
			info, err := os.Stat(file)
			wrong.check(err != nil || !info.IsDir(), "%s %s is a directory: name a file", out[0], file)
			_, err = os.Stat(filepath.Dir(file))
			wrong.check(err == nil, "%s %s: there is no directory %s", out[0], file, filepath.Dir(file))
		}
	}
	var err error
	switch {
	case o.dev != "":
		p.Device, err = host.NamedDevice(o.dev)
		wrong.check(err == nil, "-dev %s: %w", o.dev, err)
	case o.dir != "":
		p.Device, err = host.BackingDevice(o.dir)
		wrong.check(err == nil, "-dir %s: %w", o.dir, err)
		// A network filesystem has no device, so only calls can be traced.
		wrong.check(p.Device.Reason == "" || p.Level == tracing.LevelFile,
			"-dir %s: %s; -level file traces the calls on its files", o.dir, p.Device.Reason)
	}
	switch {
	case p.Comm != "":
		o.subject = "processes named " + p.Comm
	case p.PID != 0:
		o.subject = fmt.Sprintf("process %d", p.PID)
	case p.Cgroup != "":
		o.subject = "the cgroup " + p.Cgroup
	default:
		o.subject = "all processes"
	}
	return errors.Join(append(wrong, p.Validate())...)
}

// trace traces until the end, prints the report, and writes the requested fio job and result file. The
// exit code is No if tracing is not possible or no request was seen.
func (c *Call) trace(ctx context.Context, o *traceOptions) error {
	start := time.Now()
	t, watched, ended, err := c.watch(ctx, o)
	if err != nil {
		return err
	}
	// Report calls without block requests: memory or a server completed them. A fio job is made of
	// calls only if there is no device. With a device, a cache completed all calls, and a job would
	// load a device that had no load.
	requests, calls := t.Capture.Requests(), t.VFSRead.Count+t.VFSWrite.Count
	remote := o.collector.Device.Reason != ""
	if requests > 0 || calls > 0 {
		if _, err := io.WriteString(c.stdout, t.Text(tracing.Application{Remote: remote})); err != nil {
			return err
		}
	}
	if requests == 0 && (calls == 0 || !remote) {
		return &exit{No, o.noRequest(watched)}
	}
	job := ""
	if o.fio != "" {
		if job, err = fio.Job(t, fio.Input{Title: o.subject}); err != nil {
			return err
		}
	}
	// Write the trace first: a job can be made of it again.
	if o.json != "" {
		document, err := o.result(t, job, start, ended)
		if err == nil {
			err = c.writeText(o.json, string(document))
		}
		if err != nil {
			return err
		}
	}
	return c.writeTraced(job, o.fio)
}

// result encodes the trace as a result file, which other commands read. The benchmark is named Trace. The
// result has a window and the trace, but no workload. It is complete unless a signal ended the trace
// before the given duration.
func (o *traceOptions) result(t *tracing.Trace, job string, start time.Time, ended string,
) ([]byte, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	// These characters separate keys and values in a benchmark's name.
	subject := strings.NewReplacer(" ", "_", "/", "_", "=", "_", "-", "_").Replace(o.subject)
	r := result.Result{SchemaVersion: result.SchemaVersion, Status: result.StatusComplete,
		EndedBy: ended, Benchmark: result.BenchmarkTrace,
		Name:     result.BenchmarkTrace + "/of=" + subject,
		Division: result.DivisionOpen, Count: 1, Ranks: 1, CompletionUnit: result.UnitOperation,
		StartTime: start.UTC().Format(time.RFC3339), WindowNS: t.Capture.WindowNS,
		ElapsedNS: t.Capture.WindowNS, DeviceLatencyTracing: text, FioWorkload: job}
	if ended == result.EndedBySignal && o.duration > 0 {
		r.Status = result.StatusIncomplete
	}
	return r.Encode()
}

// noRequest returns the likely reason why no request was seen.
func (o *traceOptions) noRequest(watched int) error {
	if watched == 0 && o.collector.Comm != "" {
		return fmt.Errorf("no process named %s ran or was started; a name is what /proc/PID/comm "+
			"says, at most 15 characters", o.collector.Comm)
	}
	return fmt.Errorf("no request of %s was seen: what memory answers makes none (-level file shows the calls), "+
		"and what is written to the page cache becomes one half a minute later, or with sync", o.subject)
}

// writeTraced writes the fio job to a file, or to standard output after an empty line.
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
