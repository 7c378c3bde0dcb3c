package formats

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow bounds what a .zst file may ask of memory (zstd --long=27 needs this much).
const maxZstdWindow = 128 << 20

// textFile is the text of a file, read once from its start to its end: recorded traffic is large.
// .gz and .zst are decompressed on the way, and a byte order mark
// is left out.
type textFile struct {
	*bufio.Reader
	path   string
	unpack io.Closer // nil for a plain file
	file   *os.File
}

// openText opens a file with a buffer of that size.
func openText(path string, buffer int) (*textFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open trace: %w", err)
	}
	t := &textFile{path: path, file: f}
	from := io.Reader(f)
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		z, err := gzip.NewReader(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("open trace %s as gzip: %w", path, err)
		}
		from, t.unpack = z, z
	case ".zst":
		// Concurrency 1 decodes inside Read: a Source starts no goroutines.
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("open trace %s as zstd: %w", path, err)
		}
		from, t.unpack = z, z.IOReadCloser()
	}
	t.Reader = bufio.NewReaderSize(from, buffer)
	if mark, _ := t.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = t.Discard(3) // they are in the buffer
	}
	return t, nil
}

// Close closes the file.
func (t *textFile) Close() error {
	var err error
	if t.unpack != nil {
		err = t.unpack.Close()
	}
	return errors.Join(err, t.file.Close())
}

// lineReader reads a file line by line.
type lineReader struct {
	text   *textFile
	number int // of the line last returned, from 1
}

// openLines opens a file whose lines are at most limit bytes long. Memory stays constant whatever
// the file holds: a longer line is a malformed row.
func openLines(path string, limit int) (*lineReader, error) {
	text, err := openText(path, limit)
	return &lineReader{text: text}, err
}

// next returns the next line that is not blank, without its end; io.EOF after the last. The bytes
// are the caller's to change until the next call.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.text.ReadSlice('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		l.number++
		if errors.Is(err, bufio.ErrBufferFull) {
			if err := l.skipLine(); err != nil {
				return nil, err
			}
			return nil, malformed("longer than %d bytes", l.text.Size())
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, l.failed(err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
}

// skipLine lets the rest of a line pass through the buffer.
func (l *lineReader) skipLine() error {
	for {
		_, err := l.text.ReadSlice('\n')
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return l.failed(err)
		}
	}
}

// failed tells that the file cannot be read, and where.
func (l *lineReader) failed(err error) error {
	return fmt.Errorf("read trace %s in line %d: %w", l.text.path, l.number, err)
}

// Line is that of the row last returned.
func (l *lineReader) Line() int { return l.number }

// Close closes the file.
func (l *lineReader) Close() error { return l.text.Close() }
