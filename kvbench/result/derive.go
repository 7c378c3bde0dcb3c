package result

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbench/kvbench/units"
)

// Complete fills in everything that follows from the counts of a result and its histograms: for the
// recorder, which counts them, and for the merger of several results.
func (r *Result) Complete(hists Histograms) {
	r.Derive()
	r.Distribute(hists)
	for _, class := range Classes {
		if o, ok := r.Load[class]; ok {
			h := hists["request_end_to_end_"+class]
			o.Compliance = units.Ratio(h.AtMost(o.TargetP95NS), h.Count()+o.Unmet())
			r.Load[class] = o
		}
	}
}

// Derive makes the ratios and costs of what r counts, the one place of each formula: the
// recorder calls it, and the merger of several ranks, for a ratio is never averaged: a rank of
// ten requests would weigh as much as one of a thousand. What has no base is nil. Rates over the
// window are no part of it, because ranks have windows of their own, whose rates add up.
func (r *Result) Derive() {
	// Those of the load know their base, which a warm-up's backlog is part of.
	for class, o := range r.Load {
		o.Derive()
		r.Load[class] = o
	}
	l := &r.Lookups
	l.HitRate = units.Ratio(l.Hits, l.Hits+l.Misses)
	for kind, n := range l.ByKind {
		n.HitRate = units.Ratio(n.Hits, n.Hits+n.Misses)
		l.ByKind[kind] = n
	}
	if p := r.Prompt; p != nil {
		p.HitRatio = units.Ratio(p.Found, p.Tokens)
		p.RequestHitRatio = units.Ratio(p.RequestsHit, p.Requests)
		for kind, n := range p.ByKind {
			n.HitRatio = units.Ratio(n.Found, n.Tokens)
			p.ByKind[kind] = n
		}
	}
	// The ideal is unknown as soon as it is for one request, or for one rank.
	if b := r.BlockCache; b != nil {
		b.HitRatio = units.Ratio(b.Hits, b.Blocks)
		b.TokenHitRatio = units.Ratio(b.HitTokens, b.Tokens)
		if b.IdealHits != nil {
			b.IdealHitRatio = units.Ratio(*b.IdealHits, b.Blocks)
		}
	}
	if f := r.FirstToken; f != nil { // of loading without its waits, and computing
		s := &f.Sums
		f.SavedRatio = units.Ratio(s.ComputeAll-s.Compute+s.Overlap-(s.Load-s.LoadWaits),
			s.ComputeAll)
		f.ComputeSavedRatio = units.Ratio(s.ComputeAll-s.Compute, s.ComputeAll)
		// Rounding, and look-ups that found nothing, save nothing and cost nothing.
		if v := f.SavedRatio; v != nil && math.Abs(*v) < 1e-4 {
			*v = 0
		}
		f.Found.derive()
	}
	for i := range r.IO.Roots {
		for _, d := range []*RootTraffic{&r.IO.Roots[i].Read, &r.IO.Roots[i].Write} {
			d.MeanRequestNS = units.Ratio(d.RequestNS, d.Requests)
		}
	}
	bytes := int64(0)
	for i := range r.Tiers {
		t := &r.Tiers[i]
		bytes += t.Read.Bytes + t.Write.Bytes
		for _, d := range []*TierTraffic{&t.Read, &t.Write} {
			// The time of completed operations for their own bytes.
			d.NSPerMiB = units.Ratio(d.DeviceNS, float64(d.EntryBytes)/float64(units.MiB))
		}
	}
	// The CPU time of a simulation says nothing of the run that it predicts.
	if h := &r.Harness; h.CPUNS > 0 && r.Simulation == nil {
		h.CPUNSPerByte = units.Ratio(h.CPUNS, bytes)
		if p := r.PlainIO; p != nil && p.BlockBytes > 0 {
			p.CPUNSPerRequest = units.Ratio(h.CPUNS, r.Requests.Operations)
		}
	}
	w := &r.DeviceCounters
	if w.Reason == "" && w.ReadBytes != nil && w.WriteBytes != nil {
		w.ReadRatio = units.Ratio(*w.ReadBytes, w.AppReadBytes)
		w.WriteRatio = units.Ratio(*w.WriteBytes, w.AppWriteBytes)
	}
	// The reads that the device did not see came from a page cache or a controller's. Of several
	// clients one that was served from a cache is enough: its share is in the sums.
	if w.ReadRatio != nil {
		served := w.ServedFromCache != nil && *w.ServedFromCache
		w.ServedFromCache = new(served || *w.ReadRatio < servedFromCacheBelow)
	}
	if n := r.Network; n != nil {
		n.Derive(w.AppReadBytes)
	}
	slices.SortFunc(r.Errors, ErrorCount.Compare)
}

// derive makes the times of the rates at which single entries were loaded, because loading a
// context is one such read: the median entry's, and that of the twentieth that was slowest.
func (c *ContextLoad) derive(rate Distribution) {
	c.TypicalNS, c.SlowNS, c.LoadingWins = timeAt(c.Bytes, rate.P50), timeAt(c.Bytes, rate.P5), nil
	if c.RecomputeNS != nil && c.TypicalNS != nil {
		c.LoadingWins = new(*c.TypicalNS < *c.RecomputeNS)
	}
}

// timeAt is how long bytes take at a rate per second, nil when it is unknown.
func timeAt(bytes int64, rate *int64) *int64 {
	if rate == nil || *rate <= 0 {
		return nil
	}
	return new(int64(float64(bytes) / float64(*rate) * 1e9))
}

// Compare orders failures: the most frequent first, ties in the order of their names.
func (e ErrorCount) Compare(o ErrorCount) int {
	return cmp.Or(cmp.Compare(o.Count, e.Count), cmp.Compare(e.Tier, o.Tier),
		cmp.Compare(e.Operation, o.Operation), cmp.Compare(e.Errno, o.Errno))
}

// ofEngines are the parameters that an engine and its layout set, but for those that users do not
// set otherwise.
var ofEngines = []string{"layout", "object-tokens", "io", "io-depth", "read-threads",
	"write-threads", "s3-keys", "s3-lookup", "s3-requests", "tier-policy", "promote",
	"write-behind-gb", "admit-after", "evict"}

// Imitated names the inference engine that the run imitated as a whole, "" for none, with the
// parameters that it and its layout set, and those that the user set otherwise, each "name value".
// The origin of a value distinguishes them.
func (r *Result) Imitated() (engine string, its, others []string) {
	for _, p := range r.Parameters {
		if p.Name == "engine" && p.Value != "none" {
			engine = fmt.Sprint(p.Value)
		}
		if !slices.Contains(ofEngines, p.Name) {
			continue
		}
		from, _, _ := strings.Cut(p.Origin, " ")
		text := fmt.Sprintf("%s %v", p.Name, p.Value)
		if strings.HasSuffix(p.Name, "-threads") && fmt.Sprint(p.Value) == "0" {
			text = p.Name + " one per request"
		}
		switch from {
		case "engine", "layout":
			its = append(its, text)
		case "default", "division", "benchmark":
		default:
			others = append(others, text)
		}
	}
	return engine, its, others
}
