package report

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// prompts splits the prompt tokens into found, new and missing tokens. No cache can have new tokens. For
// a block trace it also splits the missing tokens by the ideal hits, because the first request of a
// block misses in a cache of any size. It reports the history of turns that overtook the turn before
// separately, because no cache could have it.
func prompts(r *result.Result) (s Section) {
	p := r.Prompt
	if p == nil || p.Tokens == 0 {
		return s
	}
	share := func(tokens int64) string { return percent(units.Ratio(tokens, p.Tokens)) }
	var kinds []string // of each part of the prompts that is not new
	for _, k := range result.PromptKinds {
		if n, some := p.ByKind[k]; some && k != "new" {
			kinds = append(kinds, fmt.Sprintf("of %s tokens %s",
				strings.ReplaceAll(k, "_", "-"), percent(n.HitRatio)))
		}
	}
	line := fmt.Sprintf("%s of the %s prompt tokens of %s were found", percent(p.HitRatio),
		count(p.Tokens), units.Plural(p.Requests, "completed inference request"))
	if kinds != nil {
		line += " (" + strings.Join(kinds, ", ") + ")"
	}
	created := p.ByKind["new"].Tokens
	missing := p.Tokens - p.Found - created
	line += fmt.Sprintf(", %s are new and in no cache, ", share(created))
	if first, known := firstRequests(r, missing); !known {
		line += fmt.Sprintf("the other %s were not found", share(missing))
	} else {
		line += share(first) + " were requested for the first time"
		if lost := missing - first; lost > 0 && evicted(r) {
			line += fmt.Sprintf(", %s were evicted or not yet written", share(lost))
		} else if lost > 0 {
			line += fmt.Sprintf(", %s were not yet written", share(lost))
		}
	}
	if p.NotYetWritten > 0 {
		line += fmt.Sprintf(" (%s of turns that overtook the one before)", count(p.NotYetWritten))
	}
	s.Title = "Prompts"
	s.put("cache", line)
	return s
}

// firstRequests returns the number of missing tokens whose blocks were requested for the first time. The
// ideal hits are of all dispatched requests. So the number is unknown if the completed requests are not
// the dispatched requests, unless the cache found every possible hit.
func firstRequests(r *result.Result, missing int64) (first int64, known bool) {
	c := r.BlockCache
	switch {
	case c == nil || c.IdealHits == nil:
		return 0, false
	case *c.IdealHits == c.Hits && !evicted(r):
		return missing, true
	case c.Requests != r.Prompt.Requests || c.HitTokens != r.Prompt.ByKind["block"].Found:
		return 0, false
	}
	return missing * (c.Blocks - *c.IdealHits) / max(1, c.Blocks-c.Hits), true
}

// evicted reports whether any tier evicted entries in the window.
func evicted(r *result.Result) bool {
	return slices.ContainsFunc(r.Tiers, func(t result.Tier) bool { return t.Evicted.Entries > 0 })
}

// blocks compares the hit ratio of a block trace with the ideal hit ratio of an unbounded cache. It
// shows four digits, because policies differ in the fourth.
func blocks(r *result.Result) (s Section) {
	c := r.BlockCache
	if c == nil {
		return s
	}
	ratio := units.HitRatio
	s = Section{Title: "Block Cache", Topic: "blocks", Note: "Ideal is a cache without bounds on " +
		"the same requests. The prefix-hit ratio is the share of the requests of which at least " +
		"the first block was found. Pending hits waited for their writer."}
	part := ""
	if r.PartOfInput() {
		part = "of the part that was replayed, "
	}
	s.line("", "%s%s of %s of %s hit: ratio %s, ideal (a cache without bounds) %s", part,
		count(c.Hits), units.Plural(c.Blocks, "block"),
		units.Plural(c.Requests, "dispatched request"), ratio.Text(units.OrZero(c.HitRatio)),
		ratio.Text(c.IdealHitRatio))
	if c.Reads.Blocks != c.Reads.Operations || c.Writes.Blocks != c.Writes.Operations {
		s.line("", "%s read by %s, %s written by %s", units.Plural(c.Reads.Blocks, "block"),
			units.Plural(c.Reads.Operations, "operation"), units.Plural(c.Writes.Blocks, "block"),
			units.Plural(c.Writes.Operations, "operation"))
	}
	s.row(ratio, "block hit ratio", c.HitRatio, "ideal hit ratio", c.IdealHitRatio, units.Share,
		"prefix-hit ratio", c.PrefixHitRatio, "token hit ratio", c.TokenHitRatio, units.Bytes,
		"bytes saved", c.BytesSaved, units.Count, "requests", c.Requests, "blocks", c.Blocks,
		"hits", c.Hits, "pending hits", c.Pending, "written", c.Written,
		"behind a missing one", c.Unreachable)
	return s
}

// blocksOverTime shows the hit ratio and the ideal hit ratio in each tenth of the window. When they
// converge, the cache is warm. The ideal ratio of a tenth is unknown if it is unknown in one of its
// intervals.
func blocksOverTime(r *result.Result) (s Section) {
	const parts = 10
	if r.BlockCache == nil {
		return s
	}
	x := r.Timeline.BlockRatios(parts)
	if x == nil || len(x.At) < parts {
		return s
	}
	s = Section{Title: "Block Hits By Time", Folded: true, Columns: columns("hit ratio by time")}
	run, ideal, known := []any{"run"}, []any{"ideal"}, 0
	for i := range parts {
		s.Columns = append(s.Columns, Column{fmt.Sprintf("%d–%d %%", i*100/parts,
			(i+1)*100/parts), units.HitRatio})
		hit := units.Finite(x.Hit[i])
		run, ideal = append(run, hit), append(ideal, units.Finite(x.Ideal[i]))
		if hit != nil {
			known++
		}
	}
	if 2*known < parts { // too few requests for a time series
		return Section{}
	}
	s.add(run...)
	s.add(ideal...)
	return s
}

// policy describes the placement of entries, the bytes that it moved, and the wear of the storage
// tier. A run with users and the usual policy reports neither: it runs as fast as it can, which no
// server does for a day. Moves that did not happen, and rules that are not in force, are left out.
//
// The writes per day are reported with their bytes: drives differ in size, and
// the tier may be a part of one.
func policy(r *result.Result) (s Section) {
	p := r.Policy
	if p == nil || p.Default() && r.BlockCache == nil {
		return s
	}
	s.Title, s.Topic = "Policy", "policy"
	words := fmt.Sprintf("%s, promotion %s, eviction %s", p.Tier, p.Promote, p.Evict)
	// In the flag's words, and only if it is in force: most policies do not have it.
	if p.AdmitAfter > 0 {
		words += fmt.Sprintf(", admit-after %d", p.AdmitAfter)
	}
	s.put("", words)
	// Only the moves that happened: most policies do one or two of these.
	var moves []string
	for _, n := range []struct {
		what string
		result.EntryCount
	}{{"copied to the storage tier", p.Copied}, {"promoted", p.Promoted},
		{"dropped where they lived on elsewhere", p.Dropped},
		{"evicted above the storage tier without a copy", p.Refused}, {"not written", p.Unwritten}} {
		if n.Entries > 0 {
			moves = append(moves, fmt.Sprintf("%s (%s) %s", count(n.Entries), bytes(n.Bytes),
				n.what))
		}
	}
	s.put("", strings.Join(moves, "; "))
	// The same requests in the same order: the difference is due to the policy.
	if c := p.Compared; c != nil {
		ratio := func(hits int64) string {
			return units.HitRatio.Text(units.OrZero(units.Ratio(hits, c.Lookups)))
		}
		difference := fmt.Sprintf("%s fewer", count(c.Hits-c.WaterfallHits))
		if more := c.WaterfallHits - c.Hits; more >= 0 {
			difference = fmt.Sprintf("%s more", count(more))
		}
		s.line("", "of %s %s were there, ratio %s; -tier-policy waterfall with -evict lru would "+
			"have had %s, ratio %s: %s", units.Plural(c.Lookups, "lookup"), count(c.Hits),
			ratio(c.Hits), count(c.WaterfallHits), ratio(c.WaterfallHits), difference)
	}
	if p.MostBehind > 0 {
		s.line("", "at most %s of %s waited to be written behind the requests",
			bytes(p.MostBehind), bytes(p.BehindBytes))
	}
	// A drive's rating is in the same unit, over years; here it is at the window's rate.
	if d := p.DriveWritesPerDay; d != nil {
		// A drive larger than its tier is written less often: the bytes can be compared with any
		// drive's rating.
		_, write := r.StorageTraffic()
		s.line("", "at this window's pace %s a day, the storage tier is written %s times a day",
			bytes(units.OrZero(write.BytesPerSecond)*86400), number(*d))
	}
	return s
}

// validation compares the measured numbers with the numbers of a recorded run. It shows a number that
// only one of the runs has, without a judgement.
func validation(r *result.Result) (s Section) {
	v := r.Recording
	if v == nil {
		return s
	}
	word := "FAILED: not within"
	if v.Passed {
		word = "passed: within"
	}
	s = Section{Title: "Validation", Topic: "validation",
		Columns: columns("number", units.Number, "run", "recorded", units.Share, "difference",
			units.Number, "judged")}
	s.line("", "%s %s of the run recorded in %s (%s, %s malformed)", word,
		units.Share.Text(v.Tolerance), v.Trace, units.Plural(v.Requests, "request"),
		count(v.Malformed))
	check := func(name string, c result.Check) {
		word := "not judged"
		if c.Passed != nil {
			word = map[bool]string{true: "pass", false: "fail"}[*c.Passed]
		}
		s.add(name, c.Measured, c.Recorded, c.Difference, word)
	}
	check("hit rate", v.HitRate)
	check("read/write ratio", v.ReadWriteRatio)
	return s
}

// served has the offered requests and their outcomes, by class and in total. It marks a p95 as a lower
// bound if the slowest requests were still waiting at the end. A class without a target has no
// compliance. The served share shows whether a trial is oversubscribed.
func served(r *result.Result) (s Section) {
	total := r.Load["total"]
	if r.CompletionUnit == result.UnitOperation ||
		total.Completed+total.InFlight+total.Queued == 0 {
		return s
	}
	s = Section{Title: "Load Served", Topic: "served",
		Columns: columns("class", units.Count, "offered", "served", units.Share, "share",
			units.Count, "in flight", "queued", units.Seconds, "oldest queued",
			units.Nanoseconds, "e2e p95", "e2e p99", "e2e max", units.Number, "SLA", units.Share, "compliance")}
	rest := "" // with an empty queue the rest was in flight at the end of the window
	if total.Queued == 0 && total.InFlight > 0 {
		rest = fmt.Sprintf(", all of it was begun: %s in flight when the window ended",
			units.Plural(total.InFlight, "request"))
	}
	s.line("", "%s of the offered load was served%s; %s were offered for writing",
		percent(total.ServedRatio), rest, bytes(total.OfferedBytes))
	add := func(name string, o result.ClassOutcome, d result.Distribution) {
		var target, compliance any = "", ""
		censored := func(v *int64) any { // the slowest are still waiting
			if o.Censored && v != nil {
				return "≥ " + ns(v)
			}
			return v
		}
		if o.Compliance != nil {
			target, compliance = "p95 ≤ "+ns(o.TargetP95NS), o.Compliance
		}
		s.add(name, o.Offered, o.Completed, o.ServedRatio, o.InFlight, o.Queued,
			o.OldestQueuedAgeS, censored(d.P95), censored(d.P99), censored(d.Max), target, compliance)
	}
	for _, c := range result.Classes {
		if o, ok := r.Load[c]; ok && o.Offered+o.Completed+o.InFlight+o.Queued > 0 {
			add(c, o, r.Latency.Request.ByClass[c])
		}
	}
	add("total", total, r.Latency.Request.EndToEnd)
	return s
}
