package formats

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxLine is the longest line of a file of comma-separated values; real ones have a hundred bytes.
const maxLine = 64 << 10

// Columns are those of a kind of file.
type Columns struct {
	Kind     string   // what has them, "an I/O trace"
	Names    []string // compared without regard to case
	Required int      // the first so many; the others may be missing
	// Places returns where the columns of a file without a header stand, -1 for none, by the number
	// of fields of its first row; nil: in the order of Names.
	Places func(fields int) []int
}

// CSV reads comma-separated values field by field. encoding/csv is not used because one stray quote
// takes the rest of the file there, and a line without end all memory.
type CSV struct {
	*lineReader
	columns Columns
	places  []int // of the columns among the fields; nil before the first line
	fields  [][]byte
	row     [][]byte
}

// OpenCSV opens a file.
func OpenCSV(path string, columns Columns) (*CSV, error) {
	lines, err := openLines(path, maxLine)
	if err != nil {
		return nil, err
	}
	return &CSV{lineReader: lines, columns: columns, row: make([][]byte, len(columns.Names))}, nil
}

// Fields returns the fields of the next row in the order of the columns, nil for one that is
// missing. They are valid until the next call. Its errors are those of Reader.Next.
func (c *CSV) Fields() ([][]byte, error) {
	for {
		line, err := c.next()
		if err != nil {
			return nil, err
		}
		if c.fields, err = splitFields(c.fields[:0], line); err != nil {
			return nil, Malformed{err}
		}
		if c.places == nil {
			header, err := c.header()
			if err != nil {
				return nil, err
			}
			if header {
				continue
			}
		}
		return c.pick()
	}
}

// header finds out which column is which from the first line, and tells whether that was a header.
func (c *CSV) header() (bool, error) {
	find := func(name string) int {
		for i, field := range c.fields {
			if strings.EqualFold(string(field), name) {
				return i
			}
		}
		return -1
	}
	if find(c.columns.Names[0]) < 0 {
		if c.columns.Places != nil {
			c.places = c.columns.Places(len(c.fields))
			return false, nil
		}
		for i := range c.columns.Names {
			c.places = append(c.places, i)
		}
		return false, nil
	}
	var missing []string
	for i, name := range c.columns.Names {
		c.places = append(c.places, find(name))
		if c.places[i] < 0 && i < c.columns.Required {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return true, fmt.Errorf("%s:%d: the header has no column %s: is it %s?",
			c.text.path, c.number, strings.Join(missing, " and no "), c.columns.Kind)
	}
	return true, nil
}

// pick orders the fields. A row that is too short for its required columns is malformed; what is
// behind the last column is nobody's business.
func (c *CSV) pick() ([][]byte, error) {
	need := 0
	for i, at := range c.places {
		c.row[i] = nil
		if at >= 0 && at < len(c.fields) {
			c.row[i] = c.fields[at]
		} else if i < c.columns.Required {
			need = max(need, at+1)
		}
	}
	if need > 0 {
		return nil, malformed("%d fields, need at least %d", len(c.fields), need)
	}
	return c.row, nil
}

// splitFields cuts a line of comma-separated values into dst. Fields may be quoted, with quotes
// doubled inside; a field cannot contain a line break, so that one stray quote spoils one row and
// not the rest of the file. The fields share the bytes of line, which quoted ones overwrite.
func splitFields(dst [][]byte, line []byte) ([][]byte, error) {
	for {
		if len(line) > 0 && line[0] == '"' {
			field, rest, err := quotedField(line)
			if err != nil {
				return dst, err
			}
			dst = append(dst, field)
			if len(rest) == 0 {
				return dst, nil
			}
			line = rest[1:]
			continue
		}
		field, rest, more := bytes.Cut(line, []byte{','})
		dst = append(dst, bytes.TrimSpace(field))
		if !more {
			return dst, nil
		}
		line = rest
	}
}

// quotedField takes a quoted field off the start of a line; rest is empty or starts with a comma.
func quotedField(line []byte) (field, rest []byte, err error) {
	out := 0
	for i := 1; i < len(line); i++ {
		if line[i] != '"' {
			line[out] = line[i]
			out++
			continue
		}
		if i+1 < len(line) && line[i+1] == '"' {
			line[out] = '"'
			out, i = out+1, i+1
			continue
		}
		rest = line[i+1:]
		if len(rest) > 0 && rest[0] != ',' {
			return nil, nil, errors.New("text after a closing quote")
		}
		return bytes.TrimSpace(line[:out]), rest, nil
	}
	return nil, nil, errors.New("a quote is not closed")
}
