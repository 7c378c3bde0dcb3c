package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// maxBlockLine is the longest line of a block trace in bytes. A request may have a hundred thousand
// ids, which may be hashes of twenty digits.
const maxBlockLine = 2 << 20

// jsonLines reads a block trace of JSON lines. The rows may come in another order than their lines. It
// is the Reader of all formats that only need a function that makes the rows of a line.
type jsonLines struct {
	lineReader
	rows func(line []byte) error // calls add and hold

	ready []lineRow // rows of the line last read
	held  heldRows
	ended error // error that ended the file
}

// lineRow is a row, or the error of a malformed one.
type lineRow struct {
	row Row
	err error
}

// openJSONLines opens a file whose lines have the type T. rows adds the rows of a line to out. If rows
// returns an error, the whole line is malformed.
func openJSONLines[T any](path string, rows func(out *jsonLines, line *T) error) (Reader, error) {
	text, err := openText(path, maxBlockLine)
	if err != nil {
		return nil, err
	}
	out := &jsonLines{lineReader: lineReader{text, 0}}
	out.rows = func(text []byte) error {
		var line T
		if err := json.Unmarshal(text, &line); err != nil {
			return Malformed{err}
		}
		return rows(out, &line)
	}
	return out, nil
}

// add adds a row, or the error of a malformed row. The line's other rows stay valid.
func (l *jsonLines) add(row Row, err error) { l.ready = append(l.ready, lineRow{row, err}) }

// hold adds a row that waits until no earlier row can come.
func (l *jsonLines) hold(row Row) { l.held.add(row) }

// Next implements Reader. Held rows come before the first later row of a line, and at the end of the
// file.
func (l *jsonLines) Next() (Row, error) {
	for {
		later := len(l.ready) > 0 && len(l.held.rows) > 0 && l.ready[0].err == nil &&
			l.held.rows[0].Stamp <= l.ready[0].row.Stamp
		switch {
		case later || l.held.full() || len(l.held.rows) > 0 && errors.Is(l.ended, io.EOF):
			return l.held.take(), nil
		case len(l.ready) > 0:
			next := l.ready[0]
			l.ready = l.ready[1:]
			return next.row, next.err
		case l.ended != nil:
			return Row{}, l.ended
		}
		line, err := l.next()
		if err == nil {
			l.ready = l.ready[:0]
			err = l.rows(line)
		}
		if IsMalformed(err) {
			return Row{}, err
		}
		l.ended = err
	}
}

// heldRows holds waiting rows, ordered by time.
type heldRows struct {
	rows   []Row
	blocks int // number of blocks of all rows
}

// The limits of waiting rows: as many rows as a cluster executes concurrently, and 64 MiB of blocks. A
// row that more rows overtake comes late.
const (
	maxHeld       = 4096
	maxHeldBlocks = 8 << 20
)

// full reports whether the earliest row must leave.
func (h *heldRows) full() bool { return len(h.rows) >= maxHeld || h.blocks >= maxHeldBlocks }

func (h *heldRows) add(row Row) {
	at := len(h.rows) // most rows are later than all waiting rows
	if at > 0 && row.Stamp < h.rows[at-1].Stamp {
		at, _ = slices.BinarySearchFunc(h.rows, row, func(a, b Row) int {
			return cmp.Or(cmp.Compare(a.Stamp, b.Stamp), -1) // after rows of the same time
		})
	}
	h.rows = slices.Insert(h.rows, at, row)
	h.blocks += len(row.Blocks)
}

// take removes and returns the earliest row.
func (h *heldRows) take() Row {
	row := h.rows[0]
	h.rows[0] = Row{} // so that its blocks can be freed
	h.rows = h.rows[1:]
	h.blocks -= len(row.Blocks)
	return row
}
