package iotrace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// origin is the timestamp of a trace's beginning in seconds: a fixed moment, so that nothing of the
// machine and of the day stands in the file.
const origin = 1_700_000_000

// bufferSize is how many bytes are collected before they are written.
const bufferSize = 256 << 10

// Writer writes an I/O trace as CSV. Rows go out as they come, equal rows give equal bytes. It is
// not safe for concurrent use.
type Writer struct {
	out    *bufio.Writer  // keeps the first error of writing
	closes []func() error // of what lies between out and the file, in order
	rows   int64

	file *os.File // nil for a caller's writer
	path string   // its name after Close
}

// NewWriter begins a trace that goes to w.
func NewWriter(w io.Writer) *Writer {
	t := &Writer{out: bufio.NewWriterSize(w, bufferSize)}
	_, _ = t.out.WriteString(Header + "\n") // the buffer takes it
	return t
}

// Create begins a trace in a file; a name that ends in .zst makes it compressed. A regular file
// gets its name only when Close succeeds, so that a broken run does not leave what looks like a
// trace.
func Create(path string) (*Writer, error) {
	name := path + ".partial"
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		name = path // a device or a pipe: nothing to rename
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("creating the I/O trace: %w", err)
	}
	t := NewWriter(f)
	if strings.HasSuffix(strings.ToLower(path), ".zst") {
		packed := bufio.NewWriterSize(f, bufferSize)
		// One thread: the bytes do not depend on the number of cores. It fails for no such option.
		z, _ := zstd.NewWriter(packed, zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(zstd.SpeedFastest))
		t = NewWriter(z)
		t.closes = []func() error{z.Close, packed.Flush}
	}
	t.file, t.path = f, path
	return t, nil
}

// Row adds one operation. An error stays and is returned by all later calls.
func (t *Writer) Row(r Row) error {
	b := appendStamp(t.out.AvailableBuffer(), r.At)
	b = append(b, ',')
	b = append(b, r.Operation.String()...)
	b = append(b, ',')
	b = strconv.AppendInt(b, r.Bytes, 10)
	b = append(b, ",Tier-"...)
	b = strconv.AppendInt(b, int64(r.Tier), 10)
	b = append(b, ',')
	b = appendField(b, r.Key)
	b = append(b, ',')
	b = append(b, r.Phase...)
	t.rows++
	_, err := t.out.Write(append(b, '\n'))
	return failed(err)
}

// failed says whose error it is.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing the I/O trace: %w", err)
}

// appendStamp appends seconds with six decimals.
func appendStamp(b []byte, at time.Duration) []byte {
	at = max(at, 0)
	b = strconv.AppendInt(b, int64(origin+at/time.Second), 10)
	point := len(b)
	b = strconv.AppendInt(b, int64(1e6+at%time.Second/time.Microsecond), 10) // a 1 and six digits
	b[point] = '.'
	return b
}

// appendField appends a text, quoted where CSV wants it. Keys of the suite never do.
func appendField(b []byte, text string) []byte {
	if !strings.ContainsAny(text, ",\"\r\n") {
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
	return append(b, '"')
}

// Rows is the number of operations so far.
func (t *Writer) Rows() int64 { return t.rows }

// Close writes what is left. With commit false, or after an error, no file is left of one that
// Create began.
func (t *Writer) Close(commit bool) error {
	err := failed(t.out.Flush())
	for _, close := range t.closes {
		err = errors.Join(err, close())
	}
	t.closes = nil
	if t.file == nil {
		return err
	}
	name := t.file.Name()
	err = errors.Join(err, t.file.Close())
	t.file = nil
	switch {
	case name == t.path:
	case err == nil && commit:
		err = os.Rename(name, t.path)
	default:
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
