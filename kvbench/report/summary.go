package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
)

// How values read in a sentence.
var (
	number, count, bytes = units.Number.Text, units.Count.Text, units.Bytes.Text
	rate, ns, percent    = units.BytesPerSec.Text, units.Nanoseconds.Text, units.Percent
)

// Summary is the trial's summary: what ran, what the storage did, for which load, at what cost, and what to
// doubt. Units are binary, "–" stands for unknown or for a percentile with too few samples. It has about 80
// lines, with an empty line between its parts. It fails for a trace that the result cannot have.
func Summary(r *result.Result) (string, error) {
	trace, err := captured(r)
	if err != nil {
		return "", fmt.Errorf("write summary: %w", err)
	}
	var parts []string
	for _, group := range groups(r) {
		parts = append(parts, join(group...))
	}
	parts[0] = title(r) + parts[0]
	if trace != nil {
		parts = append(parts, trace.Text(fioInput(r).Application))
	}
	parts = append(parts, join(stalls(r), warnings(r, trace), failures(r)))
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "\n"), nil
}

// join is the text of sections.
func join(all ...Section) (text string) {
	for _, s := range all {
		text += s.String()
	}
	return text
}

// title is one line about which trial it was and whether it counts, with its notice and its error. A
// simulated one is marked in its first word.
func title(r *result.Result) string {
	text := cmp.Or(r.Name, r.Benchmark)
	if r.Option != nil {
		text += fmt.Sprintf(" (option %d)", *r.Option)
	}
	if r.Simulation != nil {
		text = "SIMULATED " + text
	}
	ended := ""
	if r.EndedBy != "" {
		ended = fmt.Sprintf(" (ended by %s)", strings.ReplaceAll(r.EndedBy, "_", " "))
	}
	var more Section
	more.put("", r.Notice)
	more.put("error", r.Error)
	return fmt.Sprintf("%s, %s division, trial %d of %d, %s: %s%s\n%s", text, r.Division,
		r.Trial+1, max(r.Count, 1), ranks(r), r.Status, ended, more)
}

// ranks returns which clients the numbers are of: one client, all clients of a trial, or the clients
// that were not lost.
func ranks(r *result.Result) string {
	have, all := len(r.MergedRanks), max(r.Ranks, 1)
	switch {
	case have == 0: // never merged
		return fmt.Sprintf("rank %d of %d", r.Rank, all)
	case have < all:
		return fmt.Sprintf("%d of %d ranks", have, all)
	}
	return fmt.Sprintf("%d ranks", all)
}

// LogLines is the result in a few lines for a benchmark's log, of which the testing package shows ten
// without -v. No line looks like the `key: value` of benchmark configuration, or benchstat would take it for
// one and not compare the runs.
func LogLines(r *result.Result) (lines []string) {
	var s Section
	s.put("", r.Notice)
	if m := r.Simulation; m != nil && m.SustainedUsers != nil {
		s.line("", "%s; the queue grew by %s requests/s", sustainedUsers(r), number(m.QueueGrowth))
	}
	if r.Status != result.StatusComplete {
		s.line("", "the trial is %s (ended by %s), because %s", r.Status, r.EndedBy,
			cmp.Or(r.Error, "its window did not end in order"))
	}
	if v := r.Harness.Verdict; v.Kind == result.NoVerdict {
		s.line("", "no verdict, because %s", v.Reason)
	} else if v.Kind != "" {
		s.line("", "%s, because %s", v.Kind, v.Reason)
	}
	s.put("", Worth(r))
	if n := len(r.Warnings); n > 0 {
		s.line("", "%s in summary.txt", units.Plural(n, "warning"))
	}
	for _, l := range s.Lines {
		lines = append(lines, l.Text)
	}
	return lines
}

// verdict reports what limited the trial, the completions in the window, and the share of the rate of
// plain sequential I/O if StorageCeiling ran before in the same process. Tokens per second of storage
// time are only on the benchmark line: this figure of the Python benchmark adds up the times of parallel
// requests.
func verdict(r *result.Result) (s Section) {
	s.Title = "Verdict"
	s.line("verdict", "%s: %s", r.Harness.Verdict.Kind, r.Harness.Verdict.Reason)
	if r.CompletionUnit == result.UnitOperation {
		s.put("throughput", units.Plural(r.Completions(), "operation"))
	} else {
		s.line("throughput", "%s, %s requests/s, %s tok/s",
			units.Plural(r.Requests.Completed, "request"),
			number(r.Requests.RequestsPerSecond), number(r.Requests.TokensPerSecond))
	}
	if c := r.Ceiling; c != nil {
		// Each of them, because the ratio is interpolated and a reader may want to check it.
		var points []string
		for _, p := range c.Points {
			points = append(points, fmt.Sprintf("%s at %s reads", rate(p.Rate),
				units.Share.Text(p.ReadShare)))
		}
		s.line("", "%s of what plain sequential I/O moves in this mix, removing nothing (%s)",
			percent(r.CeilingRatio), strings.Join(points, ", "))
	}
	return s
}

// warnings lists as many warnings as fit on a screen. The JSON has all warnings. The page lists the
// warnings of all trials together. The warnings of a trace are in the section of the trace.
func warnings(r *result.Result, trace *tracing.Trace) (s Section) {
	const most = 12
	list := r.Warnings
	if trace != nil && trace.Capture.Status == tracing.StatusTraced {
		list = slices.DeleteFunc(slices.Clone(list),
			func(w string) bool { return slices.Contains(trace.Capture.Warnings, w) })
	}
	for _, w := range list[:min(len(list), most)] {
		s.put("warning", w)
	}
	if more := len(list) - most; more > 0 {
		s.line("", "and %d more warnings in the JSON", more)
	}
	return s
}

// failures lists the most frequent failed operations. The JSON has all of them.
func failures(r *result.Result) (s Section) {
	const most = 5
	s.Title = "Failures"
	for _, e := range r.Errors[:min(len(r.Errors), most)] {
		s.line("failed", "%s × %s %s: %s", count(e.Count), e.Tier, e.Operation, e.Errno)
	}
	for _, e := range r.ErrorSamples {
		if e.Message != "" {
			s.line("", "first: %s: %s", e.Where(), e.Message)
			break
		}
	}
	return s
}
