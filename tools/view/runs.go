package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Run is what ran. Its colour is that of all its lines and bars.
type Run struct {
	Name   string
	Colour int
	Facts  []Fact
	Doubts []string // warnings and failures, with how often
}

// Fact is one thing that is known of a run.
type Fact struct{ Key, Value string }

// facts collects values under keys, each value once, in order. A fact with two values is the first
// sign that a run mixes what should not be mixed.
type facts struct {
	keys   []string
	values map[string][]string
}

// add keeps a value once. What differs between the trials of a run shows as several values, which
// is how a mixture is noticed.
func (f *facts) add(key, value string) {
	if value == "" {
		return
	}
	if f.values == nil {
		f.values = map[string][]string{}
	}
	if _, ok := f.values[key]; !ok {
		f.keys = append(f.keys, key)
	}
	if !slices.Contains(f.values[key], value) {
		f.values[key] = append(f.values[key], value)
	}
}

// list is in the order in which keys were met. Of many values the first six are enough to see that
// there are many.
func (f *facts) list() (out []Fact) {
	for _, k := range f.keys {
		v := f.values[k]
		if len(v) > 6 {
			v = append(slices.Clone(v[:6]), fmt.Sprintf("and %d more", len(f.values[k])-6))
		}
		out = append(out, Fact{k, strings.Join(v, ", ")})
	}
	return out
}

// runs says what ran, and what every reader must know of it.
func (r *Report) runs(records []*load.Record, t *stats.Table) {
	for i, run := range t.Runs {
		v := Run{Name: t.Labels[i], Colour: i}
		if t.Labels[i] != run {
			v.Facts = append(v.Facts, Fact{"input", run})
		}
		var f facts
		var d doubts
		trials := 0
		for _, rec := range records {
			// Records stand in the order of the input, runs may be mixed in it.
			if rec.Source != run {
				continue
			}
			// Counted with those that failed: they are results too.
			trials++
			describe(&f, rec)
			res := rec.Result
			if res == nil {
				continue
			}
			notice := res.Notice
			if res.Simulation != nil {
				notice = fmt.Sprintf("%s (simulated): %s", base(res.Benchmark), notice)
			}
			r.notice(notice)
			if res.Status != result.StatusComplete {
				d.add(fmt.Sprintf("%s is %s, ended by %s %s", rec.Name, res.Status, res.EndedBy,
					res.Error))
			}
			for _, w := range res.Warnings {
				d.add(w)
			}
		}
		v.Facts = append(append(v.Facts, Fact{"results", fmt.Sprint(trials)}), f.list()...)
		v.Doubts = d.list()
		r.Runs = append(r.Runs, v)
	}
	var settings load.SettingsReader
	for _, b := range t.Benchmarks { // lines without their result file have no notice
		for _, rec := range slices.Concat(b.Trials...) {
			if b.Simulated && rec.Result == nil {
				r.notice(fmt.Sprintf("%s: in virtual time %s", base(b.Name),
					settings.Simulation(rec)))
			}
		}
	}
}

// notice keeps each line once.
func (r *Report) notice(n string) {
	if n != "" && !slices.Contains(r.Notices, n) {
		r.Notices = append(r.Notices, n)
	}
}

// doubts are warnings, of which those that differ in numbers only are one.
type doubts struct {
	first  []string
	counts map[string]int
}

// add keeps the first of its kind.
func (d *doubts) add(text string) {
	if d.counts == nil {
		d.counts = map[string]int{}
	}
	kind := digits.ReplaceAllString(text, "#")
	if d.counts[kind]++; d.counts[kind] == 1 {
		d.first = append(d.first, text)
	}
}

// list says how often each occurred.
func (d *doubts) list() (out []string) {
	for _, text := range d.first {
		if n := d.counts[digits.ReplaceAllString(text, "#")]; n > 1 {
			text += fmt.Sprintf(" (%d times, perhaps with other numbers)", n)
		}
		out = append(out, text)
	}
	return out
}

// describe adds what one result says of its run. Of a line without its file only the configuration
// lines are known; of a result of the Python benchmark not even those.
func describe(f *facts, rec *load.Record) {
	if rec.Result == nil {
		for _, c := range rec.Config {
			if c.Key != "kvbench-format" && c.Key != "pkg" {
				f.add(c.Key, string(c.Value))
			}
		}
		if rec.Python {
			f.add("made by", "the Python benchmark")
		}
		return
	}
	r := rec.Result
	e := r.Environment
	f.add("division", r.Division)
	// Said in either case: whoever compares two pages must not have to know the default.
	if r.Simulation != nil {
		f.add("time", "virtual, simulated")
	} else {
		f.add("time", "real, measured")
	}
	if start, _, ok := strings.Cut(r.StartTime, "T"); ok {
		f.add("day", start)
	}
	f.add("host", e.Hostname)
	if e.Cores > 0 { // a run without a cache directory describes no machine
		f.add("CPU", join(e.CPUModel, fmt.Sprintf("%d cores", e.Cores)))
	}
	if e.MemoryBytes > 0 {
		f.add("memory", stats.Binary(float64(e.MemoryBytes)))
	}
	f.add("system", join(e.OS, e.Kernel))
	// A directory without a device of its own has a reason, which says more than a blank.
	if d := e.Device; d != nil {
		size := ""
		if d.SizeBytes != nil {
			size = stats.Binary(float64(*d.SizeBytes))
		}
		f.add("device", join(d.Name, d.Model, size))
	} else {
		f.add("device", e.DeviceReason)
	}
	f.add("filesystem", join(e.Filesystem.Type, e.Filesystem.MountPoint))
	f.add("cache directory", r.IO.CacheDir)
	if r.IO.Mode != "" {
		f.add("I/O", fmt.Sprintf("%s, chunks of %s", r.IO.Mode,
			stats.Binary(float64(r.IO.ChunkBytes))))
	}
	f.add("seed", fmt.Sprint(r.Seed))
	f.add("model", r.Model.Name)
	for _, q := range r.Parameters {
		// What was chosen for this run, rather than by default, division or benchmark.
		if o := q.Origin; o != "default" && !strings.HasPrefix(o, "division") &&
			!strings.HasPrefix(o, "benchmark") && q.Name != "results-dir" && q.Name != "cache-dir" {
			f.add("given", fmt.Sprintf("%s=%v", q.Name, q.Value))
		}
	}
	if e.Version != "" {
		f.add("version", commit.ReplaceAllString(e.Version, "$1")+", "+e.GoVersion)
	}
}

// digits are the numbers in a warning, with their units: "3 of 12 reads" and "5 of 12 reads" are
// one warning.
var digits = regexp.MustCompile(`[0-9][0-9.,]*( [KMGT]?i?B\b)?`)

// commit is a commit's full name, of which the beginning is enough. Twelve digits tell commits of
// any repository apart.
var commit = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{28}\b`)

// join leaves out what is not known.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
