package report

import (
	"cmp"
	"fmt"
	"math"
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
		s.put("", foundParts(r))
	}
	s.put("", pace(r))
	s.put("", saved(f))
	s.line("", "%s, %s each (%s)", costText(f.Prefill), bytes(r.Model.BytesPerToken),
		cmp.Or(r.Model.Name, r.Model.Key))
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

// agreed is the share of requests that have to agree for one answer to all of them, and foundLeast the share
// of what a tier could have found below which it was too small for an answer.
const agreed, foundLeast = 0.95, 0.05

// Worth answers in one sentence whether loading from the slowest tier was worth it, "" without a cost of
// computing.
func Worth(r *result.Result) string {
	answer, why := worth(r)
	return answer + why
}

// worth returns the answer and its reason: whether a request loads faster than an idle GPU computes, while
// others are loading, too. What loses to an idle GPU may still win: a GPU that could not have computed every
// prompt in the window is not idle. Another process on the device only slows loading, a cache above it only
// speeds it up.
func worth(r *result.Result) (answer, why string) {
	f := r.FirstToken
	if f == nil || r.WindowNS <= 0 {
		return "", ""
	}
	const unknown = "cannot tell whether loading is worth it"
	if why := noAnswer(r); why != "" {
		return unknown, ", because " + why
	}
	s, d := &f.Sums, &r.DeviceCounters
	loaded, needed := units.OrZero(f.Found.LoadBytesPerS), units.OrZero(f.Found.NeededBytesPerS)
	share, server, rates := units.OrZero(f.Found.WorthRatio), server(r), loadingRates(f)
	faster, busy := share >= agreed && loaded > needed, server > 1
	switch {
	case (faster || busy) && d.ServedFromCache != nil && *d.ServedFromCache:
		return unknown, fmt.Sprintf(", because a cache above the device served reads (the device read %s "+
			"times their bytes; use -io direct)%s", number(d.ReadRatio), rates)
	case busy && !faster:
		return "loading is worth it here", fmt.Sprintf(", because computing every prompt would take %s "+
			"times the window at this run's pace%s", number(server), rates)
	case faster && !busy && s.Load > s.ComputeAll-s.Compute:
		return "loading is worth it only without its waits", fmt.Sprintf("%s; of all requests it took %s "+
			"each with waits for capacity and writers, and saved %s", rates, ns(s.Load/f.Requests),
			ns((s.ComputeAll-s.Compute)/f.Requests))
	case faster:
		return "loading is worth it here", rates
	case share > 1-agreed || loaded > needed:
		return "whether loading is worth it depends on the request", rates
	case alone(r) > needed:
		return unknown, ", because another process used the device (measure while it does not)" + rates
	}
	return "loading is not worth it here", rates
}

// noAnswer returns why a trial cannot tell whether loading is worth it, "" if it can.
func noAnswer(r *result.Result) string {
	if small := tooSmall(r); small != "" {
		tier := slowest(r)
		return "the " + tier.Level + " tier of " + bytes(units.OrZero(tier.CapacityBytes)) +
			" is too small (kvreport datasize says how large): " + small
	}
	p := &r.FirstToken.Found
	if n := p.Requests; n < enoughLoads || n < loadsForMedian && p.Worth != 0 && p.Worth != n {
		return tooFewLoads(r)
	}
	return ""
}

// loadingRates compares the rate at which a request loads with the rate that beats computing.
func loadingRates(f *result.FirstToken) string {
	p := &f.Found
	loaded, needed := units.OrZero(p.LoadBytesPerS), units.OrZero(p.NeededBytesPerS)
	factor := number(needed/loaded) + " times too slow"
	if loaded >= needed {
		factor = number(loaded/needed) + " times as fast"
	}
	show := units.BytesPerSec.InOneUnit(loaded, needed)
	return fmt.Sprintf(": a request loads at %s and needs %s to beat an idle %s (%s); loading was faster for "+
		"%s of %s", show(loaded), show(needed), cmp.Or(f.Prefill.GPU, "GPU"), factor, count(p.Worth),
		units.Plural(p.Requests, "request"))
}

// alone is the rate at which a request would load if the device had moved the bytes of this run only, 0
// unless another process used the device.
func alone(r *result.Result) float64 {
	d := &r.DeviceCounters
	if r.Harness.Verdict.Kind != result.Shared {
		return 0
	}
	return units.OrZero(r.FirstToken.Found.LoadBytesPerS) * units.OrZero(units.Ratio(
		units.OrZero(d.ReadBytes)+units.OrZero(d.WriteBytes), d.AppReadBytes+d.AppWriteBytes))
}

// slowest returns the tier that evicts to no other one: the storage tier if there is one.
func slowest(r *result.Result) result.Tier {
	if len(r.Tiers) == 0 {
		return result.Tier{Level: "storage"}
	}
	return r.Tiers[len(r.Tiers)-1]
}

// loaded is what requests did that found most of their prompt in the slowest tier.
func loaded(r *result.Result) string {
	from := "storage"
	if r.IO.Mode == result.IOMemory {
		from = slowest(r).Level + " tier"
	}
	return "loaded mostly from the " + from
}

// tooSmall returns why the slowest tier was too small for an answer, "" if it was not. A wait for capacity
// changes how many requests load at once, which makes a storage look faster, and evictions make it slower. A
// common prefix stays in a tier of any size. What no cache has counts only where it is known.
func tooSmall(r *result.Result) string {
	b := &r.Harness.Busy
	if room := units.Ratio(b.RoomNS, r.Harness.WorkerBusyNS-b.ThinkingNS); units.OrZero(room) > 0.5 {
		return fmt.Sprintf("workers waited for capacity for %s of the time in which they did not wait "+
			"for the GPU", percent(room))
	}
	if p := r.Prompt; p != nil && slowest(r).Evicted.Entries > 0 {
		could, found := int64(0), int64(0)
		for kind, n := range p.ByKind {
			if kind != "new" && kind != "system" {
				could, found = could+n.Tokens-n.NotYetWritten, found+n.Found
			}
		}
		if first, known := firstRequests(r, could-found); known {
			could -= first
		}
		if share := units.Ratio(found, could); share != nil && *share < foundLeast {
			return fmt.Sprintf("it evicted entries and found %s of the tokens that it could have found",
				percent(share))
		}
	}
	return ""
}

// pace returns how many requests load at once, and what one GPU could compute without a cache. In a closed
// loop a slow storage slows down the requests, so that the GPU has less to do.
func pace(r *result.Result) string {
	f := r.FirstToken
	seconds := float64(r.WindowNS*int64(max(len(r.MergedRanks), 1))) / 1e9
	prompts := float64(cmp.Or(f.Prompts, f.Requests))
	text := fmt.Sprintf("on average %s requests load at once; the GPU was busy %s of the window; computing "+
		"every prompt would take one GPU %s of the window at this run's pace (%s prompts/s; alone it "+
		"computes %s prompts/s)", number(units.Ratio(f.Found.LoadNS, float64(r.WindowNS))),
		percent(f.GPUBusyShare), units.Share.Text(server(r)), number(prompts/seconds),
		number(units.Ratio(prompts, float64(cmp.Or(f.AllNS, f.Sums.ComputeAll))/1e9)))
	if loads := alone(r); loads > 0 {
		text += fmt.Sprintf("; without the bytes of another process a request would load at %s",
			units.BytesPerSec.InOneUnit(f.Found.LoadBytesPerS, loads)(loads))
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
			"a longer window, or a larger " + slowest(r).Level + " tier"
	}
	text := fmt.Sprintf("%s %s, and %d are needed: ", units.Plural(n, "completed request"), loaded(r),
		loadsForMedian)
	if above > n {
		return fmt.Sprintf("%s%s loaded mostly from the tiers above it; use less memory (-cpu-mem-gb)",
			text, count(above))
	}
	longer := time.Duration(r.WindowNS * loadsForMedian / max(n, 1)).Round(10 * time.Second)
	return fmt.Sprintf("%suse %sa longer window (-benchtime %.0fs)", text, fewer, longer.Seconds())
}

// foundParts reports for how many requests loading was faster than computing, and from which length on.
func foundParts(r *result.Result) string {
	f := r.FirstToken
	p := &f.Found
	text := fmt.Sprintf("of %s that %s, loading was faster for %s (%s, with %s of their tokens)",
		units.Plural(p.Requests, "completed request"), loaded(r), count(p.Worth), percent(p.WorthRatio),
		percent(p.WorthTokenRatio))
	if p.LostNS > 0 && p.NeededBytesPerS != nil {
		text += fmt.Sprintf("; computing where that is faster would save each of them %s",
			ns(p.LostNS/p.Requests))
	}
	if b := f.BreakEven; b.P50 != nil {
		text += "; " + worthFrom(f)
		if c := f.Prefill; c.PerTokenSquare == 0 {
			from := map[bool]string{true: " from " + count(int64(c.Tokens)) + " tokens"}[c.Tokens > 0]
			text += "; computing is extrapolated linearly" + from +
				", and attention makes longer prompts slower"
		}
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
		if f.Prompts > 0 { // older results do not divide it
			text += fmt.Sprintf(" (%s for capacity or lookups, %s for other writers)",
				ns((s.LoadWaits-s.LoadWriters)/n), ns(s.LoadWriters/n))
		}
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

// costText returns how fast the GPU computes a prompt, and the source of that.
func costText(c result.PrefillCost) string {
	// People give a rate, and fit seconds per token.
	text := fmt.Sprintf("n tokens in %g·n + %g·n² s", c.PerToken, c.PerTokenSquare)
	if c.PerTokenSquare == 0 {
		text = count(int64(math.Round(1/c.PerToken))) + " tokens/s"
	}
	if c.GPU == "" {
		return "the GPU computes " + text
	}
	return fmt.Sprintf("one %s computes %s (%s)", c.GPU, text, c.Source)
}
