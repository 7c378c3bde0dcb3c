package benchmarks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
)

// workload is the body of every benchmark that runs requests through the cache.
func workload(b *testing.B, name string) {
	each(b, name, func(b *testing.B, v *params.Values) {
		measure(b, v, func(ctx context.Context, cfg kvbench.Config) (*result.Result, error) {
			load, err := requestLoad(v, cfg.Storage)
			if err != nil {
				return nil, err
			}
			if v.Simulated() {
				return simulate(ctx, v, cfg, load)
			}
			if c, ok := current.ceiling[cacheDir(v)]; ok {
				cfg.Info.Ceiling = &c
			}
			return kvbench.Run(ctx, cfg, load)
		})
	})
}

// each runs f for every point of the sweep, as sub-benchmarks when there is one.
func each(b *testing.B, name string, f func(*testing.B, *params.Values)) {
	if current == nil || current.points[name] == nil {
		b.Fatalf("%s is not in the parameter table, or was not started by Main", name)
	}
	for _, v := range current.points[name] {
		if why := v.Skip(); why != "" {
			current.skip(b.Name(), why)
			b.Skip(why)
		}
		// Without a sweep the benchmark is what it is called, not a sub-benchmark of itself.
		if v.Point == "" {
			f(b, v)
			continue
		}
		current.sub(b, v.Point, func(b *testing.B) { f(b, v) })
	}
}

// skip remembers once why a benchmark did not run: with -count it is asked for each trial.
func (s *session) skip(name, why string) {
	if line := name + ": " + why; !slices.Contains(s.skipped, line) {
		s.skipped = append(s.skipped, line)
	}
}

// measure runs one trial, writes its files and puts its numbers on the line. A trial that did not
// come to its end keeps its result, which says so, and fails the benchmark without numbers.
func measure(b *testing.B, v *params.Values,
	body func(context.Context, kvbench.Config) (*result.Result, error)) {
	s := current
	if s.ctx.Err() != nil {
		b.Fatal(errInterrupted)
	}
	// Before anything of this trial exists, so that the drive rests.
	s.pauseBetweenOptions(v)
	number, suffix := s.trial(b.Name())
	name := strings.TrimPrefix(b.Name(), "Benchmark") + suffix
	show, wipe := s.live(name)
	cfg, err := trialConfig(v, number)
	if err != nil {
		b.Fatal(err)
	}
	cfg.Progress = show
	var files []string
	cfg.Publish = func(r *result.Result) (err error) {
		r.Name = name
		if job, err := report.FioJob(r); err == nil { // it was traced
			r.FioWorkload = job
		}
		files, err = s.save(b, v, name, number, r)
		return err
	}
	// The live line is wiped before anything is printed: it stands where the terminal's cursor is.
	restore := s.spare(v)
	res, err := body(s.ctx, cfg)
	restore()
	wipe()
	if res == nil {
		b.Fatal(err)
	}
	if err == nil && res.Status != result.StatusComplete {
		// Nothing was completed, or too much failed: numbers that nobody should use.
		err = errors.New(res.Error)
	}
	s.results = append(s.results, res)
	announce(b, res, err, files)
	if err != nil {
		b.FailNow()
	}
}

// announce puts a result on the benchmark line and into its log, whose last line
// says where the result is.
func announce(b *testing.B, res *result.Result, err error, files []string) {
	if err == nil {
		b.ReportMetric(0, "ns/op") // replaced below unless nothing was completed
		for _, m := range res.Metrics() {
			b.ReportMetric(m.Value, m.Unit)
		}
	}
	// A trial that failed says why once, be it in its lines already or not.
	lines := report.LogLines(res)
	if err != nil && !strings.Contains(strings.Join(lines, "\n"), err.Error()) {
		lines = append(lines, err.Error())
	}
	for _, line := range lines {
		b.Log(line)
	}
	if len(files) > 0 {
		b.Log("result: " + files[0])
	}
}

// save writes the result's JSON and the summary beside it, and copies of both
// into the artifact directory when -artifacts was given.
func (s *session) save(b *testing.B, v *params.Values, name string, trial int,
	r *result.Result) ([]string, error) {
	path := resultPath(v, fileName(name), trial, time.Now().Format("20060102_150405"))
	var text bytes.Buffer
	if err := report.WriteSummary(&text, r); err != nil {
		return nil, err
	}
	// The first is the one that the log names, and that tools follow.
	paths := []string{path}
	// Go 1.26 keeps artifacts of a test where -outputdir says; the summary goes along.
	if flagValue("test.artifacts") == "true" {
		paths = append(paths, filepath.Join(b.ArtifactDir(), filepath.Base(path)))
	}
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			return nil, fmt.Errorf("making the results directory: %w", err)
		}
		if err := r.WriteJSON(p); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(p), "summary.txt"), text.Bytes(),
			0o666); err != nil {
			return nil, fmt.Errorf("writing the summary: %w", err)
		}
	}
	return paths, nil
}

// fileName makes a sub-benchmark's name one directory.
func fileName(name string) string { return strings.ReplaceAll(name, "/", "_") }

// pauseBetweenOptions rests where one MLPerf option follows another, as the closed division wants
// it: what the one left in the drive's caches must not serve the next.
func (s *session) pauseBetweenOptions(v *params.Values) {
	if o := v.Bench.Option; o != s.lastOpt {
		if s.lastOpt != 0 && v.OptionPause() > 0 {
			_ = clock.NewWall().Sleep(s.ctx, v.OptionPause())
		}
		s.lastOpt = o
	}
}
