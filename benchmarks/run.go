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
	each(b, name, func(b *testing.B, v *params.Values, _ string) {
		measure(b, v, func(ctx context.Context, cfg kvbench.Config) (*result.Result, error) {
			load, err := requestLoad(v, cfg.Storage)
			if err != nil {
				return nil, err
			}
			if v.Simulated() {
				return simulate(ctx, v, cfg, load)
			}
			cfg.Info.Ceiling = current.ceiling[cacheDir(v)].Ceiling()
			return kvbench.Run(ctx, cfg, load)
		})
	})
}

// each runs f for every leaf that is chosen, as a sub-benchmark where the benchmark has several.
func each(b *testing.B, name string, f func(b *testing.B, v *params.Values, part string)) {
	if _, known := params.Benchmark(name); current == nil || !known {
		b.Fatalf("%s is not in the parameter table, or was not started by Main", name)
	}
	defer current.watch(b)
	for _, l := range current.leaves[name] {
		if why := l.v.Skip(); why != "" {
			// Told once: with -count it is asked for each trial.
			if line := b.Name() + ": " + why; !slices.Contains(current.skipped, line) {
				current.skipped = append(current.skipped, line)
			}
			b.Skip(why)
		}
		if path := l.path(); path != "" {
			b.Run(path, func(b *testing.B) {
				defer current.watch(b)
				f(b, l.v, l.part)
			})
			continue
		}
		f(b, l.v, l.part)
	}
}

// measure runs one trial, writes its files and puts its numbers on the line. A trial that did not
// come to its end keeps its result, which says so, and fails the benchmark without numbers.
func measure(b *testing.B, v *params.Values,
	body func(context.Context, kvbench.Config) (*result.Result, error)) {
	s := current
	number, suffix := s.trial(b.Name())
	name := strings.TrimPrefix(b.Name(), "Benchmark") + suffix
	show, wipe := s.live(name, v.Simulated())
	// Before anything of this trial exists, so that the drive rests.
	s.pauseBetweenOptions(v, show)
	if s.ctx.Err() != nil { // by a signal before, or while the drive rested
		wipe()
		b.Fatal(errInterrupted)
	}
	if s.hung != nil { // and has its threads in the kernel, perhaps for ever
		b.Fatalf("not begun, because of an earlier trial: %v", s.hung)
	}
	cfg, err := trialConfig(v, number)
	if err != nil {
		b.Fatal(err)
	}
	if cfg.Info.TraceFiles, err = s.traceFiles(v); err != nil {
		b.Fatal(err)
	}
	cfg.Progress, cfg.Storage.Removal = show, &s.removal
	var path string
	cfg.Publish = func(r *result.Result) error {
		r.Name, path = name, resultPath(v, name, number)
		if job, err := report.FioJob(r); err == nil { // it was traced, or is known without
			r.FioWorkload = job
		}
		return save(b, r, path)
	}
	// The live line is wiped before anything is printed: it stands where the terminal's cursor is.
	restore := s.spare(v)
	res, err := body(s.ctx, cfg)
	restore()
	wipe()
	if errors.Is(err, kvbench.ErrUnanswered) {
		s.hung = err
	}
	if res == nil {
		b.Fatal(err)
	}
	if err == nil && res.Status != result.StatusComplete {
		// Nothing was completed, or too much failed: numbers that nobody should use.
		err = errors.New(res.Error)
	}
	s.results = append(s.results, res)
	announce(b, res, err, path)
	if err != nil {
		b.FailNow()
	}
}

// announce puts a result on the benchmark line and into its log, whose last line
// says where the result is.
func announce(b *testing.B, res *result.Result, err error, path string) {
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
	if _, err := os.Stat(path); err == nil {
		b.Log("result: " + path)
	}
}

// save writes the result's JSON and the summary beside it, and copies of both
// into the artifact directory when -artifacts was given.
func save(b *testing.B, r *result.Result, path string) error {
	var text bytes.Buffer
	if err := report.WriteSummary(&text, r); err != nil {
		return err
	}
	paths := []string{path}
	// Go 1.26 keeps artifacts of a test where -outputdir says; the summary goes along.
	if flagValue("test.artifacts") == "true" {
		paths = append(paths, filepath.Join(b.ArtifactDir(), filepath.Base(path)))
	}
	for _, p := range paths {
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			return fmt.Errorf("making the results directory: %w", err)
		}
		if err := r.WriteJSON(p); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(filepath.Dir(p), "summary.txt"), text.Bytes(),
			0o666); err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
		if err := saveJob(r, p); err != nil {
			return err
		}
	}
	return nil
}

// saveJob writes the fio job of a traced run beside its result, under the name that the Python
// benchmark gives it: who has a drive to compare wants to run it, and not to look for it in a JSON
// of megabytes. A run that was not traced has none.
func saveJob(r *result.Result, resultPath string) error {
	if r.FioWorkload == "" {
		return nil
	}
	at := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(resultPath), "kvcache_results"),
		".json")
	path := filepath.Join(filepath.Dir(resultPath), "fio_kv_cache_workload"+at+".ini")
	if err := os.WriteFile(path, []byte(r.FioWorkload), 0o666); err != nil {
		return fmt.Errorf("writing the fio job: %w", err)
	}
	return nil
}

// optionPause is the rest between two MLPerf options of one closed run: that of Rules 6.3.2.1, as
// before and after each trial. Rules 6.6.1 says 20 s in passing; the longer one satisfies both.
const optionPause = 90 * time.Second

// pauseBetweenOptions rests where one MLPerf option follows another, as the closed division wants
// it: what the one left in the drive's caches must not serve the next.
func (s *session) pauseBetweenOptions(v *params.Values, show func(kvbench.Snapshot)) {
	if o := v.Bench.Option; o != s.lastOpt {
		if s.lastOpt != 0 && v.Division == params.Closed {
			if show != nil {
				show(kvbench.Snapshot{Stage: "resting", Total: optionPause, Free: -1})
			}
			_ = clock.NewWall().Sleep(s.ctx, optionPause)
		}
		s.lastOpt = o
	}
}
