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

// order and titles are the suite's units in order and their titles, by tidied name. Bandwidths are
// first, because most readers look for them.
var order, titles = func() ([]string, map[string]string) {
	list, titles := []string{"read-B/s", "write-B/s"}, map[string]string{}
	for _, u := range result.Lines {
		_, tidy := benchunit.Tidy(1, u.Name)
		if titles[tidy] = u.Title; tidy != "sec/op" { // every benchmark has it, so it is the last
			list = append(list, tidy)
		}
	}
	return list, titles
}()

// rank returns the position of a unit in order. Units of other programs follow.
func rank(unit string) int {
	if i := slices.Index(order, unit); i >= 0 {
		return i
	}
	return len(order)
}

// Title returns a metric's title: "read time per MiB" for read-sec/MiB.
func Title(unit string) string { return cmp.Or(titles[unit], unit) }

// labels returns the names of the runs: the run's name (-name) if all its result files have it, else the last
// element of its path. It returns the paths if two names would be equal.
func labels(runs []string, records []*load.Record) (out []string) {
	for _, run := range runs {
		var names []string
		for _, rec := range records {
			if rec.Source == run && rec.Result != nil {
				names = append(names, rec.Result.RunName)
			}
		}
		label := filepath.Base(run)
		if slices.Sort(names); len(names) > 0 && names[0] == names[len(names)-1] {
			label = cmp.Or(names[0], label)
		}
		if !slices.Contains(out, label) {
			out = append(out, label)
		}
	}
	if len(out) < len(runs) {
		return runs
	}
	return out
}

// names returns the trials' names in the table. It leaves out GOMAXPROCS (-8) and the package, so that
// machines and moved packages can be compared. If one run has several of them (go test -cpu), it keeps
// them.
func names(records []*load.Record, runs []int) (list []string) {
	type place struct {
		run  int
		base string
	}
	several := func(part func(*load.Record) string) map[string]bool {
		first, found := map[place]string{}, map[string]bool{}
		for i, rec := range records {
			base, _ := load.SplitProcs(rec.Name)
			at, text := place{runs[i], base}, part(rec)
			first[at] = cmp.Or(first[at], text)
			found[base] = found[base] || text != "" && text != first[at]
		}
		return found
	}
	procs := several(func(rec *load.Record) string {
		_, procs := load.SplitProcs(rec.Name)
		return procs
	})
	packages := several((*load.Record).Package)
	for _, rec := range records {
		base, _ := load.SplitProcs(rec.Name)
		name := base
		if procs[base] {
			name = rec.Name
		}
		if pkg := rec.Package(); packages[base] && pkg != "" {
			name = pkg + "." + name
		}
		list = append(list, name)
	}
	return list
}

// NameOf returns the name of a record's row: its name, marked if it is simulated.
func NameOf(rec *load.Record) string { return marked(rec.Name, rec.IsSimulated()) }

// marked inserts the mark after the base name: "Synthetic (simulated)/num-users=8".
func marked(name string, simulated bool) string {
	if !simulated {
		return name
	}
	i := strings.IndexByte(name+"/", '/')
	return name[:i] + " (simulated)" + name[i:]
}

// leastNamed is the number of differing settings that a name has at first. Trials of two divisions
// differ in dozens.
const leastNamed = 3

// distinguish adds to the names of benchmarks with the same plain name the settings in which they
// differ: the first leastNamed, or more until the names are unique. The note says why there are several
// rows, and how to get one.
func distinguish(all []*Benchmark, ignore []string) (notes []string) {
	if len(all) < 2 {
		return nil
	}
	settings := make([]load.Settings, len(all)) // over all runs, which do not differ
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
