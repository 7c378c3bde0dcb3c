package xlsx

import (
	"slices"
	"time"

	"github.com/xuri/excelize/v2"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// parts are sheets of what only some results have; a workbook without such results has no such sheets.
func (b *book) parts(records []*load.Record) {
	for _, t := range []table{simulations(records), rounds(records), blockCaches(records), replays(records), validations(records)} {
		if len(t.rows) > 0 {
			t.heads = append(t.heads, "Run", "Benchmark", "Trial")
			b.table(t)
		}
	}
}

// whose says which result a row is of.
func whose(rec *load.Record) []any {
	return []any{rec.Source, stats.NameOf(rec), rec.Lookup("trial")}
}

// rowsOf makes the rows of a sheet.
func rowsOf(records []*load.Record, f func(*result.Result) [][]any) (rows [][]any) {
	for _, rec := range records {
		if rec.Result == nil {
			continue
		}
		for _, row := range f(rec.Result) {
			rows = append(rows, append(row, whose(rec)...))
		}
	}
	return rows
}

func one(row ...any) [][]any { return [][]any{row} }

// number and fraction take what may be unknown.
func number(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

func fraction(v *float64) any {
	if v == nil {
		return nil
	}
	return share(*v)
}

func simulations(records []*load.Record) table {
	return table{sheet: "Simulation", frozen: 1, heads: []string{"Notice", "Model Read (GiB/s)", "Model Write (GiB/s)", "Model Read Latency (µs)", "Model Write Latency (µs)",
		"Model Parallelism", "Model Duplex", "Medium Busy", "Sustained Users", "Users", "Queue Growth (requests/s)", "I/O Trace Rows", "Computed In (s)"},
		rows: rowsOf(records, func(r *result.Result) [][]any {
			s := r.Simulation
			if s == nil {
				return nil
			}
			row := []any{r.Notice, nil, nil, nil, nil, nil, nil}
			if d := s.Device; d != nil {
				const gib, us = 1 << 30, float64(time.Microsecond)
				row = []any{r.Notice, d.Read / gib, d.Write / gib, float64(d.ReadLatency) / us, float64(d.WriteLatency) / us, d.Parallelism, d.Duplex}
			}
			return one(append(row, fraction(s.DeviceBusyShare), number(s.SustainedUsers), r.Workload.Users, number(s.QueueGrowth), float64(s.TraceRows), float64(s.WallNS)/1e9)...)
		})}
}

func rounds(records []*load.Record) table {
	return table{sheet: "Autoscaling", frozen: 1, heads: []string{"Round", "Ended At (s)", "Users", "Workers", "Goroutines", "Storage Rate (GiB/s)", "Noise (GiB/s)",
		"Read P95 per 100 MiB (ms)", "Write P95 per 100 MiB (ms)", "Saturation", "Next Users", "Decision", "Mode", "Users Sustained", "Peak Users", "Peak Rate (GiB/s)", "Found"},
		rows: rowsOf(records, func(r *result.Result) (rows [][]any) {
			s := r.Summary.AutoscalingSummary
			if s == nil {
				return nil
			}
			const gib = 1 << 30
			for i, x := range r.Summary.AutoscalingStats {
				rows = append(rows, []any{i + 1, x.AtS, x.Users, x.Workers, x.Goroutines, x.BytesPerSecond / gib, x.Noise / gib, number(x.ReadP95), number(x.WriteP95),
					fraction(x.Saturation), x.NextUsers, x.Decision, s.Mode, s.SustainedUsers, s.PeakUsers, s.PeakRate / gib, s.Found})
			}
			return rows
		})}
}

func blockCaches(records []*load.Record) table {
	return table{sheet: "Block Cache", heads: []string{"Block Hit Ratio", "Ideal Hit Ratio", "Prefix-hit Ratio", "Token Hit Ratio", "Bytes Saved (GiB)", "Requests", "Blocks",
		"Hits", "Pending Hits", "Written", "Behind a Missing One"},
		rows: rowsOf(records, func(r *result.Result) [][]any {
			c := r.BlockCache
			if c == nil {
				return nil
			}
			return one(number(c.HitRatio), number(c.IdealHitRatio), number(c.PrefixHitRatio), number(c.TokenHitRatio), float64(c.BytesSaved)/(1<<30), float64(c.Requests),
				float64(c.Blocks), float64(c.Hits), float64(c.Pending), float64(c.Written), float64(c.Kept))
		})}
}

func replays(records []*load.Record) table {
	return table{sheet: "Replay", heads: []string{"Rows", "Not Selected", "Reads", "Writes", "Deletes", "Reads of Evicted", "Reads of Never Written", "Deletes of Unknown",
		"Overwrites", "Too Large", "Deleted for Room", "Largest Delay (ms)"},
		rows: rowsOf(records, func(r *result.Result) [][]any {
			p := r.Replay
			if p == nil {
				return nil
			}
			return one(float64(p.Rows), float64(p.Skipped), float64(p.Reads), float64(p.Writes), float64(p.Deletes), float64(p.EvictedReads), float64(p.UnwrittenReads),
				float64(p.UnknownDeletes), float64(p.Overwrites), float64(p.TooLarge), float64(p.Evictions), float64(p.LateNS)/1e6)
		})}
}

func validations(records []*load.Record) table {
	return table{sheet: "Validation", heads: []string{"Number", "This Run", "Recorded", "Difference", "Tolerance", "Judged", "Validation Passed", "Recorded Requests", "Malformed Rows", "Recorded In"},
		rows: rowsOf(records, func(r *result.Result) (rows [][]any) {
			v := r.Validation
			if v == nil {
				return nil
			}
			for _, c := range v.Checks() {
				rows = append(rows, []any{c.Name, number(c.Measured), number(c.Recorded), fraction(c.Difference), share(v.Tolerance), c.Word(), v.Passed, float64(v.Requests),
					float64(v.Malformed), v.Trace})
			}
			return rows
		})}
}

// markSimulated colours the rows of simulated results: most of their columns look like those of measured ones.
func (b *book) markSimulated(t table) {
	col := slices.Index(t.heads, simulatedHead)
	if b.err != nil || col < 0 {
		return
	}
	if !slices.ContainsFunc(t.rows, func(row []any) bool { return row[col] == true }) {
		return
	}
	style, err := b.f.NewConditionalStyle(&excelize.Style{Font: &excelize.Font{Italic: true, Color: "7F4F00"},
		Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"FFF2CC"}}})
	b.keep(err)
	name, _ := excelize.ColumnNumberToName(col + 1)
	b.keep(b.f.SetConditionalFormat(t.sheet, cell(0, 1)+":"+cell(len(t.heads)-1, len(t.rows)),
		[]excelize.ConditionalFormatOptions{{Type: "formula", Criteria: "$" + name + "2=TRUE", Format: &style}}))
}
