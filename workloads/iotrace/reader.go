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
		var row Row
		fields, err := t.rows.Fields()
		if err == nil {
			row, err = t.row(fields)
		}
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

// row reads the fields of a row; the first one that is wrong is named.
func (t *Reader) row(fields []string) (row Row, bad error) {
	check := func(ok bool, column int, want string) {
		if !ok && bad == nil {
			bad = t.rows.Bad(column, errors.New("want "+want))
		}
	}
	at, err := formats.SecondsStamp(fields[stampColumn])
	check(err == nil, stampColumn, "seconds, 0 to 9000000000")

	operation := slices.IndexFunc(operations[:], func(name string) bool {
		return strings.EqualFold(name, fields[operationColumn])
	})
	check(operation >= 0, operationColumn, "Read, Write or Delete")
	row.Operation = Operation(max(0, operation))

	least := int64(0)
	if row.Operation == Write {
		least = 1
	}
	row.Bytes, err = strconv.ParseInt(strings.TrimSuffix(fields[bytesColumn], ".0"), 10, 64)
	check(err == nil && row.Bytes >= least && row.Bytes <= maxBytes, bytesColumn, wantBytes)

	row.Tier, err = strconv.Atoi(strings.TrimPrefix(strings.ToLower(fields[tierColumn]), "tier-"))
	known := err == nil && row.Tier >= 0 && row.Tier <= maxTier
	check(known, tierColumn, "Tier-0, Tier-1 or Tier-2")

	row.Key = fields[keyColumn]
	check(row.Key != "" && len(row.Key) <= maxKey, keyColumn, wantKey)

	row.Phase = phaseOf(fields[phaseColumn], row.Operation)
	check(row.Phase != "", phaseColumn, "Prefill, Decode, Evict or Both")
	if bad != nil {
		return Row{}, bad
	}
	if t.first < 0 {
		t.first = at
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
