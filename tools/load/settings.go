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

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// The settings that define what the numbers mean. Results that differ in one of them are never
// compared or aggregated.
const (
	Format      = "kvbench-format"
	Division    = "division"
	IO          = "io"      // as asked for
	IOUsed      = "io-used" // as the filesystem granted it
	DecodeReads = "decode-reads"
	WriteDevice = "write-device" // what the device time of a write is
	Simulated   = "simulated"    // whether the time is real; see below
)

// TraceFiles is the setting that tells which recording was played, whatever its path.
const TraceFiles = "trace-files"

// Settings that a run finds where nobody gives them: how many workers, and how large the storage
// tier is (GiB; else 95 % of what is free). Both are known from result files alone.
const (
	Workers  = "workers"
	Capacity = "storage-capacity-gb"
)

// Settings that no parameter tells: the filesystem below the cache directory, and how many clients
// the trial had.
const (
	Filesystem = "filesystem"
	Ranks      = "ranks"
)

// Values of Simulated. A simulated result is a prediction and never compared with a measured one.
const (
	Measured       = "no"
	DeviceModel    = "on a device model"
	InfinitelyFast = "on infinitely fast storage"
)

// defining are these settings in the order in which they are told.
var defining = []string{Format, Simulated, Division, IO, IOUsed, DecodeReads, WriteDevice}

// place is where a setting stands among those that define numbers, behind them if it does not.
func place(name string) int {
	if i := slices.Index(defining, name); i >= 0 {
		return i
	}
	return len(defining)
}

// Defines tells whether a setting decides what the numbers mean, so that nobody may ask to overlook
// it.
func Defines(name string) bool { return place(name) < len(defining) }

// InOrder are the names of settings, those that define numbers first, because they make the rest
// meaningless.
func InOrder[V any](settings map[string]V) []string {
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a, b))
	})
}

// Settings are what the trials of one benchmark in one run were measured with: of each setting the
// values that occur, in the order in which they were met. More than one value means that the trials
// measured different things.
type Settings struct {
	values   map[string][]string
	defaults map[string]string // of what text does not tell
	last     []Setting         // of the line before: nearly always the next one's too
}

// NewSettings are those of no trial yet.
func NewSettings() *Settings { return &Settings{values: map[string][]string{}} }

// Add takes in what one trial tells. The settings that define numbers are filled up with what holds
// when text does not tell them, so that a trial that spells out another value is seen beside it.
func (s *Settings) Add(rec *Record) {
	if s.told(rec) {
		return
	}
	line := rec.isLine()
	all, told := map[string]string{}, rec.settings()
	if line {
		s.last = rec.Config
		m := defaults(rec.Name, told[Division])
		if m != nil {
			s.defaults = m
		}
		// Only what defines numbers: sixty defaults for every benchmark would say nothing.
		for _, name := range defining {
			if v, ok := m[name]; ok {
				all[name] = v
			}
		}
	}
	maps.Copy(all, told)
	for name, v := range all {
		s.put(name, v)
	}
}

// isLine tells whether a record has nothing but its line.
func (rec *Record) isLine() bool { return rec.Result == nil && !rec.Python }

// told tells whether a record says no more than the one before it: thousands of lines share one
// configuration, which was taken in with the first.
func (s *Settings) told(rec *Record) bool {
	return rec.isLine() && len(s.last) > 0 && len(rec.Config) > 0 && &s.last[0] == &rec.Config[0]
}

// put keeps each value of a setting once.
func (s *Settings) put(name, value string) {
	if !slices.ContainsFunc(s.values[name], func(v string) bool { return Alike(name, v, value) }) {
		s.values[name] = append(s.values[name], value)
	}
}

// Alike tells whether two values of a setting are one. What is free of a disk changes from trial to
// trial: capacities within a twentieth are one.
func Alike(name, a, b string) bool {
	if a == b || name != Capacity {
		return a == b
	}
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && math.Abs(x-y) <= math.Max(x, y)/20
}

// Merge takes in the settings of further trials of the same benchmark.
func (s *Settings) Merge(more *Settings) {
	for name, values := range more.values {
		for _, v := range values {
			s.put(name, v)
		}
	}
	if s.defaults == nil {
		s.defaults = more.defaults
	}
}

// Of are the values of a setting: those that were met, else the default, if that is known.
func (s *Settings) Of(name string) []string {
	if v, ok := s.values[name]; ok {
		return v
	}
	if v, ok := s.defaults[name]; ok {
		return []string{v}
	}
	return nil
}

// Texts are all settings that are known with one value: of a mixture nobody can say what it is.
func (s *Settings) Texts() map[string]string {
	m := map[string]string{}
	for name, values := range s.values {
		if len(values) == 1 {
			m[name] = values[0]
		}
	}
	return m
}

// Difference is a setting of which two sets of trials have different values.
type Difference struct {
	Name     string
	Old, New []string
}

// Differences compares two sets of trials, without the settings that are named to be ignored. A
// setting that one side knows in no way is no difference.
func Differences(old, new *Settings, ignore []string) (list []Difference) {
	if old == nil || new == nil {
		return nil
	}
	either := maps.Clone(old.values)
	maps.Copy(either, new.values)
	for _, n := range InOrder(either) {
		a, b := old.Of(n), new.Of(n)
		if len(a) == 0 || len(b) == 0 || slices.Contains(ignore, n) && !Defines(n) ||
			mixture(a) == mixture(b) || len(a) == 1 && len(b) == 1 && Alike(n, a[0], b[0]) {
			continue
		}
		// A filesystem that refuses direct I/O grants buffered: that is what was measured.
		if n == IO && len(old.Of(IOUsed)) > 0 && len(new.Of(IOUsed)) > 0 {
			continue
		}
		list = append(list, Difference{n, a, b})
	}
	return list
}

// Fits tells whether a trial was measured as those before it.
func (s *Settings) Fits(rec *Record, ignore []string) bool {
	if s.told(rec) {
		return true
	}
	one := NewSettings()
	one.Add(rec)
	return len(Differences(s, one, ignore)) == 0
}

// Text is a setting's value for people, several of them joined; empty where nobody knows.
func (s *Settings) Text(name string) string { return mixture(s.Of(name)) }

// mixture names several values, direct+buffered, in whatever order their trials were read.
func mixture(values []string) string {
	return strings.Join(slices.Sorted(slices.Values(values)), "+")
}

// settings are what a record tells, by name; values are texts, as flags have them. The name of a
// sub-benchmark tells what was swept. What the lines say stands before that, and what the result
// file says before both: the lines are those of the whole text.
func (rec *Record) settings() map[string]string {
	m := map[string]string{}
	name, _ := SplitProcs(rec.Name)
	for part := range strings.SplitSeq(name, "/") {
		if key, value, ok := strings.Cut(part, "="); ok && params.Comparable(key) {
			m[key] = value
		}
	}
	maps.Copy(m, ofConfig(rec.Config))
	if rec.Result != nil || rec.Python {
		maps.Copy(m, ofFile(rec.Result, rec.Python))
	}
	return m
}

// Simulation tells how a record was simulated: Measured when it was not, empty when nobody says.
func (rec *Record) Simulation() string { return rec.settings()[Simulated] }

// IsSimulated tells whether a record is of a run in virtual time.
func (rec *Record) IsSimulated() bool {
	return rec.Simulation() != "" && rec.Simulation() != Measured
}

// Formats refuses records of several formats: between two formats units and keys change what they
// mean, so that a comparison, a mean or a table over both would be of different things. One
// Formats sees everything that is put side by side. Records that tell no format, of the Python
// benchmark or of other programs, pass. The zero value is ready to use; it is not for several
// goroutines.
type Formats struct {
	first  string // the format of the first record that tells one
	origin string // where that stands
}

// Add takes in a record. The error names it and the first record of the other format.
func (f *Formats) Add(rec *Record) error { return f.add(rec.format(), rec.place()) }

func (f *Formats) add(format, origin string) error {
	switch {
	case format == "" || format == f.first:
		return nil
	case f.first == "":
		f.first, f.origin = format, origin
		return nil
	}
	return fmt.Errorf("%s is of result format %s, %s of format %s: units and keys changed their "+
		"meaning in between (kvbench/README.md, \"What changed in format %s\"), so they cannot "+
		"stand side by side; read each by itself, or measure again with one version of kvbench",
		f.origin, f.first, origin, format, result.Format(result.SchemaVersion))
}

// format is what the record tells of itself: its file if it has one, else the line's text.
func (rec *Record) format() string {
	if rec.Result != nil {
		return result.Format(rec.Result.SchemaVersion)
	}
	for _, c := range rec.Config {
		if c.Key == Format {
			return c.Value
		}
	}
	return ""
}

// place is the file, and the line where the record stands on one.
func (rec *Record) place() string {
	if rec.Line > 0 {
		return fmt.Sprintf("%s:%d", rec.File, rec.Line)
	}
	return rec.File
}

// ofConfig are the settings that benchmark text tells. Text of this suite says "simulated: true"
// where that is so.
func ofConfig(config []Setting) map[string]string {
	m := map[string]string{}
	for _, line := range config {
		if (Defines(line.Key) || params.Comparable(line.Key)) && !found(line.Key, line.Value) {
			m[line.Key] = line.Value
		}
	}
	virtual, device := m[Simulated] == "true", m["simulate-device"]
	delete(m, Simulated)
	// Text of other programs says nothing of virtual time, and need not.
	if virtual || m[Format] != "" {
		m[Simulated] = simulated(virtual, device != "" && device != "–")
	}
	return m
}

// simulated is the value of Simulated.
func simulated(virtual, device bool) string {
	switch {
	case !virtual:
		return Measured
	case device:
		return DeviceModel
	}
	return InfinitelyFast
}

// ofFile are the settings of a result file: those that were asked for, and what the run has found
// where nobody asked. The Python benchmark tells none of these.
func ofFile(r *result.Result, python bool) map[string]string {
	m := asked(r, python)
	if !python {
		effective(m, r)
	}
	return m
}

// asked are those of its settings that are the same for all clients of a run, whatever machine they
// are on. The Python benchmark measures in one way only.
func asked(r *result.Result, python bool) map[string]string {
	if python {
		return map[string]string{Simulated: Measured, IO: "buffered", IOUsed: "buffered",
			DecodeReads: "batched", WriteDevice: result.WriteDeviceFlush}
	}
	m := decisive(r.Parameters)
	if r.SchemaVersion != "" {
		m[Format] = result.Format(r.SchemaVersion)
	}
	m[Simulated] = simulated(r.Simulation != nil, r.Simulation != nil && r.Simulation.Device != nil)
	if r.TraceFiles != nil {
		m[TraceFiles] = r.TraceFiles.String()
	}
	// What was done, where the file says it, stands for what was asked for.
	for name, v := range map[string]string{Division: r.Division, IOUsed: r.IO.Mode,
		DecodeReads: r.Workload.DecodeReads, WriteDevice: r.IO.WriteDevice} {
		if v != "" {
			m[name] = v
		}
	}
	return m
}

// decisive are those parameters that decide what a run measures.
func decisive(list []result.Parameter) map[string]string {
	m := map[string]string{}
	for _, p := range list {
		if v := fmt.Sprint(p.Value); params.Comparable(p.Name) && !found(p.Name, v) {
			m[p.Name] = v
		}
	}
	return m
}

// found tells whether the value of a setting leaves it to the run.
func found(name, value string) bool {
	return (name == Workers || name == Capacity) && value == "0"
}

// effective fills in what a run has found where nobody gave it. How many workers a ladder or an
// autoscaler came to is a result of the trial, and no setting.
func effective(m map[string]string, r *result.Result) {
	if w := r.Workload.Workers; m[Workers] == "" && w > 0 && r.Autoscaler == nil &&
		r.CompletionUnit == result.UnitRequest {
		m[Workers] = fmt.Sprint(w)
	}
	for _, t := range r.Tiers {
		if m[Capacity] == "" && t.Level == "storage" && t.CapacityBytes != nil &&
			r.CompletionUnit == result.UnitRequest {
			m[Capacity] = fmt.Sprintf("%.4g", float64(*t.CapacityBytes)/(1<<30))
		}
	}
	if fs := r.Environment.Filesystem.Type; fs != "" {
		m[Filesystem] = fs
	}
	if r.Ranks > 0 {
		m[Ranks] = fmt.Sprint(r.Ranks)
	}
}

// resolved keeps the defaults of each benchmark and division, by the two: thousands of records ask
// for few, and the parameter table takes a while.
var resolved sync.Map

// defaults are what holds of a benchmark in a division when nobody sets anything, by name:
// benchmark text names only what the user changed. It is nil for a division that is none of ours.
func defaults(bench, division string) (m map[string]string) {
	base, _, _ := strings.Cut(strings.TrimPrefix(bench, "Benchmark"), "/")
	base, _ = SplitProcs(base)
	key := [2]string{base, division}
	if have, known := resolved.Load(key); known {
		return have.(map[string]string)
	}
	b, _ := params.Benchmark(base)
	given := map[string]string{params.EnvName(Division): division}
	env := func(name string) (string, bool) { return given[name], given[name] != "" }
	// The parameter table itself answers, so that a default that changes changes here too.
	v, err := params.Register(flag.NewFlagSet("", flag.ContinueOnError)).
		Resolve(params.Inputs{Bench: b, Base: "/", Env: env})
	if division != "" && err == nil {
		m = decisive(v.Parameters())
		m[WriteDevice] = result.WriteDeviceTransfer
		if v.Division == params.Closed {
			m[WriteDevice] = result.WriteDeviceFlush
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
