package view

import (
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// Levels are the tiers of a result by their keys, from fast to slow. They are keys of the schema
// and do not change with the levels that an engine may have.
var Levels = []string{"gpu", "cpu", "storage"}

// ops are the two operations, in the words of keys and of people.
var ops = []string{"read", "write"}

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

// tierAlone is a row of the tier table: a tier that was measured alone with entries of one size.
// Sizes are texts, as the benchmark's name has them.
type tierAlone struct {
	tier, size string
	of         map[string]*stats.Benchmark // by operation
}

// tiersAlone are those of BenchmarkTier: other benchmarks of several tiers use them together.
func tiersAlone(t *stats.Table) (rows []tierAlone) {
	for _, b := range t.Benchmarks {
		_, v := keyValues(b.Name)
		if base(b.Name) != "Tier" || v["tier"] == "" || !slices.Contains(ops, v["op"]) {
			continue
		}
		i := slices.IndexFunc(rows,
			func(r tierAlone) bool { return r.tier == v["tier"] && r.size == v["size"] })
		if i < 0 {
			i = len(rows)
			rows = append(rows, tierAlone{v["tier"], v["size"], map[string]*stats.Benchmark{}})
		}
		rows[i].of[v["op"]] = b
	}
	// Fast tiers first, whatever the order of the input.
	slices.SortStableFunc(rows, func(a, b tierAlone) int {
		return slices.Index(Levels, a.tier) - slices.Index(Levels, b.tier)
	})
	return rows
}

// tierTable sets the tiers beside each other where each was measured alone: one row per tier and
// size. It is the one table in which memory, network and drive can be compared, because nothing
// else ran beside them.
func tierTable(t *stats.Table) (*Grid, []Figure) {
	rows := tiersAlone(t)
	if len(rows) == 0 {
		return nil, nil
	}
	g := &Grid{Head: []string{"tier", "entry size", "run", "read", "read p50", "read p99", "write",
		"write p50", "write p99"}, Note: "Medians over trials with their 95 % interval; " +
		"latencies are per entry over all trials, copying included."}
	last := ""
	for _, r := range rows {
		for run := range t.Runs {
			row := []Cell{{Text: r.tier}, {Text: r.size}, {Text: t.Labels[run]}}
			// A line above the first row of each tier.
			if r.tier != last {
				row[0].Class = "first"
			}
			last = r.tier
			for _, op := range ops {
				row = append(row, tierCells(r.of[op], run, r.tier, op)...)
			}
			g.add(row)
		}
	}
	if len(t.Runs) < 2 { // which needs no name
		g.Head = slices.Delete(g.Head, 2, 3)
		for i := range g.Rows {
			g.Rows[i] = slices.Delete(g.Rows[i], 2, 3)
		}
	}
	return g, tierFigure(t, rows)
}

// tierFigure shows the tiers as dots on a logarithmic axis: memory and disks lie two decades
// apart.
func tierFigure(t *stats.Table, rows []tierAlone) []Figure {
	c := Chart{X: Axis{Label: "tier and entry size", Min: -0.5, Max: float64(len(rows)) - 0.5},
		Y: Axis{Label: "bandwidth (GiB/s, log scale)", Log: true}}
	for i, r := range rows {
		c.X.Ticks = append(c.X.Ticks, Tick{At: float64(i), Label: r.tier + "\n" + r.size})
	}
	for run := range t.Runs {
		for j, op := range ops {
			l := lineOf(t, run, j, op)
			l.Dash, l.Apart = j, true
			for i, r := range rows {
				// What a run did not measure has no dot.
				if cell := r.of[op].Cell(op+"-B/s", run); cell.N() > 0 {
					l.add(float64(i), cell.Summary.Center/(1<<30))
				}
			}
			c.addLine(l)
		}
	}
	return figureOf("Bandwidth of each tier alone, median of the trials", c)
}

// tierCells are the rate over trials and two percentiles over all operations, as far as there are
// enough of them.
func tierCells(b *stats.Benchmark, run int, tier, op string) []Cell {
	cells := []Cell{medianOf(b.Cell(op+"-B/s", run), op+"-B/s"), dash, dash}
	if b == nil {
		return cells
	}
	h := stats.Merge(b.Trials[run], tier+"_"+op)
	for i, p := range []float64{0.5, 0.99} {
		if v, ok := h.Percentile(p); ok && result.Supported(p, h.Count()) {
			cells[1+i] = cell(units.Nanoseconds, v)
		}
	}
	return cells
}

// Fill is a tier of the median trial of a run: what it held and moved. What it held at most tells
// whether its capacity was the limit.
type Fill struct {
	Run string
	result.Tier
}

// tierFills are those of each run. A run of one tier without requests has nothing that its figures
// do not show.
func tierFills(typical []trial, t *stats.Table) (out []Fill) {
	several := false
	for _, k := range typical {
		several = several || len(k.Result.Tiers) > 1 || Requests(k.Result)
		for _, l := range k.Result.Tiers {
			out = append(out, Fill{t.Labels[k.run], l})
		}
	}
	if !several {
		return nil
	}
	return out
}
