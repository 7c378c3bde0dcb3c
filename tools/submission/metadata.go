package submission

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// values is a JSON object.
type values = map[string]any

// fixedParameters are the parameters of Table KVCache-1 and other parameters in mlpstorage's metadata.
var fixedParameters = []string{"model", "num-users", "benchtime", "gpu-mem-gb", "cpu-mem-gb",
	"max-concurrent-allocs", "generation-mode", "performance-profile"}

// parameter returns the recorded value of a parameter, a number if it is one, or nil if the result has
// none. benchtime is in seconds.
func parameter(r *result.Result, name string) any {
	v := r.Parameter(name)
	text, ok := v.(string)
	if !ok {
		return v
	}
	if d, err := time.ParseDuration(text); err == nil && name == "benchtime" {
		return d.Seconds()
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	if text == "" || text == "–" {
		return nil
	}
	return text
}

// metadata returns the content of kv_cache_<start>_metadata.json: the keys of mlpstorage that a
// validator reads, in mlpstorage's types, where its older and its newer tools look for them. Rule 6.3.2.1
// requires seed, trials and the pause between options. A value that no result has is null. Keys that only mlpstorage's launcher knows are left out.
// dir is the run's directory relative to the top of the tree.
func (s *Submission) metadata(dir string, sum *merge.Summary, logs []values) values {
	first := s.tree.Files[0]
	options := map[string]values{} // by group: the third option has another model
	hosts := []string{}
	var begin, end time.Time
	for _, f := range s.tree.Files {
		// In the order of the ranks, in which mpirun starts the hosts.
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
		// All results of a group have the same settings.
		if options[f.Group] == nil {
			options[f.Group] = values{}
			for _, name := range fixedParameters {
				options[f.Group][name] = parameter(f.Result, name)
			}
		}
	}
	// Tools of MLPerf Storage look for the Python benchmark's names: underscores, and duration instead of
	// benchtime. Older ones take the parameters of the first option, newer ones those of each.
	python := func(name string) string {
		return strings.ReplaceAll(strings.ReplaceAll(name, "benchtime", "duration"), "-", "_")
	}
	byOption, features := values{}, values{}
	parameters := values{"cache_dir": parameter(first.Result, "cache-dir"), "options": byOption, "features": features}
	for group, list := range options {
		table := values{}
		for _, name := range fixedParameters[:7] {
			table[python(name)] = list[name]
		}
		byOption[group] = table
	}
	for name, v := range options[first.Group] {
		parameters[python(name)] = v
	}
	maps.Copy(parameters, placeholders)
	for _, d := range first.Result.DiffersFromClosed {
		if slices.Contains(fixedParameters, d.Name) {
			parameters[python(d.Name)] = options[first.Group][d.Name]
		} else {
			features[python(d.Name)] = d.Value
		}
	}
	var pause, runtime any
	if list := pauses(s.tree); len(list) > 0 {
		pause = slices.MinFunc(list, func(a, b pauseBetween) int {
			return cmp.Compare(a.length, b.length)
		}).length.Truncate(time.Second).Seconds()
	}
	// The runtime includes the pauses, but no set-up before the first window and no clean-up at the end.
	if !begin.IsZero() {
		runtime = end.Sub(begin).Seconds()
	}
	config := parameter(first.Result, "config")
	parameters["sequence"] = values{"seed": parameter(first.Result, "seed"), "trials": sum.TrialsPerOption,
		"inter_option_delay_s": pause, "config": cmp.Or(config, any("default"))}
	return values{"benchmark_type": "kv_cache", "model": s.model(), "kvcache_model": s.model(),
		"command": "run", "run_datetime": sum.RunDatetime, "num_processes": sum.TotalRanks,
		"accelerator": nil, "result_dir": dir, "parameters": parameters,
		"override_parameters": values{}, "runtime": runtime, "executed_command": nil,
		"command_output_files": logs, "hosts": hosts, "notice": sum.Notice, "options": options,
		// Flags of mlpstorage that kvbench also has.
		"args": values{"mode": s.Division, "orgname": s.Organisation, "systemname": s.System,
			"seed": parameter(first.Result, "seed"), "trials": sum.TrialsPerOption,
			"inter_option_delay": pause, "config": config,
			"npernode": sum.NPerNode, "num_processes": sum.TotalRanks, "hosts": hosts}}
}

// window returns the start and the end of a trial's window, by the clock of the coordinator's host.
func window(r *result.Result) (from, to time.Time, ok bool) {
	from, err := r.Coordinated(r.StartTime)
	return from, from.Add(time.Duration(r.WindowNS)), err == nil
}

// addLogs adds two files per trial, named as mlpstorage names them: the summary of each rank, and its
// warnings and errors. It adds the submitter's logs of the run, *.log in the results directory. It
// returns the names of the trials' files.
func (s *Submission) addLogs(out *output, dir string, sum *merge.Summary) (list []values) {
	texts := map[string]*bytes.Buffer{} // by file name
	// One pair of files has all ranks of a trial, as with mpirun.
	for _, f := range s.tree.Files {
		name := fmt.Sprintf("kvcache_%s_trial%d_%s",
			strings.Replace(directory(f.Group), "option_", "opt", 1), f.Trial, sum.Stamp())
		stdout, stderr := name+".stdout.log", name+".stderr.log"
		if texts[stdout] == nil {
			list = append(list, values{"command": nil, "stdout": stdout, "stderr": stderr})
			texts[stdout] = bytes.NewBufferString(sum.Notice + "\n")
			texts[stderr] = bytes.NewBufferString(sum.Notice + "\n")
		}
		fmt.Fprintf(texts[stdout], "\nrank %d: %s\n", f.Rank, merge.Fate(f.Result))
		text, _ := os.ReadFile(s.summary(f)) // build reports an error
		texts[stdout].Write(text)
		for _, w := range f.Result.Warnings {
			fmt.Fprintf(texts[stderr], "rank %d: %s\n", f.Rank, w)
		}
		// ErrorSamples has the first errors of each kind.
		for _, e := range f.Result.ErrorSamples {
			fmt.Fprintf(texts[stderr], "rank %d: %s: %s\n", f.Rank, e.Operation, e.Message)
		}
	}
	for file, text := range texts {
		out.add(path.Join(dir, file), text.Bytes(), nil)
	}
	// Only logs at the top of the directory. Logs below are logs of trials.
	kept, _ := fs.Glob(os.DirFS(s.Dir), "*.log") // fails only for an invalid pattern
	for _, name := range kept {
		out.copy(path.Join(dir, name), filepath.Join(s.Dir, name))
	}
	return list
}
