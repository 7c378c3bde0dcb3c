package xlsx

import (
	"slices"

	"github.com/xuri/excelize/v2"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// partSheets are those of what only some results have; a workbook without such results has no such
// sheets.
var partSheets = []table{{name: "Simulation", frozen: 1}, {name: "Autoscaling", frozen: 1},
	{name: "Block Cache"}, {name: "Replay"}, {name: "Validation"}}

// parts collects rows by sheet: results of one kind stand together, whatever lies between them.
func (b *book) parts(records []*load.Record) {
	for _, t := range partSheets {
		for _, rec := range records {
			if rec.Result == nil {
				continue
			}
			for _, p := range report.Tables(rec.Result) {
				if p.Sheet == t.name {
					head := func(c report.Column) string { return c.Sheet }
					heads, rows := report.Draw(p, head, number)
					t.heads = heads
					for _, row := range rows {
						t.rows = append(t.rows, append(row, whose(rec)...))
					}
				}
			}
		}
		if len(t.rows) > 0 {
			t.heads = append(t.heads, "Run", "Benchmark", "Trial")
			b.table(t)
		}
	}
}

// number is a table's value as the workbook has it: without its unit, which is in the head, and
// empty where it is not known. Truths and texts stay what they are.
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
	}
	return x
}

// whose says which result a row is of.
func whose(rec *load.Record) []any {
	return []any{rec.Source, stats.NameOf(rec), rec.Lookup("trial")}
}

// markSimulated colours the rows of simulated results: most of their columns look like those of
// measured ones. The rule stands in the sheet, so that rows keep their colour when they are
// sorted.
func (b *book) markSimulated(t table) {
	col := slices.Index(t.heads, simulatedHead)
	if b.err != nil || col < 0 {
		return
	}
	if !slices.ContainsFunc(t.rows, func(row []any) bool { return row[col] == true }) {
		return
	}
	style, err := b.f.NewConditionalStyle(&excelize.Style{
		Font: &excelize.Font{Italic: true, Color: "7F4F00"},
		Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"FFF2CC"}}})
	b.keep(err)
	name, _ := excelize.ColumnNumberToName(col + 1)
	b.keep(b.f.SetConditionalFormat(t.name, cell(0, 1)+":"+cell(len(t.heads)-1, len(t.rows)),
		[]excelize.ConditionalFormatOptions{{Type: "formula", Criteria: "$" + name + "2=TRUE",
			Format: &style}}))
}
