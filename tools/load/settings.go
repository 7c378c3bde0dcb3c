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
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Settings are the settings of one trial, or of all trials of one benchmark in one run. Each setting
// has its values in the order of their first occurrence. Several values mean that the trials differ.
// The zero value has no trial.
type Settings struct {
	values map[string][]string
}

// Settings returns the settings of one trial. Settings that a text does not have get their defaults, so
// that a trial with another value differs.
func (rec *Record) Settings() *Settings {
	s := &Settings{values: map[string][]string{}}
	given := rec.settings()
	if rec.IsLine() {
		for name, v := range defaults(rec.Name, given) {
			s.values[name] = []string{v}
		}
	}
	for name, v := range given {
		s.values[name] = []string{v}
	}
	return s
}

// IsLine reports whether a record is a result line without a result file.
func (rec *Record) IsLine() bool { return rec.Result == nil && !rec.Python }

// Add adds the settings of other trials, each value once.
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
}

// alike reports whether two values of a setting count as equal. Capacities within 5 % do, because the
// free space of a disk changes between trials.
func alike(name, a, b string) bool {
	if a == b || name != merge.SettingCapacity {
		return a == b
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= math.Max(x, y)/20
}

// Of returns the values of a setting, nil if unknown.
func (s *Settings) Of(name string) []string { return s.values[name] }

// Simulated reports whether any trial was simulated.
func (s *Settings) Simulated() bool {
	return slices.ContainsFunc(s.Of(merge.SettingSimulated),
		func(how string) bool { return how != merge.Measured })
}

// Difference is a setting that has different values in two sets of trials.
type Difference struct {
	Name     string
	Old, New []string
}

// Differences compares two sets of trials without the ignored settings. A setting that one side does not
// know is no difference.
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
		// Compare the used I/O mode, if known: a filesystem without direct I/O gets buffered I/O.
		if n == merge.SettingIO && len(old.Of(merge.SettingIOUsed)) > 0 &&
			len(new.Of(merge.SettingIOUsed)) > 0 {
			continue
		}
		list = append(list, Difference{n, a, b})
	}
	return list
}

// Text returns a setting's values joined by +, "" if unknown.
func (s *Settings) Text(name string) string { return mixture(s.Of(name)) }

// mixture joins the sorted values: buffered+direct.
func mixture(values []string) string {
	return strings.Join(slices.Sorted(slices.Values(values)), "+")
}

// settings returns a record's settings by name, as strings as in flags. They come from the name of a
// sub-benchmark (swept settings), the configuration lines and the result file. Later ones win:
// configuration lines may be about several benchmarks.
func (rec *Record) settings() map[string]string {
	m := map[string]string{}
	name, _ := SplitProcs(rec.Name)
	for part := range strings.SplitSeq(name, "/") {
		if key, value, ok := strings.Cut(part, "="); ok && params.Comparable(key) &&
			!merge.LeftToTheRun(key, value) {
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

// LacksFile reports whether a record is a kvbench line without its result file.
func (rec *Record) LacksFile() bool { return rec.IsLine() && rec.format() != "" }

// CheckIgnored returns an error for a name that is no comparable setting, and for a setting that may not
// be ignored because it defines what a number means.
func CheckIgnored(names []string) error {
	known := append([]string{merge.SettingTraceFiles, merge.SettingInFlight}, merge.FromFiles...)
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

// Simulation returns how a record was simulated: Measured for a measurement, "" if unknown.
func (rec *Record) Simulation() string { return rec.settings()[merge.SettingSimulated] }

// IsSimulated reports whether a record is known to be simulated.
func (rec *Record) IsSimulated() bool {
	return rec.Simulation() != "" && rec.Simulation() != merge.Measured
}

// format returns the record's format from its result file, or from its text.
func (rec *Record) format() string {
	if rec.Result != nil {
		return result.LineFormat
	}
	return rec.configured(merge.SettingFormat)
}

// Known reports whether kvbench or the Python benchmark wrote the record, and no other program.
func (rec *Record) Known() bool { return rec.Python || rec.format() != "" }

// place returns the file, with the line if there is one, for messages.
func (rec *Record) place() string {
	if rec.Line > 0 {
		return fmt.Sprintf("%s:%d", rec.File, rec.Line)
	}
	return rec.File
}

// ofConfig returns the settings of configuration lines. kvbench text of a simulation has "simulated:
// true".
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
	// Text of other programs has no such line: then whether it was simulated is unknown.
	if virtual || m[merge.SettingFormat] != "" {
		m[merge.SettingSimulated] = merge.HowSimulated(virtual, device != "" && device != "–")
	}
	return m
}

// effective adds the values that a run chose for unset parameters: workers, chunks and requests in flight,
// capacity, filesystems. The worker count of an autoscaler, and the number in flight that a sweep or a
// knee found, are results and no settings. Totals of a trial without all ranks are unknown.
func effective(m map[string]string, r *result.Result) {
	lacks := r.MergedRanks != nil && len(merge.Missing(r)) > 0
	whole := r.CompletionUnit == result.UnitRequest && !lacks
	w := r.Workload.Workers
	if m[merge.SettingWorkers] == "" && w > 0 && r.Autoscaler == nil && whole {
		m[merge.SettingWorkers] = fmt.Sprint(w)
	}
	switch p := r.PlainIO; { // merged ranks have no sweep
	case p == nil && whole:
		m[merge.SettingDepth] = fmt.Sprint(r.IO.Depth)
	case p != nil && (len(p.Sweep) > 0 || r.MergedRanks != nil && p.BlockBytes == 0 &&
		m[merge.SettingWorkers] == "" && m[merge.SettingDepth] == ""):
		m[merge.SettingInFlight] = result.InFlight(0)
	case p != nil && p.Knee == nil && r.Removal == nil && w > 0 && !lacks:
		m[merge.SettingInFlight] = result.InFlight(w / max(1, r.Ranks))
	}
	capacity := r.Tier("storage").CapacityBytes
	if m[merge.SettingCapacity] == "" && capacity != nil && whole {
		m[merge.SettingCapacity] = fmt.Sprintf("%.4g", float64(*capacity)/(1<<30))
	}
	var devices []string
	for _, root := range r.Roots() {
		if d := root.BlockDevice; d != nil {
			devices = append(devices, strings.TrimSpace(d.Name+" "+d.Model))
		}
	}
	if len(devices) > 0 {
		m[merge.SettingDevice] = strings.Join(slices.Compact(slices.Sorted(slices.Values(devices))), ", ")
	}
	if r.NominalWindowNS != nil {
		m[merge.SettingWindow] = time.Duration(*r.NominalWindowNS).String()
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

// resolved caches the defaults by benchmark and settings, because resolving parameters is slow.
var resolved sync.Map

// defaults returns a benchmark's default settings next to the given ones, by name. It returns nil for an
// unknown division.
func defaults(bench string, settings map[string]string) (m map[string]string) {
	division := settings[merge.SettingDivision]
	base, _, _ := strings.Cut(strings.TrimPrefix(bench, "Benchmark"), "/")
	base, _ = SplitProcs(base)
	key := base + fmt.Sprint(settings)
	if have, known := resolved.Load(key); known {
		return have.(map[string]string)
	}
	b, _ := params.Benchmark(base)
	// Resolve the parameter table, so that a changed default is used here too.
	resolve := func(settings map[string]string) (*params.Values, error) {
		given := map[string]string{}
		for name, value := range settings {
			given[params.EnvName(name)] = value
		}
		return params.Register(flag.NewFlagSet("", flag.ContinueOnError)).Resolve(params.Inputs{Bench: b,
			Base: "/", Env: func(name string) string { return given[name] }})
	}
	v, err := resolve(settings)
	if err != nil { // a setting of another version, or a file that is not here
		v, err = resolve(map[string]string{merge.SettingDivision: division})
	}
	if division != "" && err == nil {
		m = merge.Decisive(v.Parameters())
		maps.Copy(m, v.Effective())
		delete(m, merge.SettingWorkers) // of all ranks, whose number a text does not have
		m[merge.SettingWriteDevice] = result.WriteDeviceTransfer
		if v.Division == params.Closed {
			m[merge.SettingWriteDevice] = result.WriteDeviceFlush
		}
	}
	resolved.Store(key, m)
	return m
}

// SplitProcs cuts the suffix -GOMAXPROCS, which the testing package appends to a benchmark's name.
func SplitProcs(name string) (base, procs string) {
	base = strings.TrimRight(name, "0123456789")
	if len(base) == len(name) || !strings.HasSuffix(base, "-") {
		return name, ""
	}
	return base[:len(base)-1], name[len(base)-1:]
}
