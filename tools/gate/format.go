package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchunit"

	"kvbench/tools/stats"
)

// value writes a number of a tidied unit as a person reads it: 1.235ms, 4.657GiB/s.
func value(v float64, unit string) string {
	// benchunit scales by powers of 1000 or 1024, whichever the unit has.
	text := benchunit.Scale(v, benchunit.ClassOf(unit))
	for _, u := range [][2]string{{"B/s", "B/s"}, {"sec/op", "s"}, {"-sec", "s"}, {"B/op", "B"},
		{"-bytes", "B"}} {
		if strings.HasSuffix(unit, u[0]) {
			return text + u[1]
		}
	}
	return text
}

// centre is a median with its confidence interval.
func centre(c stats.Cell, unit string) string {
	s := c.Summary
	if c.N() == 0 {
		return "–"
	}
	text := value(s.Center, unit)
	// With fewer than six samples there is no interval of 95 %.
	if math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		return text + " ± ∞"
	}
	if s.Center == 0 {
		return text
	}
	return fmt.Sprintf("%s ± %.1f%%", text,
		100*max(s.Hi-s.Center, s.Center-s.Lo)/math.Abs(s.Center))
}

// change is the difference of the medians in the metric's own direction.
func (r Row) change() string {
	switch c := r.new().Change; {
	case c == nil:
		return "–"
	case r.old().Summary.Center == r.new().Summary.Center:
		return "0.0%"
	case math.IsInf(c.Ratio, 0): // from nothing to something is no percentage
		return "?"
	default:
		return fmt.Sprintf("%+.1f%%", 100*c.Ratio)
	}
}

// share is a loss or a limit for people; from nothing to something is no percentage.
func share(v float64) string {
	if math.IsInf(v, 0) {
		return "∞"
	}
	return fmt.Sprintf("%.3g%%", 100*v)
}

// p shows what the correction made of a p value, where it did: readers check the test by the first
// number and the verdict by the second.
func (r Row) p() string {
	if r.new().N() == 0 {
		return "–"
	}
	if r.Adjusted != r.P {
		return fmt.Sprintf("%.4f → %.4f", r.P, r.Adjusted)
	}
	return fmt.Sprintf("%.4f", r.P)
}

// answer says the verdict in words.
func (r *Report) answer(row Row) string {
	switch row.Verdict {
	case Worse:
		return fmt.Sprintf("WORSE by %s, at most %s is allowed", share(row.Loss), share(row.Limit))
	case Better:
		return "better"
	case Few:
		return r.few(row)
	case Missing:
		return "MISSING in new: no such result"
	case Fine:
		if row.Adjusted < r.Options.Alpha && row.Loss > 0 {
			return fmt.Sprintf("ok: worse by %s, %s is allowed", share(row.Loss), share(row.Limit))
		}
		return "ok: no significant difference"
	}
	return ""
}

// few says why no difference could have been found, and how many samples would do.
func (r *Report) few(row Row) string {
	m, n := row.old().N(), row.new().N()
	text := fmt.Sprintf("NOT ENOUGH SAMPLES: %d against %d", m, n)
	if row.lacksOperations() { // which more trials do not mend
		return text + fmt.Sprintf(" of %d and %d trials have enough operations for this "+
			"percentile; measure with a longer -benchtime", row.Trials[oldSide],
			row.Trials[newSide])
	}
	// The three reasons, from the one that no run of other benchmarks mends.
	switch least := stats.LeastP(m, n); {
	case least >= r.Options.Alpha:
		text += fmt.Sprintf(" can never reach p = %g", r.Options.Alpha)
	case min(m, n) < stats.LeastSamples:
		text += fmt.Sprintf(", at least %d per side are compared", stats.LeastSamples)
	default:
		text += fmt.Sprintf(" give p %.2g at best, too much for %d metrics together", least,
			r.Family)
	}
	// Enough samples for a single row may be too few for the family, so that the number asked for
	// is that of the family.
	text += fmt.Sprintf("; run with -count %d", stats.Needed(r.Tested, r.Options.Alpha))
	if n := r.Tested; n > 1 {
		text += fmt.Sprintf(" for these %d metrics", n)
	}
	return text
}

// together is what several rows of a verdict are.
var together = map[Verdict]string{Worse: "worse than allowed", Missing: "missing",
	Few: "with too few samples", Better: "better",
	Fine: "without a significant loss beyond the limit"}

// headline is the answer in one line.
func (r *Report) headline() string {
	counts := make(map[Verdict]int)
	for _, row := range r.Rows {
		counts[row.Verdict]++
	}
	var parts []string
	for _, v := range []Verdict{Worse, Missing, Few, Better, Fine} {
		if n := counts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, together[v]))
		}
	}
	verdict := "passed"
	if r.Failed() {
		verdict = "FAILED"
	}
	return fmt.Sprintf("gate %s: %s (Mann-Whitney, alpha %g, Holm over %d)", verdict,
		strings.Join(parts, ", "), r.Options.Alpha, r.Family)
}

// heads are the columns of the table, in text and in Markdown.
var heads = []string{"benchmark", "metric", "old", "new", "change", "p", "n", "verdict"}

// cells are what the table says of a row.
func (r *Report) cells(row Row) []string {
	old, new := row.old(), row.new()
	return []string{row.Bench, row.Label, centre(old, row.Unit), centre(new, row.Unit),
		row.change(), row.p(), fmt.Sprintf("%d+%d", old.N(), new.N()), r.answer(row)}
}

// Formats are the forms of a report by the names that -format has for them.
var Formats = map[string]func(*Report) string{"text": (*Report).text,
	"markdown": (*Report).markdown, "github": (*Report).github}

// text is the report for a terminal.
func (r *Report) text() string {
	var out strings.Builder
	tab := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, strings.Join(heads, "\t"))
	for _, row := range slices.Concat(r.Rows, r.Others) {
		fmt.Fprintln(tab, strings.Join(r.cells(row), "\t"))
	}
	tab.Flush()
	for _, line := range append(slices.Clone(r.Notes), r.headline()) {
		fmt.Fprintln(&out, line)
	}
	return out.String()
}

// markdown is the report for a comment or a job summary.
func (r *Report) markdown() string {
	var out strings.Builder
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	line := func(cells []string) { fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | ")) }
	fmt.Fprintf(&out, "**%s**\n\n", escape.Replace(r.headline()))
	line(heads)
	fmt.Fprintln(&out, "|---|---|---:|---:|---:|---:|---:|---|")
	for _, row := range slices.Concat(r.Rows, r.Others) {
		cells := r.cells(row)
		for i := range cells {
			cells[i] = escape.Replace(cells[i])
		}
		if last := &cells[len(cells)-1]; r.fails(row.Verdict) {
			*last = "**" + *last + "**"
		}
		line(cells)
	}
	// An empty line separates a list from a table in Markdown.
	separate := "\n"
	for _, note := range r.Notes {
		fmt.Fprintf(&out, "%s- %s\n", separate, note)
		separate = ""
	}
	return out.String()
}

// The two escapings of GitHub's workflow commands: of a message, and of a property such as title.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// github is the report as a job's log: the table, and an annotation for everything that fails.
// Annotations stand beside the log of a job; what passed needs none.
func (r *Report) github() string {
	out := r.text()
	for _, row := range r.Rows {
		c := r.cells(row)
		text := fmt.Sprintf("%s (old %s, new %s, p %s, n %s)", c[7], c[2], c[3], c[5], c[6])
		level := "warning"
		switch {
		case row.Verdict == Fine:
			continue
		case row.Verdict == Better:
			level = "notice"
			text = fmt.Sprintf("better: %s (old %s, new %s, p %s)", c[4], c[2], c[3], c[5])
		case r.fails(row.Verdict):
			level = "error"
		}
		title := strings.TrimSpace(row.Bench + " " + row.Label)
		out += fmt.Sprintf("::%s title=%s::%s\n", level, property.Replace(title),
			message.Replace(text))
	}
	return out
}
