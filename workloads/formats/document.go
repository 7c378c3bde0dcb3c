package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// document is a JSON file that is read value by value: the largest value limits memory, and maxValue limits
// that value.
type document struct {
	*textFile
	in  *boundedReader
	dec *json.Decoder

	inside bool // inside a list of rows
	over   bool // no more rows
}

// maxValue limits one value of a document, in bytes. Real values, a request or a conversation, are a thousand
// times smaller. Tests lower it.
var maxValue int64 = 64 << 20

var errLargeValue = errors.New("a value of more than 64 MiB")

// boundedReader limits how many bytes of a file one value may have. It counts lines, and keeps the error of
// the file: the decoder does not distinguish it from an error in the text.
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

// openDocument opens a file. Errors in its content appear when it is read.
func openDocument(path string) (*document, error) {
	text, err := openText(path, 64<<10)
	if err != nil {
		return nil, err
	}
	in := &boundedReader{from: text}
	return &document{textFile: text, in: in, dec: json.NewDecoder(in)}, nil
}

// token reads the next token.
func (d *document) token() (json.Token, error) {
	d.in.left = maxValue
	return d.dec.Token()
}

// open reads the start of a list or an object.
func (d *document) open(want json.Delim, otherwise string) error {
	t, err := d.token()
	if err == nil && t != want {
		err = errors.New(otherwise)
	}
	return err
}

// value reads the next value. A complete value of another type is Malformed.
func (d *document) value(v any) error {
	d.in.left = maxValue
	err := d.dec.Decode(v)
	if misfit := (*json.UnmarshalTypeError)(nil); errors.As(err, &misfit) {
		return Malformed{err}
	}
	return noEOF(err)
}

// skip skips the next value token by token, so that maxValue does not limit it and it takes no memory.
func (d *document) skip() error {
	for depth := 0; ; {
		t, err := d.token()
		if err != nil {
			return noEOF(err)
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// list reads the start of a list of rows.
func (d *document) list(otherwise string) error {
	err := noEOF(d.open('[', otherwise))
	d.inside = err == nil
	return err
}

// next reads the next row, with the errors of Reader.Next. An error in the text is one malformed row, after
// which reading ends; a file that cannot be read is an error.
//
// Between lists of rows enter moves on to the next one: it calls list at its start, returns io.EOF if there
// is none, and is called again otherwise.
func (d *document) next(row any, enter func() error) (err error) {
	if d.over {
		return io.EOF
	}
	for err == nil && !(d.inside && d.dec.More()) {
		if !d.inside {
			err = enter()
			continue
		}
		_, err = d.token() // the ]
		d.inside, err = false, noEOF(err)
	}
	if err == nil {
		err = d.value(row)
	}
	switch {
	case err == nil || IsMalformed(err):
		return err
	case d.in.err != nil:
		err = fmt.Errorf("read trace %s in line %d: %w", d.path, d.Line(), err)
	case !errors.Is(err, io.EOF):
		err = malformed("the rest of the file is lost: %w", err)
	}
	d.over = true
	return err
}

// Line returns the line that the decoder has reached, from 1: its buffer is ahead of it.
func (d *document) Line() int {
	ahead, _ := io.ReadAll(d.dec.Buffered()) // cannot fail: it reads memory
	return 1 + d.in.lines - bytes.Count(ahead, []byte{'\n'})
}

// noEOF turns the end of a file inside a document into an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
