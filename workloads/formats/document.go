package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// document reads a JSON file value by value. The largest value decides the memory, and maxValue limits
// it.
type document struct {
	*textFile
	in   *boundedReader
	dec  *json.Decoder
	list string // the elements of the file's list, for messages; "": the file is a sequence of values
	over bool   // no more values
}

// maxValue is the largest value of a document, in bytes. Real values, a session or a conversation, are
// ten times smaller.
const maxValue = 64 << 20

var errLargeValue = errors.New("a value of more than 64 MiB")

// boundedReader limits the bytes of a file that one value may have. It counts lines, and keeps a read
// error of the file, because the decoder does not distinguish it from a syntax error.
type boundedReader struct {
	from  io.Reader
	left  int64
	lines int // completed lines
	err   error
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLargeValue
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.lines += bytes.Count(p[:n], []byte{'\n'})
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// openDocument opens a file with the list, or with its elements one after the other.
func openDocument(path, list string) (*document, error) {
	text, err := openText(path, 64<<10)
	if err != nil {
		return nil, err
	}
	in := &boundedReader{from: text}
	for blanks := 0; ; blanks++ { // the decoder would look at them again and again
		head, err := text.Peek(1)
		if err != nil || !strings.Contains(" \t\r\n", string(head)) {
			if string(head) == "{" { // JSON lines are a sequence of values
				list = ""
			}
			break
		}
		if blanks == maxBlockLine {
			return nil, errors.Join(fmt.Errorf("trace %s begins with more than %d blanks", path, blanks), text.Close())
		}
		in.lines += bytes.Count(head, []byte{'\n'})
		_, _ = text.Discard(1)
	}
	return &document{textFile: text, in: in, dec: json.NewDecoder(in), list: list}, nil
}

// token reads the next token.
func (d *document) token() (json.Token, error) {
	d.in.left = maxValue
	return d.dec.Token()
}

// value decodes the next value. It returns io.EOF at the end of the file.
func (d *document) value(v any) error {
	d.in.left = maxValue
	return d.dec.Decode(v)
}

// next decodes the next value, with the errors of Reader.Next. A value of the wrong type is one
// malformed row. A syntax error is one malformed row, too, and ends the reading. If the file cannot be
// read, next returns that error.
func (d *document) next(v any) error {
	if d.over {
		return io.EOF
	}
	ended, err := false, error(nil)
	if d.list != "" {
		ended, err = d.enter()
	}
	if err == nil && !ended {
		err = d.value(v)
		ended = d.list == "" && errors.Is(err, io.EOF)
	}
	misfit := (*json.UnmarshalTypeError)(nil)
	switch {
	case ended && (err == nil || d.list == ""):
		err = io.EOF
	case err == nil:
		return nil
	case errors.As(err, &misfit):
		return Malformed{err}
	case d.in.err != nil:
		err = fmt.Errorf("read trace %s in line %d: %w", d.path, d.Line(), err)
	case errors.Is(err, io.EOF):
		err = malformed("cannot read on after here: %w", io.ErrUnexpectedEOF)
	default:
		err = malformed("cannot read on after here: %w", err)
	}
	d.over = true
	return err
}

// enter reads the start of the list, and reports whether the list has ended.
func (d *document) enter() (ended bool, err error) {
	if d.dec.InputOffset() == 0 {
		switch t, err := d.token(); {
		case err != nil:
			return false, err
		case t != json.Delim('['):
			return false, errors.New("want a list of " + d.list)
		}
	}
	d.in.left = maxValue
	if d.dec.More() {
		return false, nil
	}
	_, err = d.token() // the ]
	return true, err
}

// Line returns the line that the decoder has reached, from 1. The decoder's buffer has text after it.
func (d *document) Line() int {
	ahead, _ := io.ReadAll(d.dec.Buffered()) // cannot fail: it reads memory
	return 1 + d.in.lines - bytes.Count(ahead, []byte{'\n'})
}
