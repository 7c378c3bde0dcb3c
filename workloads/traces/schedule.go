package traces

import (
	"time"

	"kvbench/workloads"
	"kvbench/workloads/users"
)

// schedule converts the stamps of usable rows to arrivals. The trace's own clock does not depend on the
// speed. It is 0 at the first usable row of a cycle. The rows of a part, which is a file or several
// concurrent files, keep their gaps, and the next part follows after a mean gap.
type schedule struct {
	cfg     *Config
	stream  users.Stream  // draws of Poisson arrivals
	arrival time.Duration // of the previous row

	pos    time.Duration // of the previous row on the trace's clock
	origin time.Duration // arrival of Config.Start in this cycle

	// Of the current part:
	part, cycle int
	rows        int64         // usable rows so far
	stamp, base time.Duration // of the first row: its stamp, and its time on the trace's clock
}

// minSeam is the smallest gap between the last row of a part or cycle and the first row of the next. It
// limits the rate of a replay whose files have a single stamp.
const minSeam = time.Millisecond

// timed reports whether rows have arrivals. Otherwise a row arrives when it is taken.
func (c *Config) timed() bool { return c.Rate > 0 || c.Speedup > 0 }

// faster divides a recorded time by the speedup. With speedup 0, as fast as possible, it returns 0.
func (c *Config) faster(d time.Duration) time.Duration {
	if c.Speedup == 0 {
		return 0
	}
	return workloads.Nanoseconds(float64(d) / c.Speedup)
}

// pass moves the trace's clock to a usable row, and reports whether the row is before Config.Start.
func (s *schedule) pass(row *traceRow) (before bool) {
	if s.rows > 0 && row.part != s.part {
		seam := minSeam
		if s.rows > 1 { // the rate stays the same
			seam = max(seam, workloads.Nanoseconds(float64(s.pos-s.base)/float64(s.rows-1)))
		}
		s.pos, s.rows = s.pos+seam, 0
		if row.cycle != s.cycle {
			s.pos, s.origin = 0, s.arrival+max(minSeam, s.cfg.faster(seam))
		}
	}
	if s.rows == 0 {
		s.stamp, s.base = row.Stamp, s.pos
	}
	s.part, s.cycle, s.rows = row.part, row.cycle, s.rows+1
	// A row out of order arrives with the row before it: the replay keeps the order of the file.
	s.pos = max(s.pos, s.base+row.Stamp-s.stamp)
	return s.pos < s.cfg.Start
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
		s.arrival = max(s.arrival, s.origin+s.cfg.faster(s.pos-s.cfg.Start))
	}
	return s.arrival
}
