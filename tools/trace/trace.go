package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kvbench/tools/command"
	"kvbench/tracing"
	"kvbench/tracing/collector"
	"kvbench/tracing/fio"
	"kvbench/tracing/host"
)

const name = "trace"

// Command is kvreport trace.
var Command = command.Command{
	Name:  name,
	Args:  "-comm NAME|-pid N [-duration 60s] [-fio FILE] [-dir DIR] [-level block|file]",
	Short: "block requests of a running process, and a fio job of them",
	Long: `
Watches what a process, or all processes of a name, and their children ask of the block devices, with a live line on the
terminal, until the time is over, Ctrl-C, or the end of the last process of -pid. Then it prints each distribution with its
percentiles and bars (device time, scheduler time, sizes, depth, where on the device), and what limited the process.

  -comm NAME      all processes of that name (at most 15 characters, as in /proc/PID/comm): those that run now, those that
                  start later, and their children
  -pid N          that process, the children that it has and those that it will have
  -duration 60s   how long (500ms, 90s, 10m); without it, until Ctrl-C
  -fio FILE       a fio job with the same sizes, mix, depth and pauses; an existing FILE is replaced, - is standard output
  -dir DIR        only the device behind that directory; without it, all devices
  -level file     read, write and fsync calls besides, at 150 ns for every system call of every process; block: requests only

Times are in µs, ms or s as printed, sizes in KiB or MiB, places in GiB from the device's beginning. D2C is from dispatch to
completion (the device), Q2D from queue to dispatch (the scheduler). Requests count for the process that queued them: direct
I/O and reads are whole, writes that the page cache makes later belong to nobody and are missing.

Needs root, or CAP_BPF and CAP_PERFMON (setcap cap_bpf,cap_perfmon+ep kvreport; --cap-add BPF,PERFMON for a container), and
Linux 5.10 or later with type information (/sys/kernel/btf/vmlinux); kvreport discover tells whether this machine has them.
Nothing is left in the kernel, however it ends.
Exit codes: 0 done; 1 tracing is not possible here, or no request was seen; 2 wrong usage, no such process, or FILE cannot be
written.`,
	Example: `
sudo kvreport trace -comm vllm -duration 60s -fio vllm.fio
fio vllm.fio --filename=/mnt/other/testfile --size=20G
sudo kvreport trace -pid 4711 -dir /mnt/nvme -level file`,
	Run: run,
}

type options struct {
	tracing  collector.Options
	duration time.Duration
	fio      string
	dir      string
	subject  string
}

// run is the command. Ctrl-C and SIGTERM end the tracing, not the report.
func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opt, err := parse(args)
	if err != nil {
		return command.Fail(stderr, name, err)
	}
	return trace(ctx, opt, stdout, stderr)
}

// trace watches and reports.
func trace(ctx context.Context, opt options, stdout, stderr io.Writer) int {
	t, met, err := watch(ctx, opt, liveLine(stderr), func(note string) { fmt.Fprintf(stderr, "kvreport %s: %s\n", name, note) })
	var unavailable *collector.UnavailableError
	switch {
	case errors.As(err, &unavailable):
		command.Fail(stderr, name, err)
		return command.No
	case err != nil:
		return command.Fail(stderr, name, errors.New(strings.TrimPrefix(err.Error(), name+": "))) // said already
	}
	in := fio.Input{Title: opt.subject}
	if t.Capture.Requests() > 0 || t.VFSRead != nil || t.VFSWrite != nil {
		if err := t.WriteText(stdout, in.Application()); err != nil {
			return command.Fail(stderr, name, err)
		}
	}
	if t.Capture.Requests() == 0 {
		command.Fail(stderr, name, noRequest(opt, met))
		return command.No
	}
	if err := writeJob(opt.fio, t, in, stdout); err != nil {
		return command.Fail(stderr, name, err)
	}
	return command.Done
}

// noRequest says why there is nothing to report, as far as that is known.
func noRequest(opt options, met int) error {
	what := opt.subject
	switch {
	case met == 0 && opt.tracing.Comm != "":
		return fmt.Errorf("no process named %s ran or was started; a name is what /proc/PID/comm says, at most 15 characters", opt.tracing.Comm)
	case opt.dir != "":
		return fmt.Errorf("no request of %s to the device of %s was seen: what memory answered makes none, nor do writes that the page cache makes later", what, opt.dir)
	}
	return fmt.Errorf("no request of %s was seen: what memory answered makes none, nor do writes that the page cache makes later (-level file shows the calls)", what)
}

func writeJob(file string, t *tracing.Trace, in fio.Input, stdout io.Writer) error {
	if file == "" {
		return nil
	}
	job, err := fio.Job(t, in)
	if err != nil {
		return err
	}
	put := func(w io.Writer) error { _, err := io.WriteString(w, job); return err }
	if file == "-" {
		fmt.Fprintln(stdout)
		return put(stdout)
	}
	if err := command.WriteFile(file, put); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "fio job: %s\n", file)
	return err
}

// parse reports every mistake, before anything is touched.
func parse(args []string) (options, error) {
	var opt options
	var level string
	fs := command.Flags(name)
	fs.StringVar(&opt.tracing.Comm, "comm", "", "process name")
	fs.IntVar(&opt.tracing.PID, "pid", 0, "process id")
	fs.DurationVar(&opt.duration, "duration", 0, "how long; 0 = until Ctrl-C")
	fs.StringVar(&opt.fio, "fio", "", "file for the fio job")
	fs.StringVar(&opt.dir, "dir", "", "only the device behind this directory")
	fs.StringVar(&level, "level", "block", "block or file")
	rest, err := command.Parse(fs, args)
	if err != nil {
		return opt, err
	}
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
	if opt.tracing.Level, err = tracing.ParseLevel(level); err != nil {
		errs = append(errs, fmt.Errorf("-level: %w", err))
	}
	// The trace is gone when its job cannot be written: better to know a minute earlier.
	errs = append(errs, writable(opt.fio))
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
	return opt, errors.Join(errs...)
}

func (o *options) chooseDevice() (err error) {
	if o.tracing.Device, err = host.BackingDevice(o.dir); err != nil {
		return fmt.Errorf("-dir %s: %w", o.dir, err)
	}
	if r := o.tracing.Device.Reason; r != "" {
		return fmt.Errorf("-dir %s: %s", o.dir, r)
	}
	return nil
}

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
