package benchmarks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/renameio/v2"

	"kvbench/benchmarks/clients"
	"kvbench/kvbench"
	"kvbench/kvbench/params"
	"kvbench/kvbench/plainio"
	"kvbench/kvbench/record"
	"kvbench/kvbench/report"
	"kvbench/kvbench/requests"
	"kvbench/kvbench/result"
	"kvbench/tiers/clock"
)

// workload is the body of every benchmark that runs requests through the cache.
func workload(b *testing.B, name string) {
	each(b, name, func(b *testing.B, v *params.Values, _ string) {
		measure(b, v, requestsBody(v))
	})
}

// requestsBody is a trial of a load of requests.
func requestsBody(v *params.Values) trialBody {
	return func(ctx context.Context, cfg kvbench.Config) (*result.Result, error) {
		load, err := askFor(ctx, v, cfg.Progress, func() (*requests.Load, error) {
			return requestLoad(v, cfg.Storage)
		})
		if err != nil {
			return nil, err
		}
		if v.Simulated() {
			return simulate(ctx, v, cfg, load)
		}
		current.attachCeiling(v, &cfg.Info)
		return kvbench.Run(ctx, cfg, load)
	}
}

// attachCeiling attaches the ceiling measured with the same I/O parameters.
func (s *session) attachCeiling(v *params.Values, info *record.Info) {
	info.Ceiling = s.ceiling[v.IOKey()].Ceiling()
	if info.Ceiling == nil && len(s.ceiling) > 0 && v.Division != params.Quick {
		info.Warnings = append(info.Warnings, fmt.Sprintf("ceiling-ratio is missing: "+
			"StorageCeiling had no window of at least %s with the same parameters (%s)",
			plainio.CeilingWindow, v.IOKey()))
	}
}

// each runs f for every leaf that is chosen, as a sub-benchmark where the benchmark has several.
func each(b *testing.B, name string, f func(b *testing.B, v *params.Values, part string)) {
	if _, known := params.Benchmark(name); current == nil || !known {
		b.Fatalf("%s is not in the parameter table, or was not started by Main", name)
	}
	defer current.watch(b)
	leaves := current.leaves[name]
	first := ""
	if len(leaves) > 0 {
		first = leaves[0].v.Skip()
	}
	// One line says why none of its points can run, if it is the same reason.
	other := func(l leaf) bool { return l.v.Skip() != first }
	if first != "" && !slices.ContainsFunc(leaves, other) {
		current.recordSkip(b.Name(), first)
		b.Skip(first)
	}
	ran := false
	for _, l := range leaves {
		// Skip only this point of the sweep.
		if why := l.v.Skip(); why != "" {
			current.recordSkip(b.Name()+"/"+l.v.Point, why)
			continue
		}
		ran = true
		if path := l.path(); path != "" {
			b.Run(path, func(b *testing.B) {
				defer current.watch(b)
				f(b, l.v, l.part)
			})
			continue
		}
		f(b, l.v, l.part)
	}
	if !ran {
		b.Skip(first)
	}
}

// recordSkip records a skipped benchmark and the reason, once although -count repeats the call.
func (s *session) recordSkip(name, why string) {
	line := strings.TrimSuffix(name, "/") + ": " + why
	if !slices.Contains(s.skipped, line) {
		s.skipped = append(s.skipped, line)
	}
}

// measure runs one trial, writes its files and puts its numbers on the line. A trial that did not
// come to its end keeps its result, which says so, and fails the benchmark without numbers.
func measure(b *testing.B, v *params.Values, body trialBody) {
	number, suffix := current.trial(b.Name())
	name := strings.TrimPrefix(b.Name(), "Benchmark") + suffix
	o := current.measure(b, v, name, number, body)
	// B.Run goes on to the others only when the first call has passed (testing/benchmark.go), also
	// with -rank-failure continue: what is missing in the results was not lost.
	if o.err != nil && number == 0 && v.Count > 1 {
		b.Logf("%d of %d trials are not begun: the testing package ends a benchmark whose first "+
			"trial fails", v.Count-1, v.Count)
	}
	o.tell(b)
}

// trialBody is what a trial does with its configuration, in which it may change what it likes.
type trialBody func(context.Context, kvbench.Config) (*result.Result, error)

// measure runs one trial of a name and writes its files; nothing is printed.
func (s *session) measure(b *testing.B, v *params.Values, name string, number int, body trialBody,
) (o outcome) {
	show, wipe := s.live(name, v.Simulated())
	// The live line is wiped before anything is printed: it stands where the terminal's cursor is.
	defer wipe()
	// Gauges of a trial that is over would be read as of now.
	defer s.metrics.Rest()
	// Before anything of this trial exists, so that the drive rests.
	s.pauseBetweenOptions(v, show)
	if s.ctx.Err() != nil { // by a signal before, or while the drive rested
		if clients.Ended(s.ctx) { // or because of a rank that was lost since the last trial
			err := context.Cause(s.ctx)
			return outcome{err: fmt.Errorf("not begun, because the run was %w", err)}
		}
		return outcome{err: fmt.Errorf("not begun: %w", errInterrupted)}
	}
	o.res, o.path, o.err = s.trialOf(b, v, name, number, show, body)
	// From here on the coordinator has the result of all ranks, and every rank the same fate.
	if s.clients != nil {
		o.res, o.path, o.err = s.clients.Conclude(o.res, o.path, o.err)
	}
	if o.res != nil {
		s.results = append(s.results, o.res)
	}
	return o
}

// tell puts an outcome on the line, or fails the benchmark.
func (o outcome) tell(b *testing.B) {
	if o.res == nil {
		// There is no summary to say it, and standard output may be a file.
		if current.ctx.Err() == nil {
			current.failures = append(current.failures, b.Name()+": "+o.err.Error())
		}
		b.Fatal(o.err)
	}
	announce(b, o.res, o.err, o.path)
	if o.err != nil {
		b.FailNow()
	}
}

// shared is a trial, as all clients have it.
func (s *session) shared(b *testing.B, v *params.Values, name string, number int) clients.Trial {
	return clients.Trial{Name: name, Number: number,
		Save: func(whose string, r *result.Result) (string, error) {
			s.metrics.Ended(name, r)
			path := resultPath(v, name, number, whose)
			return path, save(b, r, path)
		}}
}

// trialOf runs one trial of this client: what it measured, and where that was written. Of several
// clients the coordinator writes it.
func (s *session) trialOf(b *testing.B, v *params.Values, name string, number int,
	show func(kvbench.Snapshot), body trialBody,
) (res *result.Result, path string, err error) {
	var cfg kvbench.Config
	// One that hangs has its threads in the kernel, perhaps for ever: nothing is asked of it.
	if s.hung != nil {
		err = fmt.Errorf("not begun, because of an earlier trial: %w", s.hung)
	} else {
		// What is left open, such as the room, each client finds for itself; several agree
		// afterwards.
		cfg, err = askFor(s.ctx, v, show, func() (kvbench.Config, error) {
			cfg, err := trialConfig(v, number)
			if err == nil {
				cfg.Info.TraceFiles, err = s.traceFiles(v)
			}
			return cfg, err
		})
		s.unasked(err)
	}
	// With or without an error: the others wait for this rank, and hear of it.
	if s.clients != nil {
		err = s.clients.Enter(s.shared(b, v, name, number), &cfg, err)
		show = s.clients.Show(show, s.observer(name, number))
	} else if observe := s.observer(name, number); observe != nil {
		draw := show
		show = func(now kvbench.Snapshot) {
			observe(v.Rank, now)
			if draw != nil {
				draw(now)
			}
		}
	}
	if err != nil {
		return nil, "", err
	}
	cfg.Progress, cfg.Storage.Removal = show, &s.removal
	out := &s.unwritten
	out.clear()
	cfg.PublishTo, cfg.Unpublished = v.ResultsDir, out.giveUp
	cfg.Publish = func(r *result.Result) (err error) {
		r.Name = name
		if job, err := report.FioJob(r); err == nil { // it was traced
			r.FioWorkload = job
		}
		out.begin(r)
		defer func() { out.end(err) }()
		at := resultPath(v, name, number, fmt.Sprintf("rank_%d", v.Rank))
		out.goesTo(at)
		// One that is alone keeps it; so does a rank whose coordinator is gone, in the same place.
		keep := func() error { s.metrics.Ended(name, r); return save(b, r, at) }
		if s.clients != nil {
			return s.clients.Publish(r, keep)
		}
		return keep()
	}
	restore := s.spare(v)
	res, err = body(s.ctx, cfg)
	restore()
	path = out.path()
	s.unasked(err)
	if err == nil && res.Status != result.StatusComplete {
		// Nothing was completed, or too much failed: numbers that nobody should use.
		err = errors.New(res.Error)
	}
	return res, path, err
}

// unasked notes that the storage did not answer. Of this process: the ranks beside it may have
// another device, and go on.
func (s *session) unasked(err error) {
	if errors.Is(err, kvbench.ErrUnanswered) {
		s.hung = err
	}
}

// observer tells the metrics of a trial's ranks, nil where there are none: nobody then takes a
// snapshot for them.
func (s *session) observer(name string, number int) func(rank int, now kvbench.Snapshot) {
	if s.metrics == nil {
		return nil
	}
	return func(rank int, now kvbench.Snapshot) { s.metrics.Observe(name, number, rank, now) }
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
	if _, err := soon(func() (os.FileInfo, error) { return os.Stat(path) }); err == nil {
		b.Log("result: " + path)
	}
}

// saving is the path of the result that is being written, "" while none is.
var saving atomic.Value

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
		saving.Store(p)
		err := r.WriteJSON(p)
		saving.Store("")
		if err != nil {
			return err
		}
		summary := filepath.Join(filepath.Dir(p), "summary.txt")
		if err := writeOrRemove(summary, text.Bytes()); err != nil {
			return fmt.Errorf("writing the summary: %w", err)
		}
		if err := errors.Join(saveJob(r, p), saveCheckpoints(r, p)); err != nil {
			return err
		}
	}
	return nil
}

// writeOrRemove writes a file that belongs to a result. If writing fails, an older file at this
// path is removed, so that it is not mistaken for part of this result.
func writeOrRemove(path string, text []byte) error {
	err := renameio.WriteFile(path, text, 0o666, renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		_ = os.Remove(path)
	}
	return err
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
	if err := writeOrRemove(path, []byte(r.FioWorkload)); err != nil {
		return fmt.Errorf("writing the fio job: %w", err)
	}
	return nil
}

// saveCheckpoints writes the reference's summary of checkpoints beside their result: whoever has
// tools for that reads ours, too.
func saveCheckpoints(r *result.Result, resultPath string) error {
	// Of one of several clients it would be a part that looks like the whole.
	if r.Checkpoint == nil || r.Checkpoint.Count != nil {
		return nil
	}
	var summary any = r.CheckpointSummary()
	if r.Checkpoint.Streamed() {
		// The reference says nothing of reading.
		if summary = r.Checkpoint.StreamSummary(); len(r.Checkpoint.Writes) == 0 {
			return nil
		}
	}
	data, err := json.MarshalIndent(summary, "", "  ")
	if err == nil {
		err = writeOrRemove(filepath.Join(filepath.Dir(resultPath), "checkpoint_summary.json"),
			append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the summary of checkpoints: %w", err)
	}
	return nil
}

// pauseBetweenOptions pauses between two MLPerf options, as the closed division requires. Data that
// one option left in the drive's cache must not serve the next. A rehearsal checks rules and does
// not measure the drive, so it does not pause.
func (s *session) pauseBetweenOptions(v *params.Values, show func(kvbench.Snapshot)) {
	if o := v.Bench.Option; o != s.lastOpt {
		if s.lastOpt != 0 && v.Division == params.Closed && !v.Rehearse {
			if show != nil {
				show(kvbench.Snapshot{Stage: "resting", Total: params.OptionPause, Free: -1})
			}
			_ = clock.NewWall().Sleep(s.ctx, params.OptionPause)
		}
		s.lastOpt = o
	}
}
