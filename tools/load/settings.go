package load

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
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

// Values of Simulated. A simulated result is a prediction and never compared with a measured one.
const (
	Measured       = "no"
	DeviceModel    = "on a device model"
	InfinitelyFast = "on infinitely fast storage"
)

// defining are these settings in the order in which they are told, and their names in a sentence.
var defining = []struct{ name, title string }{
	{Format, "format"}, {Simulated, "simulated"}, {Division, "division"}, {IO, "I/O"},
	{IOUsed, "I/O"}, {DecodeReads, "decode reads"}, {WriteDevice, "device time of writes"},
}

// place is where a setting stands among those that define numbers, behind them if it does not.
func place(name string) int {
	for i, d := range defining {
		if d.name == name {
			return i
		}
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
	line := rec.Result == nil && !rec.Python
	// Thousands of lines share one configuration: it was taken in with the first.
	if line && len(s.last) > 0 && len(rec.Config) > 0 && &s.last[0] == &rec.Config[0] {
		return
	}
	all, told := map[string]string{}, rec.settings()
	if line {
		s.last = rec.Config
		m := defaults(rec.Name, told[Division])
		if m != nil {
			s.defaults = m
		}
		// Only what defines numbers: sixty defaults for every benchmark would say nothing.
		for _, d := range defining {
			if v, ok := m[d.name]; ok {
				all[d.name] = v
			}
		}
	}
	maps.Copy(all, told)
	for name, v := range all {
		s.put(name, v)
	}
}

// put keeps each value of a setting once.
func (s *Settings) put(name, value string) {
	if !slices.Contains(s.values[name], value) {
		s.values[name] = append(s.values[name], value)
	}
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

// Difference is a setting of which two sets of trials have different values.
type Difference struct {
	Name     string
	Old, New []string
}

// Mixed are the settings of which the trials have several values, told as if the first were the old
// one and each other a new one.
func (s *Settings) Mixed() (list []Difference) {
	for _, n := range InOrder(s.values) {
		for _, v := range s.values[n][1:] {
			list = append(list, Difference{n, s.values[n], []string{v}})
		}
	}
	return list
}

// Differences compares two sets of trials. A setting that one side knows in no way is no
// difference.
func Differences(old, new *Settings) (list []Difference) {
	if old == nil || new == nil {
		return nil
	}
	either := maps.Clone(old.values)
	maps.Copy(either, new.values)
	for _, n := range InOrder(either) {
		a, b := old.Of(n), new.Of(n)
		if len(a) > 0 && len(b) > 0 && mixture(a) != mixture(b) {
			list = append(list, Difference{n, a, b})
		}
	}
	return list
}

// mixture names several values, direct+buffered, in whatever order their trials were read.
func mixture(values []string) string {
	return strings.Join(slices.Sorted(slices.Values(values)), "+")
}

// Incomparable says in which of the settings that define numbers two sets of trials differ: "I/O is
// direct and buffered". Such results are shown side by side but never compared.
func Incomparable(old, new *Settings) string {
	var parts []string
	// What does not define a number is no reason against showing a change.
	for _, d := range Differences(old, new) {
		// A filesystem that refuses direct I/O grants buffered: that is what was measured.
		granted := len(old.Of(IOUsed)) > 0 && len(new.Of(IOUsed)) > 0
		if !Defines(d.Name) || d.Name == IO && granted {
			continue // what was granted counts, not what was asked for
		}
		parts = append(parts, fmt.Sprintf("%s is %s and %s", defining[place(d.Name)].title,
			mixture(d.Old), mixture(d.New)))
	}
	return strings.Join(parts, ", ")
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
		if Defines(line.Key) || params.Comparable(line.Key) {
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

// ofFile are the settings of a result file. The Python benchmark measures in one way only.
func ofFile(r *result.Result, python bool) map[string]string {
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
		if params.Comparable(p.Name) {
			m[p.Name] = fmt.Sprint(p.Value)
		}
	}
	return m
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
