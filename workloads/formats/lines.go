package formats

import (
	"bufio"
	"bytes"
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

// maxZstdWindow bounds what a .zst file may ask of memory (zstd --long=27 needs this much).
const maxZstdWindow = 128 << 20

// textFile is the text of a file, read once from its start to its end: recorded traffic is large.
// .gz and .zst are decompressed on the way, and a byte order mark is left out.
type textFile struct {
	*bufio.Reader
	path   string
	unpack io.Closer
	file   *os.File
}

// openText opens a file with a buffer of that size.
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
		_, _ = t.Discard(3) // they are in the buffer
	}
	return t, nil
}

// zstdReader says what to do with a file that needs more memory than maxZstdWindow.
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

// lineReader reads a file line by line. Memory stays constant whatever the file holds: a line that
// is longer than the buffer is a malformed row.
type lineReader struct {
	*textFile
	number int // of the line last returned, from 1
}

// next returns the next line that is not blank, without its end; io.EOF after the last. The bytes
// are valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.ReadSlice('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		l.number++
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of it passes through the buffer
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

// Line is that of the row last returned.
func (l *lineReader) Line() int { return l.number }

// maxLine is the longest line of a file of comma-separated values; real ones have a hundred bytes.
const maxLine = 64 << 10

// Columns are those of a kind of file.
type Columns struct {
	Kind     string   // what has them, "an I/O trace"
	Names    []string // compared without regard to case
	Required int      // the first so many; the others may be missing
	Places   []int    // of Names in a file without a header
}

// CSV reads comma-separated values field by field. encoding/csv is not used because one stray quote
// takes the rest of the file there, and a line without end all memory.
type CSV struct {
	lineReader
	columns Columns
	places  []int // of the columns among the fields; nil before the first line
	need    int   // fields that a row must have
	fields  []string
	row     []string
}

// OpenCSV opens a file.
func OpenCSV(path string, columns Columns) (*CSV, error) {
	text, err := openText(path, maxLine)
	row := make([]string, len(columns.Names))
	return &CSV{lineReader: lineReader{text, 0}, columns: columns, row: row}, err
}

// Fields returns the fields of the next row in the order of the columns, "" for one that is
// missing. They are valid until the next call. Its errors are those of Reader.Next. A row that is
// too short for its required columns is malformed; what is behind the last column is
// ignored.
func (c *CSV) Fields() ([]string, error) {
	line, err := c.next()
	if err != nil {
		return nil, err
	}
	if c.fields, err = splitFields(c.fields[:0], string(line)); err != nil {
		return nil, Malformed{err}
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
			c.row[i] = c.fields[at]
		}
	}
	return c.row, nil
}

// header finds out which column is which from the first line, and reports whether that was a
// header.
func (c *CSV) header() (bool, error) {
	find := func(name string) int {
		return slices.IndexFunc(c.fields, func(f string) bool { return strings.EqualFold(f, name) })
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

// Bad makes the error of a row whose field of that column cannot be used.
func (c *CSV) Bad(column int, reason error) error {
	field := c.row[column]
	// A message about an absurd field stays readable.
	return malformed("%s %q: %w", c.columns.Names[column], field[:min(len(field), 40)], reason)
}

// splitFields cuts a line of comma-separated values into dst. Fields may be quoted, with quotes
// doubled inside; a field cannot contain a line break, so that one stray quote spoils one row and
// not the rest of the file.
func splitFields(dst []string, line string) ([]string, error) {
	for more := true; more; {
		field, rest, comma := strings.Cut(line, ",")
		if strings.HasPrefix(line, `"`) {
			end := 1
			for ; end < len(line); end++ {
				if strings.HasPrefix(line[end:], `""`) {
					end++
				} else if line[end] == '"' {
					break
				}
			}
			if end == len(line) {
				return dst, errors.New("a quote is not closed")
			}
			field = strings.ReplaceAll(line[1:end], `""`, `"`)
			rest = line[end+1:]
			if rest, comma = strings.CutPrefix(rest, ","); rest != "" && !comma {
				return dst, errors.New("text after a closing quote")
			}
		}
		dst = append(dst, strings.TrimSpace(field))
		line, more = rest, comma
	}
	return dst, nil
}
