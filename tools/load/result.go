package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/result"
)

// errNotResult marks a JSON that is neither our result nor the Python benchmark's. Directories
// hold such files; named by themselves they are a mistake.
var errNotResult = errors.New("not a benchmark result: it has no summary")

// resultFile reads a result JSON of ours or of the Python benchmark.
func (r *reader) resultFile(in io.Reader, name string) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	rec, err := Parse(name, data)
	if err != nil {
		return err
	}
	return r.emitFile(rec)
}

// Parse makes a record of a result file, of ours or of the Python benchmark. The error names the
// line.
func Parse(name string, data []byte) (*Record, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%s:1: it is empty", name)
	}
	rec := &Record{File: name, Path: name}
	if err := rec.parse(data); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, lineOf(data, err), err)
	}
	return rec, nil
}

// emitFile makes the record of a result file that stands for itself. A directory is often read
// beside the text that named its files: those have their record already.
func (r *reader) emitFile(rec *Record) error {
	path := absolute(rec.Path)
	if r.seen[path] {
		return nil // its line was read already
	}
	r.seen[path] = true
	rec.Name = nameOf(rec.Result, rec.Path)
	rec.Values = fileValues(rec)
	return r.emit(rec)
}

// directory reads the result files below dir. Other JSON files there are none of our business.
func (r *reader) directory(dir string) error {
	found := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() || strings.HasPrefix(d.Name(), ".") || filepath.Ext(path) != ".json" {
			return nil
		}
		// Other programs keep JSON beside results. Files that are named as results must be some.
		before := r.out.Records
		ours := strings.HasPrefix(d.Name(), "kvcache_results")
		switch err := r.file(path); {
		case err != nil && ours:
			return err
		case err != nil:
			return nil
		}
		if found++; r.out.Records == before {
			found--
		}
		return nil
	})
	if err != nil {
		return err
	}
	// A directory without results is a mistake, unless its results came by way of a text.
	if found == 0 && !r.below(dir) {
		return fmt.Errorf("%s: no benchmark result in this directory", dir)
	}
	return nil
}

// below says whether results from inside dir were read already, by way of the lines that name them.
func (r *reader) below(dir string) bool {
	prefix := absolute(dir) + string(filepath.Separator)
	for path := range r.seen {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// parse fills in what a result file gives.
func (rec *Record) parse(data []byte) error {
	var top struct {
		Schema  *string         `json:"schema_version"`
		Summary json.RawMessage `json:"summary"`
		Done    json.RawMessage `json:"requests_completed"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		if isTruncated(data, err) {
			return fmt.Errorf("truncated JSON: %w", err)
		}
		return err
	}
	// Both schemas have a summary; only ours has a version, and only the Python benchmark's counts
	// completed requests at the top.
	if len(top.Summary) == 0 || top.Summary[0] != '{' {
		return errNotResult
	}
	if top.Schema == nil {
		if top.Done == nil {
			return errNotResult
		}
		rec.Raw, rec.Python = data, true
		return nil
	}
	res, err := result.Parse(data)
	if err != nil {
		return err
	}
	rec.Raw, rec.Result = data, res
	return nil
}

// isTruncated says whether decoding failed at the end of the data.
func isTruncated(data []byte, err error) bool {
	var syntax *json.SyntaxError
	return errors.As(err, &syntax) && int(syntax.Offset) >= len(data)
}

// lineOf is the line at which decoding stopped. Editors jump to lines, and the errors of
// encoding/json have offsets.
func lineOf(data []byte, err error) int {
	at := len(bytes.TrimRight(data, "\n"))
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		at = min(int(syntax.Offset), at)
	case errors.As(err, &kind):
		at = min(int(kind.Offset), at)
	default:
		return 1
	}
	return 1 + bytes.Count(data[:at], []byte("\n"))
}

// cause shortens the error of a file operation whose file is named anyway. The path would stand in
// the message twice.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// subKey is where a results directory joined the parts of a benchmark's name.
var subKey = regexp.MustCompile(`_([a-z][a-z0-9-]*=)`)

// nameOf is the benchmark's name of a result file. Results without it have it in their directory,
// which ends in <name>/trial_<T>/rank_<N>.
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

// fileValues are the values of the benchmark line that a result file would have had. A trial that
// failed has none: its numbers are those of a part of the window.
func fileValues(rec *Record) (out []benchfmt.Value) {
	var metrics []result.Metric
	switch {
	case rec.Python:
		metrics = pythonMetrics(rec.Raw)
	case rec.Result.Status == result.StatusComplete:
		metrics = rec.Result.Metrics()
	}
	for _, m := range metrics {
		out = append(out, tidy(m.Value, m.Unit))
	}
	return out
}

// tidy makes a value as benchfmt reads it.
func tidy(value float64, unit string) benchfmt.Value {
	v, u := benchunit.Tidy(value, unit)
	if v == value {
		return benchfmt.Value{Value: value, Unit: unit}
	}
	return benchfmt.Value{Value: v, Unit: u, OrigValue: value, OrigUnit: unit}
}
