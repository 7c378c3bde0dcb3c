package input

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"kvbench/tracing"
)

// event is one line of go test -json.
type event struct {
	Action  string
	Package string
	Output  string
}

// stream reads one file or standard input, whatever it is.
func (r *reader) stream(in io.Reader, name string) error {
	b := bufio.NewReaderSize(in, 256<<10)
	if mark, _ := b.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = b.Discard(3)
	}
	head, err := b.Peek(4 << 10)
	if len(head) == 0 {
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", name, err)
		}
		return fmt.Errorf("%s:1: it is empty", name)
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	switch {
	case documentMark.Match(head):
		return r.document(b, name)
	case len(head) > 0 && head[0] == '{' && !isEvent(head):
		return r.resultFile(b, name)
	case tracing.IsBpftrace(head):
		return r.bpftrace(b, name)
	}
	return r.text(b, name)
}

// bpftrace reads a saved text of the Python benchmark's script.
func (r *reader) bpftrace(in io.Reader, name string) error {
	if !r.Options.Bpftrace {
		return fmt.Errorf("%s:1: it is a text of bpftrace, of which only kvreport fio can make something", name)
	}
	text, err := tracing.ParseBpftrace(in)
	var bad *tracing.BpftraceError
	switch {
	case errors.As(err, &bad):
		return fmt.Errorf("%s:%d: %w", name, bad.Line, bad.Err)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	base := filepath.Base(name)
	return r.emit(&Record{File: name, Name: strings.TrimSuffix(base, filepath.Ext(base)), Bpftrace: text})
}

// isEvent says whether the first line is one of go test -json; it may be cut off.
func isEvent(head []byte) bool {
	line, _, whole := bytes.Cut(head, []byte("\n"))
	var e event
	if err := json.Unmarshal(line, &e); err == nil {
		return e.Action != ""
	}
	return !whole && bytes.Contains(line, []byte(`"Action":"`)) && bytes.HasPrefix(line, []byte(`{"Time":`))
}

// text reads lines: plain ones belong to one benchmark run, events of go test -json to one per package.
func (r *reader) text(b *bufio.Reader, name string) (err error) {
	before := r.out.Records
	all := map[string]*packageText{}
	var order []string
	of := func(pkg string) *packageText {
		p := all[pkg]
		if p == nil {
			p = &packageText{scanner: r.newScanner(name)}
			all[pkg] = p
			order = append(order, pkg)
		}
		return p
	}
	defer func() {
		for _, p := range all {
			p.stop()
		}
	}()
	for at := 1; ; at++ {
		line, readErr := readLine(b)
		if errors.Is(readErr, errLong) {
			r.warn(name, at, "line of more than %d bytes skipped", b.Size())
			continue
		}
		if len(line) > 0 {
			var e event
			if line[0] == '{' && json.Unmarshal(line, &e) == nil && e.Action != "" {
				err = of(e.Package).output(e, at)
			} else {
				err = of("").feed(line, at)
			}
			if err != nil {
				return err
			}
		}
		if readErr != nil {
			if !errors.Is(readErr, io.EOF) {
				return fmt.Errorf("%s:%d: %w", name, at, readErr)
			}
			break
		}
	}
	for _, pkg := range order {
		if err := all[pkg].close(); err != nil {
			return err
		}
	}
	if r.out.Records == before {
		return fmt.Errorf("%s: no benchmark result in it", name)
	}
	return nil
}

var errLong = errors.New("line too long")

// readLine returns the next line with its newline, which it adds to a last line without one. The line is valid until the
// next call.
func readLine(b *bufio.Reader) ([]byte, error) {
	line, err := b.ReadSlice('\n')
	if err == nil {
		return line, nil
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = b.ReadSlice('\n')
		}
		if err == nil {
			err = errLong
		}
		return nil, err
	}
	if len(line) > 0 {
		line = append(slices.Clip(line), '\n')
	}
	return line, err
}

// packageText joins the output events of one package, which split result lines, into lines.
type packageText struct {
	*scanner
	part []byte
	at   int
}

func (p *packageText) output(e event, at int) error {
	if e.Action != "output" {
		return nil
	}
	p.part, p.at = append(p.part, e.Output...), at
	for {
		n := bytes.IndexByte(p.part, '\n') + 1
		if n == 0 {
			return p.bound()
		}
		// The testing package marks lines for test2json with ^V in its own output, which some tools keep.
		if err := p.feed(bytes.TrimLeft(p.part[:n], "\x16"), at); err != nil {
			return err
		}
		p.part = append(p.part[:0], p.part[n:]...)
	}
}

// bound keeps a line without an end from growing with the input.
func (p *packageText) bound() error {
	if len(p.part) > 4*maxLine {
		p.r.warn(p.file, p.at, "output without a line end skipped")
		p.part = p.part[:0]
	}
	return nil
}

func (p *packageText) close() error {
	if len(p.part) > 0 {
		if err := p.feed(append(p.part, '\n'), p.at); err != nil {
			return err
		}
	}
	return p.end()
}
