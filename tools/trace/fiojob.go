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

// Job is the fio job of one result, and a file name for it.
type Job struct{ File, Text string }

// Jobs makes a job of each result and bpftrace output in the inputs. window is the time under load of a
// bpftrace trace, 0 if unknown. It warns of inputs without a trace, because a series may have untraced
// runs. If no input has a trace, it returns an error with the usual reasons.
func Jobs(in []string, stdin io.Reader, window time.Duration, warn func(error)) ([]Job, error) {
	var jobs []Job
	results, texts, seen := 0, 0, map[string]int{}
	records, _, err := load.All(in, load.Options{Stdin: stdin, Warn: warn, Bpftrace: true})
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		switch {
		case rec.Bpftrace != nil:
			texts++
		case rec.Result != nil || rec.Python:
			results++
		default:
			continue
		}
		text, err := distil(rec, window)
		if err != nil {
			where := rec.File
			if rec.Line > 0 {
				where = fmt.Sprintf("%s:%d", where, rec.Line)
			}
			warn(fmt.Errorf("%s: %w", where, err))
			continue
		}
		// A sub-benchmark's name has slashes.
		base := strings.NewReplacer("/", "_", "=", "-", " ", "_").Replace(rec.Name)
		seen[base]++
		if n := seen[base]; n > 1 {
			base = fmt.Sprintf("%s-%d", base, n)
		}
		jobs = append(jobs, Job{base + ".fio", text})
	}
	switch {
	case window > 0 && texts == 0:
		return nil, errors.New("-window is for bpftrace texts, of which there is none: results " +
			"know theirs")
	case results+texts == 0:
		return nil, errors.New("the input names no result file: a job needs the block trace in " +
			"it (is the results directory still there?)")
	case len(jobs) == 0 && texts == 0:
		return nil, errors.New("none of the results has a block trace to distil: run the " +
			"benchmark with -enable-latency-tracing")
	case len(jobs) == 0:
		return nil, errors.New("there is nothing to distil in the input")
	}
	return jobs, nil
}

// distil returns the job of one record.
func distil(rec *load.Record, window time.Duration) (string, error) {
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
