package merge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"kvbench/kvbench/result"
)

// JSONFiles finds the JSON files below dir whose names begin so, in the order of their names.
func JSONFiles(dir, prefix string, f func(path string) error) error {
	// A link that is named is followed, as the trailing separator makes the kernel do.
	dir += string(filepath.Separator)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" ||
			strings.HasPrefix(d.Name(), ".") || !strings.HasPrefix(d.Name(), prefix) {
			return err
		}
		return f(path)
	})
}

// Parse reads a result file, of ours or of the Python benchmark, of which there is no Result. The
// error names the line.
func Parse(name string, data []byte) (res *result.Result, python bool, err error) {
	res, python, err = Decode(data)
	return res, python, Located(name, data, err)
}

// ErrNoResult is the error of a file that is JSON of another kind. Directories hold such files; named by
// itself it is a mistake.
var ErrNoResult = errors.New("not a benchmark result: it has no requests")

// Decode is Parse without the line.
func Decode(data []byte) (*result.Result, bool, error) {
	var top struct {
		Schema   json.RawMessage `json:"schema_version"`
		Requests json.RawMessage `json:"requests"`
		Summary  json.RawMessage `json:"summary"`
		Done     json.RawMessage `json:"requests_completed"`
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, false, errors.New("it is empty")
	}
	err := json.Unmarshal(data, &top)
	if IsTruncated(data, err) {
		return nil, false, fmt.Errorf("truncated JSON: %w", err)
	}
	// Of a file of several objects, such as a log, the first one decides.
	if err != nil && json.NewDecoder(bytes.NewReader(data)).Decode(&top) != nil {
		return nil, false, err
	}
	// Ours has a version and requests, in schema 2 a summary; the Python benchmark's has a summary
	// and counts completed requests at the top.
	object := func(v json.RawMessage) bool { return bytes.HasPrefix(v, []byte("{")) }
	python := top.Schema == nil
	if python && (top.Done == nil || !object(top.Summary)) ||
		!python && !object(top.Requests) && !object(top.Summary) {
		return nil, python, ErrNoResult
	}
	if python || err != nil {
		return nil, python, err
	}
	res, err := result.Parse(data)
	return res, false, err
}

// IsTruncated reports whether decoding failed at the end of the data.
func IsTruncated(data []byte, err error) bool {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && int(syntax.Offset) >= len(data)
}

// Located puts the file and the line at which decoding stopped before an error. Editors jump to
// lines, and the errors of encoding/json have offsets.
func Located(name string, data []byte, err error) error {
	if err == nil {
		return nil
	}
	at := 0
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = int(syntax.Offset)
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = int(kind.Offset)
	}
	data = bytes.TrimRight(data, "\n")
	line := 1 + bytes.Count(data[:min(at, len(data))], []byte("\n"))
	return fmt.Errorf("%s:%d: %w", name, line, err)
}

// Fate is how a trial ended: why its numbers are not used, if it failed.
func Fate(r *result.Result) string { return strings.TrimSuffix(r.Status+": "+r.Error, ": ") }
