package trace

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"kvbench/tracing"
)

// What the command table and the help say.
const (
	Name  = "trace"
	Args  = "-comm NAME|-pid N [-duration 60s] [-fio FILE] [-dir DIR] [-level block|file]"
	Short = "block requests of a running process, and a fio job of them"
	Long  = `
Watches what a process, or all processes of a name, and their children ask of the block devices, until -duration or
Ctrl-C, with a live line on the terminal. Then it prints the distributions (device time, scheduler time, sizes, depth,
where on the device), and writes a fio job with the same sizes, mix, depth and pauses to FILE.
A name matches processes that run now and that start later. Requests count for the process that queued them: writes that
the page cache makes later belong to nobody and are missing. -dir narrows it to the device behind a directory; -level file
adds read, write and fsync calls, at a cost for every process of the machine.
Needs CAP_BPF and CAP_PERFMON (or root). Exit code 1: tracing is not possible here, or no request was seen.`
	Example = `
sudo kvreport trace -comm vllm -duration 60s -fio vllm.fio
fio vllm.fio --filename=/mnt/other/testfile --size=20G`
)

// Exit codes, as of every kvreport command.
const (
	done  = 0
	no    = 1
	usage = 2
)

type options struct {
	tracing  tracing.Options
	duration time.Duration
	fio      string
	subject  string
}

// Run is the command. Ctrl-C and SIGTERM end the tracing, not the report.
func Run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fail := func(err error) int {
		fmt.Fprintf(stderr, "kvreport %s: %s\n", Name, strings.ReplaceAll(err.Error(), "\n", "; "))
		return usage
	}
	opt, err := parse(args)
	if err != nil {
		return fail(err)
	}
	t, err := watch(ctx, opt, live(stderr))
	var unavailable *tracing.UnavailableError
	if errors.As(err, &unavailable) {
		fail(err)
		return no
	}
	if err != nil {
		return fail(err)
	}
	in := tracing.FioInput{Title: opt.subject}
	if err := t.WriteText(stdout, in); err != nil {
		return fail(err)
	}
	if t.Capture.Requests() == 0 {
		fmt.Fprintf(stderr, "kvreport %s: no request of %s was seen\n", Name, opt.subject)
		return no
	}
	if opt.fio == "" {
		return done
	}
	job, err := tracing.FioJob(t, in)
	if err != nil {
		return fail(err)
	}
	if err := os.WriteFile(opt.fio, []byte(job), 0o644); err != nil {
		return fail(err)
	}
	fmt.Fprintf(stdout, "fio job: %s\n", opt.fio)
	return done
}

func parse(args []string) (options, error) {
	var opt options
	var dir, level string
	fs := flag.NewFlagSet(Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&opt.tracing.Comm, "comm", "", "process name")
	fs.IntVar(&opt.tracing.PID, "pid", 0, "process id")
	fs.DurationVar(&opt.duration, "duration", 0, "how long; 0 = until Ctrl-C")
	fs.StringVar(&opt.fio, "fio", "", "file for the fio job")
	fs.StringVar(&dir, "dir", "", "only the device behind this directory")
	fs.StringVar(&level, "level", "block", "block or file")
	if err := fs.Parse(args); err != nil {
		return opt, fmt.Errorf("%w; kvreport help %s shows the usage", err, Name)
	}
	if fs.NArg() > 0 {
		return opt, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if (opt.tracing.Comm == "") == (opt.tracing.PID == 0) {
		return opt, errors.New("give either -comm NAME or -pid N")
	}
	if opt.duration < 0 {
		return opt, fmt.Errorf("-duration %s must not be negative", opt.duration)
	}
	opt.tracing.Filter = tracing.FilterProcess
	var err error
	if opt.tracing.Level, err = tracing.ParseLevel(level); err != nil {
		return opt, fmt.Errorf("-level: %w", err)
	}
	if dir != "" {
		if opt.tracing.Device, err = tracing.BackingDevice(dir); err != nil {
			return opt, err
		}
		if r := opt.tracing.Device.Reason; r != "" {
			return opt, fmt.Errorf("-dir %s: %s", dir, r)
		}
	}
	opt.subject = fmt.Sprintf("process %d", opt.tracing.PID)
	if c := opt.tracing.Comm; c != "" {
		opt.subject = c
	}
	return opt, opt.tracing.Validate()
}

// watch traces until the duration, or until ctx is done.
func watch(ctx context.Context, opt options, say func(*tracing.Trace)) (t *tracing.Trace, err error) {
	c, err := tracing.Start(ctx, opt.tracing)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if u := c.Unavailable(); u != nil {
		return nil, u
	}
	if err := c.OpenWindow(); err != nil {
		return nil, err
	}
	var timeout <-chan time.Time
	if opt.duration > 0 {
		timer := time.NewTimer(opt.duration)
		defer timer.Stop()
		timeout = timer.C
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if say == nil {
				continue
			}
			if t, err := c.Snapshot(); err == nil {
				say(t)
			}
			continue
		case <-timeout:
		case <-ctx.Done():
		}
		break
	}
	if err := c.CloseWindow(); err != nil {
		return nil, err
	}
	return c.Snapshot()
}

// live returns what overwrites one line of a terminal each second, nil when stderr is none.
func live(stderr io.Writer) func(*tracing.Trace) {
	f, ok := stderr.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return func(t *tracing.Trace) {
		p := &t.Capture
		fmt.Fprintf(f, "\r\x1b[K%s: %d reads, %d writes, %.2f GiB, depth %.1f", p.Window().Round(time.Second),
			p.Read.Requests, p.Write.Requests, float64(p.Read.Bytes+p.Write.Bytes)/(1<<30), p.Read.MeanDepth+p.Write.MeanDepth)
	}
}
