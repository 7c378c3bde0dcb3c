package xlsx

import "github.com/xuri/excelize/v2"

// palette of the series: dark enough on white, distinct without red against green. The first four
// are Okabe and Ito's.
var palette = []string{"0072B2", "E69F00", "009E73",
	"CC79A7", "56B4E9", "D55E00", "6A51A3", "7F7F7F", "8C510A", "2C7BB6", "B2182B", "1B7837"}

// draw writes the data of a chart at a row of one sheet and the chart at a row of the other; it
// returns the chart's height in rows. The data has the title, so that the sheet can be read without
// the chart.
func (b *book) draw(p plot, row, top int) int {
	b.set(dataSheet, 0, row, p.title)
	b.keep(b.f.SetCellStyle(dataSheet, cell(0, row), cell(0, row), b.title))
	b.set(dataSheet, 0, row+1, p.x)
	b.keep(b.f.SetCellStyle(dataSheet, cell(0, row+1), cell(len(p.series), row+1), b.head))
	// The data first: the chart refers to its cells.
	for i, c := range p.categories {
		b.set(dataSheet, 0, row+2+i, c)
	}
	at := func(col, row int) string {
		name, _ := excelize.CoordinatesToCellName(col+1, row+1, true)
		return name
	}
	data := func(col int) string {
		return "'" + dataSheet + "'!" + at(col, row+2) + ":" + at(col, row+1+len(p.categories))
	}
	chart := &excelize.Chart{
		Type:   p.kind,
		Title:  excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: p.title}}},
		Legend: excelize.ChartLegend{Position: "bottom"},
		XAxis:  axis(p.x, p.logX, false),
		YAxis:  axis(p.y, p.log, p.percent),
		Format: excelize.GraphicOptions{OffsetX: 10, OffsetY: 10},
	}
	for i, s := range p.series {
		b.set(dataSheet, i+1, row+1, s.name)
		for j, x := range s.values {
			var v any = x
			if p.percent {
				v = share(x)
			}
			b.set(dataSheet, i+1, row+2+j, v)
		}
		one := excelize.ChartSeries{Name: "'" + dataSheet + "'!" + at(i+1, row+1),
			Categories: data(0), Values: data(i + 1), Fill: fill(palette[i%len(palette)])}
		switch p.kind {
		case excelize.Line:
			one.Line = excelize.LineOptions{Width: 2, Fill: one.Fill}
			one.Marker = excelize.ChartMarker{Symbol: "circle", Size: 6}
		case excelize.Scatter:
			one.Line = excelize.LineOptions{Type: excelize.LineSolid, Width: 1.75, Fill: one.Fill}
			if s.dashed {
				one.Line.Dash = excelize.LineDashSysDash
			}
			one.Marker = excelize.ChartMarker{Symbol: "none"}
		}
		chart.Series = append(chart.Series, one)
	}
	// Space for the legend below, one line for each series.
	height := 380 + 16*len(p.series)
	switch p.kind {
	case excelize.Scatter:
		chart.ShowBlanksAs = "gap"
		if !p.logX {
			chart.XAxis.Minimum = new(0.0)
		}
	case excelize.Bar:
		height = 180 + len(p.categories)*(8+6*len(p.series))
		chart.XAxis.ReverseOrder = true
		chart.GapWidth = new(uint(40)) // per cent of a bar: many series make them thin
	}
	height = min(height, 600) // a landscape page
	chart.Dimension = excelize.ChartDimension{Width: 880, Height: uint(height)}
	b.keep(b.f.AddChart(chartSheet, cell(0, top), chart))
	if top > 0 {
		b.keep(b.f.InsertPageBreak(chartSheet, cell(0, top)))
	}
	// A row is 20 pixels high.
	rows := height/20 + 3
	if p.left != "" {
		b.set(chartSheet, 0, top+rows-1, p.left)
		rows++
	}
	return rows
}

// axis has a title in grey, so that the data stands out.
func axis(title string, log, percent bool) excelize.ChartAxis {
	a := excelize.ChartAxis{
		MajorGridLines: true,
		Font:           excelize.Font{Color: "404040", Size: 9, Family: family},
		Title: excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: title,
			Font: &excelize.Font{Color: "404040", Size: 10, Family: family}}}},
	}
	if log {
		a.LogBase = 10
	}
	if percent {
		a.NumFmt, a.Maximum = excelize.ChartNumFmt{CustomNumFmt: "0%"}, new(1.0)
	}
	return a
}
