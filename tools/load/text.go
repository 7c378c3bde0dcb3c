package load

import (
	"bytes"
	"cmp"
	"encoding/json"
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
		// Text and events may be mixed: somebody appended one to the other.
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
	// Packages print side by side: the file has the order in which things happened.
	slices.SortStableFunc(records, func(a, b *Record) int { return cmp.Compare(a.Line, b.Line) })
	for _, rec := range records {
		if err := r.emitLine(rec); err != nil {
			return err
		}
	}
	return nil
}

// packageText is what the benchmarks of one package printed. It is kept as a whole, some 250 bytes
// a line, since logs belong to results before and behind them.
type packageText struct {
	r     *reader
	file  string
	text  bytes.Buffer
	at    []int // of each whole line in text, its line in the file
	begin int   // of the last line, which may lack its end
	from  int   // where that came from

	// What was found, and where in the log the reading is; see log.go.
	records []*Record
	config  []Setting
	logOf   logKind // whose log the coming lines are
	last    *Record // of the last result line
	next    *Record // has a result file, and its result line may still come
}

// add takes in text, which need not be whole lines: the testing package flushes a result line in
// pieces, and each piece becomes an event. benchfmt gives up at the first line that is longer than
// its buffer; such a line is somebody's log and no result.
func (p *packageText) add(text string, at int) {
	// The testing package marks lines for test2json with ^V in its own output, which some tools
	// keep.
	for piece := range strings.Lines(strings.ReplaceAll(text, "\x16", "")) {
		p.text.WriteString(piece)
		p.from = at
		whole := strings.HasSuffix(piece, "\n")
		switch long := p.text.Len()-p.begin > maxLine; {
		case whole && long:
			p.r.warn(p.file, at, "line of more than %d bytes skipped", maxLine)
			p.text.Truncate(p.begin)
		case whole:
			p.at, p.begin = append(p.at, at), p.text.Len()
		case long: // it must not grow with the input: its end is not needed
			p.text.Truncate(p.begin + maxLine)
		}
	}
}

// parse finds the result lines, each with the result file that its log names, and the result files
// of benchmarks without a line. benchfmt parses the text as a whole and says at which line it is;
// the log up to there is read then.
func (p *packageText) parse() {
	if p.text.Len() > p.begin {
		p.add("\n", p.from)
	}
	rest, read := p.text.Bytes(), 0
	logs := func(upTo int) {
		for ; read < upTo; read++ {
			end := bytes.IndexByte(rest, '\n')
			p.log(bytes.TrimSpace(rest[:end]), p.at[read])
			rest = rest[end+1:]
		}
	}
	b := benchfmt.NewReader(bytes.NewReader(rest), p.file)
	for b.Scan() {
		_, line := b.Result().Pos()
		logs(line)
		at := p.at[line-1]
		switch found := b.Result().(type) {
		case *benchfmt.Result:
			p.result(found, at)
		case *benchfmt.UnitMetadata:
			p.unit(found, at)
		case *benchfmt.SyntaxError:
			p.r.warn(p.file, at, "%s", found.Msg)
		}
	}
	logs(len(p.at))
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

// unit takes in a Unit line. What was said first stands: two inputs that contradict each other
// cannot both be right, and the comparison would change its sign.
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
