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

// rowReader is the Reader of files whose elements, such as lines or JSON documents, have any number of
// rows. A format needs only a function that adds the rows of an element.
type rowReader struct {
	elements
	fill func() error // reads the next element, and adds or holds its rows

	rows  []elementRow // rows of the element last read
	held  heldRows
	ended error // error that ended the file
}

// elements are the lines or the values of a file.
type elements interface {
	Line() int
	Close() error
}

// elementRow is a row, or the error of a malformed one.
type elementRow struct {
	Row
	err error
}

// readRows returns a Reader of elements of type T. next decodes the next element, with the errors of
// Reader.Next. rows adds the rows of an element to out. If rows returns an error, the element counts as
// a malformed row, too.
func readRows[T any](e elements, next func(*T) error, rows func(out *rowReader, element *T) error) Reader {
	out := &rowReader{elements: e}
	out.fill = func() error {
		var element T
		if err := next(&element); err != nil {
			return err
		}
		return rows(out, &element)
	}
	return out
}

// openJSONLines opens a block trace of JSON lines. T is the type of a line.
func openJSONLines[T any](path string, rows func(out *rowReader, line *T) error) (Reader, error) {
	text, err := openText(path, maxBlockLine)
	if err != nil {
		return nil, err
	}
	lines := &lineReader{textFile: text}
	return readRows(lines, func(to *T) error {
		line, err := lines.next()
		if err == nil {
			err = unmarshal(line, to)
		}
		lines.usable = lines.usable || err == nil
		return err
	}, rows), nil
}

// openDocuments opens a file of JSON values, or of a list with this name. T is the type of a value.
func openDocuments[T any](path, list string, rows func(out *rowReader, value *T) error) (Reader, error) {
	doc, err := openDocument(path, list)
	if err != nil {
		return nil, err
	}
	return readRows(doc, func(to *T) error { return doc.next(to) }, rows), nil
}

// unmarshal decodes a JSON text. Its error is a Malformed.
func unmarshal(text []byte, to any) error {
	if err := json.Unmarshal(text, to); err != nil {
		return Malformed{err}
	}
	return nil
}

// add adds a row, or the error of a malformed row. The element's other rows stay valid.
func (r *rowReader) add(row Row, err error) { r.rows = append(r.rows, elementRow{row, err}) }

// hold adds a row that waits until no earlier row can come.
func (r *rowReader) hold(row Row) { r.held.add(row) }

// Next implements Reader. A held row comes before the first row that is not earlier, and at the end of the
// file.
func (r *rowReader) Next() (Row, error) {
	for {
		due := len(r.rows) > 0 && len(r.held.rows) > 0 && r.rows[0].err == nil &&
			r.held.rows[0].Stamp <= r.rows[0].Stamp
		switch {
		case due || r.held.full() || len(r.held.rows) > 0 && errors.Is(r.ended, io.EOF):
			return r.held.take(), nil
		case len(r.rows) > 0:
			next := r.rows[0]
			r.rows = r.rows[1:]
			return next.Row, next.err
		case r.ended != nil:
			return Row{}, r.ended
		}
		err := r.fill()
		if IsMalformed(err) {
			return Row{}, err
		}
		r.ended = err
	}
}

// heldRows holds waiting rows, ordered by time.
type heldRows struct {
	rows   []Row
	blocks int // number of blocks of all rows
}

// The limits of waiting rows: as many rows as a cluster executes concurrently, and 64 MiB of blocks. A
// row that more than maxHeld rows overtake comes out of order.
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
