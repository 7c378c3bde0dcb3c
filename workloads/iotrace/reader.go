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
	// At never decreases. A Reader counts At from the first usable row, a Writer from the start of the
	// file.
	At        time.Duration
	Operation Operation
	Bytes     int64
	Tier      int // 0 gpu, 1 cpu, 2 storage
	Key       string
	Phase     string // Prefill, Decode or Evict
}

// Operation is the kind of operation of a row.
type Operation uint8

// The operations. The Python benchmark writes only the first two. Its evictions appear as reads and
// writes of other tiers, and its dropped entries have no row.
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

const (
	// maxBytes bounds one object, so that the sum over all objects in flight fits into 64 bits.
	maxBytes = 1 << 50
	maxTier  = 2
	maxKey   = 4096
)

// table has the columns of Header, which is also their order in a file without a header.
var table = formats.Table[Row]{Kind: "an I/O trace", Columns: []formats.Column[Row]{
	column(0, "seconds, 0 to 9000000000", func(r *Row, text string) bool {
		at, err := formats.SecondsStamp(text)
		r.At = at
		return err == nil
	}),
	column(1, "Read, Write or Delete", func(r *Row, text string) bool {
		named := func(name string) bool { return strings.EqualFold(name, text) }
		i := slices.IndexFunc(operations[:], named)
		r.Operation = Operation(max(0, i))
		return i >= 0
	}),
	column(2, "a whole number of bytes, at most 1125899906842624", func(r *Row, text string) bool {
		n, err := strconv.ParseInt(strings.TrimSuffix(text, ".0"), 10, 64)
		r.Bytes = n
		return err == nil && n >= 0 && n <= maxBytes && (n > 0 || r.Operation != Write)
	}),
	column(3, "Tier-0, Tier-1 or Tier-2", func(r *Row, text string) bool {
		n, err := strconv.Atoi(strings.TrimPrefix(strings.ToLower(text), "tier-"))
		r.Tier = n
		return err == nil && n >= 0 && n <= maxTier
	}),
	column(4, "a key of at most 4096 bytes", func(r *Row, text string) bool {
		r.Key = strings.Clone(text) // Clone the key, so that it does not keep the whole line in memory
		return text != "" && len(text) <= maxKey
	}),
	column(5, "Prefill, Decode, Evict or Both", func(r *Row, text string) bool {
		r.Phase = phaseOf(text, r.Operation)
		return r.Phase != ""
	}),
}}

// column returns the column of Header with this index. read sets its value in a row, and reports whether
// the text is allowed.
func column(place int, want string, read func(r *Row, text string) bool) formats.Column[Row] {
	wrong := errors.New("want " + want)
	name := strings.Split(Header, ",")[place]
	return formats.Column[Row]{Name: name, Place: place, Set: func(r *Row, text string) error {
		if !read(r, text) {
			return wrong
		}
		return nil
	}}
}

// phaseOf returns the phase as kvbench spells it, "" for an unknown phase. The Python benchmark reads a
// prefix in the phase of the whole request. That phase is Both if the request prefills and decodes;
// such a read belongs to the decode.
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

// Reader reads an I/O trace of the suite or of the Python benchmark row by row. The columns are
// Timestamp, Operation, Object_Size_Bytes, Tier, Key and Phase, in the order of the header, or in this
// order without a header. The Python benchmark ends lines with CR LF, writes Read and Write only, and
// has a fourth phase, Both. Its timestamps are the time of day in microseconds. Malformed rows are
// handled as in request traces. .gz and .zst are decompressed. A Reader is not safe for concurrent use.
type Reader struct {
	rows        *formats.CSV[Row]
	tally       formats.Tally
	first, last time.Duration // timestamps of usable rows
}

// Open opens a file. allowMalformed permits any share of malformed and unordered rows, untimed of
// unordered ones.
func Open(path string, allowMalformed, untimed bool) (*Reader, error) {
	rows, err := table.Open(path)
	if err != nil {
		return nil, err
	}
	tally := formats.Tally{What: "I/O trace", File: path, Allow: allowMalformed, Flag: "-trace-allow-malformed",
		Untimed: untimed}
	return &Reader{rows: rows, tally: tally, first: -1}, nil
}

// Next returns the next usable row. It returns io.EOF at the end, and another error for an unusable
// file.
func (t *Reader) Next() (Row, error) {
	row, err := formats.Usable(&t.tally, t.rows.Next, t.rows.Line)
	if err == nil {
		err = t.tally.Order(row.At, t.rows.Line)
	}
	if errors.Is(err, io.EOF) {
		err = t.end()
	}
	if err != nil {
		return row, err
	}
	if t.first < 0 {
		t.first = row.At
	}
	t.last = max(t.last, row.At)
	row.At = t.last - t.first
	return row, nil
}

// Report returns the counts of the rows so far.
func (t *Reader) Report() workloads.TraceReport { return t.tally.Report }

// Close closes the file.
func (t *Reader) Close() error { return t.rows.Close() }

// end checks the whole file, and returns io.EOF if the checks pass.
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
