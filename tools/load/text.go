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

// maxLine is what benchfmt takes; longer lines are reported and skipped.
const maxLine = 60 << 10

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Output  string
}

// text reads lines: plain ones belong to one benchmark run, events of go test -json to one per
// package. Their records come out in the order of the file.
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
	// Packages print concurrently: the order of the file is the order in time.
	slices.SortStableFunc(records, func(a, b *Record) int { return cmp.Compare(a.Line, b.Line) })
	for _, rec := range records {
		if err := r.emitLine(rec); err != nil {
			return err
		}
	}
	return nil
}

// ErrLost is reported for a failed trial whose result cannot be read: the text does not name its
// benchmark.
var ErrLost = errors.New("a failed benchmark left no result")

// emitLine adds the result file to a record of a text. A missing file is no error: the line has
// values of its own.
func (r *reader) emitLine(rec *Record) error {
	// The line's numbers are kept, even where the file has more digits: every tool compares the
	// printed numbers.
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

// locate finds a result file that moved together with the text that names it: the longest tail of
// its path that exists below the text's directory. Without one it stays where it was.
func locate(path, text string) string {
	if _, err := os.Stat(path); err == nil {
		return path
	}
	// Paths in a log are absolute paths of the machine that ran.
	parts := strings.Split(strings.Trim(filepath.ToSlash(path), "/"), "/")
	// At least trial, rank and file: a bare file name could belong to any run. The longest tail
	// comes first, because it is the most certain match.
	for ; len(parts) >= 3; parts = parts[1:] {
		moved := filepath.Join(filepath.Dir(text), filepath.Join(parts...))
		if info, err := os.Stat(moved); err == nil && !info.IsDir() {
			return moved
		}
	}
	return path
}

// What the testing package prints around the log of a benchmark. The formats are the formats of go test,
// with and without -v; the log's own lines begin with the place in the source.
const (
	benchLog = "--- BENCH: "
	failLog  = "--- FAIL: Benchmark"
	running  = "=== RUN"
	pathLog  = ": result: "
)

var logPlace = regexp.MustCompile(`^.+\.go:[0-9]+$`)

// logKind says to which benchmark a log line belongs.
type logKind int

const (
	logOfNext logKind = iota // with -v logs are printed as they are written, before the result line
	logOfLast                // without it behind the result line, below "--- BENCH"
	logOfNone                // a failed benchmark has no result line
)

// packageText is what the benchmarks of one package printed. It is kept as a whole, some 250 bytes
// a line, since logs belong to results before and behind them.
type packageText struct {
	r     *reader
	file  string
	lines []textLine // that are not parsed yet
	rest  string     // of the line that is parsed
	at    int        // where this line stands in the file

	// What was found, and where in the log the reading is.
	records []*Record
	config  []Setting
	logOf   logKind // whose log the coming lines are
	last    *Record // of the last result line
	next    *Record // has a result file, and its result line may still come
}

// textLine is a line with its end, and where it stands in the file.
type textLine struct {
	text string
	at   int
}

// add takes in text, which need not be whole lines: the testing package flushes a result line in
// pieces, and each piece becomes an event.
func (p *packageText) add(text string, at int) {
	// The testing package marks lines for test2json with ^V in its own output, which some tools
	// keep.
	for piece := range strings.Lines(strings.ReplaceAll(text, "\x16", "")) {
		n := len(p.lines) - 1
		if n < 0 || strings.HasSuffix(p.lines[n].text, "\n") {
			p.lines = append(p.lines, textLine{piece, at})
		} else if len(p.lines[n].text) <= maxLine || strings.HasSuffix(piece, "\n") {
			// A line without an end must not grow with the input.
			p.lines[n] = textLine{p.lines[n].text + piece, at}
		}
	}
}

// parse finds the result lines, each with the result file that its log names, and the result files
// of benchmarks without a line.
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

// Read gives benchfmt one line at a time, after the log has been searched up to this line.
func (p *packageText) Read(buffer []byte) (int, error) {
	if p.rest == "" {
		if len(p.lines) == 0 {
			return 0, io.EOF
		}
		line := p.lines[0]
		p.lines, p.rest, p.at = p.lines[1:], line.text, line.at
		// benchfmt stops at the first line that is longer than its buffer; such a line is log text
		// and no result.
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

// result makes the record of a result line. The reader reuses its result, so that everything kept
// is copied.
func (p *packageText) result(found *benchfmt.Result, at int) {
	// Results below the same configuration lines share one copy of them: of 100,000 lines it would
	// be most of the memory.
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

// record makes a record of what stands at a line.
func (p *packageText) record(at int) *Record {
	rec := &Record{File: p.file, Line: at, Config: p.config}
	p.records = append(p.records, rec)
	return rec
}

// log takes in a line that may begin the log of another benchmark, or name a result file.
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
	// A benchmark that failed leaves a record that no result line completes.
	if p.logOf != logOfNone {
		p.next = rec
	}
}

// unit takes in a Unit line. The first direction of a unit counts: of two inputs that contradict each
// other one is wrong, and the comparison would change its sign.
func (p *packageText) unit(u *benchfmt.UnitMetadata, line int) {
	if have := p.r.units[u.UnitMetadataKey]; have != nil && have.Value != u.Value {
		p.r.warn(p.file, line,
			"unit %s is %s=%s, which other input calls %s", u.OrigUnit, u.Key, u.Value, have.Value)
		return
	}
	addUnit(p.r.units, u.OrigUnit, u.Key, u.Value)
}

// addUnit puts one pair of a Unit line into a map.
func addUnit(m benchfmt.UnitMetadataMap, unit, key, value string) {
	_, tidy := benchunit.Tidy(1, unit)
	k := benchfmt.UnitMetadataKey{Unit: tidy, Key: key}
	m[k] = &benchfmt.UnitMetadata{UnitMetadataKey: k, OrigUnit: unit, Value: value}
}
