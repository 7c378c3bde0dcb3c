package view

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kvbench/kvbench/report"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// Run is one run. Its index gives the colour of its lines and bars.
type Run struct {
	Name   string
	Facts  Facts
	Doubts []string // kinds of warnings and failures
}

// given is the key of the parameters that the user gave.
const given = "given"

// Fact is one fact about a run. Several values mean that the run has trials with different settings.
type Fact struct {
	Key    string
	Values []string
}

// Value joins the values. It cuts the list after six, except for the parameters that the user gave: each
// of them may explain a number.
func (f Fact) Value() string {
	if more := len(f.Values) - 6; more > 0 && f.Key != given {
		return strings.Join(f.Values[:6], ", ") + fmt.Sprintf(", and %d more", more)
	}
	return strings.Join(f.Values, ", ")
}

// Facts is a list in the order in which keys first occurred.
type Facts []Fact

// add adds values, each once. It ignores empty and unknown values.
func (f *Facts) add(key string, values ...string) {
	for _, value := range values {
		if value == "" || value == units.Unknown {
			continue
		}
		i := f.index(key)
		if i < 0 {
			i = len(*f)
			*f = append(*f, Fact{Key: key})
		}
		if at := &(*f)[i]; !slices.Contains(at.Values, value) {
			at.Values = append(at.Values, value)
		}
	}
}

// index returns the index of a key, -1 if there is none.
func (f *Facts) index(key string) int {
	return slices.IndexFunc(*f, func(x Fact) bool { return x.Key == key })
}

// Values returns the values of a key.
func (f Facts) Values(key string) []string {
	if i := f.index(key); i >= 0 {
		return f[i].Values
	}
	return nil
}

// common removes and returns the facts that are equal for all runs, if there are several.
func common(all []Run) (same Facts) {
	if len(all) < 2 {
		return nil
	}
	for _, f := range all[0].Facts {
		if !slices.ContainsFunc(all,
			func(r Run) bool { return !slices.Equal(r.Facts.Values(f.Key), f.Values) }) {
			same = append(same, f)
		}
	}
	for i := range all {
		all[i].Facts = slices.DeleteFunc(all[i].Facts,
			func(f Fact) bool { return same.index(f.Key) >= 0 })
	}
	return same
}

// ofRun returns the records of a run. Records have the order of the input, which may mix runs.
func ofRun(records []*load.Record, run string) []*load.Record {
	return slices.DeleteFunc(slices.Clone(records),
		func(rec *load.Record) bool { return rec.Source != run })
}

// runs returns the runs with their facts.
func runs(records []*load.Record, t *stats.Table) (out []Run) {
	for i, run := range t.Runs {
		v := Run{Name: t.Labels[i]}
		if t.Labels[i] != run {
			v.Facts.add("input", run)
		}
		trials := ofRun(records, run)
		var doubts [][]string // by trial
		for _, rec := range trials {
			v.Facts.describe(rec)
			if r := rec.Result; r != nil {
				var texts []string
				if r.Status != result.StatusComplete {
					texts = append(texts, fmt.Sprintf("%s is %s, ended by %s %s", rec.Name, r.Status,
						r.EndedBy, r.Error))
				}
				doubts = append(doubts, append(texts, r.Warnings...))
			}
		}
		v.Doubts = report.Kinds(doubts)
		out = append(out, v)
	}
	return out
}

// Parameters returns for each run all parameters, and then the facts that are not parameters.
func Parameters(records []*load.Record, t *stats.Table) (list []Facts) {
	for _, run := range t.Runs {
		var all, facts Facts
		for _, rec := range ofRun(records, run) {
			if rec.Result != nil {
				for _, p := range rec.Result.Parameters {
					all.add(p.Name, fmt.Sprint(p.Value))
				}
			} else if seed := rec.Lookup("seed"); seed != nil {
				all.add("seed", fmt.Sprint(seed))
			}
			facts.describe(rec)
		}
		for _, f := range facts {
			if f.Key != given && all.index(f.Key) < 0 {
				all = append(all, f)
			}
		}
		list = append(list, all)
	}
	return list
}

// notices returns the notices of all results, each once.
func notices(records []*load.Record) []string {
	var all Facts
	for _, rec := range records {
		if r := rec.Result; r != nil && r.Simulation != nil {
			all.add("", fmt.Sprintf("%s (simulated): %s", base(r.Benchmark), r.Notice))
		} else if r != nil {
			all.add("", r.Notice)
		}
	}
	return all.Values("")
}

// describe adds the facts of one result. Without a result file these are the configuration lines of the
// text, which the Python benchmark does not have.
func (f *Facts) describe(rec *load.Record) {
	if rec.Result == nil {
		for _, c := range rec.Config {
			if c.Key != "kvbench-format" && c.Key != "pkg" {
				f.add(c.Key, c.Value)
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
	// Every run shows its kind of time, so that a reader need not know the default.
	f.add("time", map[bool]string{true: "virtual, simulated",
		false: "real, measured"}[r.Simulation != nil])
	day, _, _ := strings.Cut(r.StartTime, "T")
	f.add("day", day)
	if r.Clients != nil {
		for _, h := range r.Clients.Hosts {
			f.add("host", h.Name)
		}
	}
	// With several clients, describe the machine of each client.
	for _, client := range rec.Clients() {
		f.machine(client.Result)
	}
	if r.IO.Mode != "" {
		f.add("I/O", r.IO.Mode+", chunks of "+units.Bytes.Text(r.IO.ChunkBytes))
	}
	f.add("seed", fmt.Sprint(r.Seed))
	f.add("model", r.Model.Name)
	for _, q := range r.Parameters {
		// Show only parameters that the user has set for this run, and no names.
		if o := q.Origin; o != "default" && !strings.HasPrefix(o, "division") &&
			!strings.HasPrefix(o, "benchmark") &&
			!slices.Contains([]string{"name", "results-dir", "cache-dir"}, q.Name) {
			f.add(given, fmt.Sprintf("%s=%v", q.Name, q.Value))
		}
	}
	if e.Version != "" {
		f.add("version", commit.ReplaceAllString(e.Version, "$1")+", "+e.GoVersion)
	}
}

// machine adds a client's machine and storage.
func (f *Facts) machine(r *result.Result) {
	e := r.Environment
	f.add("host", e.Hostname)
	if e.Cores > 0 { // a run without a cache directory describes no machine
		f.add("CPU", join(e.CPUModel, fmt.Sprintf("%d cores", e.Cores)))
	}
	if e.MemoryBytes > 0 {
		f.add("memory", units.Bytes.Text(e.MemoryBytes))
	}
	f.add("system", join(e.OS, e.Kernel))
	for _, o := range r.Roots() {
		device := o.DeviceReason // why a directory has no block device
		if d := o.BlockDevice; d != nil {
			device = join(d.Name, d.Model, units.Bytes.Text(d.SizeBytes))
			if d.BackingFile != "" {
				device += ", a loop device over " + d.BackingFile
			}
		}
		f.add("device", device)
		f.add("filesystem", join(o.Mount.Type, o.Mount.MountPoint))
	}
	f.add("cache directory", r.IO.CacheDir)
}

// commit matches a commit's full hash. Its first twelve digits are unique in any repository.
var commit = regexp.MustCompile(`\b([0-9a-f]{12})[0-9a-f]{28}\b`)

// join joins the parts that are known, with commas.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts,
		func(s string) bool { return s == "" || s == units.Unknown }), ", ")
}
