package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kvbench/kvbench/report"
	"kvbench/tools/load"
	"kvbench/tracing/fio"
)

// runFio makes fio jobs of traces. It checks -window before it reads a trace.
func runFio(c *Call) func([]string) error {
	out := c.String("o", "", "")
	window := c.Duration("window", 0, "") // time under load of a bpftrace text, 0 = unknown
	return func(in []string) error {
		if *window < 0 {
			return fmt.Errorf("-window %s must not be negative", *window)
		}
		jobs, err := c.fioJobs(in, *window)
		if err != nil {
			return err
		}
		return c.writeJobs(jobs, *out)
	}
}

// fioJob is the fio job of one result, and a file name for it. It names no file and no size: a job with a
// device name could destroy its data.
type fioJob struct{ file, text string }

// fioJobs makes a job of each result and bpftrace text in the inputs. It warns of inputs without a trace,
// because a series may have untraced runs. If no input has a trace, the error has the usual reason.
func (c *Call) fioJobs(in []string, window time.Duration) (jobs []fioJob, err error) {
	records, _, err := load.All(in, load.Options{Stdin: c.stdin, Warn: c.warn, Bpftrace: true})
	if err != nil {
		return nil, err
	}
	results, texts, times := 0, 0, map[string]int{}
	for _, rec := range records {
		switch {
		case rec.Bpftrace != nil:
			texts++
		case rec.Result != nil || rec.Python:
			results++
		default:
			continue
		}
		text, err := jobOf(rec, window)
		if err != nil {
			where := rec.File
			if rec.Line > 0 {
				where = fmt.Sprintf("%s:%d", where, rec.Line)
			}
			c.warn(fmt.Errorf("%s: %w", where, err))
			continue
		}
		// A sub-benchmark's name has slashes.
		name := strings.NewReplacer("/", "_", "=", "-", " ", "_").Replace(rec.Name)
		if times[name]++; times[name] > 1 {
			name = fmt.Sprintf("%s-%d", name, times[name])
		}
		jobs = append(jobs, fioJob{name + ".fio", text})
	}
	switch {
	case window > 0 && texts == 0:
		return nil, errors.New("-window is for bpftrace texts, of which there is none: results " +
			"know theirs")
	case results+texts == 0:
		return nil, errors.New("the input names no result file: a job needs the block trace in " +
			"it (is the results directory still there?)")
	case len(jobs) == 0:
		return nil, errors.New("the input has no trace to distil: run the benchmark with -enable-latency-tracing")
	}
	return jobs, nil
}

// jobOf returns the job of one record.
func jobOf(rec *load.Record, window time.Duration) (string, error) {
	switch {
	case rec.Bpftrace != nil:
		title := "the bpftrace text " + filepath.Base(rec.File)
		t, limits := rec.Bpftrace.Trace(window)
		if t.Capture.Watched != "" {
			title += ", of the run of " + t.Capture.Watched
		}
		return fio.Job(t, fio.Input{Title: title, About: limits})
	case rec.Result != nil:
		return report.FioJob(rec.Result)
	}
	return "", errors.New("the Python benchmark keeps only part of its histograms in its result: " +
		"save what bpftrace prints, and give that text")
}

// writeJobs writes one job to the file out, or several jobs into the directory out. It never writes
// several jobs to standard output: fio would run them as one job.
func (c *Call) writeJobs(jobs []fioJob, out string) error {
	info, err := os.Stat(out)
	isDir := strings.HasSuffix(out, string(filepath.Separator)) || err == nil && info.IsDir()
	switch {
	case len(jobs) == 1 && (!isDir || out == load.Stdin):
		return c.writeText(out, jobs[0].text)
	case out == "" || out == load.Stdin:
		return fmt.Errorf("%d results were traced: give a directory with -o, each becomes a file "+
			"of its own", len(jobs))
	}
	// The umask restricts the mode.
	if err := os.MkdirAll(out, 0o777); err != nil {
		return fmt.Errorf("making the directory for %d jobs: %w", len(jobs), err)
	}
	for _, j := range jobs {
		if err := c.writeText(filepath.Join(out, j.file), j.text); err != nil {
			return err
		}
	}
	return nil
}
