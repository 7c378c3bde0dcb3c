package gate

import (
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// What CI systems read of a file of JUnit's, in the form that all of them know.
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

// junit is the report as test cases: lost is a failure, undecided an error, and what would be
// either but is allowed is skipped.
func (r *Report) junit() string {
	s := suite{Name: "kvreport gate", Tests: len(r.Rows), Out: r.text()}
	for _, row := range r.Rows {
		t := test{Class: row.Bench, Name: row.Label}
		said := &answer{r.answer(row), string(row.Verdict)}
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
		cells := r.cells(row)
		for i, head := range heads[2:] {
			t.Out += head + ": " + cells[2+i] + "\n"
		}
		s.Cases = append(s.Cases, t)
	}
	text, _ := xml.MarshalIndent(s, "", "  ") // of strings and numbers, which cannot fail
	return xml.Header + string(text) + "\n"
}

// families are what OpenMetrics have of each row. A unit stands at the end of the name, as there.
var families = []struct {
	name, help string
	always     bool // of rows that were not tested, too
	of         func(Row) float64
}{
	{"old", "Median of the old side, in the unit of the metric.", true,
		func(r Row) float64 { return centreOf(r, oldSide) }},
	{"new", "Median of the new side.", true, func(r Row) float64 { return centreOf(r, newSide) }},
	{"loss_ratio", "Loss of the typical pair (Hodges-Lehmann), negative for a gain.", false,
		func(r Row) float64 { return r.Loss }},
	{"limit_ratio", "Loss that is allowed.", true, func(r Row) float64 { return r.Limit }},
	{"sees_ratio", "Smallest loss that 4 of 5 such gates tell from none.", false,
		func(r Row) float64 { return r.Sees }},
	{"power_ratio", "Share of such gates that call a loss of twice the limit worse.", false,
		func(r Row) float64 { return r.Power }},
	{"p_adjusted_ratio", "P value of a loss beyond the limit, after Holm's correction.", false,
		func(r Row) float64 { return r.Adjusted }},
}

// centreOf is the median of a side, not a number without trials.
func centreOf(r Row, side int) float64 {
	if r.Cells[side].N() == 0 {
		return math.NaN()
	}
	return r.Cells[side].Summary.Center
}

// openmetrics is the report in the text format of OpenMetrics 1.0, for a push gateway or the
// collector of text files. What nobody knows has no line. Values are in seconds and bytes, and the
// label metric has the name that benchmark lines have.
func (r *Report) openmetrics() string {
	var out strings.Builder
	family := func(name, help string) {
		fmt.Fprintf(&out, "# HELP kvbench_gate_%s %s\n# TYPE kvbench_gate_%s gauge\n", name, help,
			name)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	line := func(name string, row Row, more string, v float64) {
		fmt.Fprintf(&out, "kvbench_gate_%s{benchmark=\"%s\",metric=\"%s\"%s} %s\n", name,
			quote.Replace(row.Bench), quote.Replace(row.Label), more,
			strconv.FormatFloat(v, 'g', 7, 64)) // more digits nobody measured
	}
	for _, f := range families {
		family(f.name, f.help)
		for _, row := range r.Rows {
			v := f.of(row)
			known := row.judged() || row.Verdict != Failed && f.always
			if known && !math.IsNaN(v) && !math.IsInf(v, 0) {
				line(f.name, row, "", v)
			}
		}
	}
	family("verdict", "1 for the verdict of the metric.")
	for _, row := range r.Rows {
		line("verdict", row, fmt.Sprintf(`,verdict="%s"`, row.Verdict), 1)
	}
	family("outcome", "0 passed, 1 undecided, 2 lost.")
	fmt.Fprintf(&out, "kvbench_gate_outcome %d\n# EOF\n", r.Outcome())
	return out.String()
}
