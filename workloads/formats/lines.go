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
	if err := Regular(path); err != nil { // opening a pipe waits for its writer
		return nil, err
	}
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
		unpacked, err = z.IOReadCloser(), zerr
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open trace %s: %w", path, err)
	}
	t := &textFile{bufio.NewReaderSize(unpacked, buffer), path, unpacked, f}
	if mark, _ := t.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = t.Discard(3) // Peek has buffered them
	}
	head, _ := t.Peek(len(lfsPointer))
	why := ""
	switch {
	case string(head) == lfsPointer:
		why = "a Git LFS pointer, not the data: git lfs pull fetches it"
	case len(head) > 1 && (string(head[:2]) == "\xff\xfe" || string(head[:2]) == "\xfe\xff" ||
		head[0] != 0 && head[1] == 0):
		why = "UTF-16: iconv -f UTF-16 -t UTF-8 makes a file that can be read"
	default:
		return t, nil
	}
	return nil, errors.Join(fmt.Errorf("trace %s is %s", path, why), t.Close())
}

// lfsPointer is the start of the file that Git has instead of a large file.
const lfsPointer = "version https://git-lfs"

// Close closes the file.
func (t *textFile) Close() error { return errors.Join(t.unpack.Close(), t.file.Close()) }

// lineReader reads a file line by line. Its memory is constant: a line longer than the buffer is a
// malformed row. Before the first usable line it ends the reading: the file has another format.
type lineReader struct {
	*textFile
	number int  // number of the line last returned, from 1
	usable bool // a line had the right format
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
		if long && !l.usable {
			return nil, fmt.Errorf("read trace %s: line %d is longer than %d bytes, and no line before it "+
				"has a row: give a file of this format", l.path, l.number, l.Size())
		}
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

// Table is a kind of CSV file, whose rows have the type R.
type Table[R any] struct {
	Kind    string // for messages, such as "an I/O trace"
	Columns []Column[R]
}

// Column is a column of a Table.
type Column[R any] struct {
	Name     string // in upper or lower case
	Place    int    // index in a file without a header
	Optional bool   // files or rows may lack it
	// Set sets the value of the column in a row, whose columns before it are set. A missing field is "".
	Set func(row *R, field string) error
}

// CSV reads the comma-separated values of a Table line by line. A field with a line break is malformed,
// so that a stray quote affects only its own row.
type CSV[R any] struct {
	lineReader
	table  Table[R]
	line   bytes.Reader // input of the csv.Reader
	csv    *csv.Reader
	places []int // index of the field of each column; nil before the first line
	need   int   // number of fields that a row must have
	fields int   // of the header, 0 without a header
}

// Open opens a file.
func (t Table[R]) Open(path string) (*CSV[R], error) {
	text, err := openText(path, maxLine)
	if err != nil {
		return nil, err
	}
	c := &CSV[R]{lineReader: lineReader{textFile: text}, table: t}
	c.csv = csv.NewReader(&c.line)
	c.csv.FieldsPerRecord, c.csv.TrimLeadingSpace, c.csv.ReuseRecord = -1, true, true
	return c, nil
}

// Next returns the next row, with the errors of Reader.Next. A row without all required columns is
// malformed, and so is a row with another number of fields than the header. Rows of empty fields are no
// rows.
func (c *CSV[R]) Next() (row R, err error) {
	line, err := c.next()
	if err != nil {
		return row, err
	}
	c.line.Reset(line)
	fields, err := c.csv.Read()
	if err != nil {
		return row, Malformed{errors.Unwrap(err)}
	}
	if again := c.places != nil; !again || c.find(fields, c.table.Columns[0].Name) >= 0 {
		switch header, err := c.header(fields); {
		case err != nil:
			return row, err
		case again:
			return row, malformed("a second header: the file was joined of several")
		case header:
			return c.Next()
		}
	}
	if !slices.ContainsFunc(fields, func(f string) bool { return strings.TrimSpace(f) != "" }) {
		return c.Next() // a spreadsheet writes such rows after the last one
	}
	if c.fields > 0 && len(fields) != c.fields {
		return row, malformed("%d fields, the header has %d", len(fields), c.fields)
	}
	if len(fields) < c.need {
		return row, malformed("%d fields, need at least %d", len(fields), c.need)
	}
	for i, column := range c.table.Columns {
		field := ""
		if at := c.places[i]; at >= 0 && at < len(fields) {
			field = strings.TrimSpace(fields[at])
		}
		if err := column.Set(&row, field); err != nil {
			// Cut a long field, so that the message stays readable.
			return row, malformed("%s %q: %w", column.Name, field[:min(len(field), 40)], err)
		}
	}
	c.usable = true
	return row, nil
}

// find returns the index of the field with a name, -1 if there is none. The header of a file that was joined to
// another one may begin with a byte order mark.
func (c *CSV[R]) find(fields []string, name string) int {
	return slices.IndexFunc(fields, func(field string) bool {
		return strings.EqualFold(strings.Trim(field, " \t\ufeff"), name)
	})
}

// names reports whether the first line has names of other columns: no required column has a value there.
func (c *CSV[R]) names(fields []string) bool {
	var row R
	return !slices.ContainsFunc(c.table.Columns, func(column Column[R]) bool {
		return !column.Optional && (column.Place >= len(fields) ||
			column.Set(&row, strings.TrimSpace(fields[column.Place])) == nil)
	})
}

// header finds the columns by a first line, and reports whether that line is a header.
func (c *CSV[R]) header(fields []string) (bool, error) {
	c.places, c.need = nil, 0
	header := c.find(fields, c.table.Columns[0].Name) >= 0 || c.names(fields)
	var missing []string
	for _, column := range c.table.Columns {
		at := column.Place
		if header {
			at = c.find(fields, column.Name)
		}
		c.places = append(c.places, at)
		if column.Optional {
			continue
		}
		c.need = max(c.need, at+1)
		if at < 0 {
			missing = append(missing, column.Name)
		}
	}
	if len(missing) > 0 {
		return true, fmt.Errorf("%s:%d: the header has no column %s: is it %s? Its columns are %q",
			c.path, c.number, strings.Join(missing, " and no "), c.table.Kind, fields)
	}
	if header {
		c.fields = len(fields)
	}
	return header, nil
}
