package xlsx

import (
	"fmt"
	"slices"

	"github.com/xuri/excelize/v2"
	"gonum.org/v1/gonum/floats"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// sections writes the sheet Facts, with the lines of all sections, and a sheet per section with a table.
// Results with the same section share its sheet.
func (b *book) sections(records []*load.Record) {
	all := make([][]report.Section, len(records))
	for i, rec := range records {
		if rec.Result != nil {
			all[i] = report.Sections(rec.Result)
		}
	}
	joined := report.Join(all)
	b.results(&table{name: "Facts", heads: []string{"Section", "Topic", "Fact"}}, records,
		func(rec *load.Record) (rows [][]any) {
			for _, j := range joined {
				for i, l := range j.Lines {
					if records[j.LineOf[i]] == rec {
						rows = append(rows, []any{j.Title, l.Topic, l.Text})
					}
				}
			}
			return rows
		})
	for _, j := range joined {
		t := &table{name: j.Title}
		for _, c := range j.Columns {
			t.heads = append(t.heads, c.Name+sheetUnits[c.Unit])
		}
		b.results(t, records, func(rec *load.Record) (rows [][]any) {
			for i, row := range j.Rows {
				if records[j.RowOf[i]] == rec {
					rows = append(rows, numbers(j.Columns, row))
				}
			}
			return rows
		})
	}
}

// tierNames are the tiers' names in heads and their keys in the result file.
var tierNames = []struct{ title, key string }{{"GPU", "gpu"}, {"CPU", "cpu"},
	{"Storage", "storage"}}

// timed are the histograms whose percentiles are on the sheet Timeline. The values are lower bounds of
// buckets of half an octave.
var timed = []struct{ title, key string }{
	{"Storage Entry Read", "storage_read"}, {"Storage Entry Write", "storage_write"},
	{"Storage Request Read", "storage_read_request"},
	{"Storage Request Write", "storage_write_request"},
	{"Request End To End", "request_end_to_end"}, {"Time To First Token", "request_ttft"}}

// timeColumns returns the columns of the sheet Timeline: one value per interval, NaN if unknown.
func timeColumns(tl *result.Timeline) (heads []string, columns [][]float64) {
	add := func(head string, scale float64, values []float64) {
		floats.Scale(scale, values)
		heads, columns = append(heads, head), append(columns, values)
	}
	add("Requests/s", 1, stats.Rates(tl, tl.Requests))
	add("Queued", 1, stats.Known(tl.Queued))
	add("In Flight", 1, stats.Known(tl.InFlight))
	for _, tier := range tierNames {
		gib := scales["GiB"]
		add(tier.title+" Read (GiB/s)", gib, stats.Rates(tl, tl.ReadBytes[tier.key]))
		add(tier.title+" Write (GiB/s)", gib, stats.Rates(tl, tl.WriteBytes[tier.key]))
		add(tier.title+" Used (GiB)", gib, stats.Known(tl.TierUsedBytes[tier.key]))
	}
	course := tl.Course()
	for _, h := range timed {
		for _, p := range stats.CoursePercentiles {
			var values []float64
			if course != nil && course.Histograms[h.key].Counts != nil {
				followed := stats.Followed{At: course.At, Growth: course.Histograms[h.key]}
				for _, us := range followed.Percentiles(p) {
					values = append(values, round(us/1e3))
				}
			}
			add(fmt.Sprintf("%s P%g (ms, from)", h.title, 100*p), 1, values)
		}
	}
	return heads, columns
}

// intervals returns a result's rows on the sheet Timeline. A last interval that is too short has no
// rate.
func intervals(rec *load.Record) (rows [][]any) {
	if rec.Result == nil || rec.Result.Timeline == nil || rec.Result.Timeline.IntervalNS <= 0 {
		return nil
	}
	tl := rec.Result.Timeline
	_, columns := timeColumns(tl)
	for i := range tl.Requests {
		row := []any{float64(i) * float64(tl.IntervalNS) / 1e9}
		for _, values := range columns {
			if i < len(values) {
				row = append(row, values[i])
			} else {
				row = append(row, nil)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// sheetUnits are the units in the heads. numbers converts values to these units.
var sheetUnits = map[units.Unit]string{units.Nanoseconds: " (ms)", units.Milliseconds: " (ms)",
	units.Seconds: " (s)", units.Bytes: " (GiB)", units.BytesPerSec: " (GiB/s)"}

// numbers converts a row's values to sheetUnits. An unknown value is nil. Booleans and strings stay.
func numbers(columns []report.Column, row []any) (cells []any) {
	for i, v := range row {
		u := columns[i].Unit
		x, text, ok := units.Float(v)
		switch {
		case !ok && (text == units.Unknown || v == ""):
			v = nil
		case !ok:
		case u == units.Share:
			v = share(x)
		case u == units.Bytes, u == units.BytesPerSec:
			v = x / (1 << 30)
		case u == units.Nanoseconds:
			v = x / 1e6
		default:
			v = x
		}
		cells = append(cells, v)
	}
	return cells
}

// markSimulated colours the rows of simulated results. It is a conditional format, so that a row keeps
// its colour when rows are sorted.
func (b *book) markSimulated(t table) {
	col := slices.Index(t.heads, simulatedHead)
	if !slices.ContainsFunc(t.rows, func(row []any) bool { return row[col] == true }) {
		return
	}
	style, err := b.f.NewConditionalStyle(&excelize.Style{
		Font: &excelize.Font{Italic: true, Color: "7F4F00"},
		Fill: fill("FFF2CC")})
	b.keep(err)
	name, _ := excelize.ColumnNumberToName(col + 1)
	b.keep(b.f.SetConditionalFormat(t.name, cell(0, 1)+":"+cell(len(t.heads)-1, len(t.rows)),
		[]excelize.ConditionalFormatOptions{{Type: "formula", Criteria: "$" + name + "2=TRUE",
			Format: &style}}))
}
