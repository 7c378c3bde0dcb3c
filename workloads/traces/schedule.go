package traces

import (
	"time"

	"kvbench/workloads"
	"kvbench/workloads/users"
)

// schedule converts the stamps of usable rows to arrivals, part by part and cycle by cycle. A part is a
// file or several concurrent files. The rows of a part keep their gaps, and the next part follows after
// a mean gap.
type schedule struct {
	cfg    *Config
	stream users.Stream // draws of Poisson arrivals

	arrival time.Duration // of the previous row
	seam    time.Duration // gap before the current part

	// Of the current part:
	part, cycle int
	rows        int64         // usable rows so far
	first, last time.Duration // stamps of the first row and of the last row so far
	base        time.Duration // arrival of the first row

	// The trace's own clock does not depend on the speed. It is 0 at the first usable row of a cycle
	// and has no jumps between parts.
	pos, posBase, posSeam time.Duration
	cycleBase             time.Duration // arrival of Config.Start in this cycle
	entered               bool          // the cycle has had a usable row
	begun                 bool          // the cycle has reached Config.Start
}

// minSeam is the smallest gap between the last row of a part or cycle and the first row of the next. It
// limits the rate of a replay whose files have a single stamp.
const minSeam = time.Millisecond

// timed reports whether rows have arrivals. Otherwise a row arrives when it is taken.
func (s *schedule) timed() bool { return s.cfg.Rate > 0 || s.cfg.Speedup > 0 }

// scale converts a gap on the trace's clock to the replay's time.
func (s *schedule) scale(d float64) time.Duration {
	return workloads.Nanoseconds(d / s.cfg.Speedup)
}

// pass moves the trace's clock to a usable row, and reports whether the row is before Config.Start.
func (s *schedule) pass(row *traceRow) (before bool) {
	stamp := row.Stamp
	if s.rows > 0 && row.part != s.part {
		s.endPart()
		if row.cycle != s.cycle { // the trace's clock restarts
			s.pos, s.entered, s.begun = 0, false, false
		}
	}
	s.part, s.cycle = row.part, row.cycle
	if s.rows == 0 {
		s.first, s.last = stamp, stamp
		s.base, s.posBase = s.arrival+s.seam, s.pos+s.posSeam
		if !s.entered {
			s.entered, s.cycleBase, s.posBase = true, s.base, 0
		}
	}
	s.rows++
	// A row out of order arrives with the row before it: the replay keeps the order of the file.
	s.last = max(s.last, stamp)
	s.pos = s.posBase + s.last - s.first
	if s.pos < s.cfg.Start {
		return true
	}
	if !s.begun && s.cfg.Start > 0 && s.cfg.Speedup > 0 {
		// A row recorded at Start arrives at the start of the cycle. Later rows keep their distance
		// from it.
		s.base = s.cycleBase + s.scale(float64(s.pos-s.cfg.Start)) -
			s.scale(float64(s.last-s.first))
	}
	s.begun = true
	return false
}

// arrive returns the arrival of the latest row, the n-th of the replay. It returns 0 if rows arrive
// when they are taken.
func (s *schedule) arrive(n int64) time.Duration {
	switch {
	case s.cfg.Rate > 0 && s.cfg.ConstantRate:
		s.arrival = max(s.arrival, workloads.Nanoseconds(float64(n)*1e9/s.cfg.Rate))
	case s.cfg.Rate > 0:
		s.arrival += workloads.Seconds(s.stream.Exponential(users.DrawGap, n, 1/s.cfg.Rate))
	case s.cfg.Speedup > 0:
		s.arrival = max(s.arrival, s.base+s.scale(float64(s.last-s.first)))
	}
	return s.arrival
}

// endPart sets the gap before the next part to the mean gap of this part, so that the rate stays the
// same.
func (s *schedule) endPart() {
	s.seam, s.posSeam = minSeam, minSeam
	rows := s.rows
	if s.rows = 0; rows < 2 {
		return
	}
	mean := float64(s.last-s.first) / float64(rows-1)
	s.posSeam = max(minSeam, workloads.Nanoseconds(mean))
	if s.cfg.Speedup > 0 {
		s.seam = max(minSeam, s.scale(mean))
	}
}
