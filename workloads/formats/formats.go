package formats

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvbench/workloads"
)

// Format is a way to record requests. A new one is one file with a Reader, and a Format next
// to those that are here.
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

// Files returns the files that a file name, a directory or a glob pattern means, sorted. Of a
// directory it takes those with one of the format's extensions, in subdirectories as well, but
// nothing hidden.
func (f Format) Files(s string) ([]string, error) {
	if s == "" {
		return nil, errors.New("trace path is empty: give a file, a directory or a glob pattern")
	}
	var paths []string
	none := fmt.Errorf("trace path %q matches no file", s)
	info, err := os.Stat(s)
	switch {
	case err == nil && info.IsDir():
		paths, err = f.filesIn(s)
		none = fmt.Errorf("trace directory %s holds no file that ends in %s",
			s, strings.Join(f.Extensions, ", "))
	case err == nil:
		return []string{s}, nil
	case strings.ContainsAny(s, "*?["):
		paths, err = filepath.Glob(s)
	}
	if err != nil {
		return nil, fmt.Errorf("trace path %q: %w", s, err)
	}
	// Folders match a pattern such as *, and may be called like a trace. What is neither here nor
	// there, such as a link into nothing, is said when it is opened.
	paths = slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	})
	if len(paths) == 0 {
		return nil, none
	}
	slices.Sort(paths)
	return paths, nil
}

// filesIn returns what a directory and those below it have with one of the extensions: data sets
// have a directory for each day, or for each worker.
func (f Format) filesIn(dir string) (paths []string, err error) {
	dir += string(filepath.Separator) // a link to a directory is followed, as everywhere
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name := strings.ToLower(e.Name())
		matches := func(ext string) bool { return strings.HasSuffix(name, ext) }
		switch {
		case err != nil:
			return err
		case path == dir:
		case name[0] == '.' && e.IsDir():
			return fs.SkipDir
		case name[0] != '.' && !e.IsDir() && slices.ContainsFunc(f.Extensions, matches):
			paths = append(paths, path)
		}
		return nil
	})
	return paths, err
}

// Row is one recorded request.
type Row struct {
	Stamp             time.Duration // on the trace's own clock
	Context, Generate int           // Generate 0: the request failed, unless the format is Silent
	Session           string

	// Of a trace of blocks; Context counts all tokens, those of no block included.
	Blocks      []int64 // distinct; valid until the next row is read
	BlockTokens int
	Scope       string // in which the ids mean something
	// Common: they mean the same in all files and sessions. Otherwise a session that is played
	// again has blocks of its own.
	Common bool

	// Of a recorded conversation:
	Turn  int  // from 1, 0: none
	Opens bool // the first usable turn of its conversation

	// Of a session of agents, whose rows come in the order of their times:
	Agent Agent
}

// Agent is who asks in a session, and how the session goes on. The zero Agent is of no session.
type Agent struct {
	Play int // the session's number within the file, from 1; 0: the row is of none
	// ID is 0 for the session's own requests, and otherwise the agent's number within it, of whom
	// Starter has started it.
	ID, Starter int
	// Detached: no step waits for what the agent finds out.
	Detached bool
	Took     time.Duration // from the request to its answer, 0 where it was not recorded
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

// IsMalformed reports whether an error is that of one row: the file can be read on.
func IsMalformed(err error) bool {
	var m Malformed
	return errors.As(err, &m)
}

// Tally counts the rows of one file and reports when too many of them are malformed: files of
// another format are refused, one bad row in a hundred is lived with.
type Tally struct {
	What, File string // "trace", its path
	Format     string // that it is read as, "" if there is but one
	Allow      bool   // any share of malformed rows
	Report     workloads.TraceReport
}

// CheckedRows is how many rows of a file must have been read before its share of malformed ones can
// end it in the middle; a few bad rows at its start say little. At the end of the file the share is
// checked anyway.
const CheckedRows = 1000

// Row counts a row by the error that Next returned with it, and refuses the file when that can be
// known already. An error that ends the file is no row's, and comes back. Which line a row is in is
// read only when it is reported.
func (t *Tally) Row(err error, line func() int) error {
	if err != nil && !IsMalformed(err) {
		return err
	}
	t.Report.Rows++
	if err == nil {
		return nil
	}
	t.Report.Malformed++
	if len(t.Report.First) < workloads.MaxRowErrors {
		e := workloads.RowError{File: t.File, Line: line(), Reason: err.Error()}
		t.Report.First = append(t.Report.First, e)
	}
	if t.Report.Rows < CheckedRows {
		return nil
	}
	return t.End()
}

// End refuses a file of which more than 1 % is malformed.
func (t *Tally) End() error {
	if t.Allow || t.Report.Malformed*100 <= t.Report.Rows {
		return nil
	}
	hint := ""
	if t.Format != "" {
		hint = ": is it of the " + t.Format + " format?"
	}
	return fmt.Errorf("%s %s: %d of the first %d rows are malformed, more than 1 %%%s%s",
		t.What, t.File, t.Report.Malformed, t.Report.Rows, hint, t.Example())
}

// Unusable is the error of a file that was read to its end and has no usable row.
func (t *Tally) Unusable() error {
	if t.Report.Rows == 0 {
		return fmt.Errorf("%s %s has no rows", t.What, t.File)
	}
	return fmt.Errorf("%s %s has no usable row: %d of %d are malformed, %d have no answer%s",
		t.What, t.File, t.Report.Malformed, t.Report.Rows, t.Report.Failed, t.Example())
}

// Example names the first malformed row, if there is one.
func (t *Tally) Example() string {
	if len(t.Report.First) == 0 {
		return ""
	}
	return "; the first is " + t.Report.First[0].Error()
}

// Identity distinguishes recordings that lie in the same place, and recognises one that lies in
// another: where a file lies says nothing of what is in it.
type Identity struct {
	Files  int
	Bytes  int64  // of all files, as they lie on disk
	Hashed int64  // of these; all but of very large recordings
	SHA256 string // of the files' sizes and their hashed bytes, in hexadecimal digits
}

// maxHashed bounds what is read for an identity, from the beginning of the first file on: half a
// second of one core. The sizes of all files count whatever they hold, so that of two recordings
// that differ only beyond, and are equally long, the difference is missed.
const maxHashed = 256 << 20

// Identify reads files in the given order.
func Identify(files []string) (id Identity, err error) {
	return identify(files, maxHashed)
}

func identify(files []string, most int64) (id Identity, err error) {
	sum := sha256.New()
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return id, fmt.Errorf("identify a trace: %w", err)
		}
		info, err := f.Stat()
		if err == nil {
			id.Files++
			id.Bytes += info.Size()
			_, _ = sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(info.Size())))
			var n int64
			n, err = io.Copy(sum, io.LimitReader(f, most-id.Hashed))
			id.Hashed += n
		}
		_ = f.Close()
		if err != nil {
			return id, fmt.Errorf("identify the trace %s: %w", name, err)
		}
	}
	id.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return id, nil
}
