package workloads

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

// maxLine is the longest line of a trace. Memory stays constant whatever a file holds: a longer line is a malformed row.
const maxLine = 64 << 10

// maxZstdWindow bounds what a .zst file may ask of memory (zstd --long=27 needs this much).
const maxZstdWindow = 128 << 20

// lineReader reads a trace file line by line; .gz and .zst are decompressed on the way.
type lineReader struct {
	path    string
	number  int // of the line last returned, from 1
	file    *os.File
	unpack  io.Closer // nil for a plain file
	text    *bufio.Reader
	started bool
}

// openLines opens a trace whose lines are at most limit bytes long.
func openLines(path string, limit int) (*lineReader, error) {
	f, from, unpack, err := openUnpacked(path)
	if err != nil {
		return nil, err
	}
	return &lineReader{path: path, file: f, unpack: unpack, text: bufio.NewReaderSize(from, limit)}, nil
}

// openUnpacked opens a file and what is in it; unpack is nil for a plain one.
func openUnpacked(path string) (f *os.File, from io.Reader, unpack io.Closer, err error) {
	f, err = os.Open(path)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open trace: %w", err)
	}
	from = f
	switch strings.ToLower(filepath.Ext(path)) {
	case ".gz":
		z, err := gzip.NewReader(f)
		if err != nil {
			f.Close()
			return nil, nil, nil, fmt.Errorf("open trace %s as gzip: %w", path, err)
		}
		from, unpack = z, z
	case ".zst":
		// Concurrency 1 decodes inside Read: a Source starts no goroutines.
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			f.Close()
			return nil, nil, nil, fmt.Errorf("open trace %s as zstd: %w", path, err)
		}
		from, unpack = z, z.IOReadCloser()
	}
	return f, from, unpack, nil
}

// next returns the next line that is not blank, without its end; io.EOF after the last. The bytes are the caller's to change
// until the next call. tooLong lines come back cut.
func (l *lineReader) next() (line []byte, tooLong bool, err error) {
	for {
		line, err = l.text.ReadSlice('\n')
		tooLong = errors.Is(err, bufio.ErrBufferFull)
		if len(line) == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return nil, false, io.EOF
			}
			return nil, false, fmt.Errorf("read trace %s after line %d: %w", l.path, l.number, err)
		}
		if err != nil && !tooLong && !errors.Is(err, io.EOF) {
			return nil, false, fmt.Errorf("read trace %s in line %d: %w", l.path, l.number+1, err)
		}
		l.number++
		if tooLong {
			// The head of the line is as much as anybody will be shown; the rest passes through the buffer.
			head := bytes.Clone(line[:80])
			if err := l.skipLine(); err != nil {
				return nil, false, err
			}
			return head, true, nil
		}
		if !l.started {
			l.started = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) > 0 {
			return line, false, nil
		}
	}
}

// skipLine discards the rest of a line.
func (l *lineReader) skipLine() error {
	for {
		_, err := l.text.ReadSlice('\n')
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("read trace %s in line %d: %w", l.path, l.number, err)
		}
	}
}

func (l *lineReader) close() error {
	var err error
	if l.unpack != nil {
		err = l.unpack.Close()
	}
	return errors.Join(err, l.file.Close())
}

// splitFields cuts a line of comma-separated values into dst. Fields may be quoted, with quotes doubled inside; a field
// cannot contain a line break, so that one stray quote spoils one row and not the rest of the file. The fields share the
// bytes of line, which quoted ones overwrite.
func splitFields(dst [][]byte, line []byte) ([][]byte, error) {
	for {
		if len(line) > 0 && line[0] == '"' {
			field, rest, err := quotedField(line)
			if err != nil {
				return dst, err
			}
			dst = append(dst, field)
			if len(rest) == 0 {
				return dst, nil
			}
			line = rest[1:]
			continue
		}
		field, rest, more := bytes.Cut(line, []byte{','})
		dst = append(dst, bytes.TrimSpace(field))
		if !more {
			return dst, nil
		}
		line = rest
	}
}

// quotedField takes a quoted field off the start of a line; rest is empty or starts with a comma.
func quotedField(line []byte) (field, rest []byte, err error) {
	out := 0
	for i := 1; i < len(line); i++ {
		if line[i] != '"' {
			line[out] = line[i]
			out++
			continue
		}
		if i+1 < len(line) && line[i+1] == '"' {
			line[out] = '"'
			out, i = out+1, i+1
			continue
		}
		rest = line[i+1:]
		if len(rest) > 0 && rest[0] != ',' {
			return nil, nil, errors.New("text after a closing quote")
		}
		return bytes.TrimSpace(line[:out]), rest, nil
	}
	return nil, nil, errors.New("a quote is not closed")
}
