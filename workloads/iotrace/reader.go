package iotrace

import (
	"errors"
	"fmt"
	"io"
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
	rows        *formats.CSV
	tally       formats.Tally
	first, last time.Duration // stamps of usable rows
}

// Open opens a file. With allowMalformed any share of its rows may be malformed.
func Open(path string, allowMalformed bool) (*Reader, error) {
	rows, err := formats.OpenCSV(path, columns)
	if err != nil {
		return nil, err
	}
	tally := formats.Tally{What: "I/O trace", File: path, Allow: allowMalformed}
	return &Reader{rows: rows, tally: tally, first: -1}, nil
}

// Next returns the next usable row; io.EOF at the end, another error for a file that is of no use.
func (t *Reader) Next() (Row, error) {
	for {
		row, err := t.row()
		end := t.tally.Row(err, t.rows.Line)
		if errors.Is(end, io.EOF) {
			end = t.end()
		}
		if end != nil || err == nil {
			return row, end
		}
	}
}

// Report says what the file held so far.
func (t *Reader) Report() workloads.TraceReport { return t.tally.Report }

// Close closes the file.
func (t *Reader) Close() error { return t.rows.Close() }

// end checks what can be checked at the end only, and is io.EOF where nothing is wrong.
func (t *Reader) end() error {
	seen := &t.tally.Report
	seen.Cycles = 1
	if err := t.tally.End(); err != nil {
		return err
	}
	if seen.Rows == seen.Malformed {
		return fmt.Errorf("I/O trace %s has no usable row among its %d%s",
			t.tally.File, seen.Rows, t.tally.Example())
	}
	return io.EOF
}

// row reads a row; the first field that is wrong is named.
func (t *Reader) row() (row Row, err error) {
	texts, err := t.rows.Fields()
	if err != nil {
		return row, err
	}
	for i, field := range fields {
		if !field.read(&row, texts[i]) {
			return row, t.rows.Bad(i, errors.New("want "+field.want))
		}
	}
	if t.first < 0 {
		t.first = row.At
	}
	t.last = max(t.last, row.At)
	row.At = t.last - t.first
	return row, nil
}
