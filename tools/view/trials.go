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

// MedianTrial returns the trial that represents a run (report.Typical), nil if no trial has a result
// file.
func MedianTrial(b *stats.Benchmark, run int) *load.Record {
	list := results(b.Trials[run])
	if len(list) == 0 {
		return nil
	}
	typical := report.Typical(list)
	return b.Trials[run][slices.IndexFunc(b.Trials[run],
		func(rec *load.Record) bool { return rec.Result == typical })]
}

// results returns the results of the records that have one.
func results(records []*load.Record) (list []*result.Result) {
	for _, rec := range records {
		if rec.Result != nil {
			list = append(list, rec.Result)
		}
	}
	return list
}

// Levels are the keys of the tiers in a result, from fast to slow. The result schema fixes them.
var Levels = []string{"gpu", "cpu", "storage"}

// ops are the two operations.
var ops = []string{"read", "write"}

// keyValues returns the key=value parts of a benchmark's name in order.
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

// Anchor returns the benchmark's anchor in the page's URL. Other documents link to it, so it has no keys
// of a sweep.
func Anchor(name string) string { return anchors.Replace(base(name)) }

var anchors = strings.NewReplacer("/", "-", "=", "-", " ", "-", `"`, "-", "(", "-", ")", "-")

// Keys returns the key=value parts of a benchmark's name and its settings, or the name if it has no
// keys.
func Keys(name string) string {
	plain, settings := split(name)
	_, keys, _ := strings.Cut(plain, "/")
	return cmp.Or(keys, plain) + settings
}

// base returns the benchmark's name without keys and settings.
func base(name string) string {
	plain, _ := split(name)
	b, _, _ := strings.Cut(plain, "/")
	return b
}

// split separates a name from its settings in brackets, whose values may be paths with slashes.
func split(name string) (plain, settings string) {
	if i := strings.Index(name, " ["); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}
