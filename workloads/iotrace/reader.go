package iotrace

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// Row is one operation of an I/O trace.
type Row struct {
	// At counts from the first usable row of a file that is read, and from the beginning of one
	// that is written. It never goes back.
	At        time.Duration
	Operation Operation
	Bytes     int64
	Tier      int // 0 gpu, 1 cpu, 2 storage
	Key       string
	Phase     string // Prefill, Decode or Evict
}

// Operation is what a row does.
type Operation uint8

// The operations. The Python benchmark writes the first two: what it evicts it reads and writes
// elsewhere, and what it drops leaves no row.
const (
	Read Operation = iota
	Write
	Delete
)

var operations = [...]string{"Read", "Write", "Delete"}

// String returns the operation as files spell it.
func (o Operation) String() string { return operations[o] }

// Header is the first line of an I/O trace.
const Header = "Timestamp,Operation,Object_Size_Bytes,Tier,Key,Phase"

// columns are those of the header, which is also their order where a file has none.
var columns = formats.Columns{Kind: "an I/O trace", Names: strings.Split(Header, ","),
	Required: 6, Places: []int{0, 1, 2, 3, 4, 5}}

const (
	// maxBytes bounds one object; sums of what can be in flight stay inside 64 bits.
	maxBytes = 1 << 50
	maxTier  = 2
	maxKey   = 4096
)

// fields are the columns in the order of Header: what may stand there, and how a row takes it that
// has those before it.
var fields = [...]struct {
	want string
	read func(r *Row, text string) bool
}{
	{"seconds, 0 to 9000000000", func(r *Row, text string) bool {
		at, err := formats.SecondsStamp(text)
		r.At = at
		return err == nil
	}},
	{"Read, Write or Delete", func(r *Row, text string) bool {
		named := func(name string) bool { return strings.EqualFold(name, text) }
		i := slices.IndexFunc(operations[:], named)
		r.Operation = Operation(max(0, i))
		return i >= 0
	}},
	{"a whole number of bytes, at most 1125899906842624", func(r *Row, text string) bool {
		n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64)
		r.Bytes = n
		return err == nil && n >= 0 && n <= maxBytes && (n > 0 || r.Operation != Write)
	}},
	{"Tier-0, Tier-1 or Tier-2", func(r *Row, text string) bool {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(text), "tier-"))
		r.Tier = n
		return err == nil && n >= 0 && n <= maxTier
	}},
	{"a key of at most 4096 bytes", func(r *Row, text string) bool {
		r.Key = strings.Clone(text) // it is kept, and would keep its whole line
		return text != "" && len(text) <= maxKey
	}},
	{"Prefill, Decode, Evict or Both", func(r *Row, text string) bool {
		r.Phase = phaseOf(text, r.Operation)
		return r.Phase != ""
	}},
}

// phaseOf returns the phase in our spelling, "" for an unknown one. The Python benchmark
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
		return t.tally.Unusable()
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
