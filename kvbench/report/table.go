package report

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"kvbench/kvbench/result"
	"kvbench/tracing"
)

type summaryWriter struct {
	w       *bufio.Writer
	r       *result.Result
	capture *tracing.Trace // what the kernel saw, nil when it was not asked
}

// line writes one line with its topic in the margin; an empty topic continues the one above.
func (s *summaryWriter) line(topic, format string, args ...any) {
	fmt.Fprintf(s.w, "%-11s %s\n", topic, fmt.Sprintf(format, args...))
}

// table writes rows aligned in columns under a topic; the first row is the heading.
func (s *summaryWriter) table(topic string, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		// A tab after every cell aligns it; the first column is left-aligned by hand below.
		fmt.Fprintln(t, strings.Join(row[1:], "\t")+"\t")
	}
	_ = t.Flush() // to a strings.Builder
	width := 0
	for _, row := range rows {
		width = max(width, len([]rune(row[0])))
	}
	for i, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		label := rows[i][0] + strings.Repeat(" ", width-len([]rune(rows[i][0])))
		fmt.Fprintln(s.w, strings.TrimRight(fmt.Sprintf("%-11s %s%s", topic, label, l), " "))
		topic = ""
	}
}

func nonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// join joins the parts that say something: a label without its value is left out.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool {
		p = strings.TrimSpace(p)
		return p == "" || p == "turns" || p == "generation" || p == "decode reads"
	}), ", ")
}
