package traces

import (
	"errors"
	"io"
	"math"
	"strconv"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/sessions"
)

// sessionReader reads the sessions of agents out of all files and cycles, in order, each as a
// whole: so much of the input is in memory as sessions are live, and the one that comes next as far
// as it was read ahead.
type sessionReader struct {
	format formats.Format
	cfg    *Config

	file   *file // being read, nil for none
	index  int   // of it among the paths
	cycle  int
	begun  int64 // sessions, over all cycles
	cycled int64 // sessions of this cycle
	each   int64 // sessions of a cycle, 0 until that is known
	build  sessions.Builder
	play   int // of the rows in build
	done   bool

	ready *sessions.Session // that was read ahead
	err   error
	given int64 // sessions

	closed workloads.TraceReport // of the files of the first cycle
	rows   int64                 // of it that were played
	ended  int64                 // sessions that were played to their end
	most   int                   // sessions that were live at a time
}

// next reads on to the end of a session. It is nil at the end of the input.
func (s *sessionReader) next() (*sessions.Session, error) {
	for s.ready == nil && s.err == nil && !s.done {
		s.ahead()
	}
	session := s.ready
	s.ready = nil
	if session != nil {
		s.given++
	}
	return session, s.err
}

// ahead reads one more row of the session that comes next, so that it is there when one ends: a
// session has megabytes, for which no request should have to wait. What is wrong comes back from
// next.
func (s *sessionReader) ahead() {
	if s.ready == nil && s.err == nil && !s.done {
		s.ready, s.err = s.read()
	}
}

// read reads a row, and returns the session that it shows to be complete.
func (s *sessionReader) read() (session *sessions.Session, err error) {
	if s.file == nil {
		s.file, err = openOne(s.format, s.cfg, s.index)
		return nil, err
	}
	row, err := s.file.next(math.MaxInt64)
	switch {
	case errors.Is(err, io.EOF):
		return s.end(), s.finishFile()
	case err != nil:
		return nil, err
	case row.Agent.Play != s.play:
		session = s.end()
		s.play = row.Agent.Play
	}
	s.add(row)
	return session, nil
}

// add adds a row to the session that is being read. One that is played again has blocks of its own,
// or it would find what it wrote the last time.
func (s *sessionReader) add(row formats.Row) {
	if s.build.Empty() {
		s.build.Begin(s.begun, s.cycle)
	}
	if s.cycle > 0 && !row.Common {
		row.Scope += "~" + strconv.Itoa(s.cycle+1)
	}
	s.build.Add(row)
}

// end returns the session whose rows have all been read.
func (s *sessionReader) end() *sessions.Session {
	session := s.build.End()
	if session != nil {
		s.begun++
		s.cycled++
	}
	return session
}

// finishFile checks the file that has ended and goes on to the next one, or to the next cycle.
func (s *sessionReader) finishFile() error {
	if err := s.file.end(); err != nil {
		return err
	}
	s.close()
	s.play = 0
	if s.index++; s.index < len(s.cfg.Paths) {
		return nil
	}
	s.cycle++
	// A cycle without a session would be repeated for ever.
	s.done = s.cycle == s.cfg.Cycles || s.cycled == 0
	s.each = s.cycled
	s.index, s.cycled = 0, 0
	return nil
}

// played counts a row of a session that the replay has come to, the last one or not, with so many
// live sessions.
func (s *sessionReader) played(of *sessions.Session, last bool, live int) {
	s.most = max(s.most, live)
	if of.Cycle == 0 {
		s.rows++
	}
	if last {
		s.ended++
	}
}

// report says what was read and played so far, each row once. Rows that were read ahead do not
// count yet.
func (s *sessionReader) report() workloads.TraceReport {
	r := s.closed
	if s.file != nil && s.cycle == 0 {
		r.Add(s.file.Report)
	}
	r.Rows = r.Malformed + r.Failed + s.rows
	r.Sessions, r.Live = s.given, s.most
	if s.each > 0 {
		r.Cycles = int(s.ended / s.each)
	}
	return r
}

// close closes the current file, if one is open. Reading is over, so that an error of closing
// changes nothing.
func (s *sessionReader) close() {
	if s.file == nil {
		return
	}
	if s.cycle == 0 {
		s.closed.Add(s.file.Report)
	}
	_ = s.file.Close()
	s.file = nil
}
