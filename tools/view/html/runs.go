package html

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// runView is what ran.
type runView struct {
	Name   string
	Colour int
	Facts  []fact
	Doubts []string // warnings and failures, with how often
}

type fact struct{ Key, Value string }

// facts collects values under keys, each value once, in order.
type facts struct {
	keys   []string
	values map[string][]string
}

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

func (f *facts) list() (out []fact) {
	for _, k := range f.keys {
		v := f.values[k]
		if len(v) > 6 {
			v = append(slices.Clone(v[:6]), fmt.Sprintf("and %d more", len(f.values[k])-6))
		}
		out = append(out, fact{k, strings.Join(v, ", ")})
	}
	return out
}

func (p *page) runs(records []*load.Record, t *stats.Table) {
	for i, run := range t.Runs {
		v := runView{Name: t.Labels[i], Colour: i}
		if t.Labels[i] != run {
			v.Facts = append(v.Facts, fact{"input", run})
		}
		var f facts
		counts, doubts := map[string]int{}, []string(nil)
		doubt := func(text string) { // warnings that differ in numbers only are one
			kind := digits.ReplaceAllString(text, "#")
			if counts[kind]++; counts[kind] == 1 {
				doubts = append(doubts, text)
			}
		}
		trials := 0
		for _, rec := range records {
			if rec.Source != run {
				continue
			}
			trials++
			describe(&f, rec)
			if rec.Result == nil {
				continue
			}
			n := rec.Result.Notice
			if rec.Result.Simulation != nil {
				n = fmt.Sprintf("%s (simulated): %s", base(rec.Result.Benchmark), n)
			}
			p.notice(n)
			if rec.Result.Status != result.StatusComplete {
				doubt(fmt.Sprintf("%s is %s, ended by %s %s", rec.Name, rec.Result.Status, rec.Result.EndedBy, rec.Result.Error))
			}
			for _, w := range rec.Result.Warnings {
				doubt(w)
			}
		}
		v.Facts = append(append(v.Facts, fact{"results", fmt.Sprint(trials)}), f.list()...)
		for _, d := range doubts {
			if n := counts[digits.ReplaceAllString(d, "#")]; n > 1 {
				d += fmt.Sprintf(" (%d times, perhaps with other numbers)", n)
			}
			v.Doubts = append(v.Doubts, d)
		}
		p.Runs = append(p.Runs, v)
	}
	var settings load.SettingsReader
	for _, b := range t.Benchmarks { // lines without their result file have no notice
		for _, trials := range b.Trials {
			for _, rec := range trials {
				if b.Simulated && rec.Result == nil {
					p.notice(fmt.Sprintf("%s: in virtual time %s", base(b.Name), settings.Simulation(rec)))
				}
			}
		}
	}
}

// notice keeps each line once.
func (p *page) notice(n string) {
	if n != "" && !slices.Contains(p.Notices, n) {
		p.Notices = append(p.Notices, n)
	}
}

// describe adds what one result says of its run.
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
		f.add("I/O", fmt.Sprintf("%s, chunks of %s", r.IO.Mode, stats.Binary(float64(r.IO.ChunkBytes))))
	}
	f.add("seed", fmt.Sprint(r.Seed))
	f.add("model", r.Model.Name)
	for _, q := range r.Parameters {
		// What was chosen for this run, rather than by default, division or benchmark.
		if o := q.Origin; o != "default" && !strings.HasPrefix(o, "division") && !strings.HasPrefix(o, "benchmark") && q.Name != "results-dir" && q.Name != "cache-dir" {
			f.add("given", fmt.Sprintf("%s=%v", q.Name, q.Value))
		}
	}
	if e.Version != "" {
		f.add("version", commit.ReplaceAllString(e.Version, "$1")+", "+e.GoVersion)
	}
}

var digits = regexp.MustCompile(`[0-9][0-9.,]*( [KMGT]?i?B\b)?`)

// commit is a commit's full name, of which the beginning is enough.
var commit = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{28}\b`)

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}
