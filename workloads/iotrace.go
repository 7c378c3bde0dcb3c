package workloads

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// IOOperation is what a row of an I/O trace does.
type IOOperation uint8

// The operations.
const (
	IORead IOOperation = iota
	IOWrite
	IODelete
)

// IORow is one row of an I/O trace.
type IORow struct {
	At        time.Duration // since the first usable row of the file; never before the row in front of it
	Operation IOOperation
	Bytes     int64
	Tier      int
	Key       string
	Phase     string // Prefill, Decode or Evict
}

// IOTrace reads an I/O trace, ours or the Python benchmark's, row by row: Timestamp, Operation, Object_Size_Bytes, Tier, Key
// and Phase, in the order of a header or in this one. The Python benchmark ends lines with CR LF, stamps them with the time of
// day in microseconds, writes Read and Write only, and has a fourth phase, Both. Malformed rows are handled as in request traces. .gz and .zst are
// unpacked on the way. It is not safe for concurrent use.
type IOTrace struct {
	path   string
	allow  bool
	lines  *lineReader
	fields [][]byte
	cols   [len(ioColumns)]int
	named  bool // the columns are known
	usable int64
	report TraceReport
	first  time.Duration
	last   time.Duration
	err    error
}

// ioColumns are the names of the columns in their default order.
var ioColumns = [...]string{"Timestamp", "Operation", "Object_Size_Bytes", "Tier", "Key", "Phase"}

const (
	ioStamp = iota
	ioOperation
	ioBytes
	ioTier
	ioKey
	ioPhase
)

const (
	// maxIOBytes bounds one object; sums of what can be in flight stay inside 64 bits.
	maxIOBytes = 1 << 50
	maxIOTier  = 2
	maxIOKey   = 4096
)

// OpenIOTrace opens a file. With allowMalformed any share of its rows may be malformed.
func OpenIOTrace(path string, allowMalformed bool) (*IOTrace, error) {
	lines, err := openLines(path, maxLine)
	if err != nil {
		return nil, err
	}
	return &IOTrace{path: path, allow: allowMalformed, lines: lines}, nil
}

// Next returns the next usable row; false at the end, or after an error, which Err then returns.
func (t *IOTrace) Next() (IORow, bool) {
	for t.err == nil && t.lines != nil {
		line, tooLong, err := t.lines.next()
		if errors.Is(err, io.EOF) {
			t.finish()
			break
		}
		if err != nil {
			t.fail(err)
			break
		}
		row, header, reason := t.parse(line, tooLong)
		if header {
			continue
		}
		t.report.Rows++
		if reason == nil {
			t.usable++
			return row, true
		}
		t.report.Malformed++
		if len(t.report.First) < maxRowErrors {
			t.report.First = append(t.report.First, RowError{t.path, t.lines.number, reason.Error()})
		}
		if t.report.Rows >= checkedRows {
			t.check()
		}
	}
	return IORow{}, false
}

// Err is why Next ended early, nil at the end of the file.
func (t *IOTrace) Err() error { return t.err }

// Report says what the file held so far.
func (t *IOTrace) Report() TraceReport { return t.report }

// Close closes the file.
func (t *IOTrace) Close() error {
	if t.lines == nil {
		return nil
	}
	err := t.lines.close()
	t.lines = nil
	return err
}

func (t *IOTrace) fail(err error) {
	t.err = err
	_ = t.Close()
}

// finish checks what can be checked at the end only.
func (t *IOTrace) finish() {
	t.report.Cycles = 1
	t.check()
	if t.err == nil && t.usable == 0 {
		t.fail(fmt.Errorf("I/O trace %s has no usable row among its %d%s", t.path, t.report.Rows, t.example()))
		return
	}
	if t.err == nil {
		_ = t.Close()
	}
}

func (t *IOTrace) check() {
	if t.allow || t.report.Malformed*100 <= t.report.Rows {
		return
	}
	t.fail(fmt.Errorf("I/O trace %s: %d of the first %d rows are malformed, more than 1 %%%s", t.path, t.report.Malformed, t.report.Rows, t.example()))
}

func (t *IOTrace) example() string {
	if len(t.report.First) == 0 {
		return ""
	}
	return "; the first is " + t.report.First[0].Error()
}

// parse reads one line; header lines say which column is which.
func (t *IOTrace) parse(line []byte, tooLong bool) (row IORow, header bool, reason error) {
	if tooLong {
		return row, false, fmt.Errorf("longer than %d bytes", maxLine)
	}
	fields, err := splitFields(t.fields[:0], line)
	t.fields = fields
	if err != nil {
		return row, false, err
	}
	if !t.named {
		t.named = true
		for i := range t.cols {
			t.cols[i] = i
		}
		if anyEqual(fields, ioColumns[ioStamp]) {
			return row, true, t.header(fields)
		}
	}
	for i, c := range t.cols {
		if c >= len(fields) {
			return row, false, fmt.Errorf("%d fields, no %s", len(fields), ioColumns[i])
		}
	}
	return t.row(fields)
}

// header finds the columns by name. A missing one ends the file: no row could be read.
func (t *IOTrace) header(fields [][]byte) error {
	for i, name := range ioColumns {
		t.cols[i] = -1
		for k, f := range fields {
			if strings.EqualFold(string(f), name) {
				t.cols[i] = k
			}
		}
		if t.cols[i] < 0 {
			t.fail(fmt.Errorf("I/O trace %s:%d: the header has no column %s", t.path, t.lines.number, name))
			return nil
		}
	}
	return nil
}

func (t *IOTrace) row(fields [][]byte) (row IORow, header bool, reason error) {
	text := func(column int) string { return string(fields[t.cols[column]]) }
	bad := func(column int, want string) error {
		return fmt.Errorf("%s %q: want %s", ioColumns[column], shorten(fields[t.cols[column]]), want)
	}
	at, err := secondsStamp(text(ioStamp))
	if err != nil {
		return row, false, bad(ioStamp, "seconds, 0 to 9000000000")
	}
	switch strings.ToLower(text(ioOperation)) {
	case "read":
		row.Operation = IORead
	case "write":
		row.Operation = IOWrite
	case "delete":
		row.Operation = IODelete
	default:
		return row, false, bad(ioOperation, "Read, Write or Delete")
	}
	row.Bytes, err = strconv.ParseInt(strings.TrimSuffix(text(ioBytes), ".0"), 10, 64)
	if err != nil || row.Bytes < 0 || row.Bytes > maxIOBytes || (row.Bytes == 0 && row.Operation == IOWrite) {
		return row, false, bad(ioBytes, fmt.Sprintf("a whole number of bytes, at most %d", int64(maxIOBytes)))
	}
	name := strings.ToLower(text(ioTier))
	row.Tier, err = strconv.Atoi(strings.TrimPrefix(name, "tier-"))
	if err != nil || row.Tier < 0 || row.Tier > maxIOTier {
		return row, false, bad(ioTier, "Tier-0, Tier-1 or Tier-2")
	}
	if row.Key = text(ioKey); row.Key == "" || len(row.Key) > maxIOKey {
		return row, false, bad(ioKey, fmt.Sprintf("a key of at most %d bytes", maxIOKey))
	}
	if row.Phase = phaseOf(text(ioPhase), row.Operation); row.Phase == "" {
		return row, false, bad(ioPhase, "Prefill, Decode, Evict or Both")
	}
	if t.usable == 0 {
		t.first, t.last = at, at
	}
	t.last = max(t.last, at)
	row.At = t.last - t.first
	return row, false, nil
}

// phaseOf returns the phase in our spelling, "" for one that nobody writes. The Python benchmark reads a prefix in the phase of
// the whole request, which is Both when that prefills and decodes: such a read serves the decode.
func phaseOf(text string, op IOOperation) string {
	for _, phase := range [...]string{"Prefill", "Decode", "Evict"} {
		if strings.EqualFold(text, phase) {
			return phase
		}
	}
	switch {
	case !strings.EqualFold(text, "Both"):
		return ""
	case op == IOWrite:
		return "Prefill"
	}
	return "Decode"
}
