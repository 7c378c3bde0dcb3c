package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// Setting is one thing that a result was measured with. Values are texts, as flags have them.
type Setting struct{ Name, Value string }

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

// Values of Simulated. A simulated result is a prediction and never compared with a measured one.
const (
	Measured       = "no"
	DeviceModel    = "on a device model"
	InfinitelyFast = "on infinitely fast storage"
)

// defining are the settings that define numbers, in the order in which they are told.
var defining = []string{Format, Simulated, Division, IO, IOUsed, DecodeReads, WriteDevice}

// titles name the defining settings in a sentence.
var titles = map[string]string{
	Format: "format", Simulated: "simulated", Division: "division", IO: "I/O", IOUsed: "I/O",
	DecodeReads: "decode reads", WriteDevice: "device time of writes",
}

// Defines tells whether a setting decides what the numbers mean, so that nobody may ask to overlook
// it.
func Defines(name string) bool { return slices.Contains(defining, name) }

// matters tells whether results that differ in a setting measured different things.
func matters(name string) bool { return Defines(name) || params.Comparable(name) }

// Settings are what the trials of one benchmark in one run were measured with: of each setting the
// values that occur, in the order in which they were met. More than one value means that the trials
// measured different things.
type Settings struct {
	values   map[string][]string
	swept    []Setting         // in the benchmark's name
	defaults map[string]string // of what text does not tell
	last     []Setting         // of the record before: nearly always the next one's too
}

// NewSettings is for the benchmark of a name, which may be followed by GOMAXPROCS.
func NewSettings(bench string) *Settings {
	s := &Settings{values: map[string][]string{}}
	bench, _ = SplitProcs(bench)
	for part := range strings.SplitSeq(bench, "/") {
		if key, value, ok := strings.Cut(part, "="); ok && params.Comparable(key) {
			s.swept = append(s.swept, Setting{key, value})
		}
	}
	return s
}

// add takes in what one trial tells. The settings that define numbers are filled up with what holds
// when text does not tell them, so that a trial that spells out another value is seen beside it.
func (s *Settings) add(told []Setting, defaults map[string]string) {
	// Thousands of lines share one list: it was taken in with the first.
	if len(told) > 0 && len(s.last) == len(told) && &s.last[0] == &told[0] {
		return
	}
	s.last = told
	if defaults != nil {
		s.defaults = defaults
	}
	known := map[string]bool{}
	for _, t := range told {
		known[t.Name] = true
		s.put(t)
	}
	// The name of a sub-benchmark tells what was swept; a result file tells it as well, and wins.
	for _, t := range s.swept {
		if !known[t.Name] {
			known[t.Name] = true
			s.put(t)
		}
	}
	// Only what defines numbers is filled up here: sixty defaults for every benchmark would say
	// nothing.
	for _, name := range defining {
		if v, ok := defaults[name]; ok && !known[name] {
			s.put(Setting{name, v})
		}
	}
}

// put keeps each value of a setting once.
func (s *Settings) put(t Setting) {
	if !slices.Contains(s.values[t.Name], t.Value) {
		s.values[t.Name] = append(s.values[t.Name], t.Value)
	}
}

// Merge takes in the settings of further trials of the same benchmark.
func (s *Settings) Merge(more *Settings) {
	for _, name := range more.Names() {
		for _, v := range more.values[name] {
			s.put(Setting{name, v})
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

// Names are the settings that were told, those that define numbers first, the others by name.
func (s *Settings) Names() []string {
	if s == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(s.values), func(a, b string) int {
		return strings.Compare(order(a), order(b))
	})
}

// order is what settings are sorted by: what defines numbers comes first, because it makes the
// rest meaningless.
func order(name string) string {
	if i := slices.Index(defining, name); i >= 0 {
		return fmt.Sprintf("0%d", i)
	}
	return "1" + name
}

// Difference is a setting of which two sets of trials have different values.
type Difference struct {
	Name     string
	Old, New []string
}

// Differences compares two sets of trials. A setting that one side knows in no way is no
// difference.
func Differences(old, new *Settings) (list []Difference) {
	if old == nil || new == nil {
		return nil
	}
	names := old.Names()
	for _, n := range new.Names() {
		if _, known := old.values[n]; !known {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(order(a), order(b)) })
	for _, n := range names {
		a, b := old.Of(n), new.Of(n)
		if len(a) > 0 && len(b) > 0 && !slices.Equal(sorted(a), sorted(b)) {
			list = append(list, Difference{n, a, b})
		}
	}
	return list
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
		parts = append(parts, fmt.Sprintf("%s is %s and %s", titles[d.Name], sum(d.Old),
			sum(d.New)))
	}
	return strings.Join(parts, ", ")
}

// sum names a mixture: direct+buffered.
func sum(values []string) string { return strings.Join(sorted(values), "+") }

// sorted makes two mixtures comparable, in whatever order their trials were read.
func sorted(values []string) []string { return slices.Sorted(slices.Values(values)) }

// OfPython are the settings of every result of the Python benchmark: it measures in one way only.
func OfPython() []Setting {
	return []Setting{{Simulated, Measured}, {IO, "buffered"}, {IOUsed, "buffered"},
		{DecodeReads, "batched"}, {WriteDevice, result.WriteDeviceFlush}}
}

// OfResult are the settings of a result file.
func OfResult(r *result.Result) (list []Setting) {
	said := []Setting{{Simulated, simulated(r)}, {Division, r.Division}, {IOUsed, r.IO.Mode},
		{DecodeReads, r.Workload.DecodeReads}, {WriteDevice, r.IO.WriteDevice}}
	said = slices.DeleteFunc(said, func(s Setting) bool { return s.Value == "" })
	for _, p := range r.Parameters {
		other := !slices.ContainsFunc(said, func(s Setting) bool { return s.Name == p.Name })
		if other && params.Comparable(p.Name) {
			list = append(list, Setting{p.Name, fmt.Sprint(p.Value)})
		}
	}
	return append(list, said...)
}

// simulated is the value of Simulated of a result file.
func simulated(r *result.Result) string {
	switch {
	case r.Simulation == nil:
		return Measured
	case r.Simulation.Device == nil:
		return InfinitelyFast
	}
	return DeviceModel
}

// SplitProcs cuts the -GOMAXPROCS suffix of a benchmark's name, which the testing package appends.
func SplitProcs(name string) (base, procs string) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 || i == len(name)-1 || strings.Trim(name[i+1:], "0123456789") != "" {
		return name, ""
	}
	return name[:i], name[i:]
}
