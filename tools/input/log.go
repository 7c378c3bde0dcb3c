package input

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

var (
	benchLog = []byte("--- BENCH: ")
	failLog  = []byte("--- FAIL: Benchmark")
	running  = []byte("=== RUN")
	pathLog  = []byte(": result: ")
)

// log follows the lines that are no results: whose log begins, and which result file it names.
func (s *scanner) log(line []byte) error {
	switch {
	case bytes.HasPrefix(line, benchLog):
		s.logOf = logOfLast
	case bytes.HasPrefix(line, failLog):
		s.logOf = logOfNone
		return s.orphan()
	case bytes.HasPrefix(line, running):
		s.logOf = logOfNext
		return s.orphan()
	}
	at := bytes.Index(line, pathLog)
	if at < 0 || !sourcePosition(line[:at]) {
		return nil
	}
	path := string(line[at+len(pathLog):])
	switch {
	case path == "":
	case s.logOf == logOfLast && s.held != nil:
		s.held.Path = path
	default:
		if err := s.orphan(); err != nil {
			return err
		}
		s.named = path
		if s.logOf == logOfNone {
			return s.orphan()
		}
	}
	return nil
}

// sourcePosition says whether text is what the testing package puts before a log line: file.go:123.
func sourcePosition(text []byte) bool {
	name, line, ok := bytes.Cut(text, []byte(".go:"))
	return ok && len(name) > 0 && len(line) > 0 && bytes.Trim(line, "0123456789") == nil
}

// orphan emits the result file that was named by a benchmark without a result line: it failed.
func (s *scanner) orphan() error {
	if s.named == "" {
		return nil
	}
	rec := &Record{File: s.file, Line: s.line, Path: s.named, Config: s.config}
	s.named = ""
	if err := s.release(); err != nil {
		return err
	}
	return s.emit(rec)
}

func (s *scanner) release() error {
	rec := s.held
	if s.held = nil; rec == nil {
		return nil
	}
	return s.emit(rec)
}

// emit completes a record with its result file. A file that cannot be had is no error: the line stands for itself.
func (s *scanner) emit(rec *Record) error {
	if s.r.LinesOnly {
		if rec.Name == "" {
			return nil // a failed benchmark has no numbers
		}
		return s.r.emit(rec)
	}
	if rec.Path != "" {
		named := rec.Path
		rec.Path = s.r.locate(named, s.file)
		data, err := os.ReadFile(rec.Path)
		if err == nil {
			err = rec.parse(data)
		}
		if err != nil {
			rec.Missing = fmt.Errorf("%s:%d: result %s: %w", rec.File, rec.Line, named, cause(err))
			rec.Path = ""
		} else {
			s.r.seen[absolute(rec.Path)] = true
		}
	}
	if rec.Name == "" && rec.Result == nil {
		s.r.warn(rec.File, rec.Line, "a failed benchmark left no result: %v", rec.Missing)
		return nil
	}
	if rec.Name == "" {
		rec.Name = nameOf(rec.Result, rec.Path)
	}
	return s.r.emit(rec)
}

// locate finds a result file that moved together with the text that names it: the longest tail of its path that exists
// below the text's directory. Without one it stays where it was.
func (r *reader) locate(path, text string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	dir := filepath.Dir(text)
	parts := strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
	// At least trial, rank and file: a bare file name could be anybody's.
	for i := 0; i+3 <= len(parts); i++ {
		if !r.exists(filepath.Join(dir, parts[i])) {
			continue
		}
		moved := filepath.Join(dir, filepath.Join(parts[i:]...))
		if info, err := os.Stat(moved); err == nil && !info.IsDir() {
			return moved
		}
	}
	return path
}

// exists remembers its answers: the lines of one text share the beginnings of their paths.
func (r *reader) exists(path string) bool {
	known, ok := r.there[path]
	if !ok && len(r.there) < 10_000 {
		_, err := os.Stat(path)
		known = err == nil
		r.there[path] = known
		return known
	}
	return known || !ok
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
