// Package page is kvreport html: results as one self-contained page. It has no script and asks no network for anything.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"kvbench/tools/command"
	"kvbench/tools/compare"
	"kvbench/tools/input"
	"kvbench/tools/report"
)

const name = "html"

// Command is kvreport html.
var Command = command.Command{
	Name:  name,
	Args:  "IN… -o FILE",
	Short: "one page with plots that opens from disk",
	Long: `
Makes one self-contained HTML page, light or dark as the reader's system is, and fit for printing: what ran, headline
numbers with confidence intervals, bandwidth over time, latency percentile curves, tier fill and evictions, the tier table,
sweeps as curves with their knee, block sizes and queue depths of traced results, and where a result has them: the rounds of
an autoscaler, the block hit ratio beside the ideal one over time, a replay, a validation, a device model. What is simulated
says so in every name and figure, and is never compared with what was measured.

Each argument is one run; the first is what the others are compared with. A change is marked as significant when the
Mann-Whitney test says so at 5 %: for the headline metric of each benchmark after Holm's correction over all benchmarks of
the pair of runs, for the other metrics taken alone. Four trials of each run are the least that can differ significantly,
six are a good number.`,
	Example: `
go test ./benchmarks -run '^$' -bench . -count 6 -cache-dir /mnt/a > a.txt
go test ./benchmarks -run '^$' -bench . -count 6 -cache-dir /mnt/b > b.txt
go tool kvreport html a.txt b.txt -o drives.html`,
	Run: run,
}

func run(args []string, stdin io.Reader, _, stderr io.Writer) int {
	return report.Run(name, args, stdin, stderr, func(records []*input.Record, t *compare.Table) (func(io.Writer) error, []string) {
		p := newPage(records, t)
		return p.write, p.Missing
	})
}

//go:embed page.html.tmpl
var pageText string

//go:embed style.css
var styleText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return template.CSS(styleText) },
}).Parse(pageText))

// Write makes the page of the records; t is their comparison.
func Write(w io.Writer, records []*input.Record, t *compare.Table) error {
	return newPage(records, t).write(w)
}

func (p *page) write(w io.Writer) error { return pageTemplate.Execute(w, p) }

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

func newPage(records []*input.Record, t *compare.Table) *page {
	p := &page{Title: "kvbench report", Compared: len(t.Runs) > 1}
	p.runs(records, t)
	p.missing(records)
	p.headlines(t)
	p.TierTable, p.TierPlots = tierTable(t)
	p.sweeps(t)
	p.groups(t)
	return p
}

// missing says what the page cannot show for want of result files.
func (p *page) missing(records []*input.Record) {
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
		p.Missing = append(p.Missing, fmt.Sprintf("%d of %d results have no result file: no timelines, percentile curves, tier fill or "+
			"parameters of them (%s)", lost, len(records), why))
	}
	if python > 0 {
		p.Missing = append(p.Missing, fmt.Sprintf("%d of %d results are of the Python benchmark, which records no timelines and no histograms",
			python, len(records)))
	}
}
