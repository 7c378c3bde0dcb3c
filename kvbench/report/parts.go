package report

import (
	"fmt"

	"kvbench/kvbench/units"
)

// simulated says in the margin of every simulated result what its time is.
func (s *summaryWriter) simulated() {
	m := s.r.Simulation
	if m == nil {
		return
	}
	s.line("simulated", "computed in %s, %s in the I/O trace", units.Duration(float64(m.WallNS)), units.Plural(m.TraceRows, "row"))
	if m.Device == nil {
		s.line("", "storage was infinitely fast: latencies are 0 and rates are those of the load")
	} else {
		s.line("", "the device's medium was busy %s", units.Percent(m.DeviceBusyShare))
	}
	switch {
	case m.SustainedUsers != nil:
		s.line("", "it would sustain %s of %d users, the queue grew by %s requests/s", units.Number(*m.SustainedUsers), s.r.Workload.Users, units.NumberOf(m.QueueGrowth))
	case m.QueueGrowth != nil:
		s.line("", "the queue grew by %s requests/s", units.NumberOf(m.QueueGrowth))
	}
}

// mostRounds is how many rounds of an autoscaler are listed, the first and the last among them.
const mostRounds = 9

func (s *summaryWriter) autoscaler() {
	a := s.r.Summary.AutoscalingSummary
	if a == nil {
		return
	}
	how := "the window ended before it was found"
	if a.Found {
		how = "found"
	}
	s.line("autoscaler", "%s: %d users sustained (%s), at most %d ran, at most %s/s, %s from %d to %d users", a.Mode, a.SustainedUsers, how,
		a.PeakUsers, units.Bytes(a.PeakRate), units.Plural(int64(a.Rounds), "round"), a.InitialUsers, a.FinalUsers)
	all := s.r.Summary.AutoscalingStats
	rows := [][]string{{"round", "at", "users", "workers", "goroutines", "bytes/s", "read p95", "write p95", "saturation", "then users", "decision"}}
	for i := range shown(len(all), mostRounds) {
		r := all[i]
		rows = append(rows, []string{fmt.Sprint(i + 1), units.Duration(r.AtS * 1e9), units.Count(int64(r.Users)), units.Count(int64(r.Workers)), units.Count(int64(r.Goroutines)),
			units.Bytes(r.BytesPerSecond) + "/s", units.Millis(r.ReadP95), units.Millis(r.WriteP95), units.PercentKnown(r.Saturation), units.Count(int64(r.NextUsers)), r.Decision})
	}
	s.table("", rows)
	if n := len(all); n > mostRounds {
		s.line("", "%d of %d rounds, the others are in the JSON; latencies are per 100 MiB", mostRounds, n)
	} else if n > 0 {
		s.line("", "latencies are per 100 MiB")
	}
}

// shown yields at most most indices below n, evenly spaced, the first and the last among them.
func shown(n, most int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		k := min(n, most)
		for i := range k {
			at := i
			if k > 1 {
				at = i * (n - 1) / (k - 1)
			}
			if !yield(at) {
				return
			}
		}
	}
}

func (s *summaryWriter) replay() {
	p := s.r.Replay
	if p == nil {
		return
	}
	s.line("replay", "%s, %s of other tiers or phases; %s (%s of what was there), %s, %s", units.Plural(p.Rows, "row"), units.Count(p.Skipped),
		units.Plural(p.Writes, "write"), units.Count(p.Overwrites), units.Plural(p.Reads, "read"), units.Plural(p.Deletes, "delete"))
	s.line("", "without I/O: %s of evicted and %s of never written entries, %s larger than the tier; %s to make room", units.Plural(p.EvictedReads, "read"),
		units.Count(p.UnwrittenReads), units.Plural(p.TooLarge, "write"), units.Plural(p.Evictions, "deletion"))
	if p.LateNS > 0 {
		s.line("", "at most %s behind the trace's timestamps", units.Duration(float64(p.LateNS)))
	}
}

func (s *summaryWriter) blocks() {
	c := s.r.BlockCache
	if c == nil {
		return
	}
	ideal := units.Unknown
	if c.IdealHitRatio != nil {
		ideal = fmt.Sprintf("%.5f", *c.IdealHitRatio)
	}
	s.line("blocks", "%s of %s hit: ratio %.5f, ideal (a cache without bounds) %s; %s waited for their writer",
		units.Count(c.Hits), units.Count(c.Blocks), units.OrZero(c.HitRatio), ideal, units.Count(c.Pending))
	s.line("", "prefix-hit ratio %s of %s, %s of the tokens; %s saved; %s there but behind a missing one",
		units.Percent(c.PrefixHitRatio), units.Plural(c.Requests, "request"), units.Percent(c.TokenHitRatio), units.Bytes(float64(c.BytesSaved)), units.Count(c.Kept))
	s.line("", "%s read by %s, %s written by %s", units.Plural(c.Reads.Blocks, "block"), units.Plural(c.Reads.Operations, "operation"),
		units.Plural(c.Writes.Blocks, "block"), units.Plural(c.Writes.Operations, "operation"))
	s.blocksOverTime()
}

// blocksOverTime shows the hit ratio and the ideal one in each tenth of the window.
func (s *summaryWriter) blocksOverTime() {
	t := s.r.Timeline
	const parts = 10
	if t == nil || len(t.Blocks) < parts {
		return
	}
	head, hit, ideal := []string{"hit ratio"}, []string{"run"}, []string{"ideal"}
	for i := range parts {
		from, to := i*len(t.Blocks)/parts, (i+1)*len(t.Blocks)/parts
		var blocks, hits, best int64
		known := len(t.BlockIdeal) == len(t.Blocks)
		for k := from; k < to; k++ {
			blocks, hits = blocks+t.Blocks[k], hits+t.BlockHits[k]
			if known && t.BlockIdeal[k] != nil {
				best += *t.BlockIdeal[k]
			} else {
				known = false
			}
		}
		head = append(head, fmt.Sprintf("–%d %%", (i+1)*100/parts))
		hit = append(hit, ratioText(hits, blocks, true))
		ideal = append(ideal, ratioText(best, blocks, known))
	}
	s.table("", [][]string{head, hit, ideal})
}

func ratioText(part, whole int64, known bool) string {
	if whole == 0 || !known {
		return units.Unknown
	}
	return fmt.Sprintf("%.3f", float64(part)/float64(whole))
}

func (s *summaryWriter) validation() {
	v := s.r.Validation
	if v == nil {
		return
	}
	word := "FAILED: not within"
	if v.Passed {
		word = "passed: within"
	}
	s.line("validation", "%s %s of the run recorded in %s (%s, %s malformed)", word, units.Percent(&v.Tolerance), v.Trace, units.Plural(v.Requests, "request"),
		units.Count(v.Malformed))
	rows := [][]string{{"", "run", "recorded", "difference", "judged"}}
	for _, c := range v.Checks() {
		rows = append(rows, []string{c.Name, units.NumberOf(c.Measured), units.NumberOf(c.Recorded), units.PercentKnown(c.Difference), c.Word()})
	}
	s.table("", rows)
}
