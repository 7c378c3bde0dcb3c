// Package html is kvreport html: results as one self-contained page. It has no script and asks no network for anything.
package html

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

//go:embed page.html.tmpl
var pageText string

//go:embed style.css
var styleText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(styleText) },
}).Parse(pageText))

// Write makes the page of the records; t is their comparison.
func Write(w io.Writer, records []*load.Record, t *stats.Table) error {
	return pageTemplate.Execute(w, newPage(records, t))
}

// page is what the template shows.
type page struct {
	Title     string
	Notices   []string
	Runs      []runView
	Missing   []string // what could not be made, and why
	Headlines []headline
	Compared  bool // several runs
	TierTable *grid
	TierPlots []figure
	Sweeps    []sweepView
	Groups    []group
}

// figure is a plot with its caption.
type figure struct {
	Caption string
	SVG     template.HTML
}

// grid is a table.
type grid struct {
	Head []string
	Rows [][]gridCell
	Note string
}

// Heads are the cells of the header, aligned as what stands below.
func (g grid) Heads() []gridCell {
	out := make([]gridCell, len(g.Head))
	for i, h := range g.Head {
		out[i].Text = h
		for _, row := range g.Rows {
			if i < len(row) && strings.HasPrefix(row[i].Class, "num") {
				out[i].Class = "num"
			}
		}
	}
	return out
}

type gridCell struct {
	Text, Class string
	Sub         string // second line, small
}

// group is all sub-benchmarks of one benchmark.
type group struct {
	Name    string
	Anchor  string
	Members []member
	Folded  bool // many small ones: their plots are folded away
	Metrics grid
}

// member is one benchmark.
type member struct {
	Name    string
	Facts   string
	Parts   []part
	Tiers   *grid
	Figures []figure
}

func newPage(records []*load.Record, t *stats.Table) *page {
	p := &page{Title: "kvbench report", Compared: len(t.Runs) > 1, Missing: Missing(records)}
	p.runs(records, t)
	p.headlines(t)
	p.TierTable, p.TierPlots = tierTable(t)
	p.sweeps(t)
	p.groups(t)
	return p
}

// Missing says what the page cannot show for want of result files.
func Missing(records []*load.Record) (notes []string) {
	lost, python, first := 0, 0, error(nil)
	for _, r := range records {
		switch {
		case r.Python:
			python++
		case r.Result == nil:
			if lost++; first == nil {
				first = r.Missing
			}
		}
	}
	if lost > 0 {
		why := "their text names none"
		if first != nil {
			why = "the first: " + first.Error()
		}
		notes = append(notes, fmt.Sprintf("%d of %d results have no result file: no timelines, percentile curves, tier fill or "+
			"parameters of them (%s)", lost, len(records), why))
	}
	if python > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d results are of the Python benchmark, which records no timelines and no histograms",
			python, len(records)))
	}
	return notes
}
