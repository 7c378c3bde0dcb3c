package gate

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/units"
	"kvbench/tools/stats"
)

// format returns the formatter of a unit. All rates of bytes in the report have one unit.
func (r *Report) format(unit string) func(float64) string {
	var rates []any
	for _, row := range r.Rows {
		for _, c := range row.Cells {
			if strings.HasSuffix(row.Unit, "B/s") && c.N() > 0 {
				rates = append(rates, c.Summary.Center)
			}
		}
	}
	return units.OfLine(unit, rates...)
}

// interval returns the half width of a median's confidence interval, as a share of the median. With fewer than
// six samples there is no interval of 95 %.
func interval(c stats.Cell) string {
	s := c.Summary
	switch {
	case c.N() == 0 || s.Center == 0:
		return units.Unknown
	case math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0):
		return "± ∞"
	}
	return "± " + share(max(s.Hi-s.Center, s.Center-s.Lo)/math.Abs(s.Center))
}

// share formats a share in per cent. A change from 0 is infinite.
func share(v float64) string {
	switch {
	case math.IsInf(v, 0):
		return "∞"
	case math.IsNaN(v):
		return units.Unknown
	}
	return units.Share.Text(v)
}

// p returns a p value. It is unknown if the metric is missing on the new side.
func (r Row) p(value float64) string {
	if r.new().N() == 0 {
		return units.Unknown
	}
	return units.Number.Text(value)
}

// answer returns the verdict in one word or two, and the reason, "" if it is in the other columns.
func (r *Report) answer(row Row) (verdict, why string) {
	switch row.Verdict {
	case Worse:
		return "WORSE", fmt.Sprintf("the typical pair of trials lost %s (at least %s), at most %s is allowed",
			share(row.Loss), share(row.AtLeast), share(row.Limit))
	case Few:
		return "TOO FEW", r.few(row)
	case Blind:
		if row.Stuck {
			return "BLIND", r.remedy(&row, 0)
		}
		return "BLIND", fmt.Sprintf("detects %s, %s is the limit", share(row.Sees), share(row.Limit))
	case Missing:
		return "MISSING", "no such result in new"
	case Failed:
		return "FAILED", row.Why
	case Shown:
		return "", ""
	}
	return string(row.Verdict), ""
}

// whole returns the verdict with the reason.
func (r *Report) whole(row Row) string {
	verdict, why := r.answer(row)
	if why == "" {
		return verdict
	}
	return verdict + ": " + why
}

// few returns why no difference could be found, and how many samples are enough.
func (r *Report) few(row Row) string {
	m, n := row.old().N(), row.new().N()
	text := fmt.Sprintf("%d against %d", m, n)
	if row.lacksOperations() { // more trials do not help
		return text + fmt.Sprintf(" of %d and %d trials have enough operations for this "+
			"percentile; measure with a longer -benchtime", row.Trials[oldSide],
			row.Trials[newSide])
	}
	// The three reasons; the first holds whatever other benchmarks run.
	least := 1.0
	if c := row.new().Change; c != nil {
		least = c.Least()
	}
	switch {
	case least >= r.Options.Alpha:
		text += fmt.Sprintf(" can never be below p = %g", r.Options.Alpha)
	case min(m, n) < stats.LeastSamples:
		text += fmt.Sprintf(", at least %d per side are compared", stats.LeastSamples)
	default:
		text += fmt.Sprintf(" give p %.2g at best, too much for %d metrics together", least,
			len(r.Family))
	}
	return text + "; " + Needs(r.Tested, r.Options.Alpha, row.new().InBlocks())
}

// Needs returns the -count that lets each of so many metrics become significant.
func Needs(metrics int, alpha float64, blocks bool) string {
	text := fmt.Sprintf("run with -count %d", stats.Needed(metrics, alpha, blocks))
	if metrics > 1 {
		text += fmt.Sprintf(" for these %d metrics", metrics)
	}
	return text
}

// counted are the verdicts in the order of the headline, with the words for their counts.
var counted = []struct {
	verdict Verdict
	words   string
}{{Worse, "worse than allowed"}, {Missing, "missing"}, {Failed, "with failed or missing trials"},
	{Few, "with too few samples"}, {Blind, "blind"}, {Better, "better"}, {Fine, "ok"}}

// outcomes has the words for the outcome of the gate.
var outcomes = map[Outcome]string{Passed: "passed", Undecided: "CANNOT TELL", Lost: "FAILED"}

// headline returns the outcome of the gate in one line.
func (r *Report) headline() string {
	counts := make(map[Verdict]int)
	for _, row := range r.Rows {
		counts[row.Verdict]++
	}
	var parts []string
	for _, c := range counted {
		if n := counts[c.verdict]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, c.words))
		}
	}
	answer := fmt.Sprintf("gate %s: %s", outcomes[r.Outcome()], strings.Join(parts, ", "))
	switch {
	case len(r.Family) > 0:
		within := ""
		if r.InBlocks {
			within = " within blocks"
		}
		answer += fmt.Sprintf(" (rank test%s of a loss beyond the limit, alpha %g, Holm over %d)",
			within, r.Options.Alpha, len(r.Family))
	// Passed by option, without a finding.
	case r.Outcome() == Passed && counts[Few] > 0:
		answer += ": nothing could be shown with so few trials"
	}
	return answer
}

// remarks returns the notes, and explanations of the table.
func (r *Report) remarks() []string {
	list := slices.Clone(r.Notes)
	var blindest *Row
	for _, row := range r.Family {
		blind := row.Verdict == Blind && !row.Stuck
		if blind && (blindest == nil || row.Sees/row.Limit > blindest.Sees/blindest.Limit) {
			blindest = row
		}
	}
	if blindest != nil {
		list = append(list, "blind: "+r.remedy(blindest, 0))
	}
	if len(r.Family) > 0 {
		list = append(list, fmt.Sprintf("detects: the smallest loss that 4 of 5 such gates tell from none, "+
			"at p = %.2g", r.level()))
	}
	return list
}

// heads are the columns of the table, of which a terminal has room for the first ones.
var heads = []string{"benchmark", "metric", "old", "new", "change", "p", "detects", "old ±", "new ±", "n",
	"p alone", "power"}

// shortHeads is the number of columns at a terminal, without the verdict.
const shortHeads = 7

// cells returns a row's cells in the table, without the verdict.
func (r *Report) cells(row Row) []string {
	cells := slices.Repeat([]string{units.Unknown}, len(heads))
	cells[0], cells[1] = row.Bench, row.Label
	if row.Verdict == Failed {
		for side, n := range row.Trials {
			if n > 0 {
				cells[2+side] = fmt.Sprintf("%d of %d", n-row.Lacks[side], n)
			}
		}
		return cells
	}
	old, new := row.old(), row.new()
	format := r.format(row.Unit)
	for side, c := range []stats.Cell{old, new} {
		if c.N() > 0 {
			cells[2+side] = format(c.Summary.Center)
		}
	}
	if new.Change != nil {
		cells[4] = units.Change(new.Change.Ratio)
	}
	cells[5], cells[10] = row.p(row.Adjusted), row.p(row.P)
	cells[7], cells[8], cells[9] = interval(old), interval(new), fmt.Sprintf("%d+%d", old.N(), new.N())
	switch row.Verdict {
	case Fine, Better, Worse, Blind: // tested as a member of the family
		cells[6], cells[11] = share(row.Sees), share(row.Power)
	}
	return cells
}

// Formats are the report's formatters by the values of -format.
var Formats = map[string]func(*Report) string{"text": (*Report).text,
	"markdown": (*Report).markdown, "github": (*Report).github, "junit": (*Report).junit}

// table returns the table with the first so many columns of heads, and the verdict of each row.
func (r *Report) table(columns int, verdict func(Row) string) (s report.Section) {
	for _, head := range append(heads[:columns:columns], "verdict") {
		s.Columns = append(s.Columns, report.Column{Name: head})
	}
	for _, row := range slices.Concat(r.Rows, r.Others) {
		var cells []any
		for _, cell := range append(r.cells(row)[:columns], verdict(row)) {
			cells = append(cells, cell)
		}
		s.Rows = append(s.Rows, cells)
	}
	return s
}

// text returns the report for a terminal, with the reasons of verdicts below the table.
func (r *Report) text() string {
	var notes report.Notes
	s := r.table(shortHeads, func(row Row) string {
		verdict, why := r.answer(row)
		if why != "" && row.Verdict != Blind || row.Stuck { // the table has what a blind row detects
			verdict += notes.Add(why)
		}
		return verdict
	})
	s.Below = slices.Concat(notes.Lines(), r.remarks(), []string{r.headline()})
	return s.Alone()
}

// markdown returns the report for a comment or a job summary.
func (r *Report) markdown() string {
	s := r.table(len(heads), func(row Row) string {
		if r.outcome(row) != Passed {
			return "**" + r.whole(row) + "**"
		}
		return r.whole(row)
	})
	s.Below = r.remarks()
	return fmt.Sprintf("**%s**\n\n%s", r.headline(), s.Markdown())
}

// Escapes of GitHub's workflow commands: for a message, and for a property such as title.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// github returns the report for a job's log: the table, and an annotation for each row that is not ok.
func (r *Report) github() string {
	out := r.text()
	for _, row := range r.Rows {
		c := r.cells(row)
		text := fmt.Sprintf("%s (old %s, new %s, p %s, n %s)", r.whole(row), c[2], c[3], c[5], c[9])
		level := "warning"
		switch {
		case row.Verdict == Fine:
			continue
		case row.Verdict == Better:
			level = "notice"
			text = fmt.Sprintf("better: %s (old %s, new %s)", c[4], c[2], c[3])
		case r.outcome(row) != Passed:
			level = "error"
		}
		title := strings.TrimSpace(row.Bench + " " + row.Label)
		out += fmt.Sprintf("::%s title=%s::%s\n", level, property.Replace(title),
			message.Replace(text))
	}
	return out
}

// suite, test and answer are the elements of a JUnit file that all CI systems read.
type (
	suite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Skipped  int      `xml:"skipped,attr"`
		Cases    []test   `xml:"testcase"`
		Out      string   `xml:"system-out"`
	}
	test struct {
		Class   string  `xml:"classname,attr"`
		Name    string  `xml:"name,attr"`
		Failure *answer `xml:"failure"`
		Error   *answer `xml:"error"`
		Skipped *answer `xml:"skipped"`
		Out     string  `xml:"system-out,omitempty"`
	}
	answer struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
	}
)

// junit returns the report as test cases: Lost is a failure, Undecided is an error, and a row that
// passes only by an option is skipped.
func (r *Report) junit() string {
	s := suite{Name: "kvreport gate", Tests: len(r.Rows), Out: r.text()}
	for _, row := range r.Rows {
		t := test{Class: row.Bench, Name: row.Label}
		cells := r.cells(row)
		said := &answer{r.whole(row), string(row.Verdict)}
		switch outcome := r.outcome(row); {
		case outcome == Lost:
			t.Failure = said
			s.Failures++
		case outcome == Undecided:
			t.Error = said
			s.Errors++
		case row.Verdict != Fine && row.Verdict != Better:
			t.Skipped = &answer{Message: said.Message}
			s.Skipped++
		}
		for i, head := range heads[2:] {
			t.Out += head + ": " + cells[2+i] + "\n"
		}
		t.Out += "verdict: " + said.Message + "\n"
		s.Cases = append(s.Cases, t)
	}
	text, _ := xml.MarshalIndent(s, "", "  ") // cannot fail for strings and numbers
	return xml.Header + string(text) + "\n"
}
