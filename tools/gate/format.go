package gate

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchunit"

	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// value writes a number of a tidied unit as a person reads it: 1.235ms, 4.657GiB/s.
func value(v float64, unit string) string {
	if math.IsNaN(v) {
		return "–"
	}
	// benchunit scales by powers of 1000 or 1024, whichever the unit has.
	text := benchunit.Scale(v, benchunit.ClassOf(unit))
	switch {
	case strings.HasSuffix(unit, "B/s"):
		return text + "B/s"
	case unit == "sec/op", strings.HasSuffix(unit, "-sec"):
		return text + "s"
	case unit == "B/op", strings.HasSuffix(unit, "-bytes"):
		return text + "B"
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
	switch {
	case r.New.N() == 0 || r.Old.N() == 0:
		return "–"
	case r.Old.Summary.Center == r.New.Summary.Center:
		return "0.0%"
	// From nothing to something is no percentage.
	case r.Old.Summary.Center == 0:
		return "?"
	}
	return fmt.Sprintf("%+.1f%%",
		100*(r.New.Summary.Center-r.Old.Summary.Center)/math.Abs(r.Old.Summary.Center))
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
	if r.New.N() == 0 {
		return "–"
	}
	// What is only shown is not corrected.
	if r.Adjusted != r.P && r.Verdict != Shown {
		return fmt.Sprintf("%.4f → %.4f", r.P, r.Adjusted)
	}
	return fmt.Sprintf("%.4f", r.P)
}

// samples are those of old and new.
func (r Row) samples() string { return fmt.Sprintf("%d+%d", r.Old.N(), r.New.N()) }

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
		if row.Unit == "" {
			return "MISSING in new"
		}
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
	m, n := row.Old.N(), row.New.N()
	text := fmt.Sprintf("NOT ENOUGH SAMPLES: %d against %d", m, n)
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
	text += fmt.Sprintf("; run with -count %d", row.Need)
	if n := r.Tested; n > 1 {
		text += fmt.Sprintf(" for these %d metrics", n)
	}
	return text
}

// Headline is the answer in one line.
func (r *Report) Headline() string {
	counts := make(map[Verdict]int)
	for _, row := range r.Rows {
		counts[row.Verdict]++
	}
	var parts []string
	add := func(v Verdict, text string) {
		if n := counts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(Worse, "worse than allowed")
	add(Missing, "missing")
	add(Few, "with too few samples")
	add(Better, "better")
	add(Fine, "without a significant loss beyond the limit")
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
	return []string{row.Bench, row.Unit, centre(row.Old, row.tidy),
		centre(row.New, row.tidy), row.change(), row.p(), row.samples(), r.answer(row)}
}

// WriteText writes the report for a terminal.
func (r *Report) WriteText(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, strings.Join(heads, "\t"))
	for _, row := range slices.Concat(r.Rows, r.Others) {
		fmt.Fprintln(tab, strings.Join(r.cells(row), "\t"))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, note := range r.remarks() {
		fmt.Fprintln(w, note)
	}
	_, err := fmt.Fprintln(w, r.Headline())
	return err
}

// remarks are the lines below the table.
func (r *Report) remarks() []string {
	list := append([]string(nil), r.Notes...)
	for _, name := range r.OnlyNew {
		list = append(list, name+": only in new, nothing to compare it with")
	}
	if len(r.Ungated) > 0 && !r.Options.All {
		list = append(list, fmt.Sprintf("not gated: %s (-all shows them, -max-regress "+
			"METRIC=PERCENT gates one)", strings.Join(r.Ungated, ", ")))
	}
	return list
}

// WriteMarkdown writes the report for a comment or a job summary.
func (r *Report) WriteMarkdown(w io.Writer) error {
	escape := strings.NewReplacer("|", `\|`, "\n", " ")
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	fmt.Fprintf(w, "**%s**\n\n", escape.Replace(r.Headline()))
	line(heads)
	fmt.Fprintln(w, "|---|---|---:|---:|---:|---:|---:|---|")
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
	var list strings.Builder
	// An empty line separates a list from a table in Markdown.
	for i, note := range r.remarks() {
		if i == 0 {
			list.WriteString("\n")
		}
		fmt.Fprintf(&list, "- %s\n", note)
	}
	_, err := io.WriteString(w, list.String())
	return err
}

// The two escapings of GitHub's workflow commands: of a message, and of a property such as title.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// WriteGitHub writes the report as a job's log: the table, and an annotation for everything that
// fails.
func (r *Report) WriteGitHub(w io.Writer) error {
	if err := r.WriteText(w); err != nil {
		return err
	}
	// Annotations stand beside the log of a job; what passed needs none.
	for _, row := range r.Rows {
		level := "error"
		switch {
		case row.Verdict == Better:
			level = "notice"
		case row.Verdict == Fine:
			continue
		case !r.fails(row.Verdict):
			level = "warning"
		}
		c := r.cells(row)
		text := fmt.Sprintf("%s (old %s, new %s, p %s, n %s)", c[7], c[2], c[3], c[5], c[6])
		if row.Verdict == Better {
			text = fmt.Sprintf("better: %s (old %s, new %s, p %s)", c[4], c[2], c[3], c[5])
		}
		title := strings.TrimSpace(row.Bench + " " + row.Unit)
		if _, err := fmt.Fprintf(w, "::%s title=%s::%s\n", level, property.Replace(title),
			message.Replace(text)); err != nil {
			return err
		}
	}
	return nil
}

// Refused says why the sides cannot be compared, each reason once.
func (r *Report) Refused() (lines []string) {
	said := map[Mismatch]int{} // without the benchmark → index in lines
	for _, m := range r.Refusals {
		reason := Mismatch{"", m.Name, m.Old, m.New}
		if i, known := said[reason]; known {
			if more := " and others): "; !strings.Contains(lines[i], more) {
				lines[i] = strings.Replace(lines[i], "): ", more, 1)
			}
			continue
		}
		said[reason] = len(lines)
		advice := "such numbers mean different things; measure both sides alike"
		if !load.Defines(m.Name) {
			advice = "measure both sides alike, or give -ignore " + m.Name +
				" if that is what you compare"
		}
		lines = append(lines, fmt.Sprintf("refused: %s differs (%s against %s in %s): %s", m.Name,
			m.Old, m.New, m.Bench, advice))
	}
	return lines
}
