package traces

import (
	"errors"
	"io"
	"strconv"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// sessionReader reads whole sessions of agents from all files and cycles, in order. The memory contains
// the live sessions, and the part of the next one that was read ahead.
type sessionReader struct {
	cycles
	begun int64 // sessions, over all cycles
	each  int64 // sessions of a cycle, 0 until it is known
	build builder
	play  int // of the rows in build

	ready *session // complete, read ahead
	err   error
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
	row, err := s.cycles.next()
	switch {
	case errors.Is(err, io.EOF):
		complete, s.play = s.end(), 0
		if n := s.used; s.finish(false) {
			s.each = n
		}
		return complete, nil
	case err != nil:
		return nil, err
	case row.Agent.Play != s.play:
		complete, s.play = s.end(), row.Agent.Play
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
		s.used++
	}
	return complete
}

// report counts the rows read and replayed so far, each row once, without rows read ahead.
func (s *sessionReader) report(p played) workloads.TraceReport {
	r := s.cycles.report()
	r.Rows = r.Malformed + r.Failed + p.rows
	r.Sessions, r.Live, r.Cycles = p.begun, p.most, 0
	if s.each > 0 {
		r.Cycles = int(p.ended / s.each)
	}
	return r
}
