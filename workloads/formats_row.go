package workloads

import "time"

// traceFormat is what tells one format from another.
type traceFormat struct {
	name string // in messages
	// open opens a file that is no CSV; the fields below describe CSV formats.
	open func(path string) (rowReader, error)
	// silent: a row without generated tokens is a request like others, and not a failed one.
	silent bool

	// Names of the columns in a header, compared without regard to case. session may be missing in a file.
	stampName, contextName, generateName, sessionName string
	// positional returns the columns of a file without a header from the number of fields in its first row.
	positional func(fields int) columns
	stamp      func(text string) (time.Duration, error)
}

// record is one row of a trace.
type record struct {
	stamp             time.Duration // on the trace's own clock
	context, generate int           // generate 0: the request failed
	session           string

	// Of a trace of blocks; context counts all tokens, those of no block included.
	blocks      []int64 // distinct
	blockTokens int
	scope       string // in which the ids mean something

	// Of a recorded conversation:
	turn  int  // from 1, 0: none
	opens bool // the first usable turn of its conversation
}

// rowReader reads the rows of one file.
type rowReader interface {
	// next returns the next row, or the reason why it is malformed. err ends the file: io.EOF, or what makes it unreadable.
	next() (rec record, reason, err error)
	line() int // of the row last returned, from 1
	close() error
}

const (
	maxRowErrors = 10
	// checkedRows is how many rows of a file must have been read before its share of malformed ones can end a stream in
	// the middle of a file; a few bad rows at its start say little. At the end of the file the share is checked anyway.
	checkedRows = 1000
)
