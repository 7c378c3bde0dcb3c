package submission

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/aggregate"
)

// writeCheck writes the page that a reviewer reads first: what was aggregated, what deviates, what to know.
func writeCheck(w io.Writer, division string, c *Check, s *aggregate.Summary) error {
	p := &printer{w: w}
	p.line("# Closed-division check")
	p.line("")
	p.line("**%s.**", result.ClosedNotice)
	p.line("")
	if c.Closed() {
		p.line("Nothing deviates from the closed division.")
	} else {
		p.line("%d deviation(s) from the closed division; this tree stands under `%s/`.", len(c.Deviations), division)
	}
	p.line("")
	p.line("| option | benchmark | model | ranks | trials | read GiB/s | write GiB/s | tok/s | read p95 ms | write p95 ms |")
	p.line("|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, group := range slices.Sorted(maps.Keys(s.Options)) {
		o := s.Options[group]
		p.line("| %s | %s | %s | %d | %d | %s | %s | %s | %s | %s |", group, o.Benchmark, o.Model, o.RankCount, o.TrialCount, number(o.ReadBandwidth),
			number(o.WriteBandwidth), number(o.AvgThroughput), number(o.ReadP95MS), number(o.WriteP95MS))
	}
	p.line("")
	p.line("Sums over ranks, means over trials; the device p95 is the largest of all ranks and trials. Medians, spread, the ranks'")
	p.line("common window and merged percentiles stand in the run summary.")
	if len(c.Deviations) > 0 {
		p.line("")
		p.line("## Deviations")
		p.line("")
		for _, d := range c.Deviations {
			p.line("- %s: %s (%s)", optionName(d.Group), d.What, places(d.Where))
		}
	}
	if len(c.Remarks) > 0 {
		p.line("")
		p.line("## Remarks")
		p.line("")
		for _, r := range c.Remarks {
			p.line("- %s", r)
		}
	}
	return p.err
}

func optionName(group string) string {
	if strings.Trim(group, "0123456789") == "" {
		return "option " + group
	}
	return group
}

// places names up to three.
func places(list []string) string {
	if len(list) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:3], ", "), len(list)-3)
	}
	return strings.Join(list, ", ")
}

func number(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.4g", *v)
}
