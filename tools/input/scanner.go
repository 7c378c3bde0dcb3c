package input

import (
	"bytes"
	"io"
	"iter"
	"slices"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"
)

// maxLine is what benchfmt takes; longer lines are reported and skipped.
const maxLine = 60 << 10

// scanner parses the text of one package, pushed line by line. benchfmt pulls its input, so it runs as a coroutine that
// is resumed with each line: records come out in step with the lines that made them, whatever is interleaved.
type scanner struct {
	r    *reader
	file string
	line int // of the file, which in go test -json is not the line of the text

	text   []byte // what benchfmt may read
	ended  bool
	resume func() (struct{}, bool)
	stop   func()
	err    error // of emitting

	held   *Record // the last result line, until its log has passed
	logOf  logKind // whose log the coming lines are
	named  string  // a result file named in the log of a benchmark whose line is still to come
	config []benchfmt.Config
}

// logKind says to which benchmark a log line belongs.
type logKind int

const (
	logOfNext logKind = iota // with -v logs are printed as they are written, before the result line
	logOfLast                // without it behind the result line, below "--- BENCH"
	logOfNone                // a failed benchmark has no result line
)

func (r *reader) newScanner(file string) *scanner {
	s := &scanner{r: r, file: file}
	s.resume, s.stop = iter.Pull(func(yield func(struct{}) bool) { s.parse(yield) })
	s.resume() // up to the first hunger for text
	return s
}

// lines is the io.Reader that benchfmt pulls from.
type lines struct {
	s     *scanner
	yield func(struct{}) bool
}

// Read gives up the coroutine until there is text.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.s.text) == 0 {
		if l.s.ended || !l.yield(struct{}{}) {
			return 0, io.EOF
		}
	}
	n := copy(p, l.s.text)
	l.s.text = l.s.text[n:]
	return n, nil
}

func (s *scanner) parse(yield func(struct{}) bool) {
	b := benchfmt.NewReader(&lines{s, yield}, s.file)
	for s.err == nil && b.Scan() {
		switch rec := b.Result().(type) {
		case *benchfmt.Result:
			s.err = s.result(rec)
		case *benchfmt.UnitMetadata:
			s.unit(rec)
		case *benchfmt.SyntaxError:
			s.r.warn(s.file, s.line, "%s", rec.Msg)
		}
	}
}

// feed parses one line, which ends in a newline.
func (s *scanner) feed(line []byte, at int) error {
	s.line = at
	if len(line) > maxLine {
		s.r.warn(s.file, at, "line of %d bytes skipped", len(line))
		return nil
	}
	if err := s.log(bytes.TrimSpace(line)); err != nil {
		return err
	}
	s.text = line
	s.resume()
	return s.err
}

// end emits what is held and ends the coroutine.
func (s *scanner) end() error {
	s.ended = true
	s.resume()
	s.stop()
	if s.err != nil {
		return s.err
	}
	if err := s.release(); err != nil {
		return err
	}
	return s.orphan()
}

// result holds a result line until its log has passed.
func (s *scanner) result(b *benchfmt.Result) error {
	if err := s.release(); err != nil {
		return err
	}
	s.held = &Record{File: s.file, Line: s.line, Name: b.Name.String(), Iters: b.Iters, Config: s.shared(b.Config),
		Values: slices.Clone(b.Values)}
	s.held.Path, s.named = s.named, ""
	s.logOf = logOfNext
	return nil
}

// shared returns a copy of the configuration, the same one as long as nothing changes.
func (s *scanner) shared(config []benchfmt.Config) []benchfmt.Config {
	same := slices.EqualFunc(config, s.config, func(a, b benchfmt.Config) bool { return a.Key == b.Key && bytes.Equal(a.Value, b.Value) })
	if !same {
		s.config = make([]benchfmt.Config, len(config))
		for i, c := range config {
			s.config[i] = benchfmt.Config{Key: c.Key, Value: bytes.Clone(c.Value), File: c.File}
		}
	}
	return s.config
}

func (s *scanner) unit(u *benchfmt.UnitMetadata) {
	if have := s.r.out.Units[u.UnitMetadataKey]; have != nil && have.Value != u.Value {
		s.r.warn(s.file, s.line, "unit %s is %s=%s, which other input calls %s", u.OrigUnit, u.Key, u.Value, have.Value)
		return
	}
	addUnit(s.r.out.Units, u.OrigUnit, u.Key, u.Value)
}

// addUnit puts one pair of a Unit line into a map.
func addUnit(m benchfmt.UnitMetadataMap, unit, key, value string) {
	_, tidy := benchunit.Tidy(1, unit)
	k := benchfmt.UnitMetadataKey{Unit: tidy, Key: key}
	m[k] = &benchfmt.UnitMetadata{UnitMetadataKey: k, OrigUnit: unit, Value: value}
}
