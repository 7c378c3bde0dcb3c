package report

import (
	"cmp"
	"fmt"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// together is one line about the number of clients and the spread of their starts, "" for a trial
// without a coordinator.
func together(r *result.Result) string {
	c := r.Clients
	if c == nil {
		return ""
	}
	// No word with a colon behind it: the log of a benchmark has this line, too.
	text := fmt.Sprintf("%s on %s", units.Plural(r.Ranks, "rank"),
		units.Plural(len(c.Hosts), "host"))
	if c.StartSkewNS != nil {
		text += ", windows " + c.Opened()
	}
	// Sums of some ranks look like sums of all.
	if n := len(c.PerRank); n < r.Ranks {
		return text + fmt.Sprintf(", results of %d", n)
	}
	return text + ", results of all"
}

// title is one line about which trial it was and whether it counts. A simulated one is marked in
// its first word.
func (s *summary) title() {
	title := cmp.Or(s.Name, s.Benchmark)
	if s.Option != nil {
		title += fmt.Sprintf(" (option %d)", *s.Option)
	}
	if s.Simulation != nil {
		title = "SIMULATED " + title
	}
	ended := ""
	if s.EndedBy != "" {
		ended = fmt.Sprintf(" (ended by %s)", strings.ReplaceAll(s.EndedBy, "_", " "))
	}
	fmt.Fprintf(s, "%s, %s division, trial %d of %d, %s: %s%s\n", title, s.Division,
		s.Trial+1, max(s.Count, 1), s.who(), s.Status, ended)
}

// who says which clients the numbers are of: one client, all of a trial, or the remaining ones.
func (s *summary) who() string {
	have, all := len(s.MergedRanks), max(s.Ranks, 1)
	switch {
	case have == 0: // never merged
		return fmt.Sprintf("rank %d of %d", s.Rank, all)
	case have < all:
		return fmt.Sprintf("%d of %d ranks", have, all)
	}
	return fmt.Sprintf("%d ranks", all)
}

// clients writes the clients: all of up to four, else the fastest and the slowest.
func (s *summary) clients() {
	c := s.Clients
	if c == nil {
		return
	}
	// Hosts first: a rank that stands out is often one of a host that does.
	s.line("clients", "%s", together(s.Result))
	// One line each: a run on many hosts is read for the one that is missing.
	for _, h := range c.Hosts {
		s.line("", "%s: ranks %s", h.Name, units.List(h.Ranks))
	}
	for _, f := range c.Filesystems {
		what := cmp.Or(f.Type, "filesystem")
		if len(f.Directories) > 0 { // one of several
			what += " of " + strings.Join(f.Directories, ", ")
		}
		s.line("", "%s: ranks %s with %s of it", what, units.List(f.Ranks), bytes(f.CapacityBytes))
	}
	// Rates are sums of each rank's bytes ÷ its own window, like MLPerf Storage's: the common time
	// shows how much of that overlapped.
	if c.CommonWindowNS != nil {
		s.line("", "all of them measured for %s; a sum of rates is each rank's own over its window",
			ns(*c.CommonWindowNS))
	}
	if len(c.PerRank) > 1 {
		// By all bytes: a rank that reads much may write little, and one direction alone does not
		// show the slow rank.
		slow, fast := c.PerRank[0], c.PerRank[0]
		moved := func(r result.ClientRank) float64 {
			return units.OrZero(r.ReadBytesPerSecond) + units.OrZero(r.WriteBytesPerSecond)
		}
		for _, r := range c.PerRank {
			if moved(r) < moved(slow) {
				slow = r
			}
			if moved(r) > moved(fast) {
				fast = r
			}
		}
		s.line("", "slowest rank %d on %s with %s, fastest rank %d on %s with %s", slow.Rank,
			slow.Host, rate(moved(slow)), fast.Rank, fast.Host, rate(moved(fast)))
	}
	// Last, and in capitals: the sums above are of fewer clients than they seem to be. The process
	// is named, because its log and the kernel's may say more.
	for _, l := range c.Lost {
		s.line("", "LOST rank %d on %s (pid %d): it %s, %s", l.Rank, l.Host, l.PID, l.Why, l.Stage)
	}
}
