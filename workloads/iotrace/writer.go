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

// Header is the first line of an I/O trace.
const Header = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase"

// ioTraceOrigin is the timestamp of a trace's beginning in seconds: a fixed moment, so that nothing
// of the machine and of the day stands in the file.
const ioTraceOrigin = 1_700_000_000

// IOTraceRow is one operation of an I/O trace.
type IOTraceRow struct {
	At        time.Duration // since the trace's beginning; microseconds are kept
	Operation string        // Read, Write or Delete
	Bytes     int64
	Tier      int // 0 gpu, 1 cpu, 2 storage
	Key       string
	Phase     string // Prefill, Decode or Evict
}

// Writer writes an I/O trace as CSV. Rows go out as they come, equal rows give equal bytes.
// It is not safe for concurrent use.
type Writer struct {
	out    io.Writer
	closer []io.Closer
	buf    []byte
	rows   int64
	err    error

	second int64 // whose text stands in stamp
	stamp  []byte

	file      *os.File // nil for a writer of somebody else
	temporary string
	path      string
}

// ioTraceBuffer is how many bytes are collected before they are written.
const ioTraceBuffer = 256 << 10

// NewWriter begins a trace that goes to w.
func NewWriter(w io.Writer) *Writer {
	t := &Writer{out: w, buf: make([]byte, 0, ioTraceBuffer+4096), second: -1}
	t.buf = append(t.buf, Header...)
	t.buf = append(t.buf, '\n')
	return t
}

// Create begins a trace in a file; a name that ends in .zst makes it compressed. A regular
// file gets its name only when Close succeeds, so that a broken run does not leave what looks like
// a trace.
func Create(path string) (*Writer, error) {
	name, temporary := path, path+".partial"
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		temporary = "" // a device or a pipe: nothing to rename
	} else {
		name = temporary
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("creating the I/O trace: %w", err)
	}
	if !strings.HasSuffix(strings.ToLower(path), ".zst") {
		t := NewWriter(f)
		t.file, t.path, t.temporary = f, path, temporary
		return t, nil
	}
	// One thread: the bytes do not depend on the number of cores.
	out := bufio.NewWriterSize(f, ioTraceBuffer)
	z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		_ = f.Close()
		_ = os.Remove(name)
		return nil, fmt.Errorf("creating the I/O trace: %w", err)
	}
	t := NewWriter(z)
	t.closer = []io.Closer{z, flusher{out}}
	t.file, t.path, t.temporary = f, path, temporary
	return t, nil
}

type flusher struct{ *bufio.Writer }

func (f flusher) Close() error { return f.Flush() }

// Row adds one operation. An error stays and is returned by all later calls.
func (t *Writer) Row(r IOTraceRow) error {
	b := t.timestamp(t.buf, r.At)
	b = append(b, ',')
	b = append(b, r.Operation...)
	b = append(b, ',')
	b = strconv.AppendInt(b, r.Bytes, 10)
	b = append(b, ",Tier-"...)
	b = strconv.AppendInt(b, int64(r.Tier), 10)
	b = append(b, ',')
	b = appendField(b, r.Key)
	b = append(b, ',')
	b = append(b, r.Phase...)
	t.buf = append(b, '\n')
	t.rows++
	if len(t.buf) >= ioTraceBuffer {
		t.flush()
	}
	return t.err
}

// timestamp appends seconds with six decimals.
func (t *Writer) timestamp(b []byte, at time.Duration) []byte {
	at = max(at, 0)
	second, micros := int64(at/time.Second), int64(at%time.Second/time.Microsecond)
	if second != t.second {
		t.second = second
		t.stamp = append(strconv.AppendInt(t.stamp[:0], ioTraceOrigin+second, 10), '.')
	}
	b = append(b, t.stamp...)
	var digits [6]byte
	for i := len(digits) - 1; i >= 0; i-- {
		digits[i] = byte('0' + micros%10)
		micros /= 10
	}
	return append(b, digits[:]...)
}

// appendField appends a text, quoted where CSV wants it. Keys of the suite never do.
func appendField(b []byte, text string) []byte {
	special := false
	for i := range len(text) {
		c := text[i]
		special = special || c == ',' || c == '"' || c == '\r' || c == '\n'
	}
	if !special {
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
	return append(b, '"')
}

func (t *Writer) flush() {
	if t.err == nil {
		if _, err := t.out.Write(t.buf); err != nil {
			t.err = fmt.Errorf("writing the I/O trace: %w", err)
		}
	}
	t.buf = t.buf[:0]
}

// Rows is the number of operations so far.
func (t *Writer) Rows() int64 { return t.rows }

// Close writes what is left. With commit false, or after an error, no file is left of one that
// CreateIOTrace began.
func (t *Writer) Close(commit bool) error {
	t.flush()
	errs := []error{t.err}
	for _, c := range t.closer {
		errs = append(errs, c.Close())
	}
	t.closer = nil
	if t.file == nil {
		return errors.Join(errs...)
	}
	errs = append(errs, t.file.Close())
	t.file = nil
	err := errors.Join(errs...)
	switch {
	case t.temporary == "":
	case err == nil && commit:
		err = os.Rename(t.temporary, t.path)
	default:
		err = errors.Join(err, os.Remove(t.temporary))
	}
	return err
}
