package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
	if f == nil && r.Prompt != nil {
		s.put("", "misses were free: computing took no time, so that a smaller cache looks "+
			"faster; -prefill-rate or -gpu lets a miss cost what it costs")
	}
	s.put("", Worth(r))
	if f == nil || f.Requests == 0 {
		return s
	}
	if f.Found.Requests > 0 {
		s.put("", foundParts(f))
	}
	s.line("", "%s; the GPU was busy %s; computing n tokens takes %s", saved(f),
		percent(f.GPUBusyShare), costText(f.Prefill))
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

// Fewer requests than enoughLoads that all agree (3 % by chance), or than loadsForMedian that do not,
// decide nothing.
const enoughLoads, loadsForMedian = 6, 20

// agreed is the share of requests that have to agree for one answer to all of them.
const agreed = 0.95

// Worth answers in one sentence whether loading from the storage was worth it, "" without a cost of
// computing: whether a request loads faster than an idle GPU computes, while others are loading, too.
// What loses to an idle GPU may still win: a GPU that could not have computed every prompt in the window
// is not idle. Another process on the device only slows loading, a cache above it only speeds it up.
func Worth(r *result.Result) string {
	f := r.FirstToken
	if f == nil || r.WindowNS <= 0 {
		return ""
	}
	p, s, d := &f.Found, &f.Sums, &r.DeviceCounters
	n := p.Requests
	if n < enoughLoads || n < loadsForMedian && p.Worth != 0 && p.Worth != n {
		return "cannot tell whether loading is worth it, because " + tooFewLoads(r)
	}
	loaded, needed := units.OrZero(p.LoadBytesPerS), units.OrZero(p.NeededBytesPerS)
	show, gpu := units.BytesPerSec.InOneUnit(loaded, needed), cmp.Or(f.Prefill.GPU, "GPU")
	rates := fmt.Sprintf("a request loads at %s (%s load at once on average), and an idle %s computes "+
		"faster below %s (%s)", show(loaded), number(units.Ratio(p.LoadNS, float64(r.WindowNS))), gpu,
		show(needed), cmp.Or(r.Model.Name, r.Model.Key))
	share, moved := units.OrZero(p.WorthRatio), units.OrZero(units.Ratio(
		units.OrZero(d.ReadBytes)+units.OrZero(d.WriteBytes), d.AppReadBytes+d.AppWriteBytes))
	server := server(r)
	shared := r.Harness.Verdict.Kind == result.Shared
	faster, busy := share >= agreed && loaded > needed, server > 1
	switch {
	case (faster || busy) && d.ServedFromCache != nil && *d.ServedFromCache:
		return fmt.Sprintf("cannot tell whether loading is worth it, because a cache above the device "+
			"served reads (the device read %s times their bytes; use -io direct): %s", number(d.ReadRatio),
			rates)
	case busy && !faster:
		return fmt.Sprintf("loading is worth it here, because computing every prompt would take %s "+
			"times the window at this run's pace: %s", number(server), rates)
	case faster && !busy && s.Load > s.ComputeAll-s.Compute:
		return fmt.Sprintf("loading is worth it only without its waits: %s; of all requests it took %s "+
			"each with waits for capacity and writers, and saved %s", rates, ns(s.Load/f.Requests),
			ns((s.ComputeAll-s.Compute)/f.Requests))
	case faster:
		return "loading is worth it here: " + rates
	case share > 1-agreed || loaded > needed:
		return fmt.Sprintf("whether loading is worth it depends on the request: it is for %s of them; %s",
			percent(p.WorthRatio), rates)
	case shared && loaded*moved > needed:
		return "cannot tell whether loading is worth it, because another process used the device " +
			"(measure while it does not): " + rates
	}
	text := fmt.Sprintf("loading is not worth it here: %s; computing every prompt would keep it busy "+
		"for %s of the window at this run's pace", rates, units.Share.Text(server))
	if shared {
		text += fmt.Sprintf("; without the bytes of another process a request would load at %s",
			show(loaded*moved))
	}
	return text
}

// server is the time in which one GPU computes every prompt that was loaded in the window ÷ the window. A
// result without it counts only the prompts of completed requests.
func server(r *result.Result) float64 {
	f := r.FirstToken
	return float64(cmp.Or(f.AllNS, f.Sums.ComputeAll)) / float64(r.WindowNS*int64(max(len(r.MergedRanks), 1)))
}

// tooFewLoads returns how many requests loaded anything from the storage, and what gives more. Fewer users
// help only where requests wait.
func tooFewLoads(r *result.Result) string {
	n, above := r.FirstToken.Found.Requests, r.FirstToken.FoundAbove.Requests
	fewer := ""
	if r.Load["total"].Queued > 0 {
		fewer = "fewer users, or "
	}
	if n == 0 && above == 0 && r.FirstToken.Requests > 0 {
		return "no completed request loaded anything: use " + fewer +
			"a longer window, or a larger storage tier"
	}
	text := fmt.Sprintf("%s loaded mostly from the storage, and %d are needed: ",
		units.Plural(n, "completed request"), loadsForMedian)
	if above > n {
		return fmt.Sprintf("%s%s loaded mostly from the tiers above it; use less memory (-cpu-mem-gb)",
			text, count(above))
	}
	longer := time.Duration(r.WindowNS * loadsForMedian / max(n, 1)).Round(10 * time.Second)
	return fmt.Sprintf("%suse %sa longer window (-benchtime %.0fs)", text, fewer, longer.Seconds())
}

// foundParts reports for how many requests loading was faster than computing, and from which length on.
func foundParts(f *result.FirstToken) string {
	p := &f.Found
	text := fmt.Sprintf("of %s that loaded mostly from the storage, loading was faster for %s "+
		"(%s, with %s of their tokens)", units.Plural(p.Requests, "completed request"), count(p.Worth),
		percent(p.WorthRatio), percent(p.WorthTokenRatio))
	if p.LostNS > 0 && p.NeededBytesPerS != nil {
		text += fmt.Sprintf("; computing where that is faster would save each of them %s",
			ns(p.LostNS/p.Requests))
	}
	if b := f.BreakEven; b.P50 != nil {
		text += "; " + worthFrom(f)
	}
	if above := f.FoundAbove.Requests; above > 0 {
		text += fmt.Sprintf("; %s that loaded mostly from the tiers above it are not among these",
			count(above))
	}
	return text
}

// saved returns a text with the computing time that the cache saved per request, and the time of
// loading. It does not compare the two, because the time of loading includes the storage's queue.
func saved(f *result.FirstToken) string {
	s, n := &f.Sums, f.Requests
	io, all := ns((s.Load-s.LoadWaits)/n), ns(s.Load/n)
	text := fmt.Sprintf("of all %s, an idle GPU computes a whole prompt in %s; what was found saved %s "+
		"of it (%s) and took %s of I/O to load", units.Plural(n, "completed request"),
		ns(s.ComputeAll/n), ns((s.ComputeAll-s.Compute)/n), percent(f.ComputeSavedRatio), io)
	if io != all { // the time of loading in the table
		text += ", " + all + " with waiting"
	}
	if s.Overlap > 0 {
		text += fmt.Sprintf(", layer by layer, while the GPU computed %s of the rest",
			ns(s.Overlap/n))
	}
	return text
}

// worthFrom returns the prompt length from which on loading is faster than computing, by the median and
// by the p95 of loading.
func worthFrom(f *result.FirstToken) string {
	b := f.BreakEven
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
