package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
)

// LogLines is the result in at most nine lines for a benchmark's log, which
// the testing package cuts after ten without -v. No line looks like the
// `key: value` of benchmark configuration.
func LogLines(r *result.Result) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if n := r.Notice; n != "" {
		add("%s", n)
	}
	if s := r.Simulation; s != nil && s.SustainedUsers != nil {
		add("it would sustain %.0f of %d users, the queue grew by %s requests/s", *s.SustainedUsers,
			r.Workload.Users, number(s.QueueGrowth))
	}
	if s := r.Summary.AutoscalingSummary; s != nil {
		add("autoscaler (%s) sustained %d users at up to %s, from %d to at most %d users in %d "+
			"rounds", s.Mode, s.SustainedUsers,
			rate(s.PeakRate), s.InitialUsers, s.PeakUsers, s.Rounds)
	}
	if r.Status != result.StatusComplete {
		add("the trial is %s (ended by %s), because %s", r.Status, r.EndedBy,
			cmp.Or(r.Error, "its window did not end in order"))
	}
	for _, t := range r.Tiers {
		if t.Level == "storage" {
			add("storage moved %s read and %s written in %s", bytes(t.Read.Bytes),
				bytes(t.Write.Bytes), ns(r.WindowNS))
		}
	}
	if v := r.Harness.Verdict; v.Kind != "" {
		add("%s, because %s", v.Kind, v.Reason)
	}
	if tr, _ := captured(r); tr != nil && tr.Capture.Status != tracing.StatusTraced {
		why := tr.Capture.Reason
		if len(tr.Capture.Needs) > 0 {
			why += "; needed: " + strings.Join(tr.Capture.Needs, "; ")
		}
		add("not traced: %s", why)
	}
	if n := len(r.Warnings); n > 0 {
		add("%s in the summary, the first says %s", units.Plural(n, "warning"), r.Warnings[0])
	}
	return lines
}

// WriteStorageHealth writes the Python benchmark's assessment. It ignores entry size, so no report
// prints it unless asked.
func WriteStorageHealth(w io.Writer, r *result.Result) error {
	h := r.Summary.CacheStats.StorageHealth
	var b strings.Builder
	fmt.Fprintf(&b, "Storage health as the Python benchmark judges it (entry size ignored): %s, "+
		"%d of %d passed\n",
		h.OverallStatus, h.PassedCount, h.TotalCount)
	for _, c := range h.Criteria {
		word := "fail"
		if c.Passed {
			word = "pass"
		}
		fmt.Fprintf(&b, "  %s  %-40s %s %s\n", word, c.Name, number(c.Actual), c.Unit)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
