package report

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Scenarios is the table of the named jobs of scenarios. A row has the typical trial of a benchmark line,
// and what limited its trials. The table fits 100 columns. rest are all other results. The text is "" if the
// table has no row.
func Scenarios(results []*result.Result) (text string, rest []*result.Result) {
	s := Section{Columns: columns("scenario", units.Number, "req/s", units.Nanoseconds, "p50", "p95",
		units.BytesPerSec, "read", "write", units.Share, "hits", "tiers, %", "limit")}
	var notes Notes
	trials, names := byName(results)
	for _, name := range names {
		job := jobOf(name)
		if job == "" || trials[name][0].CompletionUnit == result.UnitOperation {
			rest = append(rest, trials[name]...)
			continue
		}
		if slices.ContainsFunc(names, func(other string) bool { return other != name && jobOf(other) == job }) {
			job = name
		}
		r := Typical(trials[name])
		read, write := r.StorageTraffic()
		var hits any
		if r.Prompt != nil {
			hits = r.Prompt.HitRatio
		}
		s.add(job, r.Requests.RequestsPerSecond, r.Latency.Request.EndToEnd.P50,
			r.Latency.Request.EndToEnd.P95, read.BytesPerSecond, write.BytesPerSecond, hits, readFrom(r),
			limits(trials[name], &notes))
	}
	if len(s.Rows) == 0 {
		return "", rest
	}
	s.Below = append(notes.Lines(), "p50, p95: of requests from their arrival to their end. read, write: of the "+
		"storage tier.", "hits: of prompt tokens. tiers: bytes read from the gpu, the cpu and the storage tier.")
	return s.Alone(), rest
}

// jobOf returns the job in the name of a benchmark line, "" if the line is of no scenario.
func jobOf(name string) string {
	_, job, _ := strings.Cut(name, "/job=")
	job, _, _ = strings.Cut(job, "/")
	return job
}

// readFrom returns the shares of the three tiers in the bytes that requests read, in percent.
func readFrom(r *result.Result) string {
	total, bytes := int64(0), map[string]int64{}
	for _, t := range r.Tiers {
		bytes[t.Level] = t.Read.EntryBytes
		total += t.Read.EntryBytes
	}
	if total == 0 {
		return units.Unknown
	}
	var shares []string
	for _, level := range []string{"gpu", "cpu", "storage"} {
		shares = append(shares, fmt.Sprintf("%.0f", 100*float64(bytes[level])/float64(total)))
	}
	return strings.Join(shares, "/")
}

// limits returns each kind of limit of the trials once. A trial that is not complete has its status as the
// kind, and the reason for it becomes a note.
func limits(trials []*result.Result, notes *Notes) string {
	var reasons, kinds []string
	for _, r := range trials {
		kind := strings.TrimSuffix(r.Harness.Verdict.Kind, "-limited")
		if r.Status != result.StatusComplete {
			kind = r.Status
			reasons = append(reasons, Doubts([]*result.Result{r}, "")...)
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, ", ") + notes.Add(reasons...)
}
