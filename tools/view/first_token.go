package view

import (
	"kvbench/kvbench/result"
	"kvbench/tools/stats"
)

// firstTokenFigures are the times of loading what was found of a prompt, and of computing it, by
// its number of tokens: loading pays where its line is the lower one, and where they cross is the
// break-even length. Loading is that measured under the load, so that other lengths have none.
func firstTokenFigures(typical []trial, t *stats.Table) []Chart {
	c := Chart{Title: "Loading or computing a prompt, by its length, median trial",
		X: Axis{Label: "tokens (log scale)", Log: true},
		Y: Axis{Label: "time (ms, log scale)", Log: true}}
	for _, k := range typical {
		f := k.Result.FirstToken
		if f == nil || len(f.Loading) == 0 {
			continue
		}
		half, slow := lineOf(t, k.run, 0, "loading"), lineOf(t, k.run, 1, "loading p95")
		compute := lineOf(t, k.run, 2, "computing")
		half.Dots, slow.Dots = true, true
		for _, x := range f.Loading {
			if x.P50NS != nil {
				half.add(x.Tokens, *x.P50NS/1e6)
			}
			if x.P95NS != nil {
				slow.add(x.Tokens, *x.P95NS/1e6)
			}
		}
		for _, x := range lengths(f) {
			compute.add(x, 1e3*(f.Prefill.PerToken*x+f.Prefill.PerTokenSquare*x*x))
		}
		c.Lines = append(c.Lines, half)
		if len(slow.X) > 0 { // else too few loads for it
			c.Lines = append(c.Lines, slow)
		}
		c.Lines = append(c.Lines, compute)
	}
	return []Chart{c}
}

// lengths are those at which computing is drawn: from a quarter of the shortest that was loaded, or
// the break-even where that is shorter, to the longest.
func lengths(f *result.FirstToken) (list []float64) {
	least, most := f.Loading[0].Tokens/4, f.Loading[len(f.Loading)-1].Tokens
	if b := f.BreakEven.P50; b != nil && b.Tokens != nil && !b.Extrapolated {
		least, most = min(least, float64(*b.Tokens)), max(most, float64(*b.Tokens))
	}
	for x := max(1, least); x < most; x *= 2 {
		list = append(list, x)
	}
	return append(list, most)
}
