package benchmarks

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/renameio/v2"

	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/record"
	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
	"kvbench/tracing/host"
)

// run is the body of every benchmark function. It runs the lines that the plan has for the benchmark,
// each line with a path as a sub-benchmark.
func run(b *testing.B) {
	s := current
	defer s.watch(b)
	lines := s.linesOf(strings.TrimPrefix(b.Name(), "Benchmark"))
	why := lines[0].v.Skip()
	alike := !slices.ContainsFunc(lines, func(l *line) bool { return l.v.Skip() != why })
	ran := false
	for _, l := range lines {
		skip := l.v.Skip()
		switch {
		case s.ctx.Err() != nil: // the epilogue counts the trials that were not begun
			continue
		case skip != "" && alike:
			s.skip(b.Name(), skip)
			continue
		case skip != "": // only this point of the sweep is skipped
			s.skip(b.Name()+"/"+l.v.Point, skip)
			continue
		case l.path == "":
			s.runLine(b, l)
		default:
			b.Run(l.path, func(b *testing.B) {
				defer s.watch(b)
				s.runLine(b, l)
			})
		}
		ran = true
	}
	if !ran {
		b.Skip(why)
	}
}

// skip records a skipped benchmark and the reason. With -count the testing package calls a benchmark
// several times: skip records it once.
func (s *session) skip(name, why string) {
	line := strings.TrimSuffix(name, "/") + ": " + why
	if !slices.Contains(s.skipped, line) {
		s.skipped = append(s.skipped, line)
	}
}

// watch notes at the end of a benchmark whether it failed. -count and -cpu call the benchmark several times,
// and the testing package remembers a failure of the first call only. After a failure of another call it
// prints FAIL, then PASS, and returns 0.
func (s *session) watch(b *testing.B) {
	s.failed = s.failed || b.Failed()
	if s.ctx.Err() != nil {
		// The testing package reads the count before each call. The other trials would each wait
		// for the garbage collector, and then fail for the same reason.
		_ = flag.Set("test.count", "0")
	}
}

// runLine runs the next trial of a line.
func (s *session) runLine(b *testing.B, l *line) {
	if l.skip != "" {
		s.skip(b.Name(), l.skip)
		b.Skip(l.skip)
	}
	t := l.trials[l.called]
	l.called++
	// The testing package sets GOMAXPROCS only before the second call. Here the first call is a trial,
	// too.
	if t.procs > 0 {
		runtime.GOMAXPROCS(t.procs)
	}
	if l.bench != nil {
		s.begins(t, l)
		defer l.ended(time.Now())
		l.bench(b, l.v)
		return
	}
	o := t.run(func(t *trial) outcome {
		s.begins(t, l)
		o := s.measure(b, t)
		if s.terminal != nil && o.res != nil {
			fmt.Fprintln(s.terminal, report.TrialLine(o.res, s.width()))
		}
		return o
	})
	// B.Run makes the other calls only if the first one has passed (testing/benchmark.go). This holds
	// with -rank-failure continue, too. The log shows that the missing results were not lost.
	if o.err != nil && t == l.trials[0] && l.v.Count > 1 && len(l.group) == 1 && s.ctx.Err() == nil {
		b.Logf("%d of %d trials are not begun: the testing package ends a benchmark whose first "+
			"trial fails", l.v.Count-1, l.v.Count)
		l.trials = l.trials[:l.called]
	}
	if o.res == nil {
		// The tables at the end report it: standard output may be a file.
		if s.ctx.Err() == nil {
			s.results = append(s.results, &result.Result{Name: t.name, Benchmark: l.v.Bench.Name, Trial: t.number,
				Status: result.StatusFailed, Error: o.err.Error()})
		}
		b.Fatal(o.err)
	}
	if s.terminal == nil {
		announce(b, o)
	} else if o.err != nil && !strings.Contains(o.res.Error, o.err.Error()) { // not on the trial's line
		b.Log(o.err)
	}
	if o.err != nil {
		b.FailNow()
	}
}

// outcome is the outcome of a trial. res is nil if the trial did not begin.
type outcome struct {
	res  *result.Result
	path string // of the result
	err  error
}

// measure runs one trial and writes its files. It prints nothing. A trial that did not come to its end keeps
// its result, and the result says so.
func (s *session) measure(b *testing.B, t *trial) (o outcome) {
	show, wipe := s.live(t)
	// The live line is wiped before anything is printed: it occupies the terminal's current line.
	defer wipe()
	begun := time.Now()
	defer s.metrics.idle() // otherwise the gauges of the ended trial would look current
	// The pause comes before the trial creates anything, so that the drive has nothing to do in it.
	s.pauseBetweenOptions(t.v, show)
	switch {
	case t.source != nil && t.source.outcome.err != nil:
		return outcome{err: errors.New("nothing was read, because the checkpoints could not be written")}
	case s.ctx.Err() != nil:
		return outcome{err: fmt.Errorf("not begun, because the run was %w", context.Cause(s.ctx))}
	}
	defer t.ended(begun)
	o = s.attempt(b, t, show)
	// From here on the coordinator has the result of all ranks, and every rank the same outcome.
	o = s.clients.conclude(o)
	if o.res != nil {
		s.results = append(s.results, o.res)
	}
	return o
}

// attempt runs the trial for this rank alone. If there are several ranks, the coordinator writes the results.
func (s *session) attempt(b *testing.B, t *trial, show func(kvbench.Snapshot)) (o outcome) {
	v := t.v
	var cfg kvbench.Config
	// The threads of a trial that hangs are in the kernel, perhaps for ever. That storage gets no more
	// requests.
	if s.hung != nil {
		o.err = fmt.Errorf("not begun, because of an earlier trial: %w", s.hung)
	} else {
		s.files.what.Store(places(v))
		s.files.limit.Store(int64(v.IOTimeout))
		// Each rank chooses what was not given, such as the capacity. Several ranks agree on
		// it in enter.
		cfg, o.err = prepared(s, show, func() (cfg kvbench.Config, err error) {
			if cfg, err = trialConfig(v, s.storage[v], t.number); err == nil {
				cfg.Info.OptionPauseNS = s.paused
				cfg.Info.TraceFiles, err = s.traceFiles(v)
				s.describe(v, &cfg.Info.Workload)
			}
			return cfg, err
		})
	}
	// enter is called after an error, too: the other ranks wait for this one and must learn of it.
	o.err = s.clients.enter(t, &cfg, o.err, func(whose string, r *result.Result) (string, error) {
		path := resultPath(t, whose)
		return path, s.write(b, t, path, r)
	})
	if o.err != nil {
		return o
	}
	cfg.Storage.Removal = &s.removal
	cfg.Progress = s.clients.show(v.Rank, show, func(rank int, now kvbench.Snapshot) {
		s.metrics.observe(t.name, t.number, rank, now)
	})
	s.publishTo(&cfg, b, t)
	defer s.running.Store(false)
	defer s.spare(v)()
	var load kvbench.Workload
	if load, o.err = prepared(s, cfg.Progress, func() (kvbench.Workload, error) {
		return t.load(s, t, &cfg)
	}); o.err != nil {
		return o
	}
	if v.Simulated() {
		o.res, o.err = simulate(s.ctx, v, cfg, load)
	} else {
		o.res, o.err = kvbench.Run(s.ctx, cfg, load)
	}
	if t.done != nil {
		t.done(o.res)
	}
	o.path, _ = s.path.Load().(string)
	s.notes(o)
	if o.err == nil && o.res.Status != result.StatusComplete {
		o.err = errors.New(o.res.Error) // nothing was completed, or too much failed
	}
	return o
}

// publishTo sets cfg.Publish: a trial writes its result, or sends it to the coordinator.
func (s *session) publishTo(cfg *kvbench.Config, b *testing.B, t *trial) {
	s.path.Store("")
	s.unsaved.Store(nil)
	s.running.Store(true)
	cfg.PublishTo = t.v.ResultsDir
	cfg.Publish = func(r *result.Result) (err error) {
		r.Name = t.name
		if job, err := report.FioJob(r); err == nil { // a traced run has a fio job
			r.FioWorkload = job
		}
		s.unsaved.Store(r)
		s.running.Store(false)
		err = s.clients.publish(r, func() error {
			path := resultPath(t, fmt.Sprintf("rank_%d", t.v.Rank))
			if err := s.write(b, t, path, r); err != nil {
				return err
			}
			s.path.Store(path)
			return nil
		})
		if err == nil {
			s.unsaved.CompareAndSwap(r, nil)
		}
		return err
	}
}

// write writes the result of a rank, or of all ranks. Any goroutine may call it.
func (s *session) write(b *testing.B, t *trial, path string, r *result.Result) error {
	s.metrics.ended(t.name, r)
	return save(b, r, path)
}

// prepared runs work, which accesses the files of a trial. Meanwhile the live line shows which file or
// directory does not answer: the drive may have hung since the last trial.
func prepared[T any](s *session, show func(kvbench.Snapshot), work func() (T, error)) (T, error) {
	answer, err := await(s.ctx, &s.files, func(what string, silent time.Duration) {
		show(kvbench.Snapshot{Stage: "waiting for an answer of " + what, Elapsed: silent, Free: -1})
	}, work)
	s.notes(outcome{err: err})
	return answer, err
}

// notes records that the storage of this rank did not answer, a result that was not written, and files
// that were left. Ranks with another device continue.
func (s *session) notes(o outcome) {
	if errors.Is(o.err, kvbench.ErrUnanswered) {
		s.hung = o.err
	}
	if u := (kvbench.Unpublished{}); errors.As(o.err, &u) {
		s.unwritten[o.res] = u.Why
	}
	if a := (kvbench.Abandoned{}); errors.As(o.err, &a) {
		s.kept = a.Error()
	}
}

// requestWorkload returns the load of a benchmark that replays requests.
func requestWorkload(s *session, t *trial, cfg *kvbench.Config) (kvbench.Workload, error) {
	load, err := requestLoad(t.v, cfg.Storage, t.number)
	if err == nil && !t.v.Simulated() {
		s.attachCeiling(t.v, &cfg.Info)
	}
	return load, err
}

// attachCeiling attaches the ceiling measured with the same I/O parameters.
func (s *session) attachCeiling(v *params.Values, info *record.Info) {
	info.Ceiling = s.ceiling[v.IOKey()].Ceiling()
	if info.Ceiling == nil && len(s.ceiling) > 0 && v.Division != params.Quick {
		info.Warnings = append(info.Warnings, fmt.Sprintf("ceiling-ratio is missing: "+
			"StorageCeiling had no window of at least %s with the same parameters (%s) in which no "+
			"other process used the device",
			plainio.CeilingWindow, v.IOKey()))
	}
}

// announce prints an outcome: the metrics on the benchmark's line, and the log, whose last line is the
// path of the result.
func announce(b *testing.B, o outcome) {
	lines := report.LogLines(o.res)
	if o.err == nil {
		b.ReportMetric(0, "ns/op") // replaced below unless nothing was completed
		for _, m := range o.res.Metrics() {
			b.ReportMetric(m.Value, m.Unit)
		}
	} else if !strings.Contains(strings.Join(lines, "\n"), o.err.Error()) {
		lines = append(lines, o.err.Error())
	}
	for _, line := range lines {
		b.Log(line)
	}
	if o.path != "" {
		b.Log("result: " + o.path)
	}
}

// resultPath returns the path of the JSON of a trial, for one rank or for all ranks. Each point of a sweep
// over an option has a directory of its own, too. Ranks that are started together have one results
// directory, in which the coordinator writes. A result never overwrites another one. If two runs end within
// a second, as simulated ones do, the second has a number after its time.
func resultPath(t *trial, whose string) string {
	v, name := t.v, t.name
	// The submission's tree has the numbers of the options.
	if o := v.Bench.Option; o > 0 {
		name = fmt.Sprintf("option_%d", o) + strings.TrimPrefix(name, v.Bench.Name)
	}
	base := filepath.Join(v.ResultsDir, strings.ReplaceAll(name, "/", "_"),
		fmt.Sprintf("trial_%d", t.number), whose,
		time.Now().Format("kvcache_results_20060102_150405"))
	path := base + ".json"
	for n := 2; ; n++ {
		if _, err := os.Lstat(path); err != nil {
			return path
		}
		path = fmt.Sprintf("%s_%d.json", base, n)
	}
}

// save writes the result's JSON and, next to it, its summary, the fio job of a traced run, and the summary of
// checkpoints in the form of the Python benchmark. With -artifacts it writes copies into the benchmark's
// artifact directory, too.
func save(b *testing.B, r *result.Result, path string) error {
	summary, err := report.Summary(r)
	if err != nil {
		return err
	}
	checkpoints, err := checkpointSummary(r)
	if err != nil {
		return err
	}
	paths := []string{path}
	if flagValue("artifacts") == "true" {
		paths = append(paths, filepath.Join(b.ArtifactDir(), filepath.Base(path)))
	}
	for _, p := range paths {
		dir, name := filepath.Split(p)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return fmt.Errorf("making the results directory: %w", err)
		}
		if err := r.WriteJSON(p); err != nil {
			return err
		}
		time := strings.TrimSuffix(strings.TrimPrefix(name, "kvcache_results"), ".json")
		for _, f := range []struct {
			what, name string
			text       []byte
		}{
			{"the summary", "summary.txt", []byte(summary)},
			{"the fio job", "fio_kv_cache_workload" + time + ".ini", []byte(r.FioWorkload)},
			{"the summary of checkpoints", "checkpoint_summary.json", checkpoints},
		} {
			if len(f.text) == 0 {
				continue
			}
			if err := writeOrRemove(filepath.Join(dir, f.name), f.text); err != nil {
				return fmt.Errorf("writing %s: %w", f.what, err)
			}
		}
	}
	return nil
}

// writeOrRemove writes a file that belongs to a result. If writing fails, an older file at this path is
// removed, so that it is not mistaken for part of this result.
func writeOrRemove(path string, text []byte) error {
	err := renameio.WriteFile(path, text, 0o666, renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

// checkpointSummary returns the summary of checkpoints in the form of the Python benchmark. It is nil for
// a stream that was only read: the Python benchmark has no summary of that.
func checkpointSummary(r *result.Result) ([]byte, error) {
	c := r.Checkpoint
	// A summary of one rank of several would look like one of the whole.
	if c == nil || c.Count != nil || c.Streamed() && len(c.Writes) == 0 {
		return nil, nil
	}
	var summary any = r.CheckpointSummary()
	if c.Streamed() {
		summary = c.StreamSummary()
	}
	data, err := json.MarshalIndent(summary, "", "  ")
	return append(data, '\n'), err
}

// pauseBetweenOptions pauses between two MLPerf options, as the closed division requires. Data that
// one option left in the drive's cache must not serve the next. A rehearsal checks rules and does
// not measure the drive, so it does not pause.
func (s *session) pauseBetweenOptions(v *params.Values, show func(kvbench.Snapshot)) {
	s.paused = nil
	if pauses(v, s.lastOpt) {
		show(kvbench.Snapshot{Stage: "pausing", Total: params.OptionPause, Free: -1})
		_ = clock.NewWall().Sleep(s.ctx, params.OptionPause) // a trial that is cut off here has no result
		s.paused = new(int64(params.OptionPause))
	}
	s.lastOpt = v.Bench.Option
}

// spareProcs is how many more processors (GOMAXPROCS) than cores a trial has while it moves bytes. A
// goroutine in a system call keeps its processor until the runtime's monitor takes it away, perhaps 10 ms
// later. Other goroutines wait for that processor. Measured on two cores with 16 requests of 1 MiB at a
// time: with 4 spare processors writes were 6 % faster than with none, and 16 were no better than 4.
const spareProcs = 4

// chosenProcs reports whether the user chose the number of processors.
func (s *session) chosenProcs() bool { return len(s.cpus) > 0 || os.Getenv("GOMAXPROCS") != "" }

// boundProcs lowers GOMAXPROCS to the CPU quota of a container. If more threads run than the quota allows,
// the kernel throttles them inside the window.
func (s *session) boundProcs() {
	if !s.chosenProcs() {
		n, _ := host.Procs(runtime.NumCPU())
		runtime.GOMAXPROCS(n)
	}
}

// spare adds the spare processors, as far as a container's quota allows. restore removes them again.
// Read the quota for each trial: it may change, and the runtime ignores such changes after the testing
// package has set GOMAXPROCS.
func (s *session) spare(v *params.Values) (restore func()) {
	if s.chosenProcs() || v.Simulated() {
		return func() {}
	}
	n, _ := host.Procs(runtime.NumCPU() + spareProcs)
	runtime.GOMAXPROCS(n)
	return s.boundProcs
}
