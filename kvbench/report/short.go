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

// WriteShort writes one trial of several: how it ended, what it did and how fast, and what to
// doubt. WriteSummary writes all of that, too.
func WriteShort(w io.Writer, r *result.Result) error {
	s := &summary{Result: r} // without the trace: its warnings stand among the others
	s.title()
	s.put("error", s.Error)
	s.lines(checkpointLines(s.Checkpoint, s.Network))
	if r.WindowNS > 0 {
		s.line("verdict", "%s: %s", r.Harness.Verdict.Kind, r.Harness.Verdict.Reason)
		s.throughput()
		s.tables(moved(r))
	}
	s.stalls()
	s.doubts()
	return s.writeTo(w)
}

// LogLines is the result in at most nine lines for a benchmark's log, which the testing package
// cuts after ten without -v. No line looks like the `key: value` of benchmark configuration, or
// benchstat would take it for one and not compare the runs.
func LogLines(r *result.Result) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if n := r.Notice; n != "" {
		add("%s", n)
	}
	if s := r.Simulation; s != nil && s.SustainedUsers != nil {
		add("%s; the queue grew by %s requests/s", sustainedUsers(r), number(s.QueueGrowth))
	}
	if s := r.Autoscaler; s != nil {
		add("autoscaler (%s) sustained %d users at up to %s, from %d to at most %d users in %d "+
			"rounds", s.Mode, s.SustainedUsers, rate(s.PeakRate), s.InitialUsers, s.PeakUsers,
			s.Rounds)
	}
	if r.Status != result.StatusComplete {
		add("the trial is %s (ended by %s), because %s", r.Status, r.EndedBy,
			cmp.Or(r.Error, "its window did not end in order"))
	}
	if text := together(r); text != "" {
		add("%s", text)
	}
	if r.Removal != nil {
		add("%s", removed(r))
	}
	lines = append(lines, joined(checkpointLines(r.Checkpoint, r.Network))...)
	for _, t := range r.Tiers {
		if t.Level == "storage" && r.Removal == nil && r.Checkpoint == nil {
			add("storage moved %s read and %s written in %s", bytes(t.Read.Bytes),
				bytes(t.Write.Bytes), ns(r.WindowNS))
		}
	}
	if v := r.Harness.Verdict; v.Kind != "" {
		if v.Kind == result.NoVerdict {
			v.Kind = "no verdict"
		}
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
		first := ": "
		if n > 1 {
			first = ", the first says "
		}
		add("%s in the summary%s%s", units.Plural(n, "warning"), first, r.Warnings[0])
	}
	return lines
}
