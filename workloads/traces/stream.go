package traces

import (
	"errors"
	"fmt"
	"io"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// cycles reads the usable rows of all files and cycles, in order, with constant memory.
type cycles struct {
	timeline
	file   *merge // open files, or nil
	index  int    // index of the first of them in the timeline
	cycle  int
	used   int64 // rows of this cycle that are replayed, or its sessions
	done   bool
	closed workloads.TraceReport // closed files of the first cycle
}

// next returns the next row, valid until the next call; io.EOF at the end of the open files: see finish.
func (c *cycles) next() (row formats.Row, err error) {
	if c.file == nil {
		if c.file, err = c.from(c.index); err != nil {
			return row, err
		}
	}
	return c.file.next()
}

// finish closes the open files at their end, or earlier if the rest of the cycle is skipped, and continues
// with the next files, or with the next cycle. It reports whether the cycle has ended.
func (c *cycles) finish(skip bool) (ended bool) {
	c.index += c.file.opened
	c.closeFile()
	if c.index < len(c.cfg.Paths) && !skip {
		return false
	}
	c.cycle++
	c.closed.Cycles = c.cycle
	// A cycle without a row would be repeated for ever.
	c.done = c.cycle == c.cfg.Cycles || c.used == 0
	c.index, c.used = 0, 0
	return true
}

// closeFile closes the open files.
func (c *cycles) closeFile() {
	if c.file != nil {
		c.closed = c.report()
		c.file.close()
		c.file = nil
	}
}

// report counts the rows read so far in the first cycle.
func (c *cycles) report() workloads.TraceReport {
	r := c.closed
	if c.file != nil && c.cycle == 0 {
		r.Add(c.file.report())
	}
	return r
}

// rowStream is the rows of a replay: from files, or from live sessions or conversations.
type rowStream struct {
	cycles
	times schedule

	head     traceRow // the result of peek, if headRead
	headRead bool
	before   int64 // rows of this cycle in earlier files
	talks    int64 // conversations of this cycle
	seq      int64
	err      error

	interleave *interleave    // for conversations without times, else nil
	sessions   *sessionReader // instead of the files for sessions of agents, else nil
	live       openLoop       // of the sessions
	skipped    int64
}

// newStream returns a reader at the start of an input.
func newStream(l timeline) *rowStream {
	live, stream := max(1, l.cfg.Live), users.NewStream(l.cfg.Seed, -1)
	s := &rowStream{cycles: cycles{timeline: l}, times: schedule{cfg: &l.cfg, stream: stream}}
	if l.sessional {
		s.sessions = &sessionReader{cycles: cycles{timeline: l}}
		s.live = openLoop{source: s.sessions, limit: live, stream: stream}
	} else if l.format.Untimed && live > 1 {
		s.interleave = &interleave{live: live, stream: stream}
	}
	return s
}

// peek returns the next usable row, the same one until drop; nil at the end of the input or after an
// error, which is in err.
func (s *rowStream) peek() *traceRow {
	if !s.headRead {
		if s.head, s.headRead = s.next(); !s.headRead {
			return nil
		}
	}
	return &s.head
}

// drop consumes the row that peek returned.
func (s *rowStream) drop() { s.headRead = false }

// stop ends the input.
func (s *rowStream) stop() {
	s.done, s.headRead = true, false
	if s.closeFile(); s.interleave != nil {
		s.closed = s.report() // without rows that are never replayed
		s.interleave.over, s.interleave.open, s.interleave.ahead = true, nil, nil
	}
	if s.sessions != nil {
		s.sessions.closeFile()
	}
}

// next reads the next usable row; false at the end.
func (s *rowStream) next() (row traceRow, ok bool) {
	if limit := s.cfg.MaxRequests; limit > 0 && s.seq >= limit {
		s.stop()
		return row, false
	}
	switch {
	case s.sessions != nil:
		row, ok = s.nextOfSessions()
	case s.interleave != nil:
		row, ok = s.nextOfTalks()
	default:
		row, ok = s.nextOfFiles()
	}
	if !ok {
		s.stop()
		return row, false
	}
	row.seq, row.arrival = s.seq, s.times.arrive(s.seq)
	s.seq++
	return row, true
}

// nextOfTalks takes the next row of the live conversations; false at the end.
func (s *rowStream) nextOfTalks() (traceRow, bool) {
	for s.interleave.wants() {
		row, ok := s.nextOfFiles()
		if s.err != nil {
			return row, false
		}
		if s.interleave.over = !ok; ok {
			s.interleave.add(row)
		}
	}
	return s.interleave.take(s.seq)
}

// nextOfFiles reads the next usable row, without its place in the replay; false at the end.
func (s *rowStream) nextOfFiles() (traceRow, bool) {
	for !s.done && s.err == nil {
		row, err := s.cycles.next()
		most := s.cfg.MaxConversations
		enough := err == nil && row.Opens && most > 0 && s.talks >= most
		switch {
		case enough || errors.Is(err, io.EOF):
			s.err = s.finishFile(enough)
		case err != nil:
			s.err = err
		case s.times.pass(row.Stamp):
			s.file.skipped++
		default:
			return s.place(row), true
		}
	}
	s.done = true
	return traceRow{}, false
}

// nextOfSessions reads the next row of the live sessions; false at the end.
func (s *rowStream) nextOfSessions() (traceRow, bool) {
	for !s.done && s.err == nil {
		row, of, err := s.live.next()
		switch {
		case err != nil:
			s.err = err
		case of == nil:
			s.done = true
			if s.seq == 0 && s.cfg.Start > 0 {
				s.err = s.overBeforeStart()
			}
		case s.times.pass(row.Stamp):
			s.skipped++
		default:
			return traceRow{Row: row, row: s.seq + 1, cycle: of.cycle}, true
		}
	}
	return traceRow{}, false
}

// overBeforeStart returns the error of an input that ends before the replay begins.
func (s *rowStream) overBeforeStart() error {
	return fmt.Errorf("the trace is over %s after its first request, before the start of the"+
		" replay at %s: start earlier (-trace-start)",
		s.times.pos.Round(time.Millisecond), s.cfg.Start)
}

// place numbers a row to be replayed.
func (s *rowStream) place(r formats.Row) traceRow {
	s.used++
	if r.Opens {
		s.talks++
	}
	return traceRow{Row: r, row: s.before + s.file.row(), cycle: s.cycle,
		conversation: s.talks}
}

// finishFile continues with the next files, or after the last ones, or if enough rows were read, with the
// next cycle.
func (s *rowStream) finishFile(enough bool) error {
	s.times.endFile()
	s.before += s.file.row()
	used := s.used
	switch ended := s.finish(enough); {
	case !ended:
		return nil
	case used == 0 && s.cfg.Start > 0:
		return s.overBeforeStart()
	}
	s.times.endCycle()
	s.before, s.talks = 0, 0
	return nil
}

// report counts the rows read so far in the first cycle, without rows that conversations have not replayed
// yet.
func (s *rowStream) report() workloads.TraceReport {
	if s.sessions != nil {
		r := s.sessions.report(s.live.played)
		r.Skipped = s.skipped
		return r
	}
	r := s.cycles.report()
	if s.interleave != nil {
		if rows, cycle := s.interleave.waiting(); cycle >= 0 {
			r.Rows, r.Cycles = r.Rows-rows, cycle
		}
	}
	return r
}

// Rows are the usable rows of recorded requests in the order of their replay, with their arrivals: the
// input of a Trace, for callers that compute with recorded requests and execute none. Memory is constant.
//
// Rows must be closed. One goroutine uses them.
type Rows struct{ stream *rowStream }

// OpenRows reads the start of every file, so that an input of another format is an error now. It uses these
// fields of the configuration: Paths, Speedup, Cycles (at least 1), Live, Start, Rate, MaxRequests and
// AllowMalformed.
func OpenRows(format formats.Format, cfg Config) (*Rows, error) {
	files, err := (&input{cfg: cfg, format: format}).check()
	if err != nil {
		return nil, err
	}
	return &Rows{newStream(files)}, nil
}

// Each calls do with the remaining rows and their arrivals since the begin of the replay, until do fails. It
// returns the error of do, or the error that ended the input: a file that cannot be read, or too many
// malformed rows. A row is valid until do returns.
func (r *Rows) Each(do func(row *formats.Row, at time.Duration) error) error {
	for row := r.stream.peek(); row != nil; row = r.stream.peek() {
		if err := do(&row.Row, row.arrival); err != nil {
			return err
		}
		r.stream.drop()
	}
	return r.stream.err
}

// Report counts the rows read so far.
func (r *Rows) Report() workloads.TraceReport { return r.stream.report() }

// Close closes the files.
func (r *Rows) Close() error {
	r.stream.stop()
	return nil
}
