package traces

import (
	"errors"
	"fmt"
	"io"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// traceRow is a usable row with its place and time in the replay.
type traceRow struct {
	formats.Row
	seq     int64 // usable rows before it, over all cycles
	row     int64 // its number within the cycle, over all files, from 1
	cycle   int
	arrival time.Duration

	conversation int64 // of a recorded conversation: its number within the cycle, from 1
}

// rowStream reads the usable rows of all files and cycles, in order, with constant memory.
type rowStream struct {
	format  formats.Format
	paths   []string
	cycles  int  // 0: without end
	allow   bool // any share of malformed rows
	times   schedule
	report  *workloads.TraceReport // nil: somebody else counts
	limit   int64                  // rows of a file to read at most, 0: all
	maxRows int64                  // usable rows in all, 0: no bound
	most    int64                  // conversations of a cycle to read, 0: all

	head     traceRow // what peek returns, if headRead
	headRead bool
	reader   formats.Reader
	tally    formats.Tally
	file     int // index of the file being read
	cycle    int
	row      int64 // rows of this cycle
	talks    int64 // conversations of this cycle
	enough   bool  // most of them were read
	seq      int64
	replayed int64 // rows of this cycle
	err      error
	done     bool
}

// peek returns the next usable row, the same one until drop; nil at the end of the input or after
// an error, which err then holds.
func (s *rowStream) peek() *traceRow {
	if !s.headRead {
		if s.head, s.headRead = s.next(); !s.headRead {
			return nil
		}
	}
	return &s.head
}

// drop passes over the row that peek returned.
func (s *rowStream) drop() { s.headRead = false }

// stop ends the input.
func (s *rowStream) stop() {
	s.done, s.headRead = true, false
	s.closeFile()
}

// next reads the next usable row; false at the end.
func (s *rowStream) next() (traceRow, bool) {
	if s.maxRows > 0 && s.seq >= s.maxRows {
		s.stop()
	}
	for !s.done {
		if s.reader == nil && !s.open() {
			break
		}
		row, ok, err := s.read()
		if errors.Is(err, io.EOF) {
			s.finishFile()
			continue
		}
		if err != nil {
			s.fail(err)
			break
		}
		if ok && row.Opens && s.most > 0 && s.talks >= s.most {
			s.file, s.enough = len(s.paths)-1, true // the rest is not asked for
			s.finishFile()
			continue
		}
		switch {
		case !ok:
		case s.times.pass(row.Stamp):
			if s.tally.Report != nil {
				s.tally.Report.Skipped++
			}
		default:
			return s.place(row), true
		}
	}
	return traceRow{}, false
}

// open opens the current file.
func (s *rowStream) open() bool {
	if len(s.paths) == 0 {
		s.done = true
		return false
	}
	reader, err := s.format.Open(s.path())
	if err != nil {
		s.fail(err)
		return false
	}
	s.reader = reader
	s.tally = formats.Tally{File: s.path(), Allow: s.allow}
	if s.cycle == 0 {
		s.tally.Report = s.report
	}
	s.times.beginFile()
	return true
}

// read reads one row; ok is false for one to be skipped.
func (s *rowStream) read() (row formats.Row, ok bool, err error) {
	if s.limit > 0 && s.tally.Rows >= s.limit {
		return formats.Row{}, false, io.EOF
	}
	row, err = s.reader.Next()
	if malformed := (formats.Malformed{}); err != nil && !errors.As(err, &malformed) {
		return formats.Row{}, false, err
	}
	s.row++
	s.tally.Row(err, s.reader.Line)
	if err != nil {
		return formats.Row{}, false, s.checkMalformed(false)
	}
	if row.Generate == 0 && !s.format.Silent {
		if s.tally.Report != nil {
			s.tally.Report.Failed++
		}
		return formats.Row{}, false, nil
	}
	return row, true, nil
}

// path is the file being read.
func (s *rowStream) path() string { return s.paths[s.file] }

// checkMalformed fails when too many rows of this file are malformed, once that can be told.
func (s *rowStream) checkMalformed(atEnd bool) error {
	if !s.tally.TooMany(atEnd) {
		return nil
	}
	return fmt.Errorf("trace %w", s.tally.Err(": is it of the "+s.format.Name+" format?"))
}

// place gives a row to be replayed its number and its arrival.
func (s *rowStream) place(r formats.Row) traceRow {
	s.replayed++
	if r.Opens {
		s.talks++
	}
	t := traceRow{
		Row: r, seq: s.seq, row: s.row, cycle: s.cycle, conversation: s.talks,
		arrival: s.times.arrive(s.seq),
	}
	s.seq++
	return t
}

// finishFile checks the file that has ended and goes on to the next one, or to the next cycle. What
// was looked at up to the limit only is not judged as a whole.
func (s *rowStream) finishFile() {
	if err := s.checkMalformed(true); err != nil {
		s.fail(err)
		return
	}
	if s.times.rows == 0 && !s.allow && !s.enough && (s.limit == 0 || s.tally.Rows < s.limit) {
		s.fail(fmt.Errorf("trace %s has no usable row among its %d (%d malformed, the others"+
			" failed requests)", s.path(), s.tally.Rows, s.tally.Refused))
		return
	}
	s.times.endFile()
	s.closeFile()
	if s.file++; s.file == len(s.paths) {
		s.finishCycle()
	}
}

// finishCycle goes back to the first file, as often as asked for.
func (s *rowStream) finishCycle() {
	if s.replayed == 0 && s.times.start > 0 && s.limit == 0 {
		s.fail(fmt.Errorf("the trace is over %s after its first request, before the start of the"+
			" replay at %s: start earlier (-trace-start)",
			s.times.pos.Round(time.Millisecond), s.times.start))
		return
	}
	s.file, s.row, s.talks, s.enough = 0, 0, 0, false
	s.times.endCycle()
	s.cycle++
	if s.report != nil {
		s.report.Cycles = s.cycle
	}
	// A cycle without a row would be repeated for ever.
	if s.cycle == s.cycles || s.replayed == 0 {
		s.done = true
	}
	s.replayed = 0
}

// fail ends the stream with an error.
func (s *rowStream) fail(err error) {
	s.err = err
	s.stop()
}

// closeFile closes the current file, if one is open. Reading is over, so that an error of closing
// changes nothing.
func (s *rowStream) closeFile() {
	if s.reader != nil {
		_ = s.reader.Close()
		s.reader = nil
	}
}
