package traces

import (
	"time"

	"kvbench/workloads"
	"kvbench/workloads/users"
)

// schedule turns the stamps of usable rows into arrivals, part by part and cycle by cycle. The rows of a part,
// which is a file or several concurrent ones, keep their gaps, and the next part follows after a mean gap.
type schedule struct {
	cfg    *Config
	stream users.Stream // of Poisson arrivals

	arrival time.Duration // of the previous row
	seam    time.Duration // gap before the current part

	// Of the current part:
	part, cycle int
	rows        int64         // usable rows
	first, last time.Duration // their stamps
	base        time.Duration // arrival of the first one

	// The trace's own clock, independent of the speed: 0 at its first usable row, without jumps between
	// parts.
	pos, posBase, posSeam time.Duration
	cycleBase             time.Duration // arrival of Config.Start in this cycle
	entered               bool          // the cycle has had a usable row
	begun                 bool          // the cycle has reached Config.Start
}

// minSeam is the smallest gap between the last row of a part or cycle and the first row of the next. It
// limits the rate of a replay whose files have a single stamp.
const minSeam = time.Millisecond

// timed reports whether rows have arrivals. Otherwise they arrive when they are taken.
func (s *schedule) timed() bool { return s.cfg.Rate > 0 || s.cfg.Speedup > 0 }

// scale converts a gap on the trace's clock to the replay's time.
func (s *schedule) scale(d float64) time.Duration {
	return workloads.Nanoseconds(d / s.cfg.Speedup)
}

// pass moves the trace's clock to a usable row, and reports whether that is before the start.
func (s *schedule) pass(row *traceRow) (before bool) {
	stamp := row.Stamp
	if s.rows > 0 && row.part != s.part {
		s.endPart()
		if row.cycle != s.cycle { // the trace's clock begins anew
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
		// A row recorded at Start arrives at the begin of the cycle, and later rows keep their distance
		// from it.
		s.base = s.cycleBase + s.scale(float64(s.pos-s.cfg.Start)) -
			s.scale(float64(s.last-s.first))
	}
	s.begun = true
	return false
}

// arrive returns the arrival of the row passed last, the n-th of the replay; 0 if rows arrive when they are
// taken.
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

// endPart sets the gap before the next part: the mean gap of this one, so that the rate stays the same.
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
