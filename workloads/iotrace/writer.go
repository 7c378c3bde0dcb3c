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

// origin is the timestamp of the start of a trace, in seconds. It is fixed, so that the file does not
// depend on the machine or the day.
const origin = 1_700_000_000

// bufferSize is the number of bytes that are buffered before a write.
const bufferSize = 256 << 10

// Writer writes an I/O trace as CSV, in the order of the calls. Equal rows give equal bytes. A Writer
// is not safe for concurrent use.
type Writer struct {
	out    *bufio.Writer  // keeps the first write error
	closes []func() error // closes the layers between out and the file, in order
	rows   int64

	file *os.File // nil if the caller gave the writer
	path string   // name of the file after Close
}

// NewWriter begins a trace in w.
func NewWriter(w io.Writer) *Writer {
	t := &Writer{out: bufio.NewWriterSize(w, bufferSize)}
	_, _ = t.out.WriteString(Header + "\n") // fits into the buffer
	return t
}

// Create begins a trace in a file. The trace is compressed if the name ends in .zst. A regular file
// gets its name only when Close succeeds, so that a failed run leaves no file that looks like a trace.
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
		// With one thread the bytes do not depend on the number of cores. These options cannot fail.
		z, _ := zstd.NewWriter(packed, zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderLevel(zstd.SpeedFastest))
		t = NewWriter(z)
		t.closes = []func() error{z.Close, packed.Flush}
	}
	t.file, t.path = f, path
	return t, nil
}

// Row adds one operation. Its key must have no comma, quote or line break, as the keys of package
// workloads. After an error all later calls return this error.
func (t *Writer) Row(r Row) error {
	b := appendStamp(t.out.AvailableBuffer(), r.At)
	b = append(b, ',')
	b = append(b, r.Operation.String()...)
	b = append(b, ',')
	b = strconv.AppendInt(b, r.Bytes, 10)
	b = append(b, ",Tier-"...)
	b = strconv.AppendInt(b, int64(r.Tier), 10)
	b = append(b, ',')
	b = append(b, r.Key...)
	b = append(b, ',')
	b = append(b, r.Phase...)
	t.rows++
	_, err := t.out.Write(append(b, '\n'))
	return failed(err)
}

// failed wraps an error of the trace.
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

// Rows returns the number of operations so far.
func (t *Writer) Rows() int64 { return t.rows }

// Close writes the buffered rows. If commit is false, or after an error, it removes a file of
// Create.
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
