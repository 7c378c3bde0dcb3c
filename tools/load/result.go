package load

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// Parse makes a record of a result file of kvbench or of the Python benchmark. An error has the line.
func Parse(name string, data []byte) (*Record, error) {
	rec := &Record{File: name, Path: name}
	return rec, merge.Located(name, data, rec.parse(data))
}

// parse sets the fields that come from a result file.
func (rec *Record) parse(data []byte) error {
	res, python, err := merge.Decode(data)
	if err == nil {
		rec.Raw, rec.Result, rec.Python = data, res, python
	}
	return err
}

// resultFile makes the record of a result file, unless the file already has one: a text that was read
// before may have named it.
func (r *reader) resultFile(data []byte, name string) error {
	rec, err := Parse(name, data)
	if err != nil {
		return err
	}
	path := absolute(name)
	if r.seen[path] {
		r.again++
		return nil
	}
	r.seen[path] = true
	rec.Name = nameOf(rec.Result, rec.Path)
	rec.Values = fileValues(rec)
	return r.emit(rec)
}

// directory reads the result files below dir. It skips JSON files without a result, except for files
// with a result's name. Any other error ends it: a damaged result would be missing in a comparison that
// looks complete.
func (r *reader) directory(dir string) error {
	before := r.records + r.again
	err := merge.JSONFiles(dir, "", func(path string) error {
		err := r.file(path)
		if errors.Is(err, errEngine) && r.Warn != nil {
			r.Warn(err)
			return nil
		}
		other := errors.Is(err, merge.ErrNoResult) || errors.Is(err, errNothing)
		if other && !strings.HasPrefix(filepath.Base(path), "kvcache_results") {
			return nil
		}
		if err != nil {
			err = fmt.Errorf("%w; nothing in %s was used: repair, move or remove this file, or "+
				"name the other files", err, dir)
		}
		return err
	})
	// A directory without results is an error, unless a text already named its results.
	if err == nil && r.records+r.again == before {
		err = fmt.Errorf("%s: no benchmark result in this directory", dir)
	}
	return err
}

// absolute returns an absolute path, so that a file that is named twice is one trial.
func absolute(path string) string {
	abs, _ := filepath.Abs(path)
	return cmp.Or(abs, path)
}

// subKey matches the "_" by which a results directory replaces the "/" in a benchmark's name.
var subKey = regexp.MustCompile(`_([a-z][a-z0-9-]*=)`)

// nameOf returns the benchmark's name of a result. A result without a name has it in its path, which
// ends in <name>/trial_<T>/rank_<N>.
func nameOf(res *result.Result, path string) string {
	if res == nil {
		return "PythonBenchmark"
	}
	if res.Name != "" {
		return res.Name
	}
	dir := filepath.Base(filepath.Dir(filepath.Dir(filepath.Dir(path))))
	if strings.HasPrefix(dir, res.Benchmark+"_") {
		return subKey.ReplaceAllString(dir, "/$1")
	}
	return res.Benchmark
}

// fileValues returns the values that the benchmark line of this result would have. A failed trial has
// none, because its numbers cover only a part of the window.
func fileValues(rec *Record) (out []benchfmt.Value) {
	if rec.Python {
		for _, m := range pythonMetrics {
			// The Python benchmark writes 0 both for no traffic and for unknown.
			if v, _ := rec.Lookup("summary." + m.path).(float64); v != 0 {
				out = append(out, tidy(v*m.scale, m.unit))
			}
		}
	} else if rec.Result.Status == result.StatusComplete {
		for _, m := range rec.Result.Metrics() {
			out = append(out, tidy(m.Value, m.Unit))
		}
	}
	return out
}

// Factors of the Python benchmark's values: its keys say gbps for GiB/s, and its times are in ms.
const gib, ms = 1 << 30, 1e6

// pythonMetrics are the units of the benchmark line for which a Python result has a key of the same
// meaning.
var pythonMetrics = []struct {
	unit, path string
	scale      float64
}{
	{"req/s", "requests_per_second", 1},
	{"tok/s", "avg_throughput_tokens_per_sec", 1},
	{"storage-tok/s", "storage_throughput_tokens_per_sec", 1},
	{"read-B/s", "cache_stats.tier_storage_read_bandwidth_gbps", gib},
	{"write-B/s", "cache_stats.tier_storage_write_bandwidth_gbps", gib},
	{"read-p50-ns", "cache_stats.storage_read_device_p50_ms", ms},
	{"read-p95-ns", "cache_stats.storage_read_device_p95_ms", ms},
	{"read-p99-ns", "cache_stats.storage_read_device_p99_ms", ms},
	{"write-p95-ns", "cache_stats.storage_write_device_p95_ms", ms},
	{"e2e-p95-ns", "end_to_end_latency_ms.p95", ms},
}
