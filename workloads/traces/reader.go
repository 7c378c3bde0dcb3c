package traces

import (
	"errors"
	"io"
	"math"
	"strconv"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// sessionReader reads whole sessions of agents from all files and cycles, in order. The memory contains
// the live sessions, and the part of the next one that was read ahead.
type sessionReader struct {
	format formats.Format
	cfg    *Config

	file   *file // the open file, or nil
	index  int   // its index in the paths
	cycle  int
	begun  int64 // sessions, over all cycles
	cycled int64 // sessions of this cycle
	each   int64 // sessions of a cycle, 0 until it is known
	build  builder
	play   int // of the rows in build
	done   bool

	ready *session // complete, read ahead
	err   error

	closed workloads.TraceReport // closed files of the first cycle
}

// next reads to the end of a session. It returns nil at the end of the input.
func (s *sessionReader) next() (*session, error) {
	for s.ready == nil && s.err == nil && !s.done {
		s.ahead()
	}
	next := s.ready
	s.ready = nil
	return next, s.err
}

// ahead reads one more row of the next session, so that it is complete when a live one ends: a session has
// megabytes, and no request should wait for reading them. next returns the errors.
func (s *sessionReader) ahead() {
	if s.ready == nil && s.err == nil && !s.done {
		s.ready, s.err = s.read()
	}
}

// read reads a row, and returns a session if the row completes it.
func (s *sessionReader) read() (complete *session, err error) {
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
		complete = s.end()
		s.play = row.Agent.Play
	}
	s.add(row)
	return complete, nil
}

// add adds a row to the current session. In a later cycle a session gets its own blocks, because it would
// find the blocks of the earlier cycle otherwise.
func (s *sessionReader) add(row formats.Row) {
	if s.build.empty() {
		s.build.begin(s.begun, s.cycle)
	}
	if s.cycle > 0 && !row.Common {
		row.Scope += "~" + strconv.Itoa(s.cycle+1)
	}
	s.build.add(row)
}

// end returns the session whose rows have all been read.
func (s *sessionReader) end() *session {
	complete := s.build.end()
	if complete != nil {
		s.begun++
		s.cycled++
	}
	return complete
}

// finishFile checks a file at its end and continues with the next one, or with the next cycle.
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

// report counts the rows read and replayed so far, each row once, without rows read ahead.
func (s *sessionReader) report(p played) workloads.TraceReport {
	r := s.closed
	if s.file != nil && s.cycle == 0 {
		r.Add(s.file.Report)
	}
	r.Rows = r.Malformed + r.Failed + p.rows
	r.Sessions, r.Live = p.begun, p.most
	if s.each > 0 {
		r.Cycles = int(p.ended / s.each)
	}
	return r
}

// close closes the current file, if one is open. An error of closing a file that was read does not matter.
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
