package formats

import "encoding/json"

// maxBlockLine is the longest line of a block trace in bytes. A request may have a hundred thousand
// ids, which may be hashes of twenty digits.
const maxBlockLine = 2 << 20

// rowReader is the Reader of files whose elements, such as lines or JSON documents, have any number of
// rows. A format needs only a function that adds the rows of an element.
type rowReader struct {
	elements
	fill func() error // reads the next element, and adds its rows
	rows []elementRow // rows of the element last read
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
	lines := &lineReader{text, 0}
	return readRows(lines, func(to *T) error {
		line, err := lines.next()
		if err == nil {
			err = unmarshal(line, to)
		}
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

// Next implements Reader.
func (r *rowReader) Next() (Row, error) {
	for len(r.rows) == 0 {
		if err := r.fill(); err != nil {
			return Row{}, err
		}
	}
	next := r.rows[0]
	r.rows = r.rows[1:]
	return next.Row, next.err
}
