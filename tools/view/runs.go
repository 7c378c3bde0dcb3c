package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Run is one run. Its index gives the colour of its lines and bars.
type Run struct {
	Name   string
	Facts  facts
	Doubts []string // warnings and failures, with their counts
}

// Given is the key of the parameters that the user gave.
const Given = "given"

// Fact is one fact about a run. Several values mean that the run has trials with different settings.
type Fact struct {
	Key    string
	Values []string
}

// Value joins the values. It cuts the list after six, except for Given: each parameter may explain a
// number.
func (f Fact) Value() string {
	if more := len(f.Values) - 6; more > 0 && f.Key != Given {
		return strings.Join(f.Values[:6], ", ") + fmt.Sprintf(", and %d more", more)
	}
	return strings.Join(f.Values, ", ")
}

// facts is a list in the order in which keys first occurred.
type facts []Fact

// add adds a value once. It ignores empty and unknown values.
func (f *facts) add(key, value string) {
	if value == "" || value == units.Unknown {
		return
	}
	i := slices.IndexFunc(*f, func(x Fact) bool { return x.Key == key })
	if i < 0 {
		i = len(*f)
		*f = append(*f, Fact{Key: key})
	}
	if at := &(*f)[i]; !slices.Contains(at.Values, value) {
		at.Values = append(at.Values, value)
	}
}

// common removes and returns the facts that are equal for all runs, if there are several.
func common(all []Run) (same facts) {
	if len(all) < 2 {
		return nil
	}
	for _, f := range all[0].Facts {
		if !slices.ContainsFunc(all, func(r Run) bool {
			return !slices.ContainsFunc(r.Facts, func(x Fact) bool {
				return x.Key == f.Key && slices.Equal(x.Values, f.Values)
			})
		}) {
			same = append(same, f)
		}
	}
	for i := range all {
		all[i].Facts = slices.DeleteFunc(all[i].Facts, func(f Fact) bool {
			return slices.ContainsFunc(same, func(x Fact) bool { return x.Key == f.Key })
		})
	}
	return same
}

// runs returns the runs with their facts.
func runs(records []*load.Record, t *stats.Table) (out []Run) {
	for i, run := range t.Runs {
		v := Run{Name: t.Labels[i]}
		if t.Labels[i] != run {
			v.Facts.add("input", run)
		}
		// Records have the order of the input, which may mix runs. Failed trials count.
		trials := slices.DeleteFunc(slices.Clone(records),
			func(rec *load.Record) bool { return rec.Source != run })
		v.Facts.add("results", fmt.Sprint(len(trials)))
		var warnings []string
		for _, rec := range trials {
			for _, f := range Describe(rec) {
				for _, value := range f.Values {
					v.Facts.add(f.Key, value)
				}
			}
			if r := rec.Result; r != nil {
				if r.Status != result.StatusComplete {
					warnings = append(warnings, fmt.Sprintf("%s is %s, ended by %s %s", rec.Name,
						r.Status, r.EndedBy, r.Error))
				}
				warnings = append(warnings, r.Warnings...)
			}
		}
		v.Doubts = doubts(warnings)
		out = append(out, v)
	}
	return out
}

// notices returns the notices of all results, each once.
func notices(records []*load.Record, t *stats.Table) (list []string) {
	add := func(n string) {
		if n != "" && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for _, rec := range records {
		if r := rec.Result; r != nil && r.Simulation != nil {
			add(fmt.Sprintf("%s (simulated): %s", base(r.Benchmark), r.Notice))
		} else if r != nil {
			add(r.Notice)
		}
	}
	for _, b := range t.Benchmarks { // lines without their result file have no notice
		for _, rec := range slices.Concat(b.Trials...) {
			if b.Simulated && rec.Result == nil {
				add(fmt.Sprintf("%s: in virtual time %s", base(b.Name), rec.Simulation()))
			}
		}
	}
	return list
}

// doubts returns the warnings, and combines warnings that differ only in numbers.
func doubts(warnings []string) (list []string) {
	counts := map[string]int{}
	for _, text := range warnings {
		kind := digits.ReplaceAllString(text, "#")
		if counts[kind]++; counts[kind] == 1 {
			list = append(list, text)
		}
	}
	for i, text := range list {
		if n := counts[digits.ReplaceAllString(text, "#")]; n > 1 {
			list[i] += fmt.Sprintf(" (%d times, perhaps with other numbers)", n)
		}
	}
	return list
}

// Describe returns the facts of one result. Without a result file it returns the configuration lines of
// the text, which the Python benchmark does not have.
func Describe(rec *load.Record) []Fact {
	var f facts
	if rec.Result == nil {
		for _, c := range rec.Config {
			if c.Key != "kvbench-format" && c.Key != "pkg" {
				f.add(c.Key, c.Value)
			}
		}
		if rec.Python {
			f.add("made by", "the Python benchmark")
		}
		return f
	}
	r := rec.Result
	e := r.Environment
	f.add("division", r.Division)
	// Shown for every run, so that a reader need not know the default.
	f.add("time", map[bool]string{true: "virtual, simulated",
		false: "real, measured"}[r.Simulation != nil])
	day, _, _ := strings.Cut(r.StartTime, "T")
	f.add("day", day)
	if r.Clients != nil {
		for _, h := range r.Clients.Hosts {
			f.add("host", h.Name)
		}
	}
	// With several clients, describe the machine of each.
	for _, client := range rec.Clients() {
		describeMachine(&f, client.Result)
	}
	if r.IO.Mode != "" {
		f.add("I/O", r.IO.Mode+", chunks of "+units.Bytes.Text(r.IO.ChunkBytes))
	}
	f.add("seed", fmt.Sprint(r.Seed))
	f.add("model", r.Model.Name)
	for _, q := range r.Parameters {
		// Only parameters that the user set for this run.
		if o := q.Origin; o != "default" && !strings.HasPrefix(o, "division") &&
			!strings.HasPrefix(o, "benchmark") && q.Name != "results-dir" && q.Name != "cache-dir" {
			f.add(Given, fmt.Sprintf("%s=%v", q.Name, q.Value))
		}
	}
	if e.Version != "" {
		f.add("version", commit.ReplaceAllString(e.Version, "$1")+", "+e.GoVersion)
	}
	return f
}

// describeMachine adds a client's machine and storage.
func describeMachine(f *facts, r *result.Result) {
	e := r.Environment
	f.add("host", e.Hostname)
	if e.Cores > 0 { // a run without a cache directory describes no machine
		f.add("CPU", join(e.CPUModel, fmt.Sprintf("%d cores", e.Cores)))
	}
	if e.MemoryBytes > 0 {
		f.add("memory", units.Bytes.Text(e.MemoryBytes))
	}
	f.add("system", join(e.OS, e.Kernel))
	// A directory without a block device has a reason instead.
	about := func(d *result.Device, reason string, fs result.Filesystem) {
		if d != nil {
			reason = join(d.Name, d.Model, units.Bytes.Text(d.SizeBytes))
		}
		f.add("device", reason)
		f.add("filesystem", join(fs.Type, fs.MountPoint))
	}
	for _, o := range r.IO.Roots {
		about(o.BlockDevice, o.DeviceReason, o.Mount)
	}
	if len(r.IO.Roots) == 0 {
		about(e.Device, e.DeviceReason, e.Filesystem)
	}
	f.add("cache directory", r.IO.CacheDir)
}

// digits matches a number in a warning with its unit: "3 of 12 reads" and "5 of 12 reads" count as one
// warning.
var digits = regexp.MustCompile(`[0-9][0-9.,]*( [KMGT]?i?B\b)?`)

// commit matches a commit's full hash. Its first twelve digits are unique in any repository.
var commit = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{28}\b`)

// join joins the parts that are known, with commas.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts,
		func(s string) bool { return s == "" || s == units.Unknown }), ", ")
}
