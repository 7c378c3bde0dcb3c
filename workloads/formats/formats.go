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

// Format is a format of recorded requests. A new format needs one file with a Reader and a Format.
type Format struct {
	Name string // for messages; keys contain it in lower case
	// Extensions are the file name extensions that Files takes from a directory.
	Extensions []string
	// Silent: a row without generated tokens is a normal request, not a failed one.
	Silent bool
	// Untimed: rows have no Stamp.
	Untimed bool
	// Tokenizer is the tokenizer that counts the tokens of texts, "" if files contain the counts.
	Tokenizer string
	// Open opens a file and reads its start. It returns an error if the file cannot have this format.
	Open func(path string) (Reader, error)
}

// packed returns the extensions of uncompressed and compressed files.
func packed(extension string) []string {
	return []string{extension, extension + ".gz", extension + ".zst"}
}

// Files returns the files that a file name, a directory or a glob pattern stands for, sorted. From a
// directory and its subdirectories it takes the files with one of the format's extensions, except
// hidden files.
func (f Format) Files(s string) ([]string, error) {
	var paths []string
	none := fmt.Errorf("trace path %q matches no file", s)
	info, err := os.Stat(s)
	switch {
	case err == nil && info.IsDir():
		paths, err = f.filesIn(s)
		none = fmt.Errorf("trace directory %s holds no file that ends in %s",
			s, strings.Join(f.Extensions, ", "))
	case err == nil:
		return []string{s}, Regular(s)
	case strings.ContainsAny(s, "*?["):
		paths, err = filepath.Glob(s)
	}
	if err != nil {
		return nil, fmt.Errorf("trace path %q: %w", s, err)
	}
	// Remove directories, which may match a pattern such as *. A broken link is reported when it is
	// opened.
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

// Regular returns an error for a pipe or a device, because files are read more than once: for their format,
// before a run, and in each trial.
func Regular(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return nil // opening the file reports its absence
	}
	return fmt.Errorf("trace %s is a pipe or a device, and would be read more than once: write it to a file, "+
		"and give that (.gz and .zst are decompressed)", path)
}

// filesIn returns the files with one of the extensions in a directory and its subdirectories. Data sets
// have a subdirectory for each day or each worker.
func (f Format) filesIn(dir string) (paths []string, err error) {
	dir += string(filepath.Separator) // with the separator WalkDir follows a link to a directory
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil { // then e may be nil
			return err
		}
		name := strings.ToLower(e.Name())
		matches := func(ext string) bool { return strings.HasSuffix(name, ext) }
		switch {
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
	// Note is what the reader guessed of the row or left out of it, "" for nothing.
	Note string

	// For block traces; Context counts all tokens, including tokens of no block.
	Blocks      []int64 // ids of blocks, all different; valid until the next row is read
	BlockTokens int
	Scope       string // scope of the ids
	// Common: the ids have the same meaning in all files and sessions. Otherwise a session has its own
	// blocks each time it is replayed.
	Common bool

	// For a recorded conversation:
	Turn  int  // number of the turn from 1, 0 = no conversation
	Opens bool // first usable turn of its conversation

	// For a session of agents, whose rows are ordered by time:
	Agent Agent
}

// Agent is the agent of a request in a session. The zero Agent means no session.
type Agent struct {
	Play int // number of the session in the file from 1, 0 = no session
	// ID is the number of the agent in the session, 0 for the session's own requests. Starter is the ID
	// of the agent that started it.
	ID, Starter int
	// Detached: no step waits for the agent.
	Detached bool
	Took     time.Duration // time from the request to its completion, 0 if it was not recorded
}

// Reader reads the rows of one file. Its memory does not depend on the size of the file.
type Reader interface {
	// Next returns the next row. After an error of type Malformed the next rows can still be read. Any
	// other error ends the file: io.EOF, or an error of the file.
	Next() (Row, error)
	Line() int // line of the row last returned, from 1
	Close() error
}

// Malformed is the error of a row that cannot be used. Real traces have some: fields damaged by a
// spreadsheet, requests of 0 tokens, a truncated last line.
type Malformed struct{ Reason error }

// Error implements error.
func (m Malformed) Error() string { return m.Reason.Error() }

// malformed returns a Malformed error.
func malformed(format string, args ...any) error { return Malformed{fmt.Errorf(format, args...)} }

// IsMalformed reports whether an error concerns only one row, so that the next rows can be read.
func IsMalformed(err error) bool {
	var m Malformed
	return errors.As(err, &m)
}

// Tally counts the rows of one file. It returns an error if too many of them are malformed or out of
// order: such a file probably has another format, or was joined of several.
type Tally struct {
	What, File string // kind of the file, such as "trace", and its path
	Format     string // the assumed format, "" if only one is possible
	Flag       string // that accepts any share of such rows, "" = none
	Allow      bool   // accept any share of such rows
	Untimed    bool   // the times of rows are not used: their order does not matter
	Report     workloads.TraceReport
	latest     time.Duration // largest stamp
}

// jitter is how much earlier than a row before it a row may be. Concurrent writers of a recording lock
// after they have read the clock.
const jitter = time.Second

// Order counts a usable row that is earlier than a row before it. It returns an error when the file must
// be refused. It calls line only for a row that it reports.
func (t *Tally) Order(stamp time.Duration, line func() int) error {
	if stamp >= t.latest-jitter {
		t.latest = max(t.latest, stamp)
		return nil
	}
	t.Report.Unordered++
	return t.found(line, fmt.Sprintf("the row is %v earlier than a row before it", t.latest-stamp))
}

// found reports a row, and checks the rows so far.
func (t *Tally) found(line func() int, reason string) error {
	if len(t.Report.First) < workloads.MaxRowErrors {
		e := workloads.RowError{File: t.File, Line: line(), Reason: reason}
		t.Report.First = append(t.Report.First, e)
	}
	if t.Report.Rows < CheckedRows {
		return nil
	}
	return t.End()
}

// CheckedRows is the number of rows after which too many malformed rows end the reading of a file.
// Before it, a few bad rows at the start do not matter. The share is always checked at the end of the
// file.
const CheckedRows = 1000

// Row counts a row. err is the error that Next returned with the row. If that error ends the file, Row
// returns it as it is. Row also returns an error when the file must be refused. It calls line only for a
// row that it reports.
func (t *Tally) Row(err error, line func() int) error {
	if err != nil && !IsMalformed(err) {
		return err
	}
	t.Report.Rows++
	if err == nil {
		return nil
	}
	t.Report.Malformed++
	return t.found(line, err.Error())
}

// Usable returns the next usable row of a file. It counts this row and the malformed rows before it.
// next and line are the methods of a Reader, for rows of any type.
func Usable[R any](t *Tally, next func() (R, error), line func() int) (R, error) {
	for {
		row, err := next()
		if end := t.Row(err, line); end != nil || err == nil {
			return row, end
		}
	}
}

// End returns an error if more than 1 % of the rows, and more than one of at least four, are malformed or out
// of order.
func (t *Tally) End() error {
	seen := t.Report
	most := max(seen.Rows/100, min(1, seen.Rows/4))
	hint := ""
	switch {
	case t.Allow:
		return nil
	case seen.Malformed > most:
		if t.Format != "" {
			hint = ": is it of the " + t.Format + " format?"
		}
		return fmt.Errorf("%s %s: %d of the first %d rows are malformed, more than 1 %%%s%s%s", t.What,
			t.File, seen.Malformed, seen.Rows, hint, t.accept("leaves them out"), t.Example())
	case seen.Unordered > most && !t.Untimed:
		return fmt.Errorf("%s %s: %d of the first %d rows are earlier than a row before them: sort the file "+
			"by time, or give the recordings that were joined to it as files of their own%s%s", t.What, t.File,
			seen.Unordered, seen.Rows, t.accept("lets each come together with the row before it"), t.Example())
	}
	return nil
}

// accept names the flag that accepts such rows.
func (t *Tally) accept(effect string) string {
	if t.Flag == "" {
		return ""
	}
	return "; " + t.Flag + " " + effect
}

// Unusable returns the error of a file without a usable row.
func (t *Tally) Unusable() error {
	if t.Report.Rows == 0 {
		return fmt.Errorf("%s %s has no rows", t.What, t.File)
	}
	return fmt.Errorf("%s %s has no usable row: %d of %d are malformed, %d have no answer%s",
		t.What, t.File, t.Report.Malformed, t.Report.Rows, t.Report.Failed, t.Example())
}

// Example describes the first malformed or unordered rows, "" if there are none.
func (t *Tally) Example() string {
	if len(t.Report.First) == 0 {
		return ""
	}
	text := "; the first is " + t.Report.First[0].Error()
	for _, e := range t.Report.First[1:] {
		text += fmt.Sprintf("; line %d: %s", e.Line, e.Reason)
	}
	return text
}

// Identity identifies a recording by its content, not by its path.
type Identity struct {
	Files       int
	Bytes       int64  // total size of the files on disk
	HashedBytes int64  // number of hashed bytes: all bytes, except for very large recordings
	SHA256      string // hash of the files' sizes and the hashed bytes, in hexadecimal digits
}

// maxHashed is the number of bytes hashed for an identity, from the start of the first file. One core
// takes half a second for them. The sizes of all files are hashed, too. Two recordings of equal sizes
// that differ only beyond the limit have the same identity.
const maxHashed = 256 << 20

// Identify returns the identity of the files, in the given order.
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
			n, err = io.Copy(sum, io.LimitReader(f, most-id.HashedBytes))
			id.HashedBytes += n
		}
		_ = f.Close()
		if err != nil {
			return id, fmt.Errorf("identify the trace %s: %w", name, err)
		}
	}
	id.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return id, nil
}
