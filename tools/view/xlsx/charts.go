package xlsx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"

	"kvbench/tools/view"
)

const (
	chartSheet  = "Charts"
	dataSheet   = "Chart Data"
	maxCharts   = 10
	maxSeries   = 12 // more colours are hard to distinguish
	chartHeight = 600
	chartRows   = chartHeight/20 + 3 // a row is 20 pixels high
)

// palette has the colours of the series: dark enough on white, and distinct without red against green.
// The first four are Okabe and Ito's.
var palette = [view.Colours]string{"0072B2", "E69F00", "009E73",
	"CC79A7", "56B4E9", "D55E00", "6A51A3", "7F7F7F", "8C510A", "2C7BB6", "B2182B", "1B7837"}

// dashes are the line styles by view.Line.Dash, as on the page.
var dashes = []excelize.LineDashType{excelize.LineDashSolid, excelize.LineDashSysDash,
	excelize.LineDashSysDot}

// charts writes the first charts of the page to one sheet and their data to another. A chart refers to
// its data by cell names, so both are laid out together.
func (b *book) charts(charts []view.Chart) {
	charts = slices.DeleteFunc(charts, func(c view.Chart) bool {
		return len(c.Lines) == 0 || c.Heat != nil // a heat map has no native chart
	})
	if len(charts) == 0 {
		return
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
	row := 0 // of dataSheet
	for i, c := range charts[:min(len(charts), maxCharts)] {
		c.Title, _, _ = strings.Cut(c.Title, ", the band") // which native charts do not have
		n := c.Numbers()
		if all := len(n.Series); all > maxSeries {
			n.Series = n.Series[:maxSeries]
			b.set(chartSheet, 0, i*chartRows+chartRows-1,
				fmt.Sprintf("The chart shows the first %d of %d series.", maxSeries, all))
		}
		b.chart(c, n, b.chartData(c, n, row), i*chartRows)
		row += len(n.Places) + 4
	}
	if all := len(charts); all > maxCharts {
		b.set(chartSheet, 0, maxCharts*chartRows, fmt.Sprintf("These are %d of %d charts; the page "+
			"(kvreport html) has all.", maxCharts, all))
	}
}

// chartData writes the chart's title and numbers to dataSheet from row on. data(0) returns the cells of
// the X positions. data(i) returns the cell of the name and the cells of the values of series i-1.
func (b *book) chartData(c view.Chart, n view.Numbers, row int) (data func(int) (name, cells string)) {
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

// chart draws a chart at row top: a line chart if the X axis has ticks, else a scatter chart.
func (b *book) chart(c view.Chart, n view.Numbers, data func(int) (string, string), top int) {
	chart := &excelize.Chart{
		Type:         excelize.Scatter,
		Title:        excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: c.Title}}},
		Legend:       excelize.ChartLegend{Position: "bottom"},
		XAxis:        axis(c.X, len(c.X.Ticks) == 0),
		YAxis:        axis(c.Y, true),
		Format:       excelize.GraphicOptions{OffsetX: 10, OffsetY: 10},
		Dimension:    excelize.ChartDimension{Width: 880, Height: chartHeight},
		ShowBlanksAs: "gap",
	}
	if len(c.X.Ticks) > 0 {
		chart.Type = excelize.Line
	}
	_, places := data(0)
	for i, s := range n.Series {
		name, values := data(i + 1)
		colour := fill(palette[s.Colour])
		one := excelize.ChartSeries{Name: name, Categories: places, Values: values, Fill: colour,
			Line: excelize.LineOptions{Type: excelize.LineSolid, Width: 1.75, Fill: colour,
				Dash: dashes[s.Dash%len(dashes)]},
			Marker: excelize.ChartMarker{Symbol: "none"}}
		if s.Dots {
			one.Marker = excelize.ChartMarker{Symbol: "circle", Size: 6}
		}
		chart.Series = append(chart.Series, one)
	}
	b.keep(b.f.AddChart(chartSheet, cell(0, top), chart))
	if top > 0 {
		b.keep(b.f.InsertPageBreak(chartSheet, cell(0, top)))
	}
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
