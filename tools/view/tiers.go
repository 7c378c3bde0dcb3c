package view

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
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

// tierKey is a row of the tier table: a tier that was measured alone with entries of one size.
// Sizes are texts, as the benchmark's name has them.
type tierKey struct{ tier, size string }

// tierTable sets the tiers beside each other where each was measured alone (BenchmarkTier): one
// row per tier and size. It is the one table in which memory, network and drive can be compared,
// because nothing else ran beside them.
func tierTable(t *stats.Table) (*Grid, []Figure) {
	found := map[tierKey]map[string]*stats.Benchmark{}
	var order []tierKey
	for _, b := range t.Benchmarks {
		_, v := keyValues(b.Name)
		// Other benchmarks of several tiers use them together.
		if base(b.Name) != "Tier" || v["tier"] == "" || (v["op"] != "read" && v["op"] != "write") {
			continue
		}
		k := tierKey{v["tier"], v["size"]}
		if found[k] == nil {
			found[k] = map[string]*stats.Benchmark{}
			order = append(order, k)
		}
		found[k][v["op"]] = b
	}
	if len(order) == 0 {
		return nil, nil
	}
	// Fast tiers first, whatever the order of the input.
	place := func(tier string) int { return slices.Index(Levels, tier) }
	slices.SortStableFunc(order, func(a, b tierKey) int { return place(a.tier) - place(b.tier) })
	g := &Grid{Head: []string{"tier", "entry size", "run", "read", "read p50", "read p99", "write",
		"write p50", "write p99"}, Note: "Medians over trials with their 95 % interval; " +
		"latencies are per entry over all trials, copying included."}
	if len(t.Runs) < 2 {
		g.Head = slices.Delete(g.Head, 2, 3)
	}
	last := ""
	for _, k := range order {
		for run := range t.Runs {
			row := []Cell{{Text: k.tier}, {Text: k.size}}
			// A line above the first row of each tier.
			if k.tier != last {
				row[0].Class = "first"
			}
			last = k.tier
			if len(t.Runs) > 1 {
				row = append(row, Cell{Text: t.Labels[run]})
			}
			for _, op := range []string{"read", "write"} {
				row = append(row, tierCells(found[k][op], run, k.tier, op)...)
			}
			g.add(row)
		}
	}
	return g, tierFigure(t, order, found)
}

// tierFigure shows the tiers as dots on a logarithmic axis: memory and disks lie two decades
// apart.
func tierFigure(t *stats.Table, order []tierKey,
	found map[tierKey]map[string]*stats.Benchmark) []Figure {
	c := Chart{X: Axis{Label: "tier and entry size", Min: -0.5, Max: float64(len(order)) - 0.5},
		Y: Axis{Label: "bandwidth (GiB/s, log scale)", Log: true}}
	for i, k := range order {
		c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: k.tier + "\n" + k.size})
	}
	for run := range t.Runs {
		for j, op := range []string{"read", "write"} {
			l := lineOf(t, run, j, op)
			l.Dash, l.Apart = j, true
			for i, k := range order {
				// What a run did not measure has no dot.
				if cell := found[k][op].Cell(op+"-B/s", run); cell.N() > 0 {
					l.add(float64(i), cell.Summary.Center/(1<<30))
				}
			}
			if len(l.X) > 0 {
				c.Lines = append(c.Lines, l)
			}
		}
	}
	return figureOf("Bandwidth of each tier alone, median of the trials", c)
}

// tierCells are the rate over trials and two percentiles over all operations, as far as there are
// enough of them.
func tierCells(b *stats.Benchmark, run int, tier, op string) []Cell {
	none := Cell{Text: "–", Class: "num muted"}
	if b == nil {
		return []Cell{none, none, none}
	}
	cells := []Cell{medianCell(b.Cell(op+"-B/s", run), op+"-B/s")}
	h := stats.Merge(b.Trials[run], tier+"_"+op)
	for _, p := range []float64{0.5, 0.99} {
		if v, ok := h.Percentile(p); ok && result.Supported(p, h.Count()) {
			cells = append(cells, num(stats.Seconds(float64(v)/1e9)))
		} else {
			cells = append(cells, none)
		}
	}
	return cells
}

// tierFills says of the median trial of each run what its tiers held and moved. What a tier held
// at most tells whether its capacity was the limit.
func tierFills(typical []trial, t *stats.Table) *Grid {
	g := &Grid{Head: []string{"tier", "capacity", "most held", "read", "read rate", "written",
		"write rate", "demoted",
		"evicted"}, Note: "Of the median trial. Bytes read and written include demotions."}
	if len(t.Runs) > 1 {
		g.Head = append([]string{"run"}, g.Head...)
	}
	several := false
	rate := func(v *float64) Cell {
		return num(known(v, func(v float64) string { return stats.Binary(v) + "/s" }))
	}
	for _, k := range typical {
		r := k.Result
		several = several || len(r.Tiers) > 1 || r.CompletionUnit != result.UnitOperation
		for _, l := range r.Tiers {
			capacity := "unlimited"
			if l.CapacityBytes != nil {
				capacity = bytes(*l.CapacityBytes)
			}
			row := []Cell{{Text: l.Level, Sub: l.Description}, num(capacity),
				num(bytes(l.PeakBytes)),
				num(bytes(l.Read.Bytes)), rate(l.Read.BytesPerSecond), num(bytes(l.Write.Bytes)),
				rate(l.Write.BytesPerSecond), entries(l.DemotedOut), entries(l.Evicted)}
			if len(t.Runs) > 1 {
				row = append([]Cell{{Text: t.Labels[k.run]}}, row...)
			}
			g.add(row)
		}
	}
	// A run of one tier without requests has nothing that its figures do not show.
	if !several || len(g.Rows) == 0 {
		return nil // one tier alone: the plots say it all
	}
	return g
}

// entries shows bytes, and how many entries they were.
func entries(c result.EntryCount) Cell {
	if c.Entries == 0 {
		return num("0")
	}
	return Cell{Text: bytes(c.Bytes), Sub: fmt.Sprintf("%s entries", stats.Thousands(c.Entries)),
		Class: "num"}
}
