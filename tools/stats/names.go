package stats

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/load"
)

// order and titles come from the suite's list of units, by their tidied names. Bandwidths come first,
// because they are what most people look for.
var order, titles = func() ([]string, map[string]string) {
	list, titles := []string{"read-B/s", "write-B/s"}, map[string]string{}
	for _, u := range result.Lines {
		_, tidy := benchunit.Tidy(1, u.Name)
		if titles[tidy] = u.Title; tidy != "sec/op" { // of every benchmark, so that it is the last
			list = append(list, tidy)
		}
	}
	return list, titles
}()

// rank puts units that are not the suite's behind all others.
func rank(unit string) int {
	if i := slices.Index(order, unit); i >= 0 {
		return i
	}
	return len(order)
}

// Title is a metric's name for people: read-sec/MiB is "read time per MiB".
func Title(unit string) string { return cmp.Or(titles[unit], unit) }

// labels shortens paths to their last element unless two runs would have the same name.
func labels(runs []string) (out []string) {
	for _, run := range runs {
		if label := filepath.Base(run); !slices.Contains(out, label) {
			out = append(out, label)
		}
	}
	if len(out) < len(runs) {
		return runs
	}
	return out
}

// names returns the trials' names in the table. GOMAXPROCS (-8) and the package are left out, so
// that machines and moved packages can be compared, unless one run has several of them: several
// suffixes within a run are a sweep of -cpu.
func names(trials []tableTrial) (list []string) {
	type place struct {
		run  int
		base string
	}
	several := func(part func(tableTrial) string) map[string]bool {
		first, found := map[place]string{}, map[string]bool{}
		for _, t := range trials {
			at, text := place{t.run, t.base}, part(t)
			first[at] = cmp.Or(first[at], text)
			found[t.base] = found[t.base] || text != "" && text != first[at]
		}
		return found
	}
	procs := several(func(t tableTrial) string { return t.procs })
	pkgs := several(func(t tableTrial) string { return t.Package() })
	for _, t := range trials {
		name := t.base
		if procs[t.base] {
			name += t.procs
		}
		if pkg := t.Package(); pkgs[t.base] && pkg != "" {
			name = pkg + "." + name
		}
		list = append(list, marked(name, t.prediction))
	}
	return list
}

// NameOf is the name under which one record stands: its own, marked when it is simulated.
func NameOf(rec *load.Record) string { return marked(rec.Name, rec.IsSimulated()) }

// marked inserts the mark after the benchmark's own name: "Synthetic (simulated)/num-users=8".
func marked(name string, simulated bool) string {
	if !simulated {
		return name
	}
	i := strings.IndexByte(name+"/", '/')
	return name[:i] + " (simulated)" + name[i:]
}

// leastNamed is how many differing settings are named: another division has dozens of other
// defaults.
const leastNamed = 3

// distinguish adds to the names of benchmarks of one name the settings in which they differ: the
// first, or as many as make the names unique. The note says why there are several, and how to get
// one.
func distinguish(all []*Benchmark, ignore []string) (notes []string) {
	if len(all) < 2 {
		return nil
	}
	settings := make([]load.Settings, len(all)) // of all runs, which do not differ
	found := map[string]bool{}
	for i, b := range all {
		for _, s := range b.Settings {
			settings[i].Add(s)
		}
		for k := range i {
			for _, d := range load.Differences(&settings[i], &settings[k], ignore) {
				found[d.Name] = true
			}
		}
	}
	differ := merge.InOrder(found)
	names := map[string]bool{}
	for n := min(leastNamed, len(differ)); n <= len(differ) && len(names) < len(all); n++ {
		clear(names)
		for i, b := range all {
			var parts []string
			for _, name := range differ[:n] {
				if v := settings[i].Text(name); v != "" {
					parts = append(parts, name+"="+v)
				}
			}
			b.Name = b.Plain + merge.Bracketed(parts)
			names[b.Name] = true
		}
	}
	some := slices.Clone(differ)
	if more := len(differ) - leastNamed; more > 0 {
		some = append(some[:leastNamed], fmt.Sprintf("and %d more", more))
	}
	note := fmt.Sprintf("%s stands in %d rows: its trials differ in %s", all[0].Plain, len(all),
		strings.Join(some, ", "))
	if !slices.ContainsFunc(differ, merge.Defines) {
		note += "; -ignore " + strings.Join(differ, ",") + " makes them one"
	}
	return []string{note}
}
