package merge

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
	SettingFormat      = "kvbench-format"
	SettingDivision    = "division"
	SettingIO          = "io"      // as requested
	SettingIOUsed      = "io-used" // as the filesystem granted it
	SettingDecodeReads = "decode-reads"
	SettingWriteDevice = "write-device" // what the device time of a write is
	SettingSimulated   = "simulated"    // whether the time is real; see below
)

// SettingTraceFiles is which recording was played, whatever its path.
const SettingTraceFiles = "trace-files"

// Settings that a run finds where the user does not give them: how many workers, and how large the
// storage tier is (GiB; else 95 % of what is free). Both are known from result files alone.
const (
	SettingWorkers  = "workers"
	SettingCapacity = "storage-capacity-gb"
)

// Settings that are no parameters: the filesystem below the cache directory, over how many of
// these the entries were spread, which may lie anywhere, and how many clients the trial had.
const (
	SettingFilesystem  = "filesystem"
	SettingDirectories = "cache-dirs"
	SettingRanks       = "ranks"
)

// FromFiles are the settings that only result files have, unless a parameter gives them.
var FromFiles = []string{SettingFilesystem, SettingDirectories, SettingRanks, SettingWorkers,
	SettingCapacity, SettingIOUsed}

// Values of SettingSimulated. A simulated result is a prediction and never compared with a measured
// one.
const (
	Measured       = "no"
	DeviceModel    = "on a device model"
	InfinitelyFast = "on infinitely fast storage"
)

// Defining are these settings in the order in which they are shown.
var Defining = []string{SettingFormat, SettingSimulated, SettingDivision, SettingIO, SettingIOUsed,
	SettingDecodeReads, SettingWriteDevice}

// rankOf is the place of a setting among those that define numbers, behind them for others.
func rankOf(name string) int {
	if i := slices.Index(Defining, name); i >= 0 {
		return i
	}
	return len(Defining)
}

// Defines reports whether a setting decides what the numbers mean, so that it cannot be ignored.
func Defines(name string) bool { return rankOf(name) < len(Defining) }

// InOrder are the names of settings, those that define numbers first, because they make the rest
// meaningless.
func InOrder[V any](settings map[string]V) []string {
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		return cmp.Or(rankOf(a)-rankOf(b), strings.Compare(a, b))
	})
}

// Bracketed puts settings behind a name: " [chunk-size=16KiB io-depth=4]", nothing where there are
// none.
func Bracketed(settings []string) string {
	if len(settings) == 0 {
		return ""
	}
	return " [" + strings.Join(settings, " ") + "]"
}

// HowSimulated is the value of SettingSimulated.
func HowSimulated(virtual, device bool) string {
	switch {
	case !virtual:
		return Measured
	case device:
		return DeviceModel
	}
	return InfinitelyFast
}

// SettingsOf are those settings of a result that are the same for all clients of a run, whatever
// machine they are on. The Python benchmark measures in one way only.
func SettingsOf(r *result.Result, python bool) map[string]string {
	if python {
		return map[string]string{SettingSimulated: Measured, SettingIO: "buffered",
			SettingIOUsed: "buffered", SettingDecodeReads: "batched",
			SettingWriteDevice: result.WriteDeviceFlush}
	}
	m := Decisive(r.Parameters)
	if r.SchemaVersion != "" {
		m[SettingFormat] = result.LineFormat
	}
	m[SettingSimulated] = HowSimulated(r.Simulation != nil,
		r.Simulation != nil && r.Simulation.Device != nil)
	if r.TraceFiles != nil {
		m[SettingTraceFiles] = r.TraceFiles.String()
	}
	// What was done, where the file has it, stands for what was requested.
	for name, v := range map[string]string{SettingDivision: r.Division, SettingIOUsed: r.IO.Mode,
		SettingDecodeReads: r.Workload.DecodeReads, SettingWriteDevice: r.IO.WriteDevice} {
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
		if v := fmt.Sprint(p.Value); params.Comparable(p.Name) && !LeftToTheRun(p.Name, v) {
			m[p.Name] = v
		}
	}
	return m
}

// LeftToTheRun reports whether a setting has the value that leaves it to the run.
func LeftToTheRun(name, value string) bool {
	return (name == SettingWorkers || name == SettingCapacity) && value == "0"
}
