package submission

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// metadata is kv_cache_<start>_metadata.json: the keys of mlpstorage's that a validator reads, in
// its types. Rule 6.3.2.1 requires seed, trials and the pause between options. Values that no
// result has are null, and keys that only mlpstorage's launcher knows are left out.
type metadata struct {
	BenchmarkType string            `json:"benchmark_type"`
	Model         string            `json:"model"` // of the first option, as in the tree's path
	Command       string            `json:"command"`
	RunDatetime   string            `json:"run_datetime"`
	NumProcesses  int               `json:"num_processes"`
	Accelerator   *string           `json:"accelerator"`
	ResultDir     string            `json:"result_dir"` // below the tree's top
	Parameters    map[string]any    `json:"parameters"` // of the first option
	Overrides     map[string]any    `json:"override_parameters"`
	RuntimeS      *float64          `json:"runtime"` // first window's start to last one's end
	Executed      *string           `json:"executed_command"`
	OutputFiles   []outputFiles     `json:"command_output_files"`
	Args          map[string]any    `json:"args"`
	Hosts         []string          `json:"hosts"`
	KVCacheModel  string            `json:"kvcache_model"`
	Notice        string            `json:"notice"`
	Options       map[string]values `json:"options"` // each option's own: one run has two models
}

// values are parameters on record, as they were given.
type values = map[string]any

type outputFiles struct {
	Command *string `json:"command"`
	Stdout  string  `json:"stdout"`
	Stderr  string  `json:"stderr"`
}

// The parameters that Table KVCache-1 fixes, and the others in mlpstorage's metadata.
var fixedParameters = []string{"model", "num-users", "benchtime", "gpu-mem-gb", "cpu-mem-gb",
	"max-concurrent-allocs", "generation-mode", "performance-profile"}

// parameter is the value that a result has on record; numbers are numbers, and the window is in
// seconds.
func parameter(r *result.Result, name string) any {
	i := slices.IndexFunc(r.Parameters, func(p result.Parameter) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	text := fmt.Sprint(r.Parameters[i].Value)
	if text == "" || text == "–" {
		return nil // the text of results for a value that was not given
	}
	if d, err := time.ParseDuration(text); err == nil && name == "benchtime" {
		return d.Seconds()
	}
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) { // JSON lacks these
		return n
	}
	return text
}

// metadata describes the run for validators.
func (s *Submission) metadata(dir string, sum *merge.Summary) *metadata {
	first := s.tree.Files[0].Result
	m := &metadata{BenchmarkType: "kv_cache", Model: s.model(), KVCacheModel: s.model(),
		Command: "run", RunDatetime: sum.RunDatetime, NumProcesses: sum.TotalRanks, ResultDir: dir,
		Parameters: values{}, Overrides: values{}, Notice: sum.Notice, Options: map[string]values{},
		Hosts: []string{}}
	var begin, end time.Time
	for _, f := range s.tree.Files {
		// In the order of ranks, as they were started.
		if h := f.Result.Environment.Hostname; h != "" && !slices.Contains(m.Hosts, h) {
			m.Hosts = append(m.Hosts, h)
		}
		if from, to, ok := window(f.Result); ok {
			if begin.IsZero() || from.Before(begin) {
				begin = from
			}
			if to.After(end) {
				end = to
			}
		}
		// All of a group have the same settings, or they would be two groups.
		if m.Options[f.Group] == nil {
			given := values{}
			for _, name := range fixedParameters {
				given[name] = parameter(f.Result, name)
			}
			m.Options[f.Group] = given
		}
	}
	// Set-up before the first window and clean-up behind the last are not in it, pauses are.
	if !begin.IsZero() {
		m.RuntimeS = new(end.Sub(begin).Seconds())
	}
	for name, v := range m.Options[s.tree.Files[0].Group] {
		// The Python benchmark's spelling, by which reports of mlpstorage look for them; its
		// duration is what Go calls benchtime.
		name = strings.ReplaceAll(strings.ReplaceAll(name, "benchtime", "duration"), "-", "_")
		m.Parameters[name] = v
	}
	m.Parameters["cache_dir"] = parameter(first, "cache-dir")
	// Those of mlpstorage's own flags that a run of ours has, too.
	m.Args = values{"mode": s.Division, "orgname": s.Organisation, "systemname": s.System,
		"seed": parameter(first, "seed"), "trials": sum.TrialsPerOption,
		"inter_option_delay": nil, "config": parameter(first, "config"),
		"npernode": sum.NPerNode, "num_processes": sum.TotalRanks, "hosts": m.Hosts}
	if list := pauses(s.tree); len(list) > 0 {
		least := slices.MinFunc(list, func(a, b pause) int {
			return cmp.Compare(a.length, b.length)
		})
		m.Args["inter_option_delay"] = least.length.Seconds()
	}
	return m
}

// window is when a trial's window was, by the clock of the coordinator's host.
func window(r *result.Result) (from, to time.Time, ok bool) {
	from, err := r.Coordinated(r.StartTime)
	return from, from.Add(time.Duration(r.WindowNS)), err == nil
}

// logs writes what each trial printed, in files named as mlpstorage's are, and copies what the
// submitter kept of the run's output: *.log in the results directory itself.
func (s *Submission) logs(dir, stamp string, m *metadata) error {
	texts := map[string]*bytes.Buffer{} // by file
	// One pair of files for a trial with all its ranks: mpirun prints them into one.
	for _, f := range s.tree.Files {
		name := fmt.Sprintf("kvcache_%s_trial%d_%s",
			strings.Replace(directory(f.Group), "option_", "opt", 1), f.Trial, stamp)
		files := outputFiles{Stdout: name + ".stdout.log", Stderr: name + ".stderr.log"}
		if texts[files.Stdout] == nil {
			m.OutputFiles = append(m.OutputFiles, files)
			texts[files.Stdout] = bytes.NewBufferString(m.Notice + "\n")
			texts[files.Stderr] = bytes.NewBufferString(m.Notice + "\n")
		}
		out, errs := texts[files.Stdout], texts[files.Stderr]
		fmt.Fprintf(out, "\nrank %d: %s\n", f.Rank, merge.Fate(f.Result))
		// Its lines are what the trial printed at its end.
		text, err := os.ReadFile(filepath.Join(s.Dir, filepath.Dir(filepath.FromSlash(f.Path)),
			"summary.txt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		out.Write(text)
		for _, w := range f.Result.Warnings {
			fmt.Fprintf(errs, "rank %d: %s\n", f.Rank, w)
		}
		// The result has the first failures of each kind, and these are printed.
		for _, e := range f.Result.ErrorSamples {
			fmt.Fprintf(errs, "rank %d: %s: %s\n", f.Rank, e.Operation, e.Message)
		}
	}
	for file, text := range texts {
		if err := putBytes(filepath.Join(dir, file), text.Bytes()); err != nil {
			return err
		}
	}
	// Deeper logs are the trials'; a run's own output is at the top, if it was kept.
	kept, err := fs.Glob(os.DirFS(s.Dir), "*.log")
	for _, name := range kept {
		err = errors.Join(err, copyFile(filepath.Join(s.Dir, name), filepath.Join(dir, name)))
	}
	return err
}

// writeJSON writes the metadata as mlpstorage does, with two spaces.
func (m *metadata) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(m)
}
