package traces

import (
	"time"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// schedule turns the stamps of usable rows into arrivals, file by file and cycle by cycle, where
// files that are merged are one: the rows of a file keep their distances, and the next file follows
// at one mean distance.
type schedule struct {
	cfg    *Config
	stream profile.Stream // of Poisson arrivals

	arrival time.Duration // of the row before
	seam    time.Duration // to be added before the next file, set when one ends

	// Of the file being read:
	rows        int64         // usable ones
	first, last time.Duration // their stamps
	base        time.Duration // arrival of the first one

	// The trace's own clock, whatever the pace: 0 at its first usable row, without a jump at the
	// seams of its files.
	pos, posBase, posSeam time.Duration
	cycleBase             time.Duration // arrival that stands for start in this cycle
	entered               bool          // the cycle has had a usable row
	begun                 bool          // the cycle has come to start
}

// minSeam is the least time between the last row of one file or cycle and the first of the next. It
// bounds the rate of a replay whose files hold a single instant.
const minSeam = time.Millisecond

// timed reports whether rows arrive by themselves. Otherwise they have no arrival of their own.
func (s *schedule) timed() bool { return s.cfg.Rate > 0 || s.cfg.Speedup > 0 }

// scale is a distance on the trace's clock in the time of the replay.
func (s *schedule) scale(d float64) time.Duration {
	return workloads.Nanoseconds(d / s.cfg.Speedup)
}

// pass moves the trace's clock to a usable row, and reports whether that is before the start.
func (s *schedule) pass(stamp time.Duration) (before bool) {
	if s.rows == 0 {
		s.first, s.last = stamp, stamp
		s.base, s.posBase = s.arrival+s.seam, s.pos+s.posSeam
		if !s.entered {
			s.entered, s.cycleBase, s.posBase = true, s.base, 0
		}
	}
	s.rows++
	// Rows out of order arrive with the row before them: the replay is first come, first served in
	// file order.
	s.last = max(s.last, stamp)
	s.pos = s.posBase + s.last - s.first
	if s.pos < s.cfg.Start {
		return true
	}
	if !s.begun && s.cfg.Start > 0 && s.cfg.Speedup > 0 {
		// What was recorded at the start arrives with the cycle's beginning, and the rest keeps its
		// distance to that.
		s.base = s.cycleBase + s.scale(float64(s.pos-s.cfg.Start)) -
			s.scale(float64(s.last-s.first))
	}
	s.begun = true
	return false
}

// arrive returns the arrival of the row passed last, the n-th of the replay. Without a pace it has
// none of its own.
func (s *schedule) arrive(n int64) time.Duration {
	switch {
	case s.cfg.Rate > 0 && s.cfg.ConstantRate:
		s.arrival = max(s.arrival, workloads.Nanoseconds(float64(n)*1e9/s.cfg.Rate))
	case s.cfg.Rate > 0:
		s.arrival += workloads.Seconds(s.stream.Exponential(profile.DrawGap, n, 1/s.cfg.Rate))
	case s.cfg.Speedup > 0:
		s.arrival = max(s.arrival, s.base+s.scale(float64(s.last-s.first)))
	}
	return s.arrival
}

// endFile sets the distance to the next file: the mean one of this, so that the rate goes on over
// the seam.
func (s *schedule) endFile() {
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

// endCycle lets the trace's clock begin again.
func (s *schedule) endCycle() { s.pos, s.entered, s.begun = 0, false, false }
