package view

import (
	"slices"

	"kvbench/tools/stats"
)

// tierFigure shows the rates of BenchmarkTier as dots, by tier and entry size, fast tiers first. Only
// there nothing else ran at the same time, so that memory and drive can be compared. Other benchmarks use
// several tiers together. The axis is logarithmic: memory and disks differ by a factor of 100.
func tierFigure(t *stats.Table) []Chart {
	type place struct{ tier, size string }
	var places []place
	found := map[place]map[string]*stats.Benchmark{} // by operation
	for _, b := range t.Benchmarks {
		_, v := keyValues(b.Name)
		if base(b.Name) != "Tier" || v["tier"] == "" {
			continue
		}
		at := place{v["tier"], v["size"]}
		if found[at] == nil {
			places, found[at] = append(places, at), map[string]*stats.Benchmark{}
		}
		found[at][v["op"]] = b
	}
	slices.SortStableFunc(places, func(a, b place) int {
		return slices.Index(Levels, a.tier) - slices.Index(Levels, b.tier)
	})
	c := Chart{Title: "Bandwidth of each tier alone, median of the trials",
		X: Axis{Label: "tier and entry size", Range: Values{-0.5, float64(len(places)) - 0.5}},
		Y: Axis{Label: "bandwidth (GiB/s, log scale)", Log: true}}
	for i, at := range places {
		c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: at.tier + "\n" + at.size})
	}
	for run := range t.Runs {
		lines := make([]Line, len(ops))
		for j, op := range ops {
			lines[j] = Line{Name: op, Dash: j, Apart: true}
			for i, at := range places {
				// A run without a measurement has no dot.
				if cell := found[at][op].Cell(op+"-B/s", run); cell.N() > 0 {
					lines[j].add(float64(i), cell.Summary.Center/(1<<30))
				}
			}
		}
		c.add(t, run, lines...)
	}
	return shown(false, c)
}
