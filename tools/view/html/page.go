package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

//go:embed page.html.tmpl
var pageText string

//go:embed style.css
var styleText string

// pageTemplate is parsed once; a mistake in it fails every test.
var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(styleText) },
	"svg":   func(c view.Chart) template.HTML { return template.HTML(svg(c)) },
	"bars":  intervalBars,
}).Parse(pageText))

// Write makes the page of the records; t is their comparison. The template is executed as it is
// written: what fails, fails in the middle, and whoever calls keeps the old file.
func Write(w io.Writer, records []*load.Record, t *stats.Table) error {
	return pageTemplate.Execute(w, view.New(records, t))
}

// intervalBars draws the medians of a metric as bars from 0 with their intervals and the single
// trials as dots. They stand in a row of the table, and are as high as its lines.
func intervalBars(m *stats.Metric) template.HTML {
	const w, row = 180.0, 13.0
	// One scale for all runs, up to the largest trial: what is longer is more.
	most := 0.0
	for _, c := range m.Cells {
		for _, v := range c.Values {
			most = max(most, v)
		}
	}
	if most <= 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 %g %g" width="%g" height="%g" role="img" `+
		`aria-label="medians, intervals and trials">`, w, row*float64(len(m.Cells)), w,
		row*float64(len(m.Cells)))
	// Six units of room, so that the dot of the largest trial is whole.
	at := func(v float64) float64 { return max(0, v) / most * (w - 6) }
	for i, c := range m.Cells {
		if c.N() == 0 {
			continue
		}
		// A bar for the median, dots for the trials, a line for the interval.
		y := row * float64(i)
		fmt.Fprintf(&b,
			`<rect x="0" y="%.1f" width="%.1f" height="%g" fill="var(--c%d)" opacity="0.35"/>`, y+2,
			at(c.Summary.Center), row-4, i%colours)
		for _, v := range c.Values {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="1.7" fill="var(--c%d)"/>`, at(v),
				y+row/2, i%colours)
		}
		if !math.IsInf(c.Summary.Lo, 0) && !math.IsInf(c.Summary.Hi, 0) {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="var(--ink)" `+
				`stroke-width="1.2"/>`, at(c.Summary.Lo), at(c.Summary.Hi), y+row/2, y+row/2)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
