package html

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"

	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

//go:embed *.tmpl
var templates embed.FS

//go:embed style.css
var styleText string

// script draws the charts, hides runs and sorts tables. Without it the page has only tables.
//
//go:embed script.js
var script string

// library draws the charts of the script: uPlot as it was released, with its licence.
var (
	//go:embed uplot/uPlot.iife.min.js
	library string
	//go:embed uplot/uPlot.min.css
	libraryStyle string
	//go:embed uplot/LICENSE
	licence string
)

// scripts are all scripts in the order of their execution.
var scripts = []string{"/*\n" + licence + "*/\n" + library, script}

// policy is the page's content security policy, against scripts in names of the input. The browser runs
// only scripts with these hashes and loads nothing.
var policy = func() string {
	allowed := ""
	for _, s := range scripts {
		sum := sha256.Sum256([]byte(s))
		allowed += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src" + allowed
}()

// pageTemplate is parsed at start, so a mistake in it fails every test.
var pageTemplate = template.Must(template.New("page.html.tmpl").Funcs(template.FuncMap{
	"style":  func() template.CSS { return template.CSS(libraryStyle + styleText) },
	"policy": func() string { return policy },
	"scripts": func() (all []template.JS) {
		for _, s := range scripts {
			all = append(all, template.JS(s))
		}
		return all
	},
	"number": func(run int) int { return run + 1 },
	"colour": func(run int) int { return run % view.Colours },
	"plot":   newPlot, "grid": newGrid,
	"anchor": view.Anchor, "keys": view.Keys, "median": view.Median, "change": view.Change,
	"heads": view.Heads,
	"value": view.Value,
	"title": stats.Title,
	"bar":   intervalBar,
	"place": place,
}).ParseFS(templates, "*.tmpl"))

// Write writes the page of the records. t is their comparison. An error may leave partial output, so the
// caller keeps the old file.
func Write(w io.Writer, records []*load.Record, t *stats.Table, engines []load.Engine) error {
	return pageTemplate.Execute(w, view.New(records, t, engines))
}

// WritePage writes a page of one subject.
func WritePage(w io.Writer, p view.Page) error {
	return pageTemplate.ExecuteTemplate(w, "single", p)
}

// bar is a bar of a median, with the confidence interval, and one dot per trial. Places are in per cent
// of the axis.
type bar struct {
	Axis     view.Scale
	Width    float64
	Colour   int
	Dots     []float64
	Interval bool
	Lo, Hi   float64
}

// place returns the place of a value on an axis, in per cent.
func place(v float64, axis view.Scale) float64 { return 100 * max(0, v) / axis.End() }

// intervalBar returns a run's bar, nil for a run without trials.
func intervalBar(run int, c stats.Cell, axis view.Scale) *bar {
	if c.N() == 0 {
		return nil
	}
	b := &bar{Axis: axis, Colour: run % view.Colours, Width: place(c.Summary.Center, axis),
		Lo: place(c.Summary.Lo, axis), Hi: place(c.Summary.Hi, axis),
		Interval: !math.IsInf(c.Summary.Lo, 0) && !math.IsInf(c.Summary.Hi, 0)}
	for _, v := range c.Values {
		b.Dots = append(b.Dots, place(v, axis))
	}
	return b
}

// newPlot omits the X of a series if it equals the X of the previous series.
func newPlot(c view.Chart) view.Chart {
	c.Lines = slices.Clone(c.Lines)
	for i := len(c.Lines) - 1; i > 0; i-- {
		if slices.Equal(c.Lines[i].X, c.Lines[i-1].X) {
			c.Lines[i].X = nil
		}
	}
	return c
}

// grid is a chart as a table, for readers without a script.
type grid struct {
	Heads []string
	Rows  [][]string
}

func newGrid(c view.Chart) grid {
	n := c.Numbers()
	g := grid{Heads: []string{c.X.Label}}
	for _, s := range n.Series {
		if s.Run > 0 { // as in the legend of the chart
			s.Name = strconv.Itoa(s.Run) + " " + s.Name
		}
		g.Heads = append(g.Heads, s.Name)
	}
	for i, x := range n.Places {
		row := []string{units.Number.Text(x)}
		if n.Labels != nil {
			row[0] = n.Labels[i]
		}
		for _, s := range n.Series {
			text := ""
			if !math.IsNaN(s.Y[i]) {
				text = units.Number.Text(s.Y[i])
			}
			row = append(row, text)
		}
		g.Rows = append(g.Rows, row)
	}
	return g
}
