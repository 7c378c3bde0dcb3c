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

// JSONFiles calls f for each JSON file below dir whose name begins with prefix, in lexical order.
// It skips hidden files.
func JSONFiles(dir, prefix string, f func(path string) error) error {
	// With a trailing separator the kernel follows dir if dir is a symbolic link.
	dir += string(filepath.Separator)
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" ||
			strings.HasPrefix(d.Name(), ".") || !strings.HasPrefix(d.Name(), prefix) {
			return err
		}
		return f(path)
	})
}

// Parse reads a result file of kvbench or of the Python benchmark. For a Python file, res is nil
// and python is true. The error has the name and the line.
func Parse(name string, data []byte) (res *result.Result, python bool, err error) {
	res, python, err = Decode(data)
	return res, python, Located(name, data, err)
}

// ErrNoResult is the error for a JSON file that is no result. Such a file in a directory is
// skipped. Such a file on the command line is an error.
var ErrNoResult = errors.New("not a benchmark result: it has no requests")

// Decode is Parse without the name and the line in the error.
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
	// In a file of several JSON objects, such as a log, the first object decides.
	if err != nil && json.NewDecoder(bytes.NewReader(data)).Decode(&top) != nil {
		return nil, false, err
	}
	// A kvbench result has schema_version and requests, in schema 2 a summary. A Python result has
	// no schema_version, but a summary and requests_completed.
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

// IsTruncated reports whether err is a JSON syntax error at the end of data.
func IsTruncated(data []byte, err error) bool {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	return ok && int(syntax.Offset) >= len(data)
}

// Located returns err with the prefix "name:line: ". The line comes from the offset in an error of
// encoding/json, else it is 1. It returns nil for nil.
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

// Fate returns the status of a result, with its error if there is one.
func Fate(r *result.Result) string { return strings.TrimSuffix(r.Status+": "+r.Error, ": ") }
