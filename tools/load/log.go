package load

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// What the testing package prints around the log of a benchmark. The formats are those of go test,
// with and without -v; the log's own lines begin with the place in the source.
var (
	benchLog = []byte("--- BENCH: ")
	failLog  = []byte("--- FAIL: Benchmark")
	running  = []byte("=== RUN")
	pathLog  = []byte(": result: ")
	logPlace = regexp.MustCompile(`^.+\.go:[0-9]+$`)
)

// logKind says to which benchmark a log line belongs.
type logKind int

const (
	logOfNext logKind = iota // with -v logs are printed as they are written, before the result line
	logOfLast                // without it behind the result line, below "--- BENCH"
	logOfNone                // a failed benchmark has no result line
)

// log takes in a line that may begin the log of another benchmark, or name a result file.
func (p *packageText) log(line []byte, at int) {
	switch {
	case bytes.HasPrefix(line, benchLog):
		p.logOf = logOfLast
	case bytes.HasPrefix(line, failLog):
		p.logOf, p.next = logOfNone, nil
	case bytes.HasPrefix(line, running):
		p.logOf, p.next = logOfNext, nil
	}
	place, path, ok := bytes.Cut(line, pathLog)
	if !ok || len(path) == 0 || !logPlace.Match(place) {
		return
	}
	if p.logOf == logOfLast && p.last != nil {
		p.last.Path = string(path)
		return
	}
	rec := p.record(at)
	rec.Path = string(path)
	// A record that no result line completes is that of a benchmark that failed.
	if p.logOf != logOfNone {
		p.next = rec
	}
}

// emitLine completes a record of a text with its result file. A file that cannot be had is no
// error: the line stands for itself.
func (r *reader) emitLine(rec *Record) error {
	// The numbers of the line stand, even where the file has more digits: what is printed is what
	// is compared everywhere.
	if named := rec.Path; named != "" {
		rec.Path = locate(named, rec.File)
		data, err := os.ReadFile(rec.Path)
		if err == nil {
			err = rec.parse(data)
		}
		if err == nil {
			r.seen[absolute(rec.Path)] = true
		} else {
			if file, ok := errors.AsType[*fs.PathError](err); ok {
				err = file.Err // the file is named anyway
			}
			rec.Missing = fmt.Sprintf("%s:%d: result %s: %v", rec.File, rec.Line, named, err)
			rec.Path = ""
		}
	}
	if rec.Name == "" {
		if rec.Result == nil {
			r.warn(rec.File, rec.Line, "a failed benchmark left no result: %s", rec.Missing)
			return nil
		}
		rec.Name = nameOf(rec.Result, rec.Path)
	}
	return r.emit(rec)
}

// locate finds a result file that moved together with the text that names it: the longest tail of
// its path that exists below the text's directory. Without one it stays where it was.
func locate(path, text string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// Paths in a log are absolute, of the machine that ran.
	parts := strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
	// At least trial, rank and file: a bare file name could be anybody's.
	// From the longest tail on: the more of a path is the same, the surer is the match.
	for ; len(parts) >= 3; parts = parts[1:] {
		moved := filepath.Join(filepath.Dir(text), filepath.Join(parts...))
		if info, err := os.Stat(moved); err == nil && !info.IsDir() {
			return moved
		}
	}
	return path
}

// absolute makes two spellings of a path one: a file that is named twice is one trial.
func absolute(path string) string {
	abs, _ := filepath.Abs(path)
	return cmp.Or(abs, path)
}
