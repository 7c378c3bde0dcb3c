package view

import (
	"cmp"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// trial is the trial that represents a run.
type trial struct {
	run int
	*load.Record
}

// MedianTrial is the trial that stands for a run (report.Typical), nil when no trial has a result
// file.
func MedianTrial(b *stats.Benchmark, run int) *load.Record {
	var results []*result.Result
	var records []*load.Record
	for _, rec := range b.Trials[run] {
		if rec.Result != nil {
			results, records = append(results, rec.Result), append(records, rec)
		}
	}
	if len(results) == 0 {
		return nil
	}
	return records[slices.Index(results, report.Typical(results))]
}

// Requests reports whether a result counts requests, rather than single operations, which have
// neither a request's latency nor a class.
func Requests(r *result.Result) bool { return r.CompletionUnit != result.UnitOperation }

// Levels are the tiers of a result by their keys, from fast to slow. They are keys of the schema
// and do not change with the levels that an engine may have.
var Levels = []string{"gpu", "cpu", "storage"}

// ops are the two operations, in the words of keys and of people.
var ops = []string{"read", "write"}

// keyValues are the key=value parts of a benchmark's name, in order.
func keyValues(name string) (keys []string, values map[string]string) {
	values = map[string]string{}
	plain, _ := split(name)
	for _, part := range strings.Split(plain, "/")[1:] {
		if k, v, ok := strings.Cut(part, "="); ok {
			keys = append(keys, k)
			values[k] = v
		}
	}
	return keys, values
}

// Anchor is a name that can follow # in a URL. Links in the page and from other documents use it,
// so it must not depend on the keys of a sweep.
func Anchor(name string) string { return anchors.Replace(base(name)) }

var anchors = strings.NewReplacer("/", "-", "=", "-", " ", "-", `"`, "-", "(", "-", ")", "-")

// Keys are the keys of a benchmark's name, else the name: within a section only they distinguish
// benchmarks.
func Keys(name string) string {
	plain, settings := split(name)
	_, keys, _ := strings.Cut(plain, "/")
	return cmp.Or(keys, plain) + settings
}

// base is the benchmark's name without the keys of its sub-benchmarks and its settings.
func base(name string) string {
	plain, _ := split(name)
	b, _, _ := strings.Cut(plain, "/")
	return b
}

// split separates a name from its distinguishing settings, whose values may be paths.
func split(name string) (plain, settings string) {
	if i := strings.Index(name, " ["); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}
