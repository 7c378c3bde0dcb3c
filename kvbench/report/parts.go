package report

import (
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// simulated says in the margin of every simulated result what its time is. On a device model it
// also says what would be sustained; with an autoscaler the queue's growth alone, because the users
// of the search are its own answer.
func (s *summary) simulated() {
	m := s.Simulation
	if m == nil {
		return
	}
	s.line("simulated", "computed in %s, %s in the I/O trace", ns(m.WallNS),
		units.Plural(m.TraceRows, "row"))
	if m.Device == nil {
		s.put("", "storage was infinitely fast: latencies are 0 and rates are those of the load")
	} else {
		s.put("", "the device's medium was busy "+percent(m.DeviceBusyShare))
	}
	// A queue that grows without end means that the device is oversubscribed, whatever its rate.
	grew := "the queue grew by " + number(m.QueueGrowth) + " requests/s"
	switch {
	case m.SustainedUsers != nil:
		s.line("", "it would sustain %s of %d users, %s", number(m.SustainedUsers),
			s.Workload.Users, grew)
	case m.QueueGrowth != nil:
		s.put("", grew)
	}
}

// mostRounds is how many rounds of an autoscaler are listed, the first and the last among them.
const mostRounds = 9

// autoscaler says how many users were sustained, whether that was found or only how far the search
// came, and shows its rounds.
func (s *summary) autoscaler() {
	a := s.Summary.AutoscalingSummary
	if a == nil {
		return
	}
	// Until it is found, the number of users is only how far the search came.
	how := "the window ended before it was found"
	if a.Found {
		how = "found"
	}
	s.line("autoscaler", "%s: %d users sustained (%s), at most %d ran, at most %s, %s from %d to "+
		"%d users", a.Mode, a.SustainedUsers, how, a.PeakUsers, rate(a.PeakRate),
		units.Plural(a.Rounds, "round"), a.InitialUsers, a.FinalUsers)
	rounds(s.Result).write(s)
	if n := len(s.Summary.AutoscalingStats); n > mostRounds {
		s.line("", "%d of %d rounds, the others are in the JSON; latencies are per 100 MiB",
			mostRounds, n)
	} else if n > 0 {
		s.put("", "latencies are per 100 MiB")
	}
}

// rounds are those of an autoscaler, or so many of them, evenly spaced, with the first and the
// last.
func rounds(r *result.Result) table {
	t := table{Columns: head("round", units.Seconds, "at", units.Count, "users", "workers",
		"goroutines",
		units.BytesPerSec, "bytes/s", units.Milliseconds, "read p95", "write p95", units.Share,
		"saturation", units.Count, "then users", units.Number, "decision")}
	all := r.Summary.AutoscalingStats
	for _, i := range shown(len(all), mostRounds) {
		x := all[i]
		t.add(fmt.Sprint(i+1), x.AtS, x.Users, x.Workers, x.Goroutines, x.BytesPerSecond, x.ReadP95,
			x.WriteP95, x.Saturation, x.NextUsers, x.Decision)
	}
	return t
}

// shown returns at most most indices below n, evenly spaced, the first and the last among them: a
// search of hundreds of rounds is understood from a few, if its beginning and its end are there.
func shown(n, most int) (at []int) {
	k := min(n, most)
	for i := range k {
		at = append(at, i*(n-1)/max(k-1, 1))
	}
	return at
}

// replay says what became of the rows of an I/O trace: what was carried out, and what cost no I/O
// because the entry had made room or was never written.
func (s *summary) replay() {
	p := s.Replay
	if p == nil {
		return
	}
	s.line("replay", "%s, %s of other tiers or phases; %s (%s of what was there), %s, %s",
		units.Plural(p.Rows, "row"), count(p.Skipped), units.Plural(p.Writes, "write"),
		count(p.Overwrites), units.Plural(p.Reads, "read"), units.Plural(p.Deletes, "delete"))
	s.line("", "without I/O: %s of evicted and %s of never written entries, %s larger than the "+
		"tier; %s to make room", units.Plural(p.EvictedReads, "read"), count(p.UnwrittenReads),
		units.Plural(p.TooLarge, "write"), units.Plural(p.Evictions, "deletion"))
	if p.LateNS > 0 {
		s.line("", "at most %s behind the trace's timestamps", ns(p.LateNS))
	}
}

// blocks are the hits of a block trace, with the five digits by which a hit ratio is compared with
// the ideal one.
func (s *summary) blocks() {
	c := s.BlockCache
	if c == nil {
		return
	}
	ideal := units.Unknown
	if c.IdealHitRatio != nil {
		ideal = fmt.Sprintf("%.5f", *c.IdealHitRatio)
	}
	s.line("blocks", "%s of %s hit: ratio %.5f, ideal (a cache without bounds) %s; %s waited for "+
		"their writer", count(c.Hits), count(c.Blocks), units.OrZero(c.HitRatio), ideal,
		count(c.Pending))
	s.line("", "prefix-hit ratio %s of %s, %s of the tokens; %s saved; %s there but behind a "+
		"missing one", percent(c.PrefixHitRatio), units.Plural(c.Requests, "request"),
		percent(c.TokenHitRatio), bytes(c.BytesSaved), count(c.Unreachable))
	s.line("", "%s read by %s, %s written by %s", units.Plural(c.Reads.Blocks, "block"),
		units.Plural(c.Reads.Operations, "operation"), units.Plural(c.Writes.Blocks, "block"),
		units.Plural(c.Writes.Operations, "operation"))
	blocksOverTime(s.Result).write(s)
}

// blocksOverTime shows the hit ratio and the ideal one in each tenth of the window: where the two
// come together the cache is warm. The ideal is unknown where it is of one interval.
func blocksOverTime(r *result.Result) (t table) {
	tl := r.Timeline
	const parts = 10
	if r.BlockCache == nil || tl == nil || len(tl.Blocks) < parts {
		return t
	}
	t.Columns = head("hit ratio")
	run, ideal := []any{"run"}, []any{"ideal"}
	for i := range parts {
		// A timeline has no fixed number of intervals: tenths differ by one at most.
		from, to := i*len(tl.Blocks)/parts, (i+1)*len(tl.Blocks)/parts
		var blocks, hits, best int64
		known := len(tl.BlockIdeal) == len(tl.Blocks)
		for k := from; k < to; k++ {
			blocks, hits = blocks+tl.Blocks[k], hits+tl.BlockHits[k]
			if known = known && tl.BlockIdeal[k] != nil; known {
				best += *tl.BlockIdeal[k]
			}
		}
		t.Columns = append(t.Columns, column{Name: fmt.Sprintf("–%d %%", (i+1)*100/parts)})
		run = append(run, ratioText(hits, blocks, true))
		ideal = append(ideal, ratioText(best, blocks, known))
	}
	t.Rows = [][]any{run, ideal}
	return t
}

// ratioText has the digits by which a hit ratio is compared with the ideal one: in a tenth of a
// window there are too few blocks for more.
func ratioText(part, whole int64, known bool) string {
	if whole == 0 || !known {
		return units.Unknown
	}
	return fmt.Sprintf("%.3f", float64(part)/float64(whole))
}

// validation says whether the run is like the recorded one, and shows the numbers that were
// compared: a simulation or another machine is only to be believed if it can repeat what is known.
func (s *summary) validation() {
	v := s.Validation
	if v == nil {
		return
	}
	word := "FAILED: not within"
	if v.Passed {
		word = "passed: within"
	}
	s.line("validation", "%s %s of the run recorded in %s (%s, %s malformed)", word,
		units.Share.Text(v.Tolerance), v.Trace, units.Plural(v.Requests, "request"),
		count(v.Malformed))
	checks(s.Result).write(s)
}

// checks are the numbers that a validation compares. One that either run does not have is shown and
// not judged.
func checks(r *result.Result) (t table) {
	if r.Validation == nil {
		return t
	}
	t.Columns = head("", units.Number, "run", "recorded", units.Share, "difference", units.Number,
		"judged")
	for _, c := range r.Validation.Checks() {
		t.add(c.Name, c.Measured, c.Recorded, c.Difference, c.Word())
	}
	return t
}
