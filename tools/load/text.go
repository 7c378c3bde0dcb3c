package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

// text reads lines. Plain lines belong to one benchmark run, events of go test -json to one run per
// package. Records have the order of the file.
func (r *reader) text(data []byte, name string) error {
	packages := map[string]*packageText{}
	at := 0
	for line := range bytes.Lines(data) {
		at++
		var event struct{ Action, Package, Output string }
		// Text and events may be mixed, for example when one file was appended to another.
		if line[0] != '{' || json.Unmarshal(line, &event) != nil || event.Action == "" {
			event.Action, event.Package, event.Output = "output", "", string(line)
		}
		if packages[event.Package] == nil {
			packages[event.Package] = &packageText{}
		}
		if event.Action == "output" {
			packages[event.Package].add(event.Output, at)
		}
	}
	var records []*Record
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		records = append(records, packages[pkg].parse(r, name)...)
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
// line has values. The record keeps the values of the line, even if the file has more digits: every tool
// compares the printed ones.
func (r *reader) emitLine(rec *Record) error {
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
			rec.Path, rec.Named = "", named
		}
	}
	if rec.Name == "" && rec.Result == nil {
		r.warn(rec.File, rec.Line, "%w: %s", ErrLost, rec.Missing)
		return nil
	}
	rec.Name = cmp.Or(rec.Name, nameOf(rec.Result, rec.Path))
	return r.emit(rec)
}

// locate returns the path of a result file that moved together with the text: the longest suffix of the
// path that exists below the text's directory. If there is none it returns path.
func locate(path, text string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// A log has absolute paths of the machine that ran the benchmark. A suffix has at least three parts
	// (trial, rank, file): a bare file name could be of any run.
	parts := strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
	for ; len(parts) >= 3; parts = parts[1:] {
		moved := filepath.Join(filepath.Dir(text), filepath.Join(parts...))
		if info, err := os.Stat(moved); err == nil && !info.IsDir() {
			return moved
		}
	}
	return path
}

// packageText is the output of the benchmarks of one package. It is kept whole, because a benchmark's log
// may precede or follow its result line.
type packageText struct {
	lines []string // with their ends
	at    []int    // their line numbers in the file
}

// add appends text, which may be a part of a line: the testing package prints a result line in pieces,
// and each piece is an event.
func (p *packageText) add(text string, at int) {
	// The testing package begins lines with ^V for test2json; some tools keep it.
	for piece := range strings.Lines(strings.ReplaceAll(text, "\x16", "")) {
		if n := len(p.lines) - 1; n >= 0 && !strings.HasSuffix(p.lines[n], "\n") {
			// The rest of a line that is too long is left out: the line is reported and skipped.
			if len(p.lines[n]) <= maxLine || strings.HasSuffix(piece, "\n") {
				p.lines[n] += piece
			}
			p.at[n] = at
		} else {
			p.lines, p.at = append(p.lines, piece), append(p.at, at)
		}
	}
}

// Lines around a benchmark's log in the output of go test.
const (
	benchLog = "--- BENCH: "         // without -v, a log follows the result line
	failLog  = "--- FAIL: Benchmark" // a failed benchmark has no result line
	running  = "=== RUN"             // with -v, a log precedes the result line
)

// resultPath matches the line of a log that names a result file.
var resultPath = regexp.MustCompile(`^.+\.go:[0-9]+: result: (.+)$`)

// parse makes a record for each result line, with the result file that its log names, and for each
// result file of a benchmark without a result line.
func (p *packageText) parse(r *reader, file string) (records []*Record) {
	found := p.results(r, file)
	var config []Setting
	var last, next *Record // next is a record whose result line may still follow its log
	log := ""              // the line before the log
	for i, line := range p.lines {
		line = strings.TrimSpace(line)
		for _, mark := range []string{benchLog, failLog, running} {
			if strings.HasPrefix(line, mark) {
				log = mark
				if mark != benchLog {
					next = nil
				}
			}
		}
		if m := resultPath.FindStringSubmatch(line); m != nil && log == benchLog && last != nil {
			last.Path = m[1]
		} else if m != nil {
			rec := &Record{File: file, Line: p.at[i], Config: config, Path: m[1]}
			records = append(records, rec)
			if log != failLog {
				next = rec
			}
		}
		if rec := found[i]; rec != nil {
			if next == nil {
				next = &Record{}
				records = append(records, next)
			}
			rec.Path, config = next.Path, rec.Config
			*next = *rec
			last, next, log = next, nil, ""
		}
	}
	return records
}

// results returns the records of the result lines by the index of their line.
func (p *packageText) results(r *reader, file string) map[int]*Record {
	var text strings.Builder
	for i, line := range p.lines {
		// benchfmt stops at a line that is longer than its buffer. Such a line is no result.
		if len(line) > maxLine {
			r.warn(file, p.at[i], "line of more than %d bytes skipped", maxLine)
			line = "\n"
		}
		text.WriteString(line)
	}
	records := map[int]*Record{}
	var config []Setting
	b := benchfmt.NewReader(strings.NewReader(text.String()), file)
	for b.Scan() {
		record := b.Result()
		_, line := record.Pos()
		at := p.at[line-1]
		switch found := record.(type) {
		case *benchfmt.Result:
			// benchfmt reuses its result. Results below the same configuration lines share one copy:
			// otherwise the copies of 100,000 lines would be most of the memory.
			if !slices.EqualFunc(found.Config, config, func(a benchfmt.Config, b Setting) bool {
				return a.Key == b.Key && string(a.Value) == b.Value
			}) {
				config = nil
				for _, c := range found.Config {
					config = append(config, Setting{c.Key, string(c.Value)})
				}
			}
			records[line-1] = &Record{File: file, Line: at, Name: found.Name.String(),
				Iters: found.Iters, Config: config, Values: slices.Clone(found.Values)}
		case *benchfmt.UnitMetadata:
			// If two inputs give a unit different directions, the first counts.
			have := r.units[found.UnitMetadataKey]
			if have != nil && have.Value != found.Value {
				r.warn(file, at, "unit %s is %s=%s, which other input calls %s", found.OrigUnit,
					found.Key, found.Value, have.Value)
				continue
			}
			addUnit(r.units, found.OrigUnit, found.Key, found.Value)
		case *benchfmt.SyntaxError:
			r.warn(file, at, "%s", found.Msg)
		}
	}
	return records
}

// addUnit adds one key and value of a Unit line to m.
func addUnit(m benchfmt.UnitMetadataMap, unit, key, value string) {
	_, tidy := benchunit.Tidy(1, unit)
	k := benchfmt.UnitMetadataKey{Unit: tidy, Key: key}
	m[k] = &benchfmt.UnitMetadata{UnitMetadataKey: k, OrigUnit: unit, Value: value}
}
