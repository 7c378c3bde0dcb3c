package report

import (
	"fmt"
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// firstTokens has the time to the first token and its parts, the time that the cache saved, and the
// prompt length from which on loading is faster than computing. The means of the parts add up to the
// mean of the whole. Without a prefill rate it says that misses cost no time, so that no reader compares
// times of two capacities. The JSON has the times per class.
func firstTokens(r *result.Result) (s Section) {
	s.Title, s.Topic = "First Token", "first token"
	f := r.FirstToken
	// A load without prompts has no misses; where misses were free, times and rates of two
	// capacities cannot be compared.
	switch {
	case f == nil && r.Prompt != nil:
		s.put("", "misses were free: computing took no time, so that a smaller cache looks "+
			"faster; -prefill-rate or -gpu lets a miss cost what it costs")
		return s
	case f == nil || f.Requests == 0:
		return s
	}
	if f.Found.Requests > 0 {
		s.put("", foundParts(f))
	}
	s.line("", "%s; computing n tokens takes %s", worth(f), costText(f.Prefill))
	s.line("", "%s; the GPU was busy %s", saved(f), percent(f.GPUBusyShare))
	if above := f.FoundAbove; above.Requests > 0 {
		s.line("", "%s had most of what they found from the tiers above the storage, which says "+
			"nothing of it: they are not among these", units.Plural(above.Requests, "more request"))
	}
	// The queue's percentiles stand with the times of requests; here it is a part of the mean.
	computing := "computing"
	if f.Sums.Overlap > 0 { // the parts add up to all of it
		computing = "computing after that"
	}
	s.Columns = partColumns("per first token")
	for _, part := range []struct {
		name  string
		ns    int64
		times result.Distribution
	}{{"time to first token", f.Sums.TTFT, f.TTFT}, {name: "queue", ns: f.Sums.Queue},
		{"loading", f.Sums.Load, f.Load}, {"waiting for the GPU", f.Sums.GPUWait, f.GPUWait},
		{computing, f.Sums.Compute - f.Sums.Overlap, f.Compute}} {
		s.part(part.name, f.Requests, part.ns, f.Sums.TTFT, part.times)
	}
	return s
}

// foundParts reports whether loading was faster than computing, from which rate on it is, and for how
// many requests it was. The rate is per request: the storage has to give it to each concurrent request.
func foundParts(f *result.FirstToken) string {
	p := &f.Found
	where := "anything"
	if f.FoundAbove.Requests > 0 {
		where = "most in the storage"
	}
	text := ""
	if p.NeededBytesPerS != nil && p.LoadBytesPerS != nil {
		answer := "worth it"
		if *p.LoadBytesPerS < *p.NeededBytesPerS {
			answer = "NOT worth it"
		}
		text = fmt.Sprintf("loading was %s: a request loaded at %s, and from %s on loading takes "+
			"less time than computing; ", answer, rate(*p.LoadBytesPerS), rate(*p.NeededBytesPerS))
	}
	text += fmt.Sprintf("of %s that found %s loading was worth it for %s, with %s of the tokens",
		units.Plural(p.Requests, "completed request"), where, percent(p.WorthRatio),
		percent(p.WorthTokenRatio))
	if p.LostNS > 0 && p.NeededBytesPerS != nil {
		text += fmt.Sprintf("; computing where that is faster would save %s a request",
			ns(p.LostNS/f.Requests))
	}
	return text
}

// saved returns a text with the computing time that the cache saved per request, and the time of
// loading. It does not compare the two, because the time of loading includes the storage's queue.
func saved(f *result.FirstToken) string {
	s, n := &f.Sums, f.Requests
	text := fmt.Sprintf("computing every prompt of %s whole takes an idle GPU %s a request; what "+
		"was found saved %s of it (%s) and took %s of I/O to load", units.Plural(n, "request"),
		ns(s.ComputeAll/n), ns((s.ComputeAll-s.Compute)/n), percent(f.ComputeSavedRatio),
		ns((s.Load-s.LoadWaits)/n))
	if s.LoadWaits > 0 { // the time of loading in the table
		text += ", " + ns(s.Load/n) + " with waiting"
	}
	if s.Overlap > 0 {
		text += fmt.Sprintf(", layer by layer, while the GPU computed %s of the rest",
			ns(s.Overlap/n))
	}
	return text
}

// worth returns the prompt length from which on loading is faster than computing, by the median and by
// the p95 of loading.
func worth(f *result.FirstToken) string {
	b := f.BreakEven
	if b.P50 == nil {
		return "from which length on loading beats computing is unknown: too few requests found " +
			"most of their prompt in the storage; measure for longer, or with fewer users or " +
			"less memory above it"
	}
	text := "loading " + breakEven(b.P50, f.Loading) + " at its median"
	if b.P95 == nil {
		return text + ", and its p95 is unknown (too few loads)"
	}
	slow := slices.DeleteFunc(slices.Clone(f.Loading),
		func(l result.LoadingTime) bool { return l.P95NS == nil })
	return text + ", " + breakEven(b.P95, slow) + " at its p95"
}

// breakEven is the end of "loading …": an answer, and the lengths measured where it lies outside. A length
// is a rule: look up prompts that are longer. Where loading stops being worth it beyond a second length (a
// latency hidden by read-ahead, a cache in the drive), both are reported, because the first alone would be
// a wrong rule.
func breakEven(b *result.BreakEven, measured []result.LoadingTime) string {
	text := ""
	switch b.Answer {
	case result.LoadAlways:
		text = "always beats computing"
	case result.LoadNever:
		text = fmt.Sprintf("never beats computing up to %s tokens", count(b.Longest))
	case result.LoadUntil:
		text = fmt.Sprintf("beats computing from %s tokens on, and from %s on not any more",
			count(*b.Tokens), count(*b.Until))
	default:
		text = fmt.Sprintf("beats computing from %s tokens on", count(*b.Tokens))
	}
	if b.Extrapolated {
		lengths := count(int64(measured[0].Tokens))
		if n := len(measured); n > 1 {
			lengths += "–" + count(int64(measured[n-1].Tokens))
		}
		text += fmt.Sprintf(" (extrapolated from %s tokens)", lengths)
	}
	return text
}

// costText returns the cost of computing a prompt, and the source of the cost.
func costText(c result.PrefillCost) string {
	// People give a rate, and fit seconds per token.
	text := fmt.Sprintf("%g·n + %g·n² s", c.PerToken, c.PerTokenSquare)
	if c.PerTokenSquare == 0 {
		text = "n ÷ " + number(1/c.PerToken) + " s"
	}
	if c.GPU != "" {
		text += fmt.Sprintf(" (%s: %s)", c.GPU, c.Source)
	}
	return text
}
