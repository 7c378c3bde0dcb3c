package submission

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/view/xlsx"
)

// values are keys of a JSON object, or parameters on record as they were given.
type values = map[string]any

// The parameters that Table KVCache-1 fixes, and the others in mlpstorage's metadata.
var fixedParameters = []string{"model", "num-users", "benchtime", "gpu-mem-gb", "cpu-mem-gb",
	"max-concurrent-allocs", "generation-mode", "performance-profile"}

// parameter is the value that a result has on record, null where it was not given; the window is in
// seconds.
func parameter(r *result.Result, name string) any {
	v := r.Parameter(name)
	if d, err := time.ParseDuration(fmt.Sprint(v)); err == nil && name == "benchtime" {
		return d.Seconds()
	}
	return xlsx.Typed(v)
}

// metadata is kv_cache_<start>_metadata.json: the keys of mlpstorage's that a validator reads, in
// its types. Rule 6.3.2.1 requires seed, trials and the pause between options. Values that no
// result has are null, and keys that only mlpstorage's launcher knows are left out. The directory
// is the run's below the tree's top.
func (s *Submission) metadata(dir string, sum *merge.Summary, logs []values) values {
	first := s.tree.Files[0]
	options := map[string]values{} // one run has two models
	hosts := []string{}
	var begin, end time.Time
	for _, f := range s.tree.Files {
		// In the order of ranks, as they were started.
		if h := f.Result.Environment.Hostname; h != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
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
		if options[f.Group] == nil {
			options[f.Group] = values{}
			for _, name := range fixedParameters {
				options[f.Group][name] = parameter(f.Result, name)
			}
		}
	}
	parameters := values{"cache_dir": parameter(first.Result, "cache-dir")}
	for name, v := range options[first.Group] {
		// The Python benchmark's spelling, by which reports of mlpstorage look for them; its
		// duration is what Go calls benchtime.
		name = strings.ReplaceAll(strings.ReplaceAll(name, "benchtime", "duration"), "-", "_")
		parameters[name] = v
	}
	var pause, runtime any
	if list := pauses(s.tree); len(list) > 0 {
		pause = slices.MinFunc(list, func(a, b pauseBetween) int {
			return cmp.Compare(a.length, b.length)
		}).length.Seconds()
	}
	// Set-up before the first window and clean-up behind the last are not in it, pauses are.
	if !begin.IsZero() {
		runtime = end.Sub(begin).Seconds()
	}
	return values{"benchmark_type": "kv_cache", "model": s.model(), "kvcache_model": s.model(),
		"command": "run", "run_datetime": sum.RunDatetime, "num_processes": sum.TotalRanks,
		"accelerator": nil, "result_dir": dir, "parameters": parameters,
		"override_parameters": values{}, "runtime": runtime, "executed_command": nil,
		"command_output_files": logs, "hosts": hosts, "notice": sum.Notice, "options": options,
		// Those of mlpstorage's own flags that a run of ours has, too.
		"args": values{"mode": s.Division, "orgname": s.Organisation, "systemname": s.System,
			"seed": parameter(first.Result, "seed"), "trials": sum.TrialsPerOption,
			"inter_option_delay": pause, "config": parameter(first.Result, "config"),
			"npernode": sum.NPerNode, "num_processes": sum.TotalRanks, "hosts": hosts}}
}

// window is when a trial's window was, by the clock of the coordinator's host.
func window(r *result.Result) (from, to time.Time, ok bool) {
	from, err := r.Coordinated(r.StartTime)
	return from, from.Add(time.Duration(r.WindowNS)), err == nil
}

// logs writes what each trial printed, in files named as mlpstorage's are, and copies what the
// submitter kept of the run's output: *.log in the results directory itself. It returns the names
// of the trials' files.
func (s *Submission) logs(dir string, sum *merge.Summary) (list []values, err error) {
	texts := map[string]*bytes.Buffer{} // by file
	// One pair of files for a trial with all its ranks: mpirun prints them into one.
	for _, f := range s.tree.Files {
		name := fmt.Sprintf("kvcache_%s_trial%d_%s",
			strings.Replace(directory(f.Group), "option_", "opt", 1), f.Trial, sum.Stamp())
		stdout, stderr := name+".stdout.log", name+".stderr.log"
		if texts[stdout] == nil {
			list = append(list, values{"command": nil, "stdout": stdout, "stderr": stderr})
			texts[stdout] = bytes.NewBufferString(sum.Notice + "\n")
			texts[stderr] = bytes.NewBufferString(sum.Notice + "\n")
		}
		out, errs := texts[stdout], texts[stderr]
		fmt.Fprintf(out, "\nrank %d: %s\n", f.Rank, merge.Fate(f.Result))
		// Its lines are what the trial printed at its end.
		text, err := os.ReadFile(filepath.Join(s.Dir, filepath.Dir(filepath.FromSlash(f.Path)),
			"summary.txt"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
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
			return nil, err
		}
	}
	// Deeper logs are the trials'; a run's own output is at the top, if it was kept.
	kept, err := fs.Glob(os.DirFS(s.Dir), "*.log")
	for _, name := range kept {
		err = errors.Join(err, copyFile(filepath.Join(s.Dir, name), filepath.Join(dir, name)))
	}
	return list, err
}
