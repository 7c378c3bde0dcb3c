package workloads

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
)

// document is a JSON file that is read value by value: memory is bounded by the largest value, and that by maxValue.
type document struct {
	path   string
	file   *os.File
	unpack io.Closer // nil for a plain file
	in     *meteredReader
	dec    *json.Decoder
}

// maxValue bounds one value of a document. Real ones, a request or a conversation, are a thousand times smaller.
const maxValue = 64 << 20

var errLargeValue = errors.New("a value of more than 64 MiB")

func openDocument(path string) (*document, error) {
	f, from, unpack, err := openUnpacked(path)
	if err != nil {
		return nil, err
	}
	in := &meteredReader{from: from, left: maxValue}
	return &document{path: path, file: f, unpack: unpack, in: in, dec: json.NewDecoder(in)}, nil
}

// token reads the next token.
func (d *document) token() (json.Token, error) {
	d.in.left = maxValue
	return d.dec.Token()
}

// value reads the next value.
func (d *document) value(v any) error {
	d.in.left = maxValue
	return d.dec.Decode(v)
}

// skip passes over the next value, however large.
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

// skipValue passes over the next value of a decoder.
func skipValue(dec *json.Decoder) error { return (&document{in: &meteredReader{}, dec: dec}).skip() }

// line is the line that the decoder has reached, from 1.
func (d *document) line() int { return d.in.lineAt(d.dec.InputOffset()) }

func (d *document) close() error {
	var err error
	if d.unpack != nil {
		err = d.unpack.Close()
	}
	return errors.Join(err, d.file.Close())
}

// meteredReader bounds what one value may take from a file, and knows where its lines end.
type meteredReader struct {
	from   io.Reader
	left   int64
	offset int64   // bytes read
	ends   []int64 // offsets of line ends read and not yet passed
	passed int     // line ends before those
	begun  bool
}

func (r *meteredReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, errLargeValue
	}
	p = p[:min(int64(len(p)), r.left, 64<<10)]
	n, err := r.from.Read(p)
	if !r.begun && n >= 3 {
		if bytes.HasPrefix(p[:n], []byte("\xef\xbb\xbf")) { // a byte order mark is white space to us
			copy(p, "   ")
		}
		r.begun = true
	}
	for i := 0; ; {
		at := bytes.IndexByte(p[i:n], '\n')
		if at < 0 {
			break
		}
		r.ends = append(r.ends, r.offset+int64(i+at))
		i += at + 1
	}
	r.left -= int64(n)
	r.offset += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &readError{err}
	}
	return n, err
}

// lineAt returns the line of an offset that does not go back.
func (r *meteredReader) lineAt(offset int64) int {
	n := 0
	for n < len(r.ends) && r.ends[n] < offset {
		n++
	}
	r.ends = append(r.ends[:0], r.ends[n:]...)
	r.passed += n
	return r.passed + 1
}

// readError is a failure of the file, as opposed to one of its contents.
type readError struct{ error }

func (e *readError) Unwrap() error { return e.error }

func readFailed(err error) bool {
	var e *readError
	return errors.As(err, &e)
}

// wrongType tells whether a value was read whole and only did not fit: the document can be read on.
func wrongType(err error) bool {
	var e *json.UnmarshalTypeError
	return errors.As(err, &e)
}

// noEOF turns the end of a file inside a document into an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
