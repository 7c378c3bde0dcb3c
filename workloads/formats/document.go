package formats

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// document is a JSON file that is read value by value: memory is bounded by the largest value, and
// that by maxValue.
type document struct {
	text *textFile
	in   *boundedReader
	dec  *json.Decoder
	over bool // there are no rows behind this
}

// maxValue bounds one value of a document. Real ones, a request or a conversation, are a thousand
// times smaller.
const maxValue = 64 << 20

var errLargeValue = errors.New("a value of more than 64 MiB")

// boundedReader lets one value take so much of a file and no more, and keeps why the file could not
// be read: the decoder reports that and what is wrong with the text alike.
type boundedReader struct {
	from io.Reader
	left int64
	err  error
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLargeValue
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// openDocument opens a file; what is in it shows when it is read.
func openDocument(path string) (*document, error) {
	text, err := openText(path, 64<<10)
	if err != nil {
		return nil, err
	}
	in := &boundedReader{from: text}
	return &document{text: text, in: in, dec: json.NewDecoder(in)}, nil
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

// value reads the next value. One that was read whole and does not fit is Malformed.
func (d *document) value(v any) error {
	d.in.left = maxValue
	err := d.dec.Decode(v)
	if misfit := (*json.UnmarshalTypeError)(nil); errors.As(err, &misfit) {
		return Malformed{err}
	}
	return noEOF(err)
}

// skip passes over the next value, however large: token by token, so that maxValue bounds nothing.
func (d *document) skip() error {
	for depth := 0; ; {
		t, err := d.token()
		if err != nil {
			return err
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

// judge is what a reader of rows makes of an error. What is wrong with the text is one malformed
// row, behind which nothing can be read; a file that cannot be read is an error.
func (d *document) judge(err error) error {
	if err == nil || IsMalformed(err) {
		return err
	}
	d.over = true
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case d.in.err != nil:
		return fmt.Errorf("read trace %s in line %d: %w", d.text.path, d.Line(), err)
	}
	return malformed("the rest of the file is lost: %w", err)
}

// Line is the line that the decoder has reached, from 1. It is asked for malformed rows only, so
// that counting means to read the file once more instead of watching every byte pass.
func (d *document) Line() int {
	again, err := openText(d.text.path, 64<<10)
	if err != nil {
		return 1
	}
	defer again.Close()
	lines, left := 1, d.dec.InputOffset()
	for ; left > 0; left-- {
		b, err := again.ReadByte()
		if err != nil {
			break
		}
		if b == '\n' {
			lines++
		}
	}
	return lines
}

// Close closes the file.
func (d *document) Close() error { return d.text.Close() }

// noEOF turns the end of a file inside a document into an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
