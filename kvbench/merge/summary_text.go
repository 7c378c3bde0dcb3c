package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"kvbench/kvbench/units"
)

// Good reports whether no result is missing and every option is valid.
func (s *Summary) Good() bool { return !s.PartialFailure && !s.invalid }

// WriteJSON writes the summary as indented JSON. The same results give the same bytes.
func (s *Summary) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(s)
}

// WriteText writes a table with one row per option, the missing files with their reasons, the
// notice, and path.
func (s *Summary) WriteText(w io.Writer, path string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "option\tranks\ttrials\tread GiB/s\twrite GiB/s\ttok/s\tread p95 ms\twrite "+
		"p95 ms\tremarks")
	var below strings.Builder
	for _, group := range slices.Sorted(maps.Keys(s.Options)) {
		o := s.Options[group]
		read, write := Number(o.ReadBandwidth), Number(o.WriteBandwidth)
		if o.NoStorage {
			read, write = units.Unknown, units.Unknown
		}
		fmt.Fprintf(tab, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", group, o.RankCount, o.TrialCount,
			read, write, Number(o.AvgThroughput),
			latency(o.ReadP95MS), latency(o.WriteP95MS), strings.Join(o.remarks(), "; "))
		for _, missing := range o.MissingFiles {
			why := cmp.Or(o.Failed[missing], "no such file")
			fmt.Fprintf(&below, "missing: %s (%s)\n", missing, why)
		}
	}
	if s.Notice != "" {
		fmt.Fprintln(&below, s.Notice)
	}
	fmt.Fprintf(&below, "summary: %s\n", path)
	if err := tab.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, below.String())
	return err
}

// remarks returns the last column of the table: a simulation, an invalid or partial option, ranks
// that were served from memory, the common window.
func (o *Option) remarks() []string {
	var list []string
	if o.Simulated {
		list = append(list, "SIMULATED")
	}
	switch {
	case o.PartialFailure:
		list = append(list, "PARTIAL: "+o.Invalid)
	case !o.Valid:
		list = append(list, "INVALID: "+o.Invalid)
	}
	if len(o.memoryRanks) > 0 && (o.Valid || o.PartialFailure) {
		list = append(list, fmt.Sprintf("served from memory: rank %s",
			units.List(o.memoryRanks)))
	}
	if o.NoStorage {
		list = append(list, "no storage tier")
	}
	if o.Window != nil && o.RankCount > 1 {
		text := fmt.Sprintf("common window %.3g s", o.Window.DurationS)
		if !o.NoStorage {
			text += fmt.Sprintf(": read %.4g, write %.4g GiB/s", o.Window.ReadBandwidth, o.Window.WriteBandwidth)
		}
		list = append(list, text+fmt.Sprintf("; windows opened within %s (mean of the trials)",
			units.Nanoseconds.Text(o.Window.StartSkewS*1e9)))
	}
	return list
}

// Number formats v with four significant digits.
func Number(v float64) string { return fmt.Sprintf("%.4g", v) }

// latency formats a latency. It returns a dash for 0, which means that there was no operation.
func latency(ms float64) string {
	if ms == 0 {
		return "–"
	}
	return Number(ms)
}
