package load

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Settings are the settings of one trial, or of all trials of one benchmark in one run: the values
// of each setting, in the order of their first occurrence. More than one value means that the trials
// measured different things. The zero value has no trial.
type Settings struct {
	values   map[string][]string
	defaults map[string]string // of settings that the text omits
}

// Settings returns the settings of one trial. Defining settings that a text omits get their
// defaults, so that a trial with another value shows up as a second value.
func (rec *Record) Settings() *Settings {
	given := rec.settings()
	s := &Settings{values: map[string][]string{}}
	if rec.IsLine() {
		s.defaults = defaults(rec.Name, given[merge.SettingDivision])
		// Defining settings only: sixty defaults for every benchmark would hide the rest.
		for _, name := range merge.Defining {
			if v, ok := s.defaults[name]; ok {
				s.values[name] = []string{v}
			}
		}
	}
	for name, v := range given {
		s.values[name] = []string{v}
	}
	return s
}

// IsLine reports whether a record has only its result line, without a file.
func (rec *Record) IsLine() bool { return rec.Result == nil && !rec.Python }

// Add adds the settings of further trials, each value once.
func (s *Settings) Add(more *Settings) {
	if more == nil {
		return
	}
	if s.values == nil {
		s.values = map[string][]string{}
	}
	for name, values := range more.values {
		for _, value := range values {
			if !slices.ContainsFunc(s.values[name],
				func(v string) bool { return alike(name, v, value) }) {
				s.values[name] = append(s.values[name], value)
			}
		}
	}
	if s.defaults == nil {
		s.defaults = more.defaults
	}
}

// alike reports whether two values of a setting count as equal. The free space of a disk changes
// from trial to trial: capacities within 5 % are equal.
func alike(name, a, b string) bool {
	if a == b || name != merge.SettingCapacity {
		return a == b
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= math.Max(x, y)/20
}

// Of returns the values of a setting, else its default if that is known.
func (s *Settings) Of(name string) []string {
	if v, ok := s.values[name]; ok {
		return v
	}
	if v, ok := s.defaults[name]; ok {
		return []string{v}
	}
	return nil
}

// Simulated reports whether any trial was in virtual time.
func (s *Settings) Simulated() bool {
	return slices.ContainsFunc(s.Of(merge.SettingSimulated),
		func(how string) bool { return how != merge.Measured })
}

// Difference is a setting of which two sets of trials have different values.
type Difference struct {
	Name     string
	Old, New []string
}

// Differences compares two sets of trials, without the ignored settings. A setting that is unknown
// on one side is no difference.
func Differences(old, new *Settings, ignore []string) (list []Difference) {
	if old == nil || new == nil {
		return nil
	}
	either := map[string][]string{}
	maps.Copy(either, old.values)
	maps.Copy(either, new.values)
	for _, n := range merge.InOrder(either) {
		a, b := old.Of(n), new.Of(n)
		if len(a) == 0 || len(b) == 0 || slices.Contains(ignore, n) && !merge.Defines(n) ||
			mixture(a) == mixture(b) || len(a) == 1 && len(b) == 1 && alike(n, a[0], b[0]) {
			continue
		}
		// A filesystem without direct I/O gets buffered I/O: io-used is the mode that was measured.
		if n == merge.SettingIO && len(old.Of(merge.SettingIOUsed)) > 0 &&
			len(new.Of(merge.SettingIOUsed)) > 0 {
			continue
		}
		list = append(list, Difference{n, a, b})
	}
	return list
}

// Text returns a setting's values for people, joined; empty where none is known.
func (s *Settings) Text(name string) string { return mixture(s.Of(name)) }

// mixture joins several values in sorted order: buffered+direct.
func mixture(values []string) string {
	return strings.Join(slices.Sorted(slices.Values(values)), "+")
}

// settings returns a record's settings by name; values are texts, as flags have them. The name of a
// sub-benchmark contains the swept settings. Configuration lines override the name. The result file
// overrides both, because configuration lines hold for the whole text.
func (rec *Record) settings() map[string]string {
	m := map[string]string{}
	name, _ := SplitProcs(rec.Name)
	for part := range strings.SplitSeq(name, "/") {
		if key, value, ok := strings.Cut(part, "="); ok && params.Comparable(key) {
			m[key] = value
		}
	}
	maps.Copy(m, ofConfig(rec.Config))
	if rec.IsLine() {
		return m
	}
	found := merge.SettingsOf(rec.Result, rec.Python)
	if !rec.Python {
		effective(found, rec.Result)
	}
	maps.Copy(m, found)
	return m
}

// LacksFile reports whether a record is a line of the suite without its result file.
func (rec *Record) LacksFile() bool { return rec.IsLine() && rec.format() != "" }

// CheckIgnored refuses settings that define numbers, and names that are not compared, which are
// typing errors.
func CheckIgnored(names []string) error {
	known := append([]string{merge.SettingTraceFiles}, merge.FromFiles...)
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	params.Register(fs)
	fs.VisitAll(func(f *flag.Flag) {
		if params.Comparable(f.Name) {
			known = append(known, f.Name)
		}
	})
	for _, name := range names {
		if merge.Defines(name) {
			return fmt.Errorf("-ignore: %s cannot be ignored: results that differ in it mean "+
				"different things", name)
		}
		if !slices.Contains(known, name) {
			return fmt.Errorf("-ignore: %q is no setting that is compared%s", name,
				units.Suggestion(name, known))
		}
	}
	return nil
}

// Simulation returns how a record was simulated: Measured when it was not, empty when unknown.
func (rec *Record) Simulation() string { return rec.settings()[merge.SettingSimulated] }

// IsSimulated reports whether a record is of a run in virtual time.
func (rec *Record) IsSimulated() bool {
	return rec.Simulation() != "" && rec.Simulation() != merge.Measured
}

// format returns the record's format: from its file if it has one, else from the line's text.
func (rec *Record) format() string {
	if rec.Result != nil {
		return result.LineFormat
	}
	return rec.configured(merge.SettingFormat)
}

// place returns the file, and the line if the record has one.
func (rec *Record) place() string {
	if rec.Line > 0 {
		return fmt.Sprintf("%s:%d", rec.File, rec.Line)
	}
	return rec.File
}

// ofConfig returns the settings in benchmark text. Text of this suite has a line "simulated: true"
// for runs in virtual time.
func ofConfig(config []Setting) map[string]string {
	m := map[string]string{}
	for _, line := range config {
		if (merge.Defines(line.Key) || params.Comparable(line.Key)) &&
			!merge.LeftToTheRun(line.Key, line.Value) {
			m[line.Key] = line.Value
		}
	}
	virtual, device := m[merge.SettingSimulated] == "true", m["simulate-device"]
	delete(m, merge.SettingSimulated)
	// Text of other programs has no such line: nothing is known of virtual time there.
	if virtual || m[merge.SettingFormat] != "" {
		m[merge.SettingSimulated] = merge.HowSimulated(virtual, device != "" && device != "–")
	}
	return m
}

// effective fills in what a run found where a parameter was not set. The worker count of an
// autoscaler is a result of the trial, and not a setting. The totals of a trial that lacks a rank
// are unknown.
func effective(m map[string]string, r *result.Result) {
	lacks := r.MergedRanks != nil && len(merge.Missing(r)) > 0
	whole := r.CompletionUnit == result.UnitRequest && !lacks
	w := r.Workload.Workers
	if m[merge.SettingWorkers] == "" && w > 0 && r.Autoscaler == nil && whole {
		m[merge.SettingWorkers] = fmt.Sprint(w)
	}
	for _, t := range r.Tiers {
		if m[merge.SettingCapacity] == "" && t.Level == "storage" && t.CapacityBytes != nil &&
			whole {
			m[merge.SettingCapacity] = fmt.Sprintf("%.4g", float64(*t.CapacityBytes)/(1<<30))
		}
	}
	if one := r.Environment.Filesystem.Type; one != "" {
		var types []string
		for _, fs := range r.Filesystems() {
			if name := cmp.Or(fs.Type, one); !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
		m[merge.SettingFilesystem] = strings.Join(types, ", ")
		m[merge.SettingDirectories] = fmt.Sprint(max(1, len(r.IO.Roots)))
	}
	if r.Ranks > 0 {
		m[merge.SettingRanks] = fmt.Sprint(r.Ranks)
	}
}

// resolved caches the defaults by benchmark and division: thousands of records need a few, and the
// parameter table is slow to resolve.
var resolved sync.Map

// defaults returns the defaults of a benchmark in a division by name, because benchmark text names
// only what the user changed. It is nil for an unknown division.
func defaults(bench, division string) (m map[string]string) {
	base, _, _ := strings.Cut(strings.TrimPrefix(bench, "Benchmark"), "/")
	base, _ = SplitProcs(base)
	key := [2]string{base, division}
	if have, known := resolved.Load(key); known {
		return have.(map[string]string)
	}
	b, _ := params.Benchmark(base)
	given := map[string]string{params.EnvName(merge.SettingDivision): division}
	env := func(name string) (string, bool) { return given[name], given[name] != "" }
	// The values come from the parameter table, so that a changed default changes here too.
	v, err := params.Register(flag.NewFlagSet("", flag.ContinueOnError)).
		Resolve(params.Inputs{Bench: b, Base: "/", Env: env})
	if division != "" && err == nil {
		m = merge.Decisive(v.Parameters())
		m[merge.SettingWriteDevice] = result.WriteDeviceTransfer
		if v.Division == params.Closed {
			m[merge.SettingWriteDevice] = result.WriteDeviceFlush
		}
	}
	resolved.Store(key, m)
	return m
}

// SplitProcs cuts the -GOMAXPROCS suffix of a benchmark's name, which the testing package appends.
func SplitProcs(name string) (base, procs string) {
	base = strings.TrimRight(name, "0123456789")
	if len(base) == len(name) || !strings.HasSuffix(base, "-") {
		return name, ""
	}
	return base[:len(base)-1], name[len(base)-1:]
}
