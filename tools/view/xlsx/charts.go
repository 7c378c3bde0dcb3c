package xlsx

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

const (
	chartSheet = "Charts"
	dataSheet  = "Chart Data"
	maxCharts  = 10
	maxSeries  = 12 // more colours are hard to distinguish
	maxBars    = 40 // on a page
	longName   = 12 // with a longer name, bars are horizontal so that names are readable
)

// palette has the colours of the series: dark enough on white, and distinct without red against green.
// The first four are Okabe and Ito's.
var palette = [view.Colours]string{"0072B2", "E69F00", "009E73",
	"CC79A7", "56B4E9", "D55E00", "6A51A3", "7F7F7F", "8C510A", "2C7BB6", "B2182B", "1B7837"}

// dashes are the line styles by view.Line.Dash, as on the page.
var dashes = []excelize.LineDashType{excelize.LineDashSolid, excelize.LineDashSysDash,
	excelize.LineDashSysDot}

// charts writes the charts to one sheet and their data to another. A chart refers to its data by cell
// names, so both are laid out together. The first chart compares all benchmarks; the rest are charts of
// the page.
func (b *book) charts(records []*load.Record, t *stats.Table) {
	charts := append([]view.Chart{view.Overview(t)}, view.New(records, t).Charts()...)
	charts = slices.DeleteFunc(charts, func(c view.Chart) bool {
		return len(c.Lines) == 0 || c.Heat != nil // a heat map has no native chart
	})
	if len(charts) == 0 {
		return
	}
	left := ""
	if n := len(charts); n > maxCharts {
		charts = charts[:maxCharts]
		left = fmt.Sprintf(" These are %d of %d charts; the page (kvreport html) has all.",
			maxCharts, n)
	}
	b.sheet(chartSheet)
	b.sheet(dataSheet)
	b.keep(b.f.SetColWidth(dataSheet, "A", "A", 40))
	b.keep(b.f.SetColWidth(dataSheet, "B", "Z", 16))
	b.keep(b.f.SetSheetView(chartSheet, -1, &excelize.ViewOptions{ShowGridLines: new(false)}))
	b.landscape(chartSheet, false)
	// Some programs draw charts a fifth wider than Excel. Scale the sheet so that they fit the page.
	b.keep(b.f.SetPageLayout(chartSheet, &excelize.PageLayoutOptions{AdjustTo: new(uint(78))}))
	b.landscape(dataSheet, true)
	row, top := 0, 0 // next free row of dataSheet and of chartSheet
	for i, c := range charts {
		n := c.Numbers()
		note := fit(c, &n)
		if i == len(charts)-1 {
			note = strings.TrimSpace(note + left)
		}
		data := b.chartData(c, n, row)
		height := b.chart(c, n, data, top)
		row, top = row+len(n.Places)+4, top+height/20+3 // a row is 20 pixels high
		if note != "" {
			b.set(chartSheet, 0, top-1, note)
			top++
		}
	}
}

// fit cuts bars and series above the limits from n. The note says what it cut.
func fit(c view.Chart, n *view.Numbers) (note string) {
	if all := len(n.Places); c.Bars && all > maxBars {
		n.Places = n.Places[:maxBars]
		note = fmt.Sprintf("The chart shows the first %d of %d.", maxBars, all)
	}
	if all := len(n.Series); all > maxSeries {
		n.Series = n.Series[:maxSeries]
		note = fmt.Sprintf("The chart shows the first %d of %d series.", maxSeries, all)
	}
	return note
}

// chartData writes the chart's title and numbers to dataSheet from row on. data(0) returns the cells of
// the X positions. data(i) returns the cell of the name and the cells of the values of series i-1.
func (b *book) chartData(c view.Chart, n view.Numbers, row int) func(col int) (name, cells string) {
	b.set(dataSheet, 0, row, c.Title)
	b.keep(b.f.SetCellStyle(dataSheet, cell(0, row), cell(0, row), b.title))
	b.set(dataSheet, 0, row+1, c.X.Label)
	b.keep(b.f.SetCellStyle(dataSheet, cell(0, row+1), cell(len(n.Series), row+1), b.head))
	for i, x := range n.Places {
		if n.Labels != nil {
			b.set(dataSheet, 0, row+2+i, n.Labels[i])
		} else {
			b.set(dataSheet, 0, row+2+i, round(x))
		}
		for k, s := range n.Series {
			b.set(dataSheet, k+1, row+2+i, s.Y[i])
		}
	}
	for k, s := range n.Series {
		b.set(dataSheet, k+1, row+1, s.Name)
	}
	return func(col int) (name, cells string) {
		at := func(row int) string {
			name, _ := excelize.CoordinatesToCellName(col+1, row+1, true)
			return name
		}
		return "'" + dataSheet + "'!" + at(row+1),
			"'" + dataSheet + "'!" + at(row+2) + ":" + at(row+1+len(n.Places))
	}
}

// chart draws a chart at row top and returns its height in pixels. It is a bar chart, a line chart if
// the X axis has ticks, or else a scatter chart.
func (b *book) chart(c view.Chart, n view.Numbers, data func(int) (string, string), top int) int {
	kind := excelize.Scatter
	switch {
	case c.Bars && slices.ContainsFunc(n.Labels,
		func(l string) bool { return utf8.RuneCountInString(l) > longName }):
		kind = excelize.Bar
	case c.Bars:
		kind = excelize.Col
	case len(c.X.Ticks) > 0:
		kind = excelize.Line
	}
	chart := &excelize.Chart{
		Type:   kind,
		Title:  excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: c.Title}}},
		Legend: excelize.ChartLegend{Position: "bottom"},
		XAxis:  axis(c.X, kind == excelize.Scatter),
		YAxis:  axis(c.Y, true),
		Format: excelize.GraphicOptions{OffsetX: 10, OffsetY: 10},
	}
	_, places := data(0)
	for i, s := range n.Series {
		name, values := data(i + 1)
		one := excelize.ChartSeries{Name: name, Categories: places, Values: values,
			Fill: fill(palette[s.Colour])}
		if !c.Bars {
			one.Line = excelize.LineOptions{Type: excelize.LineSolid, Width: 1.75, Fill: one.Fill,
				Dash: dashes[s.Dash%len(dashes)]}
			one.Marker = excelize.ChartMarker{Symbol: "none"}
		}
		if s.Apart {
			one.Line.Type = excelize.LineNone
		}
		if s.Dots || s.Apart {
			one.Marker = excelize.ChartMarker{Symbol: "circle", Size: 6}
		}
		chart.Series = append(chart.Series, one)
	}
	height := 380 + 16*len(n.Series) // the legend has a line for each series
	switch kind {
	case excelize.Scatter:
		chart.ShowBlanksAs = "gap"
	case excelize.Bar:
		height = 180 + len(n.Places)*(8+6*len(n.Series))
		chart.XAxis.ReverseOrder = true
		chart.GapWidth = new(uint(40)) // per cent of a bar: many series make them thin
	}
	height = min(height, 600) // the height of a landscape page
	chart.Dimension = excelize.ChartDimension{Width: 880, Height: uint(height)}
	b.keep(b.f.AddChart(chartSheet, cell(0, top), chart))
	if top > 0 {
		b.keep(b.f.InsertPageBreak(chartSheet, cell(0, top)))
	}
	return height
}

// axis returns an axis with a grey title. With numbers, it sets the scale and the ends.
func axis(a view.Axis, numbers bool) excelize.ChartAxis {
	out := excelize.ChartAxis{
		MajorGridLines: true,
		Font:           excelize.Font{Color: "404040", Size: 9, Family: family},
		Title: excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: a.Label,
			Font: &excelize.Font{Color: "404040", Size: 10, Family: family}}}},
	}
	switch {
	case !numbers:
	case a.Log:
		out.LogBase = 10
	case len(a.Range) == 2:
		out.Minimum, out.Maximum = &a.Range[0], &a.Range[1]
	case a.Zero:
		out.Minimum = new(0.0)
	}
	return out
}
