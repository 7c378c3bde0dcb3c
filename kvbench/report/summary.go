package report

import (
	"embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tracing"
)

//go:embed *.tmpl
var texts embed.FS

// How values read in a sentence.
var (
	number, count, bytes = units.Number.Text, units.Count.Text, units.Bytes.Text
	rate, ns, percent    = units.BytesPerSec.Text, units.Nanoseconds.Text, units.Percent
)

// templates are parsed once; a mistake in them fails every test.
var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"number": number, "count": count, "bytes": bytes, "rate": rate, "ns": ns, "percent": percent,
	"share": units.Share.Text, "seconds": units.Seconds.Text, "ratio": units.HitRatio.Text,
	"plural": units.Plural, "margin": func() string { return strings.Repeat(" ", 12) },
	"mean": func(v []float64) string { return rate(units.Finite(stat.Mean(v, nil))) },
	"add":  func(a, b int) int { return a + b }, "max": func(a, b int) int { return max(a, b) },
	"words":      func(key string) string { return strings.ReplaceAll(key, "_", " ") },
	"mostRounds": func() int { return mostRounds },
	"untraced":   untraced, "join": strings.Join, "rounds": rounds, "sizes": sizes,
	"latencies": latencies, "bySize": bySize, "reads": reads, "contexts": contexts,
	"loadingWins": loadingWins, "tiers": tiers, "kinds": kinds,
	"blocksOverTime": blocksOverTime, "validation": validation, "served": served,
}).ParseFS(texts, "*.tmpl"))

// summary is a result with what only its summary has.
type summary struct {
	*result.Result
	Traced string // what the kernel saw, empty when it was not asked
	Doubts []string
}

// WriteSummary writes the trial as a person reads it: what ran, what the storage did, for whom, at
// what cost, and what to doubt. Units are binary, "–" stands for unknown or for a percentile with
// too few samples. It fits in about 80 lines.
func WriteSummary(w io.Writer, r *result.Result) error {
	s := &summary{Result: r, Doubts: r.Warnings}
	capture, err := captured(r)
	if err == nil && capture != nil {
		var traced strings.Builder
		err = capture.WriteText(&traced, fioInput(r).Application)
		s.Traced = traced.String()
		// The warnings of a trace stand beside its numbers.
		if capture.Capture.Status == tracing.StatusTraced {
			s.Doubts = slices.DeleteFunc(slices.Clone(r.Warnings),
				func(w string) bool { return slices.Contains(capture.Capture.Warnings, w) })
		}
	}
	var text strings.Builder // written at once: others write to the same terminal
	if err == nil {
		err = templates.ExecuteTemplate(&text, "summary.txt.tmpl", s)
	}
	if err == nil {
		_, err = io.WriteString(w, text.String())
	}
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// sizes are those of the entries that were moved: latencies per entry mean nothing without them.
func sizes(r *result.Result) Table {
	t := Table{Topic: "entry size",
		Columns: head("", units.Count, "entries", units.Bytes, "mean", "p50", "p95", "largest")}
	for i, d := range []result.Distribution{r.EntrySizes.Write, r.EntrySizes.Read} {
		t.some([]string{"written", "read"}[i], d.Count, d.Mean, d.P50, d.P95, d.Max)
	}
	return t
}

// tiers are what each level holds and moved, demotions among the bytes: they load a level as any
// other operation does.
func tiers(r *result.Result) Table {
	t := Table{Topic: "tiers",
		Columns: head("", units.Bytes, "used", "of", units.Count, "entries", units.Bytes, "read",
			units.BytesPerSec, "read rate", units.Bytes, "written", units.BytesPerSec, "write rate",
			units.Count, "demoted in", "evicted")}
	for _, l := range r.Tiers {
		var capacity any = "unlimited"
		if l.CapacityBytes != nil {
			capacity = l.CapacityBytes
		}
		t.add(l.Level, l.UsedBytes, capacity, l.Entries, l.Read.Bytes, l.Read.BytesPerSecond,
			l.Write.Bytes, l.Write.BytesPerSecond, l.DemotedIn.Entries, l.Evicted.Entries)
	}
	return t
}

// kinds are the hit rates of each kind of lookup.
func kinds(l result.Lookups) string {
	var rates []string
	for _, k := range result.LookupKinds {
		if n := l.ByKind[k]; n.Hits+n.Misses > 0 {
			rates = append(rates, strings.ReplaceAll(k, "_", "-")+" "+percent(n.HitRate))
		}
	}
	return strings.Join(rates, ", ")
}

// served is what was offered and what became of it, by class and in total. A p95 is marked as a
// lower bound where the slowest requests were still waiting at the end; a class without a target
// has no compliance.
func served(r *result.Result) *Table {
	t := &Table{Topic: "served",
		Columns: head("", units.Count, "offered", "served", units.Share, "share",
			units.Count, "in flight", "queued", units.Seconds, "oldest queued",
			units.Nanoseconds, "e2e p95", units.Number, "SLA", units.Share, "compliance")}
	total := r.Load["total"]
	if r.CompletionUnit == result.UnitOperation ||
		total.Completed+total.InFlight+total.Queued == 0 {
		return nil
	}
	add := func(name string, o result.ClassOutcome, d result.Distribution, sla *result.SLA) {
		var p95, target, compliance any = d.P95, "", ""
		if o.Censored && d.P95 != nil { // the slowest are still waiting
			p95 = "≥ " + ns(d.P95)
		}
		if sla != nil {
			target, compliance = "p95 ≤ "+units.Milliseconds.Text(sla.TargetP95MS),
				percent(sla.Compliance)
		}
		t.add(name, o.Offered, o.Completed, percent(o.ServedRatio), o.InFlight, o.Queued,
			o.OldestQueuedAgeS, p95, target, compliance)
	}
	for _, c := range result.Classes {
		if o, ok := r.Load[c]; ok && o.Offered+o.Completed+o.InFlight+o.Queued > 0 {
			add(c, o, r.Latency.Request.ByClass[c], r.Summary.QoSMetrics[c].SLA)
		}
	}
	add("total", total, r.Latency.Request.EndToEnd, nil)
	return t
}

// LogLines is the result in at most nine lines for a benchmark's log, which the testing package
// cuts after ten without -v. No line looks like the `key: value` of benchmark configuration, or
// benchstat would take it for one and not compare the runs.
func LogLines(r *result.Result) []string { return words("log", r) }

// untraced is a capture that was asked for and saw nothing, for its reasons.
func untraced(r *result.Result) *tracing.Capture {
	if tr, _ := captured(r); tr != nil && tr.Capture.Status != tracing.StatusTraced {
		return &tr.Capture
	}
	return nil
}

// words are the lines of a text of words.txt.tmpl.
func words(name string, r *result.Result) []string {
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, name, r); err != nil {
		return []string{err.Error()}
	}
	return slices.DeleteFunc(strings.Split(text.String(), "\n"),
		func(line string) bool { return line == "" })
}
