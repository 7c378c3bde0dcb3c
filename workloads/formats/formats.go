package formats

import (
	"errors"
	"fmt"
	"time"

	"kvbench/workloads"
)

// Format is a way to record requests. A new one is one file with a Reader, and a Format beside
// those that are here.
type Format struct {
	Name string // in messages; in lower case also in keys
	// Extensions are those of the files that Files takes from a directory.
	Extensions []string
	// Silent: a row without generated tokens is a request like others, and not a failed one.
	Silent bool
	// Untimed: rows have no Stamp.
	Untimed bool
	// Tokenizer is who counted the tokens of texts, "" where files tell them.
	Tokenizer string
	// Open opens a file. A file that cannot be of this format is an error; so far nothing but its
	// start was read.
	Open func(path string) (Reader, error)
}

// Row is one recorded request.
type Row struct {
	Stamp             time.Duration // on the trace's own clock
	Context, Generate int           // Generate 0: the request failed, unless the format is Silent
	Session           string

	// Of a trace of blocks; Context counts all tokens, those of no block included.
	Blocks      []int64 // distinct
	BlockTokens int
	Scope       string // in which the ids mean something

	// Of a recorded conversation:
	Turn  int  // from 1, 0: none
	Opens bool // the first usable turn of its conversation
}

// Reader reads the rows of one file, with memory that does not depend on its size.
type Reader interface {
	// Next returns the next row. With Malformed that row is lost and those behind it are not; any
	// other error ends the file: io.EOF, or what makes it unreadable.
	Next() (Row, error)
	Line() int // of the row last returned, from 1
	Close() error
}

// Malformed is the error of a row that cannot be used. Real traces have some: fields that a
// spreadsheet spoiled, requests of 0 tokens, a last line that was cut.
type Malformed struct{ Reason error }

// Error implements error.
func (m Malformed) Error() string { return m.Reason.Error() }

// malformed makes the error of a row.
func malformed(format string, args ...any) error { return Malformed{fmt.Errorf(format, args...)} }

// isMalformed tells whether the file can be read on.
func isMalformed(err error) bool {
	var m Malformed
	return errors.As(err, &m)
}

// Tally counts the rows of one file and tells when too many of them are malformed: files of another
// format are refused, one bad row in a hundred is lived with.
type Tally struct {
	File    string
	Allow   bool                   // any share of malformed rows
	Report  *workloads.TraceReport // is counted along, unless nil
	Rows    int64                  // data rows, malformed ones included
	Refused int64                  // malformed ones
	first   *workloads.RowError
}

const (
	// maxRowErrors is how many malformed rows a report names.
	maxRowErrors = 10
	// CheckedRows is how many rows of a file must have been read before its share of malformed ones
	// can end it in the middle; a few bad rows at its start say little. At the end of the file the
	// share is checked anyway.
	CheckedRows = 1000
)

// Row counts a row, whose error is nil or Malformed; line is asked only when somebody will be told.
func (t *Tally) Row(err error, line func() int) {
	t.Rows++
	if t.Report != nil {
		t.Report.Rows++
	}
	if err == nil {
		return
	}
	t.Refused++
	named := t.Report != nil && len(t.Report.First) < maxRowErrors
	if t.first == nil || named {
		e := workloads.RowError{File: t.File, Line: line(), Reason: err.Error()}
		if t.first == nil {
			t.first = &e
		}
		if named {
			t.Report.First = append(t.Report.First, e)
		}
	}
	if t.Report != nil {
		t.Report.Malformed++
	}
}

// TooMany tells whether more than 1 % of the rows are malformed, once that can be told.
func (t *Tally) TooMany(atEnd bool) bool {
	return !t.Allow && t.Refused*100 > t.Rows && (atEnd || t.Rows >= CheckedRows)
}

// Err says what TooMany means. The hint is for the user.
func (t *Tally) Err(hint string) error {
	return fmt.Errorf("%s: %d of the first %d rows are malformed, more than 1 %%%s%s",
		t.File, t.Refused, t.Rows, hint, t.Example())
}

// Example names the first malformed row, if there is one.
func (t *Tally) Example() string {
	if t.first == nil {
		return ""
	}
	return "; the first is " + t.first.Error()
}
