package iotrace

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// Reader reads an I/O trace, ours or the Python benchmark's, row by row: Timestamp, Operation,
// Object_Size_Bytes, Tier, Key and Phase, in the order of a header or in this one. The Python
// benchmark ends lines with CR LF, stamps them with the time of day in microseconds, writes Read
// and Write only, and has a fourth phase, Both. Malformed rows are handled as in request traces.
// .gz and .zst are unpacked on the way. It is not safe for concurrent use.
type Reader struct {
	rows   *formats.CSV // nil once closed
	usable int64
	tally  formats.Tally
	report workloads.TraceReport
	first  time.Duration
	last   time.Duration
	err    error
}

// Open opens a file. With allowMalformed any share of its rows may be malformed.
func Open(path string, allowMalformed bool) (*Reader, error) {
	rows, err := formats.OpenCSV(path, columns)
	if err != nil {
		return nil, err
	}
	t := &Reader{rows: rows}
	t.tally = formats.Tally{File: path, Allow: allowMalformed, Report: &t.report}
	return t, nil
}

// Next returns the next usable row; false at the end, or after an error, which Err then returns.
func (t *Reader) Next() (Row, bool) {
	for t.rows != nil {
		var row Row
		fields, err := t.rows.Fields()
		if err == nil {
			row, err = t.row(fields)
		}
		if malformed := (formats.Malformed{}); err != nil && !errors.As(err, &malformed) {
			t.end(err)
			break
		}
		t.tally.Row(err, t.rows.Line)
		if err == nil {
			t.usable++
			return row, true
		}
		if t.tally.TooMany(false) {
			t.end(t.tooMany())
		}
	}
	return Row{}, false
}

// Err is why Next ended early, nil at the end of the file.
func (t *Reader) Err() error { return t.err }

// Report says what the file held so far.
func (t *Reader) Report() workloads.TraceReport { return t.report }

// Close closes the file.
func (t *Reader) Close() error {
	if t.rows == nil {
		return nil
	}
	err := t.rows.Close()
	t.rows = nil
	return err
}

// end closes the file because of an error, io.EOF as a rule: then it checks what can be checked at
// the end only.
func (t *Reader) end(err error) {
	if errors.Is(err, io.EOF) {
		t.report.Cycles, err = 1, nil
		switch {
		case t.tally.TooMany(true):
			err = t.tooMany()
		case t.usable == 0:
			err = fmt.Errorf("I/O trace %s has no usable row among its %d%s",
				t.tally.File, t.tally.Rows, t.tally.Example())
		}
	}
	t.err = err
	_ = t.Close() // only read from
}

// tooMany says why a file is refused.
func (t *Reader) tooMany() error { return fmt.Errorf("I/O trace %w", t.tally.Err("")) }

// row reads the fields of a row.
func (t *Reader) row(fields [][]byte) (row Row, err error) {
	text := func(column int) string { return string(fields[column]) }
	bad := func(column int, want string) (Row, error) {
		return row, formats.Malformed{Reason: fmt.Errorf("%s %q: want %s",
			columns.Names[column], formats.Shorten(fields[column]), want)}
	}
	at, err := formats.SecondsStamp(text(stampColumn))
	if err != nil {
		return bad(stampColumn, "seconds, 0 to 9000000000")
	}
	isIt := func(name string) bool { return strings.EqualFold(name, text(operationColumn)) }
	known := slices.IndexFunc(operations[:], isIt)
	if known < 0 {
		return bad(operationColumn, "Read, Write or Delete")
	}
	row.Operation = Operation(known)
	row.Bytes, err = strconv.ParseInt(strings.TrimSuffix(text(bytesColumn), ".0"), 10, 64)
	empty := row.Bytes == 0 && row.Operation == Write // there is nothing to write
	if err != nil || row.Bytes < 0 || row.Bytes > maxBytes || empty {
		return bad(bytesColumn, fmt.Sprintf("a whole number of bytes, at most %d", int64(maxBytes)))
	}
	name := strings.ToLower(text(tierColumn))
	row.Tier, err = strconv.Atoi(strings.TrimPrefix(name, "tier-"))
	if err != nil || row.Tier < 0 || row.Tier > maxTier {
		return bad(tierColumn, "Tier-0, Tier-1 or Tier-2")
	}
	if row.Key = text(keyColumn); row.Key == "" || len(row.Key) > maxKey {
		return bad(keyColumn, fmt.Sprintf("a key of at most %d bytes", maxKey))
	}
	if row.Phase = phaseOf(text(phaseColumn), row.Operation); row.Phase == "" {
		return bad(phaseColumn, "Prefill, Decode, Evict or Both")
	}
	if t.usable == 0 {
		t.first, t.last = at, at
	}
	t.last = max(t.last, at)
	row.At = t.last - t.first
	return row, nil
}

// phaseOf returns the phase in our spelling, "" for one that nobody writes. The Python benchmark
// reads a prefix in the phase of the whole request, which is Both when that prefills and decodes:
// such a read serves the decode.
func phaseOf(text string, op Operation) string {
	for _, phase := range [...]string{"Prefill", "Decode", "Evict"} {
		if strings.EqualFold(text, phase) {
			return phase
		}
	}
	switch {
	case !strings.EqualFold(text, "Both"):
		return ""
	case op == Write:
		return "Prefill"
	}
	return "Decode"
}
