package settings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Settings that no parameter tells: the filesystem below the cache directory, over how many of
// these the entries were spread, which may lie anywhere, and how many clients the trial had.
const (
	Filesystem  = "filesystem"
	Directories = "cache-dirs"
	Ranks       = "ranks"
)

// FromFiles are the settings that result files alone tell, unless a parameter gives them.
var FromFiles = []string{Filesystem, Directories, Ranks, Workers, Capacity, IOUsed}

// Values of Simulated. A simulated result is a prediction and never compared with a measured one.
const (
	Measured       = "no"
	DeviceModel    = "on a device model"
	InfinitelyFast = "on infinitely fast storage"
)

// Defining are these settings in the order in which they are told.
var Defining = []string{Format, Simulated, Division, IO, IOUsed, DecodeReads, WriteDevice}

// place is where a setting stands among those that define numbers, behind them if it does not.
func place(name string) int {
	if i := slices.Index(Defining, name); i >= 0 {
		return i
	}
	return len(Defining)
}

// Defines tells whether a setting decides what the numbers mean, so that nobody may ask to overlook
// it.
func Defines(name string) bool { return place(name) < len(Defining) }

// InOrder are the names of settings, those that define numbers first, because they make the rest
// meaningless.
func InOrder[V any](settings map[string]V) []string {
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		return cmp.Or(place(a)-place(b), strings.Compare(a, b))
	})
}

// Told puts settings behind a name: " [chunk-size=16KiB io-depth=4]", nothing where there are none.
func Told(settings []string) string {
	if len(settings) == 0 {
		return ""
	}
	return " [" + strings.Join(settings, " ") + "]"
}

// HowSimulated is the value of Simulated.
func HowSimulated(virtual, device bool) string {
	switch {
	case !virtual:
		return Measured
	case device:
		return DeviceModel
	}
	return InfinitelyFast
}

// Asked are those settings of a result that are the same for all clients of a run, whatever machine
// they are on. The Python benchmark measures in one way only.
func Asked(r *result.Result, python bool) map[string]string {
	if python {
		return map[string]string{Simulated: Measured, IO: "buffered", IOUsed: "buffered",
			DecodeReads: "batched", WriteDevice: result.WriteDeviceFlush}
	}
	m := Decisive(r.Parameters)
	if r.SchemaVersion != "" {
		m[Format] = result.Format(r.SchemaVersion)
	}
	m[Simulated] = HowSimulated(r.Simulation != nil,
		r.Simulation != nil && r.Simulation.Device != nil)
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

// Decisive are those parameters that decide what a run measures.
func Decisive(list []result.Parameter) map[string]string {
	m := map[string]string{}
	for _, p := range list {
		if v := fmt.Sprint(p.Value); params.Comparable(p.Name) && !Found(p.Name, v) {
			m[p.Name] = v
		}
	}
	return m
}

// Found tells whether the value of a setting leaves it to the run.
func Found(name, value string) bool {
	return (name == Workers || name == Capacity) && value == "0"
}

// Formats refuses what is of several formats: between two formats units and keys change what they
// mean, so that a comparison, a mean or a table over both would be of different things. One
// Formats sees everything that is put side by side. The zero value is ready to use; it is not for
// several goroutines.
type Formats struct {
	first  string // the format of the first that tells one
	origin string // where that stands
}

// Add takes in something of a format, which stands at origin; what tells no format, of the Python
// benchmark or of other programs, passes. The error names it and the first of the other format.
func (f *Formats) Add(format, origin string) error {
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
