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

// rowStream reads the usable rows of all files and cycles, in order, with constant memory.
type rowStream struct {
	cfg   *Config
	times schedule

	head     traceRow // the result of peek, if headRead
	headRead bool
	files    timeline
	file     *merge // open files, or nil
	index    int    // index of the first of them in the timeline
	cycle    int
	before   int64                 // rows of this cycle in earlier files
	closed   workloads.TraceReport // closed files of the first cycle
	talks    int64                 // conversations of this cycle
	replayed int64                 // rows of this cycle
	seq      int64
	err      error
	done     bool

	interleave *interleave    // for conversations without times, else nil
	sessions   *sessionReader // instead of file for sessions of agents, else nil
	live       openLoop       // of the sessions
	skipped    int64
}

// newStream returns a reader at the start of an input.
func newStream(format formats.Format, cfg *Config, files []opening) *rowStream {
	stream := users.NewStream(cfg.Seed, -1)
	s := &rowStream{cfg: cfg, files: newTimeline(format, cfg, files),
		times: schedule{cfg: cfg, stream: stream}}
	if sessional(files) {
		s.sessions = &sessionReader{format: format, cfg: cfg}
		s.live = openLoop{source: s.sessions, limit: max(1, cfg.Live), stream: stream}
	} else if format.Untimed && cfg.Live > 1 {
		s.interleave = &interleave{live: cfg.Live, stream: stream}
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
		s.sessions.close()
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
		if s.file == nil {
			s.file, s.err = s.files.open(s.index)
			continue
		}
		row, err := s.file.next()
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
	s.replayed++
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
	s.index += s.file.opened
	s.closeFile()
	if s.index < len(s.cfg.Paths) && !enough {
		return nil
	}
	if s.replayed == 0 && s.cfg.Start > 0 {
		return s.overBeforeStart()
	}
	s.times.endCycle()
	s.cycle++
	s.closed.Cycles = s.cycle
	// A cycle without a row would be repeated for ever.
	s.done = s.cycle == s.cfg.Cycles || s.replayed == 0
	s.index, s.before, s.talks, s.replayed = 0, 0, 0, 0
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
	r := s.closed
	if s.file != nil && s.cycle == 0 {
		r.Add(s.file.report())
	}
	if s.interleave != nil {
		if rows, cycle := s.interleave.waiting(); cycle >= 0 {
			r.Rows, r.Cycles = r.Rows-rows, cycle
		}
	}
	return r
}

// closeFile closes the open files.
func (s *rowStream) closeFile() {
	if s.file != nil {
		if s.cycle == 0 {
			s.closed.Add(s.file.report())
		}
		s.file.close()
		s.file = nil
	}
}

// Rows are the usable rows of recorded requests in the order of their replay, with their arrivals: the
// input of a Trace, for callers that compute with recorded requests and execute none. Memory is constant.
//
// Rows must be closed. One goroutine uses them.
type Rows struct {
	cfg    Config
	stream *rowStream
}

// OpenRows reads the start of every file, so that an input of another format is an error now. It uses these
// fields of the configuration: Paths, Speedup, Cycles (at least 1), Live, Start, Rate, MaxRequests and
// AllowMalformed.
func OpenRows(format formats.Format, cfg Config) (*Rows, error) {
	files, err := check(format, &cfg)
	if err != nil {
		return nil, err
	}
	r := &Rows{cfg: cfg}
	r.stream = newStream(format, &r.cfg, files)
	return r, nil
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
