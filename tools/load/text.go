package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"
)

// maxLine is the longest line that benchfmt accepts, in bytes. Longer lines are reported and skipped.
const maxLine = 60 << 10

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Output  string
}

// text reads lines. Plain lines belong to one benchmark run, events of go test -json to one run per
// package. Records have the order of the file.
func (r *reader) text(data []byte, name string) error {
	packages := map[string]*packageText{}
	var order []*packageText
	of := func(pkg string) *packageText {
		if packages[pkg] == nil {
			packages[pkg] = &packageText{r: r, file: name}
			order = append(order, packages[pkg])
		}
		return packages[pkg]
	}
	at := 0
	for line := range bytes.Lines(data) {
		at++
		var e event
		// Text and events may be mixed, for example when one file was appended to another.
		if line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Action == "" {
			of("").add(string(line), at)
		} else if e.Action == "output" {
			of(e.Package).add(e.Output, at)
		}
	}
	var records []*Record
	for _, p := range order {
		p.parse()
		records = append(records, p.records...)
	}
	// go test runs packages concurrently: sort the records by line, which is their order in time.
	slices.SortStableFunc(records, func(a, b *Record) int { return cmp.Compare(a.Line, b.Line) })
	for _, rec := range records {
		if err := r.emitLine(rec); err != nil {
			return err
		}
	}
	return nil
}

// ErrLost reports a failed trial whose result cannot be read. Its benchmark is unknown.
var ErrLost = errors.New("a failed benchmark left no result")

// emitLine reads the result file of a record of a text. A missing result file is no error, because the
// line has values.
func (r *reader) emitLine(rec *Record) error {
	// Keep the values of the line, even if the file has more digits: every tool compares the printed
	// ones.
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
				err = file.Err // the message already has the path
			}
			if !errors.Is(err, fs.ErrNotExist) {
				r.warn(rec.File, rec.Line, "result %s cannot be read: %v; its line alone is used: "+
					"repair that file", rec.Path, err)
			}
			rec.Missing = fmt.Sprintf("%s:%d: result %s: %v", rec.File, rec.Line, named, err)
			rec.Path = ""
		}
	}
	if rec.Name == "" {
		if rec.Result == nil {
			if r.Warn != nil {
				r.Warn(fmt.Errorf("%s:%d: %w: %s", rec.File, rec.Line, ErrLost, rec.Missing))
			}
			return nil
		}
		rec.Name = nameOf(rec.Result, rec.Path)
	}
	return r.emit(rec)
}

// locate returns the path of a result file that moved together with the text: the longest tail of the
// path that exists below the text's directory. If there is none it returns path.
func locate(path, text string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// A log has absolute paths of the machine that ran the benchmark.
	parts := strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
	// A tail has at least three parts (trial, rank, file): a bare file name could be of any run. The
	// longest tail is the most certain match.
	for ; len(parts) >= 3; parts = parts[1:] {
		moved := filepath.Join(filepath.Dir(text), filepath.Join(parts...))
		if info, err := os.Stat(moved); err == nil && !info.IsDir() {
			return moved
		}
	}
	return path
}

// Lines around a benchmark's log in the output of go test, with and without -v. Lines of the log itself
// begin with file and line number.
const (
	benchLog = "--- BENCH: "
	failLog  = "--- FAIL: Benchmark"
	running  = "=== RUN"
	pathLog  = ": result: "
)

var logPlace = regexp.MustCompile(`^.+\.go:[0-9]+$`)

// logKind says to which benchmark the next log lines belong.
type logKind int

const (
	logOfNext logKind = iota // with -v, a log precedes the result line
	logOfLast                // without -v, a log follows the result line, below "--- BENCH"
	logOfNone                // a failed benchmark has no result line
)

// packageText is the output of the benchmarks of one package, about 250 bytes per line. It is kept
// whole, because logs may precede or follow their result lines.
type packageText struct {
	r     *reader
	file  string
	lines []textLine // not parsed yet
	rest  string     // of the line that is being parsed
	at    int        // its line number in the file

	// The records so far, and the state of the log parser.
	records []*Record
	config  []Setting
	logOf   logKind // the benchmark of the next log lines
	last    *Record // the record of the last result line
	next    *Record // a record whose result line may still follow its log
}

// textLine is a line with its end, and its line number in the file.
type textLine struct {
	text string
	at   int
}

// add appends text, which may be a part of a line: the testing package prints a result line in pieces,
// and each piece is an event.
func (p *packageText) add(text string, at int) {
	// The testing package begins lines with ^V for test2json; some tools keep it.
	for piece := range strings.Lines(strings.ReplaceAll(text, "\x16", "")) {
		n := len(p.lines) - 1
		if n < 0 || strings.HasSuffix(p.lines[n].text, "\n") {
			p.lines = append(p.lines, textLine{piece, at})
		} else if len(p.lines[n].text) <= maxLine || strings.HasSuffix(piece, "\n") {
			// Bound a line without an end.
			p.lines[n] = textLine{p.lines[n].text + piece, at}
		}
	}
}

// parse makes a record for each result line, with the result file that its log names, and for each
// result file of a benchmark without a result line.
func (p *packageText) parse() {
	b := benchfmt.NewReader(p, p.file)
	for b.Scan() {
		switch found := b.Result().(type) {
		case *benchfmt.Result:
			p.result(found, p.at)
		case *benchfmt.UnitMetadata:
			p.unit(found, p.at)
		case *benchfmt.SyntaxError:
			p.r.warn(p.file, p.at, "%s", found.Msg)
		}
	}
}

// Read passes one line at a time to benchfmt, after log has read it.
func (p *packageText) Read(buffer []byte) (int, error) {
	if p.rest == "" {
		if len(p.lines) == 0 {
			return 0, io.EOF
		}
		line := p.lines[0]
		p.lines, p.rest, p.at = p.lines[1:], line.text, line.at
		// benchfmt stops at a line that is longer than its buffer. Such a line is no result: replace it.
		if len(p.rest) > maxLine {
			p.r.warn(p.file, p.at, "line of more than %d bytes skipped", maxLine)
			p.rest = "\n"
		}
		p.log(strings.TrimSpace(p.rest), p.at)
	}
	n := copy(buffer, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// result makes the record of a result line. It copies everything, because benchfmt reuses its result.
func (p *packageText) result(found *benchfmt.Result, at int) {
	// Results below the same configuration lines share one copy: otherwise the copies of 100,000 lines
	// would be most of the memory.
	if !slices.EqualFunc(found.Config, p.config, func(a benchfmt.Config, b Setting) bool {
		return a.Key == b.Key && string(a.Value) == b.Value
	}) {
		p.config = nil
		for _, c := range found.Config {
			p.config = append(p.config, Setting{c.Key, string(c.Value)})
		}
	}
	rec := p.next
	if rec == nil {
		rec = p.record(at)
	}
	*rec = Record{File: p.file, Line: at, Name: found.Name.String(), Iters: found.Iters,
		Config: p.config, Values: slices.Clone(found.Values), Path: rec.Path}
	p.last, p.next, p.logOf = rec, nil, logOfNext
}

// record appends a record for a line.
func (p *packageText) record(at int) *Record {
	rec := &Record{File: p.file, Line: at, Config: p.config}
	p.records = append(p.records, rec)
	return rec
}

// log reads a line that may begin a benchmark's log or name a result file.
func (p *packageText) log(line string, at int) {
	switch {
	case strings.HasPrefix(line, benchLog):
		p.logOf = logOfLast
	case strings.HasPrefix(line, failLog):
		p.logOf, p.next = logOfNone, nil
	case strings.HasPrefix(line, running):
		p.logOf, p.next = logOfNext, nil
	}
	place, path, ok := strings.Cut(line, pathLog)
	if !ok || path == "" || !logPlace.MatchString(place) {
		return
	}
	if p.logOf == logOfLast && p.last != nil {
		p.last.Path = path
		return
	}
	rec := p.record(at)
	rec.Path = path
	// The record of a failed benchmark gets no result line.
	if p.logOf != logOfNone {
		p.next = rec
	}
}

// unit reads a Unit line. If two inputs give a unit different directions, the first counts and the
// second is reported.
func (p *packageText) unit(u *benchfmt.UnitMetadata, line int) {
	if have := p.r.units[u.UnitMetadataKey]; have != nil && have.Value != u.Value {
		p.r.warn(p.file, line,
			"unit %s is %s=%s, which other input calls %s", u.OrigUnit, u.Key, u.Value, have.Value)
		return
	}
	addUnit(p.r.units, u.OrigUnit, u.Key, u.Value)
}

// addUnit adds one key and value of a Unit line to m.
func addUnit(m benchfmt.UnitMetadataMap, unit, key, value string) {
	_, tidy := benchunit.Tidy(1, unit)
	k := benchfmt.UnitMetadataKey{Unit: tidy, Key: key}
	m[k] = &benchfmt.UnitMetadata{UnitMetadataKey: k, OrigUnit: unit, Value: value}
}
