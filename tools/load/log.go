package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// What the testing package prints around the log of a benchmark. The formats are those of go test,
// with and without -v.
var (
	benchLog = []byte("--- BENCH: ")
	failLog  = []byte("--- FAIL: Benchmark")
	running  = []byte("=== RUN")
	pathLog  = []byte(": result: ")
)

// logKind says to which benchmark a log line belongs.
type logKind int

const (
	logOfNext logKind = iota // with -v logs are printed as they are written, before the result line
	logOfLast                // without it behind the result line, below "--- BENCH"
	logOfNone                // a failed benchmark has no result line
)

// logReader follows the lines of a text: whose log begins, and which result file it names.
type logReader struct {
	file    string
	line    int
	records []*Record

	held   *Record // the last result line, until its log has passed
	logOf  logKind // whose log the coming lines are
	named  string  // a result file named in the log of a benchmark whose line is still to come
	config []benchfmt.Config
}

// result holds a result line until its log has passed.
func (l *logReader) result(rec *Record) {
	l.release()
	l.held, l.config = rec, rec.Config
	rec.Path, l.named = l.named, ""
	l.logOf = logOfNext
}

// read takes in a line that is no result.
func (l *logReader) read(line []byte) {
	switch {
	case bytes.HasPrefix(line, benchLog):
		l.logOf = logOfLast
	case bytes.HasPrefix(line, failLog):
		l.logOf = logOfNone
		l.orphan()
	case bytes.HasPrefix(line, running):
		l.logOf = logOfNext
		l.orphan()
	}
	at := bytes.Index(line, pathLog)
	if at < 0 || !sourcePosition(line[:at]) {
		return
	}
	path := string(line[at+len(pathLog):])
	switch {
	case path == "":
	case l.logOf == logOfLast && l.held != nil:
		l.held.Path = path
	default:
		l.orphan()
		l.named = path
		if l.logOf == logOfNone {
			l.orphan()
		}
	}
}

// orphan makes a record of the result file that was named by a benchmark without a result line: it
// failed.
func (l *logReader) orphan() {
	if l.named == "" {
		return
	}
	l.release()
	l.records = append(l.records, &Record{File: l.file, Line: l.line, Path: l.named,
		Config: l.config})
	l.named = ""
}

// release lets the last result line go: another one, or the end, follows.
func (l *logReader) release() {
	if l.held != nil {
		l.records = append(l.records, l.held)
	}
	l.held = nil
}

// sourcePosition says whether text is what the testing package puts before a log line: file.go:123.
func sourcePosition(text []byte) bool {
	name, line, ok := bytes.Cut(text, []byte(".go:"))
	return ok && len(name) > 0 && len(line) > 0 && bytes.Trim(line, "0123456789") == nil
}

// emitLine completes a record of a text with its result file. A file that cannot be had is no
// error: the line stands for itself.
func (r *reader) emitLine(rec *Record) error {
	// The numbers of the line stand, even where the file has more digits: what is printed is what
	// is compared everywhere.
	if rec.Path != "" {
		named := rec.Path
		rec.Path = r.locate(named, rec.File)
		data, err := os.ReadFile(rec.Path)
		if err == nil {
			err = rec.parse(data)
		}
		if err != nil {
			rec.Missing = fmt.Errorf("%s:%d: result %s: %w", rec.File, rec.Line, named, cause(err))
			rec.Path = ""
		} else {
			r.seen[absolute(rec.Path)] = true
		}
	}
	if rec.Name == "" && rec.Result == nil {
		r.warn(rec.File, rec.Line, "a failed benchmark left no result: %v", rec.Missing)
		return nil
	}
	if rec.Name == "" {
		rec.Name = nameOf(rec.Result, rec.Path)
	}
	return r.emit(rec)
}

// locate finds a result file that moved together with the text that names it: the longest tail of
// its path that exists below the text's directory. Without one it stays where it was.
func (r *reader) locate(path, text string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// Paths in a log are absolute, of the machine that ran.
	dir := filepath.Dir(text)
	parts := strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
	// At least trial, rank and file: a bare file name could be anybody's.
	// From the longest tail on: the more of a path is the same, the surer is the match.
	for i := 0; i+3 <= len(parts); i++ {
		moved := filepath.Join(dir, filepath.Join(parts[i:]...))
		if info, err := os.Stat(moved); err == nil && !info.IsDir() {
			return moved
		}
	}
	return path
}

// absolute makes two spellings of a path one: a file that is named twice is one trial.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
