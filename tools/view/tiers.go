package view

import (
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// TierAlone is a row of the tier table: a tier that ran alone with entries of one size. Size has the
// spelling of the benchmark's name.
type TierAlone struct {
	Tier, Size string
	First      bool                        // the first row of this tier
	of         map[string]*stats.Benchmark // by operation
}

// tiersAlone returns the rows of BenchmarkTier, fast tiers first. Only there nothing else ran at the same
// time, so that memory and drive can be compared. Other benchmarks use several tiers together.
func tiersAlone(t *stats.Table) (rows []TierAlone) {
	for _, b := range t.Benchmarks {
		_, v := keyValues(b.Name)
		if base(b.Name) != "Tier" || v["tier"] == "" || !slices.Contains(ops, v["op"]) {
			continue
		}
		i := slices.IndexFunc(rows,
			func(r TierAlone) bool { return r.Tier == v["tier"] && r.Size == v["size"] })
		if i < 0 {
			i = len(rows)
			rows = append(rows, TierAlone{Tier: v["tier"], Size: v["size"],
				of: map[string]*stats.Benchmark{}})
		}
		rows[i].of[v["op"]] = b
	}
	slices.SortStableFunc(rows, func(a, b TierAlone) int {
		return slices.Index(Levels, a.Tier) - slices.Index(Levels, b.Tier)
	})
	for i := range rows {
		rows[i].First = i == 0 || rows[i].Tier != rows[i-1].Tier
	}
	return rows
}

// Cells returns, for reads and then for writes, the median rate over trials and the p50 and p99 over all
// operations. A percentile of too few operations is unknown. It returns nil for a run without values.
func (r TierAlone) Cells(run int) (cells []Cell) {
	for _, op := range ops {
		var d result.Distribution
		if b := r.of[op]; b != nil {
			d = result.NewDistribution(units.Nanoseconds,
				stats.Merge(b.Trials[run], r.Tier+"_"+op))
		}
		cells = append(cells, Median(r.of[op].Cell(op+"-B/s", run), op+"-B/s", nil),
			Value(units.Nanoseconds, d.P50), Value(units.Nanoseconds, d.P99))
	}
	if !slices.ContainsFunc(cells, func(c Cell) bool { return c.Class == "num" }) {
		return nil
	}
	return cells
}

// tierFigure shows the tiers as dots. The axis is logarithmic: memory and disks differ by a factor of
// 100.
func tierFigure(t *stats.Table, rows []TierAlone) []Chart {
	c := Chart{Title: "Bandwidth of each tier alone, median of the trials",
		X: Axis{Label: "tier and entry size", Range: Values{-0.5, float64(len(rows)) - 0.5}},
		Y: Axis{Label: "bandwidth (GiB/s, log scale)", Log: true}}
	for i, r := range rows {
		c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: r.Tier + "\n" + r.Size})
	}
	for run := range t.Runs {
		lines := make([]Line, len(ops))
		for j, op := range ops {
			lines[j] = Line{Name: op, Dash: j, Apart: true}
			for i, r := range rows {
				// A run without a measurement has no dot.
				if cell := r.of[op].Cell(op+"-B/s", run); cell.N() > 0 {
					lines[j].add(float64(i), cell.Summary.Center/(1<<30))
				}
			}
		}
		c.add(t, run, lines...)
	}
	return shown(false, c)
}
