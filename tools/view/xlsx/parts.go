package xlsx

import (
	"slices"

	"github.com/xuri/excelize/v2"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
)

// partSheets are those of what only some results have; a workbook without such results has no such
// sheets.
var partSheets = []string{"Simulation", "Autoscaling", "Block Cache", "Replay", "Objects",
	"Endpoints", "Validation"}

// parts collects rows by sheet: results of one kind stand together, whatever lies between them.
func (b *book) parts(records []*load.Record) {
	for _, name := range partSheets {
		t := &table{name: name}
		b.results(t, records, func(rec *load.Record) (rows [][]any) {
			if rec.Result == nil {
				return nil
			}
			for _, p := range report.Tables(rec.Result) {
				if p.Sheet == name { // every result of a kind has the same heads
					t.heads, rows = report.Draw(p,
						func(c report.Column) string { return c.Sheet }, number)
				}
			}
			return rows
		})
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

// markSimulated colours the rows of simulated results: most of their columns look like those of
// measured ones. The rule stands in the sheet, so that rows keep their colour when they are
// sorted.
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
