package load

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/perf/benchfmt"

	"kvbench/kvbench/result"
)

// Stdin is the argument that stands for standard input. A file of that name is ./-, as everywhere.
const Stdin = "-"

// Options change what All does. The zero value is ready to use.
type Options struct {
	Stdin io.Reader   // what - reads
	Warn  func(error) // gets every bad line, with file and line; nil drops them

	// Trials merges the ranks of a trial into one record, emitted after the other records of its
	// argument. Commands that count or compare set it; commands that copy records do not.
	Trials bool

	// Bpftrace accepts saved texts of bpftrace, which hold no result; without it such a text is an
	// error.
	Bpftrace bool
}

// All reads all arguments in order and returns their records. It ends with an error for an argument
// that cannot be read: a file that does not exist, is empty, truncated or holds no result. A bad line
// within text is reported to Options.Warn and the rest is read. The directions of units come from the
// Unit lines, and from the suite's own table for units without a Unit line.
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
	// Result files have no Unit lines. A Unit line of any input takes precedence, so that the table
	// comes last.
	for _, u := range result.Directed() {
		if r.units.Get(u.Name, "better") == nil {
			addUnit(r.units, u.Name, "better", u.Better)
		}
	}
	return r.list, r.units, nil
}

// reader is the state of one All.
type reader struct {
	Options
	list   []*Record
	units  benchfmt.UnitMetadataMap
	source string

	records int             // that were emitted, ranks included
	seen    map[string]bool // result files that have a record, by place and by content
	again   int             // result files that had a record already
	held    []*Record       // of ranks, until all of the argument are known
	merged  map[string]bool // trials that came with one result of all their ranks
}

// warn reports what is left out. A bad line must not end the reading: in the output of a run of
// hours another program may break one line.
func (r *reader) warn(file string, line int, format string, args ...any) {
	if r.Warn != nil {
		r.Warn(fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...)))
	}
}

// emit adds a finished record to the list. Its run is the argument that is being read.
func (r *reader) emit(rec *Record) error {
	rec.Source = cmp.Or(rec.Source, r.source) // an archived record keeps its run
	for i, v := range rec.Values {            // benchfmt leaves the unit of a zero as it is
		if v.OrigUnit == "" {
			rec.Values[i] = tidy(v.Value, v.Unit)
		}
	}
	// A copy, as -artifacts makes, is no trial of its own.
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

// argument reads a file, a directory, or the files that match a pattern. Shells do not expand
// patterns in quotes, in task files and on Windows. Each matching file is then a run of its own, as
// if the shell had expanded the pattern.
func (r *reader) argument(arg string) error {
	r.source = arg
	if arg == Stdin {
		if r.Options.Stdin == nil {
			return errors.New("no standard input here")
		}
		data, err := io.ReadAll(r.Options.Stdin)
		if err != nil {
			return fmt.Errorf("stdin: %w", err)
		}
		return r.content(data, "stdin")
	}
	names := []string{arg}
	if _, err := os.Stat(arg); errors.Is(err, os.ErrNotExist) && strings.ContainsAny(arg, "*?[") {
		if names, err = filepath.Glob(arg); err != nil || len(names) == 0 {
			return fmt.Errorf("%s: %w", arg, cmp.Or(err, errors.New("no file matches")))
		}
	}
	for _, name := range names {
		r.source = name
		if err := r.file(name); err != nil {
			return err
		}
	}
	return nil
}

// file reads one file or directory, whatever it holds.
func (r *reader) file(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return r.directory(name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return r.content(data, name)
}

var errNothing = errors.New("no benchmark result in it")

// content reads one file or standard input as a whole: result files are decoded whole, and the log
// of a benchmark may stand before or after its line.
func (r *reader) content(data []byte, name string) error {
	// Editors of Windows put a byte order mark before text and JSON alike.
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(data) == 0 {
		return fmt.Errorf("%s:1: it is empty", name)
	}
	// The first lines decide. Benchmark text may begin with anything, so it is the default.
	head := bytes.TrimLeft(data[:min(len(data), 4<<10)], " \t\r\n")
	before := r.records + r.again
	var err error
	switch {
	case attached.Match(head):
		err = r.bpftrace(data, name)
	case !bytes.HasPrefix(head, []byte("{")) || eventMark.Match(head):
		err = r.text(data, name)
	case documentMark.Match(head):
		err = r.document(data, name)
	default:
		return r.resultFile(data, name)
	}
	if err == nil && r.records+r.again == before {
		err = fmt.Errorf("%s: %w", name, errNothing)
	}
	return err
}

// bpftrace reads a saved text of the Python benchmark's script.
func (r *reader) bpftrace(data []byte, name string) error {
	if !r.Options.Bpftrace {
		return fmt.Errorf("%s:1: it is a text of bpftrace, of which only kvreport fio can make "+
			"something", name)
	}
	text, err := parseBpftrace(string(data), name)
	if err != nil {
		return err
	}
	// The text has no name of its own; its file's becomes that of the job.
	base := filepath.Base(name)
	return r.emit(&Record{File: name, Name: strings.TrimSuffix(base, filepath.Ext(base)),
		Bpftrace: text})
}

// eventMark distinguishes go test -json from a result file, which begins with a brace too. Its
// first line may be longer than the part that is matched, but the action precedes the output.
var eventMark = regexp.MustCompile(`^\{[^\n]*"Action":\s*"\w`)
