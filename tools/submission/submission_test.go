package submission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/tools/discover"
	"kvbench/tools/golden"
	"kvbench/tracing/host"
)

// recorded are the parameters that a rank of an option has on record, by option and rank.
var recorded = map[[2]int]*params.Values{}

// latencies are the histograms of every result: encoding them takes most of the time to make one.
var latencies = sync.OnceValue(func() map[string]result.HistogramData {
	all := map[string]result.HistogramData{}
	for name, ns := range map[string]int64{"storage_read_device": 40e6, "storage_write_device": 90e6} {
		h := result.NewHistogram("ns")
		h.Record(ns)
		all[name] = h.Encode()
	}
	return all
})

// closed is a flawless result of the closed division.
func closed(t *testing.T, option, trial, rank int) *result.Result {
	t.Helper()
	bench := map[int]string{1: "MaxStorageStress", 2: "StorageThroughput",
		3: "LargeModel"}[option]
	v := recorded[[2]int{option, rank}]
	if v == nil {
		b, ok := params.Benchmark(bench)
		require.True(t, ok)
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		set := params.Register(fs)
		require.NoError(t, fs.Parse([]string{"-division=closed", fmt.Sprintf("-rank=%d", rank),
			"-ranks=2", "-cache-dir=/mnt/kv", "-results-dir=/results"}))
		var err error
		v, err = set.Resolve(params.Inputs{Bench: b, Base: "/"})
		require.NoError(t, err)
		recorded[[2]int{option, rank}] = v
	}
	r := &result.Result{
		SchemaVersion: result.SchemaVersion, Notice: result.ClosedNotice,
		Status: result.StatusComplete, EndedBy: result.EndedByDeadline,
		Benchmark: bench, Name: bench, Option: &option, Division: result.DivisionClosed,
		Trial: trial, Count: 3, Rank: rank, Ranks: 2,
		Nonce: fmt.Sprintf("%02d%02d%02d", option, trial, rank), Seed: uint64(42 + rank),
		CompletionUnit: "request",
		StartTime: time.Date(2026, 9, 8, 12+option, trial*10, 0, 0,
			time.UTC).Format(time.RFC3339Nano), WindowNS: 300e9 + 1e6,
		Model:    result.Model{Key: v.Model.Key, Name: v.Model.Name},
		Workload: result.Workload{Users: v.Users, DecodeReads: v.DecodeReads},
		IO: result.IO{CacheDir: fmt.Sprintf("/mnt/kv/rank_%d", rank), Mode: "buffered",
			WriteDevice: result.WriteDeviceFlush},
		Environment: result.Environment{Hostname: fmt.Sprintf("node%d", rank),
			OS: "Ubuntu 24.04 LTS", CPUModel: "AMD EPYC 9654", Cores: 192,
			MemoryBytes: 768 << 30, Version: "abc", UTCOffsetS: new(int64(7200)),
			Filesystem: result.Filesystem{Type: "xfs", Options: []string{"rw", "noatime"},
				Source: "/dev/nvme0n1"},
			Device: &result.Device{Name: "nvme0n1", Model: "ACME FLASH 7",
				Transport: "pcie", SizeBytes: new(int64(3840755982336)),
				Rotational: new(false)}},
	}
	r.Parameters = slices.Clone(v.Parameters())
	r.Tiers = []result.Tier{{Level: "storage", Entries: 100,
		Read:  result.TierTraffic{BytesPerSecond: new((2.5 + float64(rank)) * (1 << 30))},
		Write: result.TierTraffic{BytesPerSecond: new(0.5 * (1 << 30))}}}
	r.Histograms = latencies()
	r.Requests.TokensPerSecond, r.Requests.StorageTokensPerSecond = new(1000.0), new(10.0)
	return r
}

// tree is options 1 to 3 with three trials of two ranks, after each result was changed.
func tree(t *testing.T, change func(*result.Result)) *merge.Tree {
	t.Helper()
	tree := &merge.Tree{}
	for _, option := range []int{1, 2, 3} {
		for trial := range 3 {
			for rank := range 2 {
				r := closed(t, option, trial, rank)
				if change != nil {
					change(r)
				}
				tree.Files = append(tree.Files, merge.File{Path: fmt.Sprintf("option_%d/trial_%d/"+
					"rank_%d/kvcache_results_20260908_120000.json", option, r.Trial, r.Rank),
					Group: strconv.Itoa(option), Trial: r.Trial, Rank: r.Rank, Result: r,
					Keys: r.Python()})
			}
		}
	}
	return tree
}

// deviations are the deviations of a tree from the closed division, one on each line.
func deviations(t *merge.Tree) string {
	var b strings.Builder
	for _, d := range checkClosed(t, merge.Aggregate(t)).Deviations {
		fmt.Fprintln(&b, d)
	}
	return b.String()
}

// results writes a tree as the results directory of a run.
func results(t *testing.T, change func(*result.Result)) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range tree(t, change).Files {
		data, err := f.Result.Encode() // without WriteJSON's sync
		require.NoError(t, err)
		path := filepath.Join(dir, f.Path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "summary.txt"),
			[]byte(result.ClosedNotice+"\n"), 0o644))
	}
	return dir
}

// open changes a submission to the open division.
func open(s *Submission) { s.Division = result.DivisionOpen }

// submit builds a submission of the closed division, after it was changed. built and err are Run's.
func submit(dir, out string, change ...func(*Submission)) (built bool, stdout, stderr string,
	err error) {
	s := Submission{Dir: dir, Out: out, Organisation: "acme", System: "flash7",
		Division: result.DivisionClosed,
		now:      func() time.Time { return time.Date(2026, 9, 9, 8, 7, 6, 5, time.UTC) }}
	for _, c := range change {
		c(&s)
	}
	if err := s.Validate(); err != nil {
		return false, "", "", err
	}
	var text, said bytes.Buffer
	built, err = s.Run(&text, func(line string) { fmt.Fprintln(&said, line) })
	return built, text.String(), said.String(), err
}

// listing lists the files of a tree.
func listing(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, filepath.ToSlash(rel))
		}
		return err
	}))
	return list
}

func TestClosedSubmission(t *testing.T) {
	dir, out := results(t, nil), filepath.Join(t.TempDir(), "submission")
	require.NoError(t, os.Mkdir(out, 0o755), "new or empty")
	found := discover.Hardware{CPU: discover.CPU{Sockets: new(2), Cores: new(192)},
		Devices: []discover.Device{{Device: result.Device{Name: "nvme0n1"},
			Link: &host.Link{Generation: 5, Width: 4}}}}
	built, text, errs, err := submit(dir, out, func(s *Submission) {
		s.Hardware = map[string]discover.Hardware{"node0": found, "node1": found}
	})
	require.NoError(t, err)
	require.True(t, built, errs)
	assert.Empty(t, errs)
	golden.Check(t, "closed.golden", strings.ReplaceAll(text, out, "OUT"))
	golden.Check(t, "tree.golden", strings.Join(listing(t, out), "\n")+"\n")

	run := filepath.Join(out, "closed/acme/results/flash7/kv_cache/llama3.1-8b/run/20260908_150000")
	check, err := os.ReadFile(filepath.Join(run, "check.md"))
	require.NoError(t, err)
	golden.Check(t, "check.golden.md", string(check))
	description, err := os.ReadFile(filepath.Join(out, "closed/acme/systems/flash7.yaml"))
	require.NoError(t, err)
	golden.Check(t, "flash7.golden.yaml", string(description))
	var parsed map[string]any
	require.NoError(t, yaml.Unmarshal(description, &parsed))
	assert.Contains(t, parsed, "system_under_test")

	t.Run("every page says what it is not", func(t *testing.T) {
		for _, name := range listing(t, out) {
			data, err := os.ReadFile(filepath.Join(out, name))
			require.NoError(t, err)
			assert.Contains(t, string(data), result.ClosedNotice, name)
		}
	})
	t.Run("a file", func(t *testing.T) {
		_, _, _, err := submit(dir, filepath.Join(out, "closed/acme/systems/flash7.yaml"))
		assert.ErrorContains(t, err, "not a directory; name a new or an empty directory")
	})
	t.Run("again: nothing is replaced, and no temporary directory is left", func(t *testing.T) {
		path := filepath.Join(out, "closed/acme/systems/flash7.yaml")
		require.NoError(t, os.WriteFile(path, []byte("mine\n"), 0o644))
		_, text, _, err := submit(dir, out)
		assert.ErrorContains(t, err, "is not empty")
		assert.Empty(t, text)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "mine\n", string(data))
		entries, err := os.ReadDir(filepath.Dir(out))
		require.NoError(t, err)
		assert.Len(t, entries, 1)
	})
}

// set changes a parameter on record.
func set(r *result.Result, name string, value any) {
	i := slices.IndexFunc(r.Parameters, func(p result.Parameter) bool { return p.Name == name })
	r.Parameters[i].Value = value
}

// TestDeviations runs the script of deviations. Rewrite it with -rewrite.
//
//	tree             a flawless tree
//	change KEY=N…    lines change the results of an option, trial or rank (golden.Changed)
//	check            the deviations, without their places
func TestDeviations(t *testing.T) {
	// Decoding the histograms would take most of the time, and no rule is about latencies.
	flawless := tree(t, func(r *result.Result) { r.Histograms = nil })
	all := &merge.Tree{}
	datadriven.RunTest(t, "testdata/deviations", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "tree":
			all.Files = slices.Clone(flawless.Files)
		case "change":
			of := map[string]int{"option": -1, "trial": -1, "rank": -1}
			for _, a := range d.CmdArgs {
				of[a.Key], _ = strconv.Atoi(a.Vals[0])
			}
			for i := range all.Files {
				f := &all.Files[i]
				r := f.Result
				for key, n := range map[string]int{"option": *r.Option, "trial": r.Trial, "rank": r.Rank} {
					if of[key] >= 0 && of[key] != n {
						r = nil
						break
					}
				}
				if r == nil {
					continue
				}
				text, err := r.Encode()
				require.NoError(t, err)
				f.Result = &result.Result{}
				require.NoError(t, json.Unmarshal(golden.Changed(t, text, d.Input), f.Result))
				f.Keys = f.Result.Python()
			}
		case "check":
			var b strings.Builder
			for _, f := range checkClosed(all, merge.Aggregate(all)).Deviations {
				f.Where = nil
				fmt.Fprintln(&b, f)
			}
			return cmp.Or(b.String(), "nothing deviates\n")
		}
		return ""
	})
}

// TestRanksOfOneRun: the parameters about several clients are no deviation in a result of one client,
// nor where rank 0 has started the others, whose parameters differ from its own.
func TestRanksOfOneRun(t *testing.T) {
	one := tree(t, func(r *result.Result) {
		r.Ranks, r.Parameters = 1, closedValues()[r.Benchmark].Parameters()
	})
	one.Files = slices.DeleteFunc(one.Files, func(f merge.File) bool { return f.Rank == 1 })
	assert.Empty(t, deviations(one))

	assert.Empty(t, deviations(tree(t, func(r *result.Result) {
		for i, p := range r.Parameters {
			switch p.Name {
			case "rank", "local-ranks":
				if p.Origin = "default"; r.Rank > 0 {
					p.Origin = "environment KVBENCH_AGENT"
				}
			}
			r.Parameters[i] = p
		}
		set(r, "local-ranks", 2)
	})))
}

// TestUnevenRanks: npernode × hosts must be the number of ranks, in each option.
func TestUnevenRanks(t *testing.T) {
	third := func(options ...int) *merge.Tree {
		all := tree(t, func(r *result.Result) {
			if slices.Contains(options, *r.Option) {
				r.Ranks = 3
			}
		})
		for _, f := range slices.Clone(all.Files) {
			if f.Rank == 0 && slices.Contains(options, *f.Result.Option) {
				r := *f.Result
				r.Rank, r.Seed, r.IO.CacheDir = 2, 44, "/mnt/kv/rank_2"
				f.Rank, f.Path, f.Result = 2, strings.Replace(f.Path, "rank_0", "rank_2", 1), &r
				all.Files = append(all.Files, f)
			}
		}
		return all
	}
	assert.Contains(t, deviations(third(1, 2, 3)),
		"ranks: each host must have as many, there are 2 on node0, 1 on node1 (rule 6.3.3.1)\n")
	assert.Contains(t, deviations(third(1)), "option 2, option 3: ranks: must be as many in each option, "+
		"there are 2 of 3 (rule 6.3.3.1) (option_2, option_3)\n")
	assert.NotContains(t, deviations(third()), "6.3.3.1")
}

func TestMissingRank(t *testing.T) {
	dir, out := results(t, nil), filepath.Join(t.TempDir(), "out")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "option_1")))
	lost := []string{"option_2/trial_0/rank_1", "option_2/trial_1/rank_0",
		"option_2/trial_2/rank_1", "option_3/trial_2/rank_1"}
	for _, at := range lost {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, at)))
	}
	for _, division := range []string{result.DivisionClosed, result.DivisionOpen} {
		built, _, errs, err := submit(dir, out, func(s *Submission) { s.Division = division })
		assert.NoError(t, err)
		assert.False(t, built, division)
		assert.Contains(t, errs, "option 2, option 3: every trial of every rank must have a "+
			"result: 2 ranks × 3 trials are expected (rule 6.3.4) ("+
			strings.Join(lost, "/kvcache_results_*.json, ")+"/kvcache_results_*.json)")
		assert.Contains(t, errs, "results are missing, nothing was built")
		assert.NoDirExists(t, out)
	}
}

// TestRehearsal: for results with short windows check.md lists the deviations, and the tree is one
// that no checker takes for a submission.
func TestRehearsal(t *testing.T) {
	short := func(r *result.Result) {
		r.Notice, r.WindowNS = result.RehearsalNotice, 5e9
		r.StartTime = time.Date(2026, 9, 8, 12, *r.Option, r.Trial*10, 0,
			time.UTC).Format(time.RFC3339Nano)
		set(r, "rehearse", true)
		set(r, "benchtime", "5s")
		set(r, "settle", "0s")
	}
	out := filepath.Join(t.TempDir(), "out")
	built, text, errs, err := submit(results(t, short), out)
	require.NoError(t, err)
	require.True(t, built, errs)
	assert.Contains(t, text, "nothing deviates; this is a REHEARSAL and must not be submitted.")
	assert.Contains(t, text, "The same command without -rehearse measures; ")
	run := filepath.Join(out, "rehearsal/acme/results/flash7/kv_cache/llama3.1-8b/run")
	assert.NoDirExists(t, filepath.Join(out, "closed"))
	found, err := filepath.Glob(filepath.Join(run, "*", "summary.json"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	data, err := os.ReadFile(found[0])
	require.NoError(t, err)
	assert.Contains(t, string(data), result.RehearsalNotice)

	deviates := deviations(tree(t, func(r *result.Result) {
		short(r)
		set(r, "num-users", "100")
	}))
	assert.Contains(t, deviates, "option 1: -num-users: must be 200 in the closed division, given 100")
	assert.NotContains(t, deviates, "window")

	_, _, errs, err = submit(results(t, func(r *result.Result) {
		short(r)
		set(r, "num-users", "100")
	}), filepath.Join(t.TempDir(), "x"))
	require.NoError(t, err)
	assert.Regexp(t, `-division open builds \S+/x/rehearsal\n`, errs)
}

func TestRanksThatDifferAreDeviationsToo(t *testing.T) {
	dir := results(t, func(r *result.Result) {
		if r.Rank == 1 {
			set(r, "num-users", "100")
		}
	})
	built, _, errs, err := submit(dir, filepath.Join(t.TempDir(), "out"))
	assert.NoError(t, err)
	assert.False(t, built)
	assert.Contains(t, errs, "-num-users: must be 200")
	assert.Contains(t, errs, "option 1 [num-users=100], option 1 [num-users=200], option 3 "+
		"[num-users=100], option 3 [num-users=70]: every trial of every rank must have a result")
}

// TestOpenSubmissionListsDeviations: the closed division refuses results of two of its options that
// deviate, and builds nothing.
func TestOpenSubmissionListsDeviations(t *testing.T) {
	dir := results(t, func(r *result.Result) {
		r.Division, r.Notice = result.DivisionOpen, ""
		set(r, "num-users", "100")
		set(r, "cpu-mem-gb", "8")
		r.DiffersFromClosed = []result.Difference{{Name: "num-users"}, {Name: "cpu-mem-gb"}}
	})
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "option_2")))
	out := filepath.Join(t.TempDir(), "out")
	built, _, errs, err := submit(dir, out)
	assert.NoError(t, err)
	assert.False(t, built)
	assert.Contains(t, errs, "option 2: every option must be run: there is no result of "+
		"StorageThroughput (rule 6.3.1.1) (option_2)")
	assert.Contains(t, errs, "5 deviation(s) from the closed division, nothing was built; "+
		"-division open builds "+out+"/open")
	assert.NoDirExists(t, out)

	built, text, errs, err := submit(dir, out, open)
	require.NoError(t, err)
	require.True(t, built, errs)
	assert.Contains(t, text, "5 deviation(s), listed in check.md")
	run := filepath.Join(out, "open/acme/results/flash7/kv_cache/llama3.1-8b/run/20260908_150000")
	check, err := os.ReadFile(filepath.Join(run, "check.md"))
	require.NoError(t, err)
	golden.Check(t, "open.golden.md", string(check))
	data, err := os.ReadFile(filepath.Join(run, "kv_cache_20260908_150000_metadata.json"))
	require.NoError(t, err)
	var m struct{ Parameters map[string]any }
	require.NoError(t, json.Unmarshal(data, &m))
	assert.Equal(t, []any{100.0, 16.0, 8.0, "realistic"}, []any{m.Parameters["num_users"], m.Parameters["gpu_mem_gb"],
		m.Parameters["cpu_mem_gb"], m.Parameters["generation_mode"]}, "placeholders of what the run did not change")
}

// TestTheTreeHasNoPathOfTheMachine: -model may be a file, whose path is the model's key.
func TestTheTreeHasNoPathOfTheMachine(t *testing.T) {
	for key, want := range map[string]string{
		"llama3.1-8b":                   "llama3.1-8b",
		"/home/me/models/mine.json":     "mine",
		"/models/Qwen3-8B/config.json":  "Qwen3-8B",
		"models.d/Qwen3-8B/config.json": "Qwen3-8B",
		"/config.json":                  "config",
	} {
		s := Submission{tree: &merge.Tree{Files: fileOf(&result.Result{
			Model: result.Model{Key: key}})}}
		assert.Equal(t, want, s.model())
	}
}

func TestNothingIsLeftHalfWritten(t *testing.T) {
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	left := func(what string) {
		entries, err := os.ReadDir(parent)
		require.NoError(t, err)
		assert.Empty(t, entries, what)
	}
	simulated := closed(t, 3, 2, 1)
	simulated.Simulation = &result.Simulation{}
	data, err := simulated.Encode()
	require.NoError(t, err)
	dir := results(t, nil)
	path := filepath.Join(dir, "option_3/trial_2/rank_1/kvcache_results_20260908_120000.json")
	for what, c := range map[string]struct{ text, want string }{
		"empty":     {"", ":1:"},
		"truncated": {`{"schema_version": "1.0", "summ`, ":1:"},
		"simulated": {string(data), " is simulated: no storage had a part in it"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		_, stdout, _, err := submit(dir, out, open)
		assert.ErrorContains(t, err, path+c.want, what)
		assert.Empty(t, stdout)
		left(what)
	}
	_, _, _, err = submit(t.TempDir(), out)
	assert.ErrorContains(t, err, "no result file")
	_, _, _, err = submit(results(t, nil), filepath.Join(parent, "none", "out"))
	assert.Error(t, err)
	left("an output without a parent")
}
