package record

import (
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/workloads/compute"
)

// firstToken fills in the section on the time to the first token, if the result has it.
func (b *builder) firstToken() {
	if b.r.FirstToken == nil {
		return
	}
	f := b.n.FirstToken // a copy: the caller's section serves the next trial, too
	f.Prefill = b.r.FirstToken.Prefill
	b.r.FirstToken = &f
	cost := b.info.Cost
	f.Prefill.PerToken, f.Prefill.PerTokenSquare = cost.PerToken, cost.PerSquare
	f.GPUBusyShare = units.Ratio(b.info.Computing.Busy, b.window)
	f.Prompts, f.AllNS = b.info.Computing.Prompts, int64(b.info.Computing.All)
	var p50, p95 compute.Loading
	f.Loading, p50, p95 = b.loading()
	f.BreakEven.P50, f.BreakEven.P95 = b.breakEven(p50), b.breakEven(p95)
}

// loading returns the load time by number of tokens, and the curves of its median and 95th
// percentile. It combines adjacent classes until there are enough samples for the median. A
// combination with too few samples for the 95th percentile has no P95.
func (b *builder) loading() (all []result.LoadingTime, p50, p95 compute.Loading) {
	sum, loads, tokens := result.NewHistogram(units.Nanoseconds), int64(0), int64(0)
	for k := range numLoadClasses {
		sum.Merge(b.hists[histNames[histLoading[k]]])
		loads, tokens = loads+b.n.Loads[k], tokens+b.n.LoadingTokens[k]
		d := result.NewDistribution(units.Nanoseconds, sum)
		if d.P50 == nil {
			continue
		}
		mean := float64(tokens) / float64(loads)
		at := result.LoadingTime{Samples: loads, Tokens: mean}
		// The mean number of tokens is exact, whatever the number of samples.
		for _, x := range []struct {
			per   *int64
			to    **float64
			curve *compute.Loading
		}{{d.P50, &at.P50NS, &p50}, {d.P95, &at.P95NS, &p95}} {
			if x.per != nil {
				ns := float64(*x.per) * mean / loadingUnit
				*x.to = &ns
				*x.curve = append(*x.curve, compute.Point{Tokens: mean, Seconds: ns / 1e9})
			}
		}
		all = append(all, at)
		sum, loads, tokens = result.NewHistogram(units.Nanoseconds), 0, 0
	}
	return all, p50, p95
}

// longestPrompt is the context window in tokens of a model whose window is unknown.
const longestPrompt = 1 << 20

// breakEven returns the token numbers that are loaded faster than computed, nil without a curve.
func (b *builder) breakEven(l compute.Loading) *result.BreakEven {
	if len(l) == 0 {
		return nil
	}
	longest := int64(b.info.ContextWindow)
	if longest == 0 {
		longest = longestPrompt
	}
	longest = max(longest, int64(l[len(l)-1].Tokens))
	at := l.BreakEven(b.info.Cost, longest)
	e := &result.BreakEven{Answer: result.LoadNever, Longest: longest,
		Extrapolated: at.Extrapolated}
	if at.Tokens > 0 {
		e.Answer, e.Tokens = result.LoadFrom, &at.Tokens
	}
	switch {
	case at.Until > 0:
		e.Answer, e.Until = result.LoadUntil, &at.Until
	case at.Tokens == 1:
		e.Answer = result.LoadAlways
	}
	return e
}

// recompute returns the time to compute a context in ns, nil if misses are free.
func (b *builder) recompute(tokens int) *int64 {
	if b.info.Cost.Free() {
		return nil
	}
	return new(int64(b.info.Cost.Span(0, int64(tokens)) / time.Nanosecond))
}
