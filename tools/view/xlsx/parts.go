package xlsx

import (
	"fmt"
	"slices"

	"github.com/xuri/excelize/v2"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// sections writes a sheet for each section of a result that has a table, so that results of one
// kind stand together, and a sheet of the facts in words. A workbook without such results lacks
// them.
func (b *book) sections(records []*load.Record) {
	all := make([][]report.Section, len(records))
	facts := &table{name: "Facts", heads: []string{"Section", "Topic", "Fact"}}
	sheets := map[string]map[*load.Record]report.Section{}
	for i, rec := range records {
		if rec.Result == nil {
			continue
		}
		all[i] = report.Sections(rec.Result)
		for _, s := range all[i] {
			if sheets[s.Title] == nil {
				sheets[s.Title] = map[*load.Record]report.Section{}
			}
			sheets[s.Title][rec] = s
		}
	}
	titles := report.Titles(all)
	b.results(facts, records, func(rec *load.Record) (rows [][]any) {
		for _, title := range titles {
			for _, l := range sheets[title][rec].Lines {
				rows = append(rows, []any{title, l.Topic, l.Text})
			}
		}
		return rows
	})
	for _, title := range titles {
		t := &table{name: title}
		b.results(t, records,
			func(rec *load.Record) [][]any { return t.align(sheets[title][rec]) })
	}
}

// align puts the cells of a section below the heads of the sheet, and adds missing heads: results
// of a kind have the same heads, except for columns without values in one of them.
func (t *table) align(s report.Section) (rows [][]any) {
	place := make([]int, len(s.Columns))
	for i, c := range s.Columns {
		head := c.Name + sheetUnits[c.Unit]
		if place[i] = slices.Index(t.heads, head); place[i] < 0 {
			place[i] = len(t.heads)
			t.heads = append(t.heads, head)
		}
	}
	for _, row := range s.Rows {
		cells := make([]any, len(t.heads))
		for i, v := range row {
			cells[place[i]] = number(s.Columns[i].Unit, v)
		}
		rows = append(rows, cells)
	}
	return rows
}

// timeline is the sheet of what happened in each interval.
func timeline() *table {
	t := &table{name: "Timeline", heads: []string{"Time (s)", "Requests/s", "Queued", "In Flight"}}
	for _, tier := range tierNames {
		t.heads = append(t.heads, tier.title+" Read (GiB/s)", tier.title+" Write (GiB/s)",
			tier.title+" Used (GiB)")
	}
	for _, what := range timeColumns {
		for _, p := range stats.CoursePercentiles {
			t.heads = append(t.heads, fmt.Sprintf("%s P%g (ms, from)", what.title, 100*p))
		}
	}
	return t
}

// timeColumns are the histograms of a timeline whose percentiles the sheet has. Values are known to
// a half octave: the lower bound counts.
var timeColumns = []struct{ title, key string }{
	{"Storage Entry Read", "storage_read"}, {"Storage Entry Write", "storage_write"},
	{"Storage Request Read", "storage_read_request"},
	{"Storage Request Write", "storage_write_request"},
	{"Request End To End", "request_end_to_end"}, {"Time To First Token", "request_ttft"}}

// intervals are the rows of a result in the timeline. A last interval that is too short for a rate
// has none.
func intervals(rec *load.Record) (rows [][]any) {
	if rec.Result == nil || rec.Result.Timeline == nil || rec.Result.Timeline.IntervalNS <= 0 {
		return nil
	}
	tl := rec.Result.Timeline
	seconds := float64(tl.IntervalNS) / 1e9
	at := func(list []float64, i int, scale float64) any {
		if i >= len(list) {
			return nil
		}
		return list[i] * scale // what is no number stays an empty cell
	}
	rate := stats.Rates(tl, tl.Requests)
	course := tl.Course()
	for i := range tl.Requests {
		row := []any{float64(i) * seconds, at(rate, i, 1), at(stats.Known(tl.Queued), i, 1),
			at(stats.Known(tl.InFlight), i, 1)}
		for _, tier := range tierNames {
			row = append(row, at(stats.Rates(tl, tl.ReadBytes[tier.key]), i, scales["GiB"]),
				at(stats.Rates(tl, tl.WriteBytes[tier.key]), i, scales["GiB"]),
				at(stats.Known(tl.TierUsedBytes[tier.key]), i, scales["GiB"]))
		}
		for _, what := range timeColumns {
			for _, p := range stats.CoursePercentiles {
				row = append(row, nil)
				if course == nil || course.Histograms[what.key].Counts == nil {
					continue
				}
				if us, ok := course.Histograms[what.key].Percentile(i, p); ok {
					row[len(row)-1] = round(us / 1e3)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// sheetUnits are the units of values in the workbook, which stand in the heads; number converts to
// them.
var sheetUnits = map[units.Unit]string{units.Nanoseconds: " (ms)", units.Milliseconds: " (ms)",
	units.Seconds: " (s)", units.Bytes: " (GiB)", units.BytesPerSec: " (GiB/s)"}

// number is a table's value for the workbook: without its unit, which is in the head, and empty if
// unknown. Booleans and texts stay unchanged.
func number(u units.Unit, v any) any {
	x, text, ok := units.Float(v)
	switch {
	case !ok && text == units.Unknown:
		return nil
	case !ok:
		return v
	case u == units.Share:
		return share(x)
	case u == units.Bytes, u == units.BytesPerSec:
		return x / (1 << 30)
	case u == units.Nanoseconds:
		return x / 1e6
	}
	return x
}

// markSimulated colours the rows of simulated results, which look like measured ones. The rule is
// part of the sheet, so that rows keep their colour when they are sorted.
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
