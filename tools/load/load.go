package load

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
)

// Stdin is the argument for standard input. A file of that name is ./-.
const Stdin = "-"

// Options are options of All. The zero value is ready to use.
type Options struct {
	Stdin io.Reader   // the input for -
	Warn  func(error) // called for every bad line, with file and line; nil ignores bad lines

	// Trials merges the ranks of a trial into one record, which follows the other records of its
	// argument. Commands that count or compare set it.
	Trials bool

	// Run is the run of all arguments; "" makes each argument a run of its own. A result counts once in a run.
	Run string

	// Engines collects the results of engines' own benchmarks; nil refuses them.
	Engines *[]Engine

	// Bpftrace accepts saved bpftrace output, which has no result. Otherwise it is an error.
	Bpftrace bool
}

// All reads the arguments in order and returns their records. An argument that does not exist, is
// empty, is truncated or has no result is an error. A bad line within text is passed to Options.Warn
// and the rest is read. The directions of units come from Unit lines, or from the suite's own list.
func All(args []string, o Options) ([]*Record, benchfmt.UnitMetadataMap, error) {
	if len(args) == 0 {
		return nil, nil, errors.New("no input; name benchmark output, result files, result " +
			"directories, or - for standard input")
	}
	r := &reader{Options: o, seen: map[string]bool{}, merged: map[string]bool{},
		units: benchfmt.UnitMetadataMap{}}
	for _, arg := range args {
		if err := errors.Join(r.argument(arg), r.fold()); err != nil {
			return nil, r.units, err
		}
	}
	// Result files have no Unit lines. Apply the suite's list last, so that a Unit line of any input
	// wins.
	for _, u := range result.Directed() {
		if r.units.Get(u.Name, "better") == nil {
			addUnit(r.units, u.Name, "better", u.Better)
		}
	}
	return r.list, r.units, nil
}

// reader is the state of one call of All.
type reader struct {
	Options
	list   []*Record
	units  benchfmt.UnitMetadataMap
	source string

	records int             // number of emitted records, ranks included
	seen    map[string]bool // result files that have a record, by path and by identity
	again   int             // number of result files that had a record already
	held    []*Record       // ranks, until the whole argument is read
	merged  map[string]bool // trials with a merged result of all ranks
}

// warn reports a line that is skipped. Other programs may break a line in the output of a long run, so a
// bad line is no error.
func (r *reader) warn(file string, line int, format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Errorf("%s:%d: %w", file, line, fmt.Errorf(format, args...)))
	}
}

// emit adds a record to the list, unless it is a copy of an earlier one.
func (r *reader) emit(rec *Record) error {
	rec.Source = cmp.Or(r.Run, rec.Source, r.source) // a record of a document keeps its run
	units := map[string]bool{}
	rec.Values = slices.DeleteFunc(rec.Values, func(v benchfmt.Value) bool {
		again := units[v.Unit]
		if units[v.Unit] = true; again {
			r.warn(rec.File, rec.Line, "%s stands twice in the line: its first value is used", cmp.Or(v.OrigUnit, v.Unit))
		}
		return again
	})
	for i, v := range rec.Values { // benchfmt does not tidy a value of 0
		if v.OrigUnit == "" {
			rec.Values[i] = tidy(v.Value, v.Unit)
		}
	}
	// A copy of a result file, as -artifacts makes, is no second trial.
	if id := rec.identity(); id != "" && r.seen[id] {
		r.again++
		return nil
	} else if id != "" {
		r.seen[id] = true
	}
	r.records++
	if format := rec.format(); format != "" {
		if err := result.CheckSchema(format); err != nil {
			return fmt.Errorf("%s: %w", rec.place(), err)
		}
	}
	if trial, rank, ok := rec.member(); ok && r.Trials {
		rec.trial, rec.rank = trial, rank
		r.held = append(r.held, rec)
		return nil
	}
	if rec.Result != nil && rec.Result.MergedRanks != nil {
		r.merged[rec.together()] = true
	}
	r.list = append(r.list, rec)
	return nil
}

// argument reads a file, a directory, or standard input.
func (r *reader) argument(arg string) error {
	r.source = printable(arg)
	if arg != Stdin {
		return r.file(arg)
	}
	if r.Options.Stdin == nil {
		return errors.New("no standard input here")
	}
	return r.content(r.Options.Stdin, "stdin")
}

// printable returns a path as UTF-8. JSON, pages and sheets would make one name of two that differ in other bytes.
func printable(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strings.Trim(strconv.Quote(path), `"`)
}

// file reads one file or directory of any kind.
func (r *reader) file(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return r.directory(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	return r.content(f, name)
}

var errNothing = errors.New("no benchmark result in it")

// content reads one file or standard input as a whole: result files are decoded whole, and a benchmark's
// log may be before or after its line. A text whose first line is too long is no output of a benchmark: the rest
// is not read.
func (r *reader) content(in io.Reader, name string) error {
	text := bufio.NewReaderSize(in, maxLine+1)
	head, _ := text.Peek(maxLine + 1) // ReadAll returns the error
	document := bytes.HasPrefix(bytes.TrimLeft(head, "\xef\xbb\xbf \t"), []byte("{"))
	if len(head) > maxLine && !document && !bytes.Contains(head, []byte("\n")) {
		return fmt.Errorf("%s:1: the first line is longer than %d bytes: no output of a benchmark has such a line",
			name, maxLine)
	}
	data, err := io.ReadAll(text)
	if err != nil {
		return err
	}
	// Windows editors write a byte order mark.
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(data) == 0 {
		return fmt.Errorf("%s:1: it is empty", name)
	}
	// The first bytes decide the kind. Benchmark text may begin with anything, so it is the default.
	head = bytes.TrimLeft(data[:min(len(data), 4<<10)], " \t\r\n")
	before := r.records + r.again
	switch {
	case attached.Match(head):
		err = r.bpftrace(data, name)
	case !bytes.HasPrefix(head, []byte("{")) || eventMark.Match(head):
		err = r.text(data, name)
	case documentMark.Match(head):
		err = r.document(data, name)
	default:
		err = r.resultFile(data, name)
		if errors.Is(err, merge.ErrNoResult) {
			err = r.engineResults(data, name)
		}
		return err
	}
	if err == nil && r.records+r.again == before {
		err = fmt.Errorf("%s: %w", name, errNothing)
	}
	return err
}

// bpftrace reads saved output of the Python benchmark's bpftrace script.
func (r *reader) bpftrace(data []byte, name string) error {
	if !r.Options.Bpftrace {
		return fmt.Errorf("%s:1: it is a text of bpftrace, of which only kvreport fio can make "+
			"something", name)
	}
	text, err := parseBpftrace(string(data), name)
	if err != nil {
		return err
	}
	// The record, and so the fio job, has the name of the file.
	base := filepath.Base(name)
	return r.emit(&Record{File: name, Name: strings.TrimSuffix(base, filepath.Ext(base)),
		Bpftrace: text})
}

// eventMark matches the first line of go test -json, to tell it from a result file. The line may be
// longer than head, but the action precedes the output.
var eventMark = regexp.MustCompile(`^\{[^\n]*"Action":\s*"\w`)
