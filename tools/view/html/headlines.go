package html

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"kvbench/tools/stats"
)

// headline is one benchmark's row.
type headline struct {
	Bench  string
	Anchor string
	Metric string
	Cells  []gridCell
	Bars   template.HTML // medians and intervals to scale
	Change []gridCell
}

func (p *page) headlines(t *stats.Table) {
	for _, b := range t.Benchmarks {
		m := b.Headline()
		if m == nil {
			continue
		}
		h := headline{Bench: b.Name, Anchor: anchor(b.Name), Metric: stats.Title(m.Unit), Bars: intervalBars(m)}
		for i, c := range m.Cells {
			h.Cells = append(h.Cells, medianCell(c, m.Unit))
			if i > 0 {
				h.Change = append(h.Change, changeCell(c.Change, m))
			}
		}
		p.Headlines = append(p.Headlines, h)
	}
}

// medianCell is a median with its interval and the number of trials.
func medianCell(c stats.Cell, unit string) gridCell {
	if len(c.Values) == 0 {
		return gridCell{Text: "–", Class: "num muted"}
	}
	return gridCell{Text: stats.Format(c.Summary.Center, unit), Sub: interval(c, unit), Class: "num"}
}

func interval(c stats.Cell, unit string) string {
	n := fmt.Sprintf("n=%d", len(c.Values))
	if math.IsInf(c.Summary.Lo, 0) || math.IsInf(c.Summary.Hi, 0) {
		return n + ", too few for an interval"
	}
	return fmt.Sprintf("%s – %s, %s", stats.Format(c.Summary.Lo, unit), stats.Format(c.Summary.Hi, unit), n)
}

// changeCell says how a run differs from the first one and whether that is more than chance.
func changeCell(c *stats.Change, m *stats.Metric) gridCell {
	if c == nil {
		return gridCell{Text: "–", Class: "num muted"}
	}
	if c.Incomparable != "" {
		return gridCell{Text: "not comparable", Sub: c.Incomparable, Class: "wrap muted"}
	}
	text := fmt.Sprintf("%+.1f %%", c.Ratio*100)
	if math.IsNaN(c.Ratio) || math.IsInf(c.Ratio, 0) {
		text = "–"
	}
	p, kind := c.P, "p="
	if c.Headline {
		p, kind = c.Adjusted, "Holm p="
	}
	sub := kind + stats.Number(p)
	if len(c.Warnings) > 0 {
		sub = c.Warnings[0].Error()
	}
	switch {
	case !c.Significant():
		return gridCell{Text: "~ " + text, Sub: sub, Class: "num muted"}
	case c.Ratio*float64(m.Better) > 0:
		return gridCell{Text: "▲ " + text + " better", Sub: sub, Class: "num better"}
	case c.Ratio*float64(m.Better) < 0:
		return gridCell{Text: "▼ " + text + " worse", Sub: sub, Class: "num worse"}
	}
	return gridCell{Text: "≠ " + text, Sub: sub, Class: "num"}
}

// intervalBars draws the medians of a metric as bars from 0 with their intervals and the single trials as dots.
func intervalBars(m *stats.Metric) template.HTML {
	const w, row = 180.0, 13.0
	most := 0.0
	for _, c := range m.Cells {
		for _, v := range c.Values {
			most = max(most, v)
		}
	}
	if most <= 0 || math.IsInf(most, 0) {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="medians, intervals and trials">`,
		w, row*float64(len(m.Cells)), w, row*float64(len(m.Cells)))
	at := func(v float64) float64 { return max(0, v) / most * (w - 6) }
	for i, c := range m.Cells {
		if len(c.Values) == 0 {
			continue
		}
		y := row * float64(i)
		fmt.Fprintf(&b, `<rect x="0" y="%.1f" width="%.1f" height="%g" fill="var(--c%d)" opacity="0.35"/>`, y+2, at(c.Summary.Center), row-4, i%8)
		for _, v := range c.Values {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="1.7" fill="var(--c%d)"/>`, at(v), y+row/2, i%8)
		}
		if !math.IsInf(c.Summary.Lo, 0) && !math.IsInf(c.Summary.Hi, 0) {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="var(--ink)" stroke-width="1.2"/>`, at(c.Summary.Lo), at(c.Summary.Hi), y+row/2, y+row/2)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// anchor is a name that can stand behind #.
func anchor(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/= "()`, r) {
			return '-'
		}
		return r
	}, base(name))
}

// base is the benchmark's name without the keys of its sub-benchmarks.
func base(name string) string {
	b, _, _ := strings.Cut(name, "/")
	return b
}
