package html

import (
	"embed"
	"html/template"
	"io"
	"math"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

//go:embed *.tmpl
var templates embed.FS

//go:embed style.css
var styleText string

// pageTemplate is parsed once; a mistake in it fails every test.
var pageTemplate = template.Must(template.New("page.html.tmpl").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(styleText) },
	"anchor": view.Anchor, "keys": view.Keys, "median": view.Median, "change": view.Change,
	"heads": view.Heads, "value": view.Value,
	"bytes": view.Bytes, "count": units.Count.Text, "title": stats.Title,
	"line":   func(unit string) string { line, _ := stats.Line(unit); return line },
	"draw":   draw,
	"bars":   intervalBars,
	"at":     at,
	"height": func(bars []bar) int { return barHeight * len(bars) },
	"lines":  func(label string) []string { return strings.SplitN(label, "\n", 2) },
}).ParseFS(templates, "*.tmpl"))

// Write makes the page of the records; t is their comparison. The template is executed as it is
// written: what fails, fails in the middle, and whoever calls keeps the old file.
func Write(w io.Writer, records []*load.Record, t *stats.Table) error {
	return pageTemplate.Execute(w, view.New(records, t))
}

// WritePage makes the page of one subject.
func WritePage(w io.Writer, p view.Page) error {
	return pageTemplate.ExecuteTemplate(w, "single", p)
}

// bar is a median with its interval, and the single trials as dots.
type bar struct {
	Top, Middle, Width float64
	Colour             int
	Dots               []float64
	Interval           bool
	Lo, Hi             float64
}

// barHeight is that of a line of the table's row in which bars stand.
const barHeight = 13

// intervalBars are those of a metric's runs, from 0 and on one scale up to the largest trial: what
// is longer is more. Six units of room keep the dot of the largest trial whole.
func intervalBars(m *stats.Metric) (list []bar) {
	most := 0.0
	for _, c := range m.Cells {
		for _, v := range c.Values {
			most = max(most, v)
		}
	}
	if most <= 0 {
		return nil
	}
	place := func(v float64) float64 { return max(0, v) / most * (180 - 6) }
	for i, c := range m.Cells {
		top := barHeight * float64(i)
		b := bar{Top: top + 2, Middle: top + barHeight/2.0, Colour: i % colours,
			Width: place(c.Summary.Center), Lo: place(c.Summary.Lo), Hi: place(c.Summary.Hi),
			Interval: !math.IsInf(c.Summary.Lo, 0) && !math.IsInf(c.Summary.Hi, 0)}
		for _, v := range c.Values {
			b.Dots = append(b.Dots, place(v))
		}
		list = append(list, b)
	}
	return list
}
