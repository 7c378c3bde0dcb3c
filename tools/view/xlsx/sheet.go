package xlsx

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

// family is the font of all cells.
const family = "Calibri"

// book is a workbook. It keeps the first error and ignores later calls, because every excelize call
// returns an error.
type book struct {
	f                                                *excelize.File
	head, date, percent, number, whole, truth, title int
	err                                              error
}

// newBook makes a workbook and its styles. Cells share the styles: a style per cell would fill the style
// table.
func newBook() *book {
	b := &book{f: excelize.NewFile()}
	style := func(s *excelize.Style) int {
		id, err := b.f.NewStyle(s)
		b.keep(err)
		return id
	}
	b.head = style(&excelize.Style{
		Font:      &excelize.Font{Bold: true, Color: "FFFFFF", Family: family, Size: 10},
		Fill:      fill("1F4E79"),
		Alignment: &excelize.Alignment{WrapText: true, Vertical: "center"},
	})
	b.date = style(&excelize.Style{CustomNumFmt: new("yyyy-mm-dd hh:mm:ss")})
	b.percent = style(&excelize.Style{CustomNumFmt: new("0.0%")})
	b.number = style(&excelize.Style{CustomNumFmt: new("#,##0.00####")})
	b.whole = style(&excelize.Style{CustomNumFmt: new("#,##0")})
	b.truth = style(&excelize.Style{CustomNumFmt: new(`"TRUE";"TRUE";"FALSE"`),
		Alignment: &excelize.Alignment{Horizontal: "left"}})
	b.title = style(&excelize.Style{Font: &excelize.Font{Bold: true, Family: family}})
	b.keep(b.f.SetDefaultFont(family))
	return b
}

// fill returns a solid fill.
func fill(colour string) excelize.Fill {
	return excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{colour}}
}

// keep keeps the first error. Later errors are its consequences.
func (b *book) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

// cell returns a cell's name. col and row count from 0; names count from 1.
func cell(col, row int) string {
	name, _ := excelize.CoordinatesToCellName(col+1, row+1)
	return name
}

// set writes a value with the style of its type. nil, infinity and NaN leave the cell empty. A share is
// shown in per cent.
func (b *book) set(sheet string, col, row int, v any) {
	style := 0
	switch x := v.(type) {
	case nil:
		return
	case time.Time:
		style = b.date
	case share:
		v, style = float64(x), b.percent
	case float64:
		// Whole numbers have no decimals; tiny ones keep their exponent.
		if x == math.Trunc(x) && math.Abs(x) < 1e15 {
			style = b.whole
		} else if math.Abs(x) >= 0.0001 {
			style = b.number
		}
	case int:
		style = b.whole
	case bool:
		style = b.truth
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return
	}
	b.keep(b.f.SetCellValue(sheet, cell(col, row), v))
	b.keep(b.f.SetCellStyle(sheet, cell(col, row), cell(col, row), style))
}

// share is a fraction that is shown in per cent.
type share float64

// sheet adds an empty sheet.
func (b *book) sheet(name string) {
	_, err := b.f.NewSheet(name)
	b.keep(err)
}

// table is a sheet of rows below a header.
type table struct {
	name  string
	heads []string
	rows  [][]any
	names int  // number of columns that name a row, besides the first
	wide  bool // too wide to print on one page
}

// table writes a sheet, unless it has no rows. Column widths fit the head's longest word and the first
// 200 rows: measuring a million rows takes too long.
func (b *book) table(t table) {
	if len(t.rows) == 0 {
		return
	}
	if b.sheet(t.name); b.err != nil {
		return
	}
	for c, h := range t.heads {
		b.set(t.name, c, 0, h)
		width := 9
		for _, word := range strings.Fields(h) { // heads wrap between words
			width = max(width, min(18, utf8.RuneCountInString(word)+3))
		}
		for _, row := range t.rows[:min(len(t.rows), 200)] {
			if c < len(row) {
				width = max(width, min(48, shownWidth(row[c])+2))
			}
		}
		name, _ := excelize.ColumnNumberToName(c + 1)
		b.keep(b.f.SetColWidth(t.name, name, name, float64(width)))
	}
	b.keep(b.f.SetCellStyle(t.name, cell(0, 0), cell(len(t.heads)-1, 0), b.head))
	b.keep(b.f.SetRowHeight(t.name, 1, 62))
	for r, row := range t.rows {
		for c, v := range row {
			b.set(t.name, c, r+1, v)
		}
	}
	// The header and the columns that name a row stay on screen.
	b.keep(b.f.SetPanes(t.name, &excelize.Panes{Freeze: true, XSplit: 1 + t.names, YSplit: 1,
		TopLeftCell: cell(1+t.names, 1), ActivePane: "bottomRight"}))
	b.keep(b.f.AutoFilter(t.name, cell(0, 0)+":"+cell(len(t.heads)-1, len(t.rows)), nil))
	b.landscape(t.name, !t.wide)
	b.keep(b.f.SetDefinedName(&excelize.DefinedName{Name: "_xlnm.Print_Titles", Scope: t.name,
		RefersTo: fmt.Sprintf("'%s'!$1:$1", t.name)}))
}

// landscape sets the print layout: A4, landscape. With fit, the sheet is one page wide.
func (b *book) landscape(sheet string, fit bool) {
	o := excelize.PageLayoutOptions{Orientation: new("landscape"), Size: new(9)} // A4
	if fit {
		o.FitToWidth, o.FitToHeight = new(1), new(0)
		b.keep(b.f.SetSheetProps(sheet, &excelize.SheetPropsOptions{FitToPage: &fit}))
	}
	b.keep(b.f.SetPageLayout(sheet, &o))
}

// shownWidth returns roughly the number of characters of a cell.
func shownWidth(v any) int {
	switch x := v.(type) {
	case nil:
		return 0
	case time.Time:
		return len(time.DateTime)
	case float64:
		if x == math.Trunc(x) {
			return len(fmt.Sprintf("%.0f", x))
		}
		return len(fmt.Sprintf("%.4f", x))
	}
	return utf8.RuneCountInString(fmt.Sprint(v))
}
