package html

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// keyValues are the key=value parts of a benchmark's name, in order.
func keyValues(name string) (keys []string, values map[string]string) {
	values = map[string]string{}
	for _, part := range strings.Split(name, "/")[1:] {
		if k, v, ok := strings.Cut(part, "="); ok {
			keys = append(keys, k)
			values[k] = v
		}
	}
	return keys, values
}

// tierTable sets the tiers beside each other where each was measured alone (BenchmarkTier): one row per tier and size.
func tierTable(t *stats.Table) (*grid, []figure) {
	type key struct{ tier, size string }
	found := map[key]map[string]*stats.Benchmark{}
	var order []key
	for _, b := range t.Benchmarks {
		_, v := keyValues(b.Name)
		if base(b.Name) != "Tier" || v["tier"] == "" || (v["op"] != "read" && v["op"] != "write") {
			continue
		}
		k := key{v["tier"], v["size"]}
		if found[k] == nil {
			found[k] = map[string]*stats.Benchmark{}
			order = append(order, k)
		}
		found[k][v["op"]] = b
	}
	if len(order) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(order, func(a, b key) int { return slices.Index(levels(), a.tier) - slices.Index(levels(), b.tier) })
	g := &grid{Head: []string{"tier", "entry size", "run", "read", "read p50", "read p99", "write", "write p50", "write p99"},
		Note: "Medians over trials with their 95 % interval; latencies are per entry over all trials, copying included."}
	if len(t.Runs) < 2 {
		g.Head = slices.Delete(g.Head, 2, 3)
	}
	chart := Chart{X: Axis{Label: "tier and entry size"}, Y: Axis{Label: "bandwidth (GiB/s, log scale)", Log: true}}
	chart.X.Min, chart.X.Max = -0.5, float64(len(order))-0.5
	dots := map[string]*Line{}
	last := ""
	for i, k := range order {
		chart.X.Ticks = append(chart.X.Ticks, Tick{At: float64(i), Label: k.tier + "\n" + k.size})
		for run := range t.Runs {
			row := []gridCell{{Text: k.tier}, {Text: k.size}}
			if k.tier != last {
				row[0].Class = "first"
			}
			last = k.tier
			if len(t.Runs) > 1 {
				row = append(row, gridCell{Text: t.Labels[run]})
			}
			for j, op := range []string{"read", "write"} {
				b := found[k][op]
				row = append(row, tierCells(b, run, k.tier, op)...)
				if b == nil || b.Metric(op+"-B/s") == nil || len(b.Metric(op + "-B/s").Cells[run].Values) == 0 {
					continue
				}
				name := runName(t, run, op)
				if dots[name] == nil {
					dots[name] = &Line{Name: name, Colour: colour(t, run, j), Dash: j, Apart: true}
				}
				d := dots[name]
				d.X, d.Y = append(d.X, float64(i)), append(d.Y, b.Metric(op + "-B/s").Cells[run].Summary.Center/(1<<30))
			}
			if slices.ContainsFunc(row, func(c gridCell) bool { return c.Class == "num" }) { // a run without it has no row
				g.Rows = append(g.Rows, row)
			}
		}
	}
	for run := range t.Runs {
		for _, op := range []string{"read", "write"} {
			if d := dots[runName(t, run, op)]; d != nil {
				chart.Lines = append(chart.Lines, *d)
			}
		}
	}
	return g, figureOf("Bandwidth of each tier alone, median of the trials", chart)
}

func tierCells(b *stats.Benchmark, run int, tier, op string) []gridCell {
	none := gridCell{Text: "–", Class: "num muted"}
	if b == nil {
		return []gridCell{none, none, none}
	}
	cells := []gridCell{none}
	if m := b.Metric(op + "-B/s"); m != nil {
		cells[0] = medianCell(m.Cells[run], m.Unit)
	}
	h := stats.Merge(b.Trials[run], tier+"_"+op)
	for _, p := range []float64{0.5, 0.99} {
		v, ok := h.Percentile(p)
		if !ok || !result.Supported(p, h.Count()) {
			cells = append(cells, none)
			continue
		}
		cells = append(cells, gridCell{Text: stats.Seconds(float64(v) / 1e9), Class: "num"})
	}
	return cells
}

// tierFills says of the median trial of each run what its tiers held and moved.
func tierFills(typical []*load.Record, t *stats.Table) *grid {
	g := &grid{Head: []string{"tier", "capacity", "most held", "read", "read rate", "written", "write rate", "demoted", "evicted"},
		Note: "Of the median trial. Bytes read and written include demotions."}
	if len(t.Runs) > 1 {
		g.Head = append([]string{"run"}, g.Head...)
	}
	several := false
	for run, rec := range typical {
		if rec == nil {
			continue
		}
		several = several || len(rec.Result.Tiers) > 1 || rec.Result.CompletionUnit != result.UnitOperation
		for _, l := range rec.Result.Tiers {
			capacity := "unlimited"
			if l.CapacityBytes != nil {
				capacity = stats.Binary(float64(*l.CapacityBytes))
			}
			row := []gridCell{{Text: l.Level, Sub: l.Description}, num(capacity), num(stats.Binary(float64(l.PeakBytes))),
				num(stats.Binary(float64(l.Read.Bytes))), num(rate(l.Read.BytesPerSecond)), num(stats.Binary(float64(l.Write.Bytes))),
				num(rate(l.Write.BytesPerSecond)), entries(l.DemotedOut), entries(l.Evicted)}
			if len(t.Runs) > 1 {
				row = append([]gridCell{{Text: t.Labels[run]}}, row...)
			}
			if slices.ContainsFunc(row, func(c gridCell) bool { return c.Class == "num" }) { // a run without it has no row
				g.Rows = append(g.Rows, row)
			}
		}
	}
	if !several || len(g.Rows) == 0 {
		return nil // one tier alone: the plots say it all
	}
	return g
}

func num(text string) gridCell { return gridCell{Text: text, Class: "num"} }

func rate(v *float64) string {
	if v == nil {
		return "–"
	}
	return stats.Binary(*v) + "/s"
}

func entries(c result.EntryCount) gridCell {
	if c.Entries == 0 {
		return num("0")
	}
	return gridCell{Text: stats.Binary(float64(c.Bytes)), Sub: fmt.Sprintf("%s entries", stats.Thousands(c.Entries)), Class: "num"}
}
