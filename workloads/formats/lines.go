package formats

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow is the largest window of a .zst file, in bytes. zstd --long=27 needs this much memory.
const maxZstdWindow = 128 << 20

// textFile reads the text of a file once, from start to end, because recorded traffic is large. It
// decompresses .gz and .zst, and skips a byte order mark.
type textFile struct {
	*bufio.Reader
	path   string
	unpack io.Closer
	file   *os.File
}

// openText opens a file with a buffer of the given size.
func openText(path string, buffer int) (*textFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	unpacked := io.NopCloser(f)
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		unpacked, err = gzip.NewReader(f)
	case ".zst":
		// Concurrency 1 decodes inside Read: a Source starts no goroutines.
		z, zerr := zstd.NewReader(f, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		unpacked, err = zstdReader{z.IOReadCloser()}, zerr
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open trace %s: %w", path, err)
	}
	t := &textFile{bufio.NewReaderSize(unpacked, buffer), path, unpacked, f}
	if mark, _ := t.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = t.Discard(3) // Peek has buffered them
	}
	return t, nil
}

// zstdReader adds a hint to the error of a file that needs more memory than maxZstdWindow.
type zstdReader struct{ io.ReadCloser }

// Read implements io.Reader.
func (z zstdReader) Read(p []byte) (int, error) {
	n, err := z.ReadCloser.Read(p)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		err = fmt.Errorf("%w: recompress it without --long, or with at most --long=27", err)
	}
	return n, err
}

// Close closes the file.
func (t *textFile) Close() error { return errors.Join(t.unpack.Close(), t.file.Close()) }

// lineReader reads a file line by line. Its memory is constant: a line longer than the buffer is a
// malformed row.
type lineReader struct {
	*textFile
	number int // number of the line last returned, from 1
}

// next returns the next line that is not blank, without its line break, and io.EOF after the last
// line. The bytes are valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.ReadSlice('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		l.number++
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) { // skip the rest of the line
			_, err = l.ReadSlice('\n')
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("read trace %s in line %d: %w", l.path, l.number, err)
		case long:
			return nil, malformed("longer than %d bytes", l.Size())
		case len(bytes.TrimSpace(line)) > 0:
			return line, nil
		}
	}
}

// Line returns the line of the row last returned.
func (l *lineReader) Line() int { return l.number }

// maxLine is the longest line of a CSV file. Real lines have some hundred bytes.
const maxLine = 64 << 10

// Columns describes the columns of a kind of CSV file.
type Columns struct {
	Kind     string   // the kind of file, "an I/O trace"
	Names    []string // in upper or lower case
	Required int      // number of the first Names that a file must have
	Places   []int    // index of each name in a file without a header
}

// CSV reads comma-separated values line by line. A field with a line break is malformed, so that a
// stray quote affects only its own row.
type CSV struct {
	lineReader
	line    bytes.Reader // input of the csv.Reader
	csv     *csv.Reader
	columns Columns
	places  []int // index of the field of each column; nil before the first line
	need    int   // number of fields that a row must have
	fields  []string
	row     []string
}

// OpenCSV opens a file.
func OpenCSV(path string, columns Columns) (*CSV, error) {
	text, err := openText(path, maxLine)
	c := &CSV{lineReader: lineReader{text, 0}, columns: columns, row: make([]string, len(columns.Names))}
	c.csv = csv.NewReader(&c.line)
	c.csv.FieldsPerRecord, c.csv.TrimLeadingSpace, c.csv.ReuseRecord = -1, true, true
	return c, err
}

// Fields returns the fields of the next row in the order of the columns, "" for a missing field. The
// fields are valid until the next call. It returns the errors of Reader.Next. A row without all
// required columns is malformed. Fields after the last column are ignored.
func (c *CSV) Fields() ([]string, error) {
	line, err := c.next()
	if err != nil {
		return nil, err
	}
	c.line.Reset(line)
	if c.fields, err = c.csv.Read(); err != nil {
		return nil, Malformed{errors.Unwrap(err)}
	}
	if c.places == nil {
		if header, err := c.header(); err != nil {
			return nil, err
		} else if header {
			return c.Fields()
		}
	}
	if len(c.fields) < c.need {
		return nil, malformed("%d fields, need at least %d", len(c.fields), c.need)
	}
	for i, at := range c.places {
		c.row[i] = ""
		if at >= 0 && at < len(c.fields) {
			c.row[i] = strings.TrimSpace(c.fields[at])
		}
	}
	return c.row, nil
}

// header finds the columns by the first line, and reports whether that line is a header.
func (c *CSV) header() (bool, error) {
	find := func(name string) int {
		return slices.IndexFunc(c.fields, func(f string) bool { return strings.EqualFold(strings.TrimSpace(f), name) })
	}
	header := find(c.columns.Names[0]) >= 0
	var missing []string
	for i, name := range c.columns.Names {
		at := c.columns.Places[i]
		if header {
			at = find(name)
		}
		c.places = append(c.places, at)
		if i < c.columns.Required {
			c.need = max(c.need, at+1)
			if at < 0 {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		return true, fmt.Errorf("%s:%d: the header has no column %s: is it %s?",
			c.path, c.number, strings.Join(missing, " and no "), c.columns.Kind)
	}
	return header, nil
}

// Bad returns the error of a row with an unusable field in the given column.
func (c *CSV) Bad(column int, reason error) error {
	field := c.row[column]
	// Cut a long field, so that the message stays readable.
	return malformed("%s %q: %w", c.columns.Names[column], field[:min(len(field), 40)], reason)
}
