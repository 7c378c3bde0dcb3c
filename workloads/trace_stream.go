package workloads

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// minSeam is the least time between the last row of one file or cycle and the first of the next. It bounds the rate of a
// replay whose files hold a single instant.
const minSeam = time.Millisecond

// pace turns the trace's clock into arrivals.
type pace struct {
	speedup  float64 // 0: rows have no arrival of their own
	rate     float64 // replaces the trace's clock
	constant bool
	stream   userStream
}

// timed tells whether rows arrive by themselves.
func (p *pace) timed() bool { return p.rate > 0 || p.speedup > 0 }

// traceRow is a usable row with its place and time in the replay.
type traceRow struct {
	Row
	seq     int64 // usable rows before it, over all cycles
	row     int64 // its number within the cycle, over all files, from 1
	cycle   int
	arrival time.Duration

	conversation int64 // of a recorded conversation: its number within the cycle, from 1
}

// rowStream reads the usable rows of all files and cycles, in order, with constant memory.
type rowStream struct {
	format  Format
	paths   []string
	cycles  int  // 0: without end
	allow   bool // any share of malformed rows
	pace    pace
	start   time.Duration // on the trace's clock: usable rows before it are passed over, in every cycle
	report  *TraceReport  // nil: somebody else counts
	limit   int64         // rows of a file to read at most, 0: all
	maxRows int64         // usable rows in all, 0: no bound
	most    int64         // conversations of a cycle to read, 0: all

	head     traceRow // what peek returns, if headRead
	headRead bool
	reader   Reader
	tally    Tally
	file     int // index of the file being read
	cycle    int
	row      int64 // rows of this cycle
	talks    int64 // conversations of this cycle
	enough   bool  // most of them were read
	seq      int64
	arrival  time.Duration // of the row before

	// Of the file being read:
	usable      int64
	first, last time.Duration // stamps of its usable rows
	base        time.Duration // arrival of its first usable row

	// The trace's own clock, whatever the pace: 0 at its first usable row, without a jump at the seams of its files.
	pos, posBase, posSeam time.Duration
	cycleBase             time.Duration // arrival that stands for start in this cycle
	entered               bool          // the cycle has had a usable row
	begun                 bool          // the cycle has come to start

	cycleUsable int64         // rows of this cycle that are replayed
	seam        time.Duration // to be added before the next file, set when one ends
	err         error
	done        bool
}

// peek returns the next usable row, the same one until drop; nil at the end of the input or after an error, which err then
// holds.
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
		rec, ok, err := s.read()
		if errors.Is(err, io.EOF) {
			s.finishFile()
			continue
		}
		if err != nil {
			s.fail(err)
			break
		}
		if ok && rec.Opens && s.most > 0 && s.talks >= s.most {
			s.file, s.enough = len(s.paths)-1, true // the rest is not asked for
			s.finishFile()
			continue
		}
		if ok && !s.before(rec) {
			return s.place(rec), true
		}
	}
	return traceRow{}, false
}

// before moves the trace's clock to a usable row, and tells whether that is before the start.
func (s *rowStream) before(rec Row) bool {
	if s.usable == 0 {
		s.first, s.last = rec.Stamp, rec.Stamp
		s.base, s.posBase = s.arrival+s.seam, s.pos+s.posSeam
		if !s.entered {
			s.entered, s.cycleBase, s.posBase = true, s.base, 0
		}
	}
	s.usable++
	// Rows out of order arrive with the row before them: the replay is first come, first served in file order.
	s.last = max(s.last, rec.Stamp)
	s.pos = s.posBase + s.last - s.first
	if s.pos < s.start {
		if s.report != nil && s.cycle == 0 {
			s.report.Skipped++
		}
		return true
	}
	if !s.begun && s.start > 0 && s.pace.speedup > 0 {
		// What was recorded at the start arrives with the cycle's beginning, and the rest keeps its distance to that.
		s.base = s.cycleBase + Nanoseconds(float64(s.pos-s.start)/s.pace.speedup) - Nanoseconds(float64(s.last-s.first)/s.pace.speedup)
	}
	s.begun = true
	return false
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
	s.usable, s.tally = 0, Tally{File: s.path(), Allow: s.allow}
	if s.cycle == 0 {
		s.tally.Report = s.report
	}
	return true
}

// read reads one row; ok is false for one to be skipped.
func (s *rowStream) read() (row Row, ok bool, err error) {
	if s.limit > 0 && s.tally.Rows >= s.limit {
		return Row{}, false, io.EOF
	}
	row, err = s.reader.Next()
	if malformed := (Malformed{}); err != nil && !errors.As(err, &malformed) {
		return Row{}, false, err
	}
	s.row++
	s.tally.Row(err, s.reader.Line)
	if err != nil {
		return Row{}, false, s.checkMalformed(false)
	}
	if row.Generate == 0 && !s.format.Silent {
		if s.tally.Report != nil {
			s.tally.Report.Failed++
		}
		return Row{}, false, nil
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
func (s *rowStream) place(rec Row) traceRow {
	s.cycleUsable++
	switch {
	case s.pace.rate > 0 && s.pace.constant:
		s.arrival = max(s.arrival, Nanoseconds(float64(s.seq)*1e9/s.pace.rate))
	case s.pace.rate > 0:
		s.arrival += Seconds(s.pace.stream.exponential(drawGap, s.seq, 1/s.pace.rate))
	case s.pace.speedup > 0:
		s.arrival = max(s.arrival, s.base+Nanoseconds(float64(s.last-s.first)/s.pace.speedup))
	}
	if rec.Opens {
		s.talks++
	}
	t := traceRow{Row: rec, conversation: s.talks, seq: s.seq, row: s.row, cycle: s.cycle, arrival: s.arrival}
	s.seq++
	return t
}

// finishFile checks the file that has ended and goes on to the next one, or to the next cycle.
func (s *rowStream) finishFile() {
	if err := s.checkMalformed(true); err != nil {
		s.fail(err)
		return
	}
	if s.usable == 0 && !s.allow && s.limit == 0 && !s.enough {
		s.fail(fmt.Errorf("trace %s has no usable row among its %d (%d malformed, the others failed requests)",
			s.path(), s.tally.Rows, s.tally.Refused))
		return
	}
	// The next file starts one mean distance after the last row, so that the rate goes on over the seam.
	s.seam, s.posSeam = minSeam, minSeam
	if s.usable > 1 {
		mean := float64(s.last-s.first) / float64(s.usable-1)
		s.posSeam = max(minSeam, Nanoseconds(mean))
		if s.pace.speedup > 0 {
			s.seam = max(minSeam, Nanoseconds(mean/s.pace.speedup))
		}
	}
	s.closeFile()
	s.file++
	if s.file < len(s.paths) {
		return
	}
	if s.cycleUsable == 0 && s.start > 0 && s.limit == 0 {
		s.fail(fmt.Errorf("the trace is over %s after its first request, before the start of the replay at %s: start earlier (-trace-start)",
			s.pos.Round(time.Millisecond), s.start))
		return
	}
	s.file, s.row, s.talks, s.enough = 0, 0, 0, false
	s.pos, s.entered, s.begun = 0, false, false
	s.cycle++
	if s.report != nil {
		s.report.Cycles = s.cycle
	}
	// A cycle without a row would be repeated for ever.
	if s.cycle == s.cycles || s.cycleUsable == 0 {
		s.done = true
	}
	s.cycleUsable = 0
}

// fail ends the stream with an error.
func (s *rowStream) fail(err error) {
	s.err = err
	s.stop()
}

// closeFile closes the current file, if one is open. Reading is over, so that an error of closing changes nothing.
func (s *rowStream) closeFile() {
	if s.reader != nil {
		_ = s.reader.Close()
		s.reader = nil
	}
}
