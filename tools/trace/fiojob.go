// Package trace is kvreport fio: a fio job for each traced result, which puts the same block load on another device, and
// for each saved bpftrace text of the Python benchmark.
package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kvbench/kvbench/report"
	"kvbench/tools/command"
	"kvbench/tools/load"
	"kvbench/tracing/fio"
)

// Fio is kvreport fio.
var Fio = command.Command{
	Name:  "fio",
	Args:  "IN… [-o FILE|DIR] [-window DURATION]",
	Short: "one fio job per traced result, which makes the same load elsewhere",
	Long: `
Distils the block trace of each result that was run with -enable-latency-tracing into a fio job: request sizes and their
shares, the mix of reads and writes, the mean queue depth, and pauses where there were any. The job names no file and no size:
give them to fio. One job goes to standard output or to FILE; several go into DIR, which is made, one file per result. Results
without a trace are named on standard error; none with one is an error.
Without block requests (NFS, object stores, tmpfs) the sizes are the mount's rsize and wsize, else those of the read and write
calls (-latency-trace-level file), and the depth is the number of workers.

IN may also be what bpftrace printed for the Python benchmark's script (storage_latency_stack.bt, or .sh): maps such as
@bssplit_read_kb and @d2c_read_us. Such a text knows sizes and times to a power of two, all devices and processes together,
and neither model nor window; the job's header says what is missing and what is odd. Its depth is the time at the
device ÷ -window (300s: how long there was load while it was traced), or ÷ what the times of requests left over span; the
script's counters of requests in flight run away and are not read.
Exit codes: 0 done; 2 wrong usage, nothing to distil, or input that cannot be read, with file and line.`,
	Example: `
go test ./benchmarks -run '^$' -bench MaxStorageStress -enable-latency-tracing > results.txt
go tool kvreport fio results.txt -o job.fio
fio job.fio --filename=/mnt/other/testfile --size=20G
sudo bpftrace storage_latency_stack.bt python3 > trace.txt
go tool kvreport fio trace.txt -window 300s -o job.fio`,
	Run: distilAll,
}

// job is the text for one result.
type job struct{ file, text string }

func distilAll(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := command.Flags("fio")
	out := fs.String("o", "", "file, or directory for several jobs; without it standard output")
	window := fs.Duration("window", 0, "how long there was load while a bpftrace text was traced; 0 = unknown")
	in, err := command.Parse(fs, args)
	if err == nil && *window < 0 {
		err = fmt.Errorf("-window %s must not be negative", *window)
	}
	if err != nil {
		return command.Fail(stderr, "fio", err)
	}
	d := distiller{window: *window, stderr: stderr, seen: map[string]int{}}
	jobs, err := d.all(in, stdin)
	if err == nil {
		err = write(jobs, *out, stdout)
	}
	if err != nil {
		return command.Fail(stderr, "fio", err)
	}
	return command.Done
}

// distiller makes the jobs of one call.
type distiller struct {
	window  time.Duration // of bpftrace texts
	stderr  io.Writer
	jobs    []job
	seen    map[string]int // file names
	results int
	texts   int
}

func (d *distiller) all(in []string, stdin io.Reader) ([]job, error) {
	_, err := load.Each(in, load.Options{Stdin: stdin, Warn: d.warn, Bpftrace: true}, func(rec *load.Record) error {
		d.record(rec)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case d.window > 0 && d.texts == 0:
		return nil, errors.New("-window is for bpftrace texts, of which there is none: results know theirs")
	case d.results+d.texts == 0:
		return nil, errors.New("the input names no result file: a job needs the block trace in it (is the results directory still there?)")
	case len(d.jobs) == 0 && d.texts == 0:
		return nil, errors.New("none of the results has a block trace to distil: run the benchmark with -enable-latency-tracing")
	case len(d.jobs) == 0:
		return nil, errors.New("there is nothing to distil in the input")
	}
	return d.jobs, nil
}

func (d *distiller) warn(err error) { fmt.Fprintf(d.stderr, "kvreport fio: %v\n", err) }

func (d *distiller) record(rec *load.Record) {
	var text string
	var err error
	switch {
	case rec.Bpftrace != nil:
		d.texts++
		title := "the bpftrace text " + filepath.Base(rec.File)
		t, about := rec.Bpftrace.Trace(d.window)
		if t.Capture.Watched != "" {
			title += ", of the run of " + t.Capture.Watched
		}
		text, err = fio.Job(t, fio.Input{Title: title, About: about})
	case rec.Result != nil:
		d.results++
		text, err = report.FioJob(rec.Result)
	case rec.Python:
		d.results++
		err = errors.New("the Python benchmark keeps only part of its histograms in its result: save what bpftrace prints, and give that text")
	default:
		return
	}
	if err != nil {
		where := rec.File
		if rec.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, rec.Line)
		}
		d.warn(fmt.Errorf("%s: %w", where, err))
		return
	}
	base := strings.NewReplacer("/", "_", "=", "-", " ", "_").Replace(rec.Name)
	d.seen[base]++
	if n := d.seen[base]; n > 1 {
		base = fmt.Sprintf("%s-%d", base, n)
	}
	d.jobs = append(d.jobs, job{base + ".fio", text})
}

// write puts one job where out says, or several into the directory out.
func write(jobs []job, out string, stdout io.Writer) error {
	info, err := os.Stat(out)
	isDir := out != "" && (strings.HasSuffix(out, string(filepath.Separator)) || (err == nil && info.IsDir()))
	switch {
	case len(jobs) == 1 && !isDir:
		put := func(w io.Writer) error { _, err := io.WriteString(w, jobs[0].text); return err }
		if out == "" || out == load.Stdin {
			return put(stdout)
		}
		return command.WriteFile(out, put)
	case out == "" || out == load.Stdin:
		return fmt.Errorf("%d results were traced: give a directory with -o, each becomes a file of its own", len(jobs))
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("making the directory for %d jobs: %w", len(jobs), err)
	}
	for _, j := range jobs {
		put := func(w io.Writer) error { _, err := io.WriteString(w, j.text); return err }
		if err := command.WriteFile(filepath.Join(out, j.file), put); err != nil {
			return err
		}
	}
	return nil
}
