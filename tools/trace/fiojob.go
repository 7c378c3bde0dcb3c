// Package trace is kvreport fio: a fio job for each traced result, which puts the same block load
// on another device, and for each saved bpftrace text of the Python benchmark.
package trace

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"kvbench/kvbench/report"
	"kvbench/tools/load"
	"kvbench/tracing/fio"
)

// Job is the text for one result, and the name of a file for it.
type Job struct{ File, Text string }

// Jobs distils the results and the bpftrace texts of the inputs, each into a job. The window is how
// long there was load while a bpftrace text was traced, 0 if that is not known. What gives no job
// goes to warn; none at all is an error.
func Jobs(in []string, stdin io.Reader, window time.Duration, warn func(error)) ([]Job, error) {
	d := distiller{window: window, warn: warn, seen: map[string]int{}}
	return d.all(in, stdin)
}

// distiller makes the jobs of one call.
type distiller struct {
	window  time.Duration // of bpftrace texts
	warn    func(error)
	jobs    []Job
	seen    map[string]int // file names
	results int
	texts   int
}

// all reads everything, and says what is missing when nothing came of it: the most frequent reason
// is a run without -enable-latency-tracing, or a results directory that was deleted.
func (d *distiller) all(in []string, stdin io.Reader) ([]Job, error) {
	_, err := load.Each(in, load.Options{Stdin: stdin, Warn: d.warn, Bpftrace: true},
		func(rec *load.Record) error {
			d.record(rec)
			return nil
		})
	switch {
	case err != nil:
		return nil, err
	case d.window > 0 && d.texts == 0:
		return nil, errors.New("-window is for bpftrace texts, of which there is none: results " +
			"know theirs")
	case d.results+d.texts == 0:
		return nil, errors.New("the input names no result file: a job needs the block trace in " +
			"it (is the results directory still there?)")
	case len(d.jobs) == 0 && d.texts == 0:
		return nil, errors.New("none of the results has a block trace to distil: run the " +
			"benchmark with -enable-latency-tracing")
	case len(d.jobs) == 0:
		return nil, errors.New("there is nothing to distil in the input")
	}
	return d.jobs, nil
}

// record makes the job of one record. A record that gives none is warned about: of a series with
// and without tracing the traced ones are wanted.
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
		err = errors.New("the Python benchmark keeps only part of its histograms in its result: " +
			"save what bpftrace prints, and give that text")
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
	// Names of sub-benchmarks hold slashes.
	base := strings.NewReplacer("/", "_", "=", "-", " ", "_").Replace(rec.Name)
	d.seen[base]++
	if n := d.seen[base]; n > 1 {
		base = fmt.Sprintf("%s-%d", base, n)
	}
	d.jobs = append(d.jobs, Job{base + ".fio", text})
}
