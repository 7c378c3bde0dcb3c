package load

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

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
func (r *reader) text(b *bufio.Reader, name string) error {
	before := r.out.Records
	all := map[string]*packageText{}
	var order []*packageText
	of := func(pkg string) *packageText {
		if all[pkg] == nil {
			all[pkg] = &packageText{r: r, file: name}
			order = append(order, all[pkg])
		}
		return all[pkg]
	}
	for at := 1; ; at++ {
		line, err := readLine(b)
		if errors.Is(err, errLong) {
			r.warn(name, at, "line of more than %d bytes skipped", b.Size())
			continue
		}
		if len(line) > 0 {
			var e event
			// Text and events may be mixed: somebody appended one to the other.
			if line[0] == '{' && json.Unmarshal(line, &e) == nil && e.Action != "" {
				of(e.Package).output(e, at)
			} else {
				of("").add(line, at)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, at, err)
		}
	}
	var records []*Record
	for _, p := range order {
		records = append(records, p.records()...)
	}
	// Packages print side by side: the file has the order in which things happened.
	slices.SortStableFunc(records, func(a, b *Record) int { return cmp.Compare(a.Line, b.Line) })
	for _, rec := range records {
		if err := r.emitLine(rec); err != nil {
			return err
		}
	}
	if r.out.Records == before {
		return fmt.Errorf("%s: no benchmark result in it", name)
	}
	return nil
}

// errLong marks a line that does not fit into the buffer and was read to its end.
var errLong = errors.New("line too long")

// readLine returns the next line with its newline, which it adds to a last line without one. The
// line is valid until the next call.
func readLine(b *bufio.Reader) ([]byte, error) {
	line, err := b.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		return nil, cmp.Or(err, errLong)
	}
	if err != nil && len(line) > 0 {
		line = append(slices.Clip(line), '\n')
	}
	return line, err
}

// packageText is what the benchmarks of one package printed. It is kept as a whole, some 250 bytes
// a line, since logs belong to results before and behind them.
type packageText struct {
	r    *reader
	file string
	text bytes.Buffer // whole lines
	at   []int        // of each, its line in the file
	part []byte       // of an output event, which splits lines
}

// add takes in a line. benchfmt gives up at the first line that is longer than its buffer; such a
// line is somebody's log and no result.
func (p *packageText) add(line []byte, at int) {
	if len(line) > maxLine {
		p.r.warn(p.file, at, "line of %d bytes skipped", len(line))
		return
	}
	p.text.Write(line)
	p.at = append(p.at, at)
}

// output joins output events: the testing package flushes a result line in pieces, and each piece
// becomes an event.
func (p *packageText) output(e event, at int) {
	if e.Action != "output" {
		return
	}
	p.part = append(p.part, e.Output...)
	for {
		n := bytes.IndexByte(p.part, '\n') + 1
		if n == 0 {
			break
		}
		// The testing package marks lines for test2json with ^V in its own output, which some tools
		// keep.
		p.add(bytes.TrimLeft(p.part[:n], "\x16"), at)
		p.part = append(p.part[:0], p.part[n:]...)
	}
	if len(p.part) > 4*maxLine { // a line without an end must not grow with the input
		p.r.warn(p.file, at, "output without a line end skipped")
		p.part = p.part[:0]
	}
}

// records are the result lines, each with the result file that its log names, and the result files
// of benchmarks without a line.
func (p *packageText) records() []*Record {
	if n := len(p.at); n > 0 && len(p.part) > 0 {
		p.add(append(p.part, '\n'), p.at[n-1])
	}
	// benchfmt parses the text as a whole; the logs between the results are found by their lines.
	results := p.results()
	log := logReader{file: p.file}
	i := 0
	for line := range bytes.Lines(p.text.Bytes()) {
		log.line = p.at[i]
		i++
		if rec := results[i]; rec != nil {
			log.result(rec)
		} else {
			log.read(bytes.TrimSpace(line))
		}
	}
	log.release()
	log.orphan()
	return log.records
}

// results parses the text; the keys are its lines, from 1.
func (p *packageText) results() map[int]*Record {
	results := map[int]*Record{}
	var config []benchfmt.Config
	b := benchfmt.NewReader(bytes.NewReader(p.text.Bytes()), p.file)
	for b.Scan() {
		switch found := b.Result().(type) {
		case *benchfmt.Result:
			_, line := found.Pos()
			// The reader reuses its result, so that everything kept is copied.
			if !slices.EqualFunc(found.Config, config, equalConfig) {
				config = make([]benchfmt.Config, len(found.Config))
				for i, c := range found.Config {
					config[i] = benchfmt.Config{Key: c.Key, Value: bytes.Clone(c.Value),
						File: c.File}
				}
			}
			results[line] = &Record{File: p.file, Line: p.at[line-1], Name: found.Name.String(),
				Iters: found.Iters, Config: config, Values: slices.Clone(found.Values)}
		case *benchfmt.UnitMetadata:
			_, line := found.Pos()
			p.unit(found, p.at[line-1])
		case *benchfmt.SyntaxError:
			p.r.warn(p.file, p.at[found.Line-1], "%s", found.Msg)
		}
	}
	return results
}

// equalConfig lets the results below the same configuration lines share one copy of them: of
// 100,000 lines it would be most of the memory.
func equalConfig(a, b benchfmt.Config) bool {
	return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
}

// unit takes in a Unit line. What was said first stands: two inputs that contradict each other
// cannot both be right, and the comparison would change its sign.
func (p *packageText) unit(u *benchfmt.UnitMetadata, line int) {
	if have := p.r.out.Units[u.UnitMetadataKey]; have != nil && have.Value != u.Value {
		p.r.warn(p.file, line,
			"unit %s is %s=%s, which other input calls %s", u.OrigUnit, u.Key, u.Value, have.Value)
		return
	}
	addUnit(p.r.out.Units, u.OrigUnit, u.Key, u.Value)
}

// addUnit puts one pair of a Unit line into a map.
func addUnit(m benchfmt.UnitMetadataMap, unit, key, value string) {
	_, tidy := benchunit.Tidy(1, unit)
	k := benchfmt.UnitMetadataKey{Unit: tidy, Key: key}
	m[k] = &benchfmt.UnitMetadata{UnitMetadataKey: k, OrigUnit: unit, Value: value}
}
