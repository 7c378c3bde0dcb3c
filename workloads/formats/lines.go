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
		unpacked, err = z.IOReadCloser(), zerr
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

// Close closes the file.
func (t *textFile) Close() error { return errors.Join(t.unpack.Close(), t.file.Close()) }

// lineReader reads a file line by line.
type lineReader struct {
	*textFile
	number int // of the line last returned, from 1
}

// openLines opens a file whose lines are at most limit bytes long. Memory stays constant whatever
// the file holds: a longer line is a malformed row.
func openLines(path string, limit int) (*lineReader, error) {
	text, err := openText(path, limit)
	return &lineReader{textFile: text}, err
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
