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

// Settings that define what the numbers mean. Results that differ in one of these settings are
// never compared or aggregated.
const (
	SettingFormat      = "kvbench-format"
	SettingDivision    = "division"
	SettingIO          = "io"      // as requested
	SettingIOUsed      = "io-used" // as the filesystem granted it
	SettingDecodeReads = "decode-reads"
	SettingWriteDevice = "write-device" // what the device time of a write includes
	SettingSimulated   = "simulated"    // one of the values below
)

// SettingTraceFiles identifies the replayed trace files by content, not by path.
const SettingTraceFiles = "trace-files"

// Settings that a run chooses if the user does not set them: the number of workers, the chunks in flight
// of each, the requests in flight of plain I/O, and the capacity of the storage tier (GiB; 95 % of the
// free space). The result file has the chosen value.
const (
	SettingWorkers  = "workers"
	SettingDepth    = "io-depth"
	SettingInFlight = "in-flight"
	SettingCapacity = "storage-capacity-gb"
)

// Settings that are no parameters: the filesystem type, the number of cache directories, and the
// number of ranks.
const (
	SettingFilesystem  = "filesystem"
	SettingDirectories = "cache-dirs"
	SettingRanks       = "ranks"
)

// Settings that only a gate compares: the block devices, and the window (-benchtime). Pages compare drives.
const (
	SettingDevice = "device"
	SettingWindow = "window"
)

// FromFiles are the settings that come from result files, unless the user sets a parameter of that
// name.
var FromFiles = []string{SettingFilesystem, SettingDirectories, SettingRanks, SettingWorkers,
	SettingCapacity, SettingDevice, SettingWindow, SettingIOUsed}

// Values of SettingSimulated. A simulated result is a prediction. It is never compared with a
// measured result.
const (
	Measured       = "no"
	DeviceModel    = "on a device model"
	InfinitelyFast = "on infinitely fast storage"
)

// Defining are the settings that define what the numbers mean, in display order.
var Defining = []string{SettingFormat, SettingSimulated, SettingDivision, SettingIO, SettingIOUsed,
	SettingDecodeReads, SettingWriteDevice}

// rankOf returns the index of a setting in Defining, len(Defining) for other settings, and more for the
// chunks in flight, which usually follow from the users.
func rankOf(name string) int {
	if i := slices.Index(Defining, name); i >= 0 {
		return i
	}
	if name == SettingDepth {
		return len(Defining) + 1
	}
	return len(Defining)
}

// Defines reports whether a setting is in Defining.
func Defines(name string) bool { return slices.Contains(Defining, name) }

// InOrder returns the names of the settings: first those in Defining, in that order, then the rest
// alphabetically, the chunks in flight last.
func InOrder[V any](settings map[string]V) []string {
	return slices.SortedFunc(maps.Keys(settings), func(a, b string) int {
		return cmp.Or(rankOf(a)-rankOf(b), strings.Compare(a, b))
	})
}

// Bracketed returns settings as a suffix of a name, such as " [chunk-size=16KiB io-depth=4]". It
// returns "" for no settings.
func Bracketed(settings []string) string {
	if len(settings) == 0 {
		return ""
	}
	return " [" + strings.Join(settings, " ") + "]"
}

// HowSimulated returns the value of SettingSimulated, given whether time is virtual and whether
// there is a device model.
func HowSimulated(virtual, device bool) string {
	switch {
	case !virtual:
		return Measured
	case device:
		return DeviceModel
	}
	return InfinitelyFast
}

// SettingsOf returns the settings of a result that are the same on all ranks of a run. For the
// Python benchmark they are constant.
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
	// If the file has what the run did, that replaces what the user requested.
	for name, v := range map[string]string{SettingDivision: r.Division, SettingIOUsed: r.IO.Mode,
		SettingDecodeReads: r.Workload.DecodeReads, SettingWriteDevice: r.IO.WriteDevice} {
		if v != "" {
			m[name] = v
		}
	}
	return m
}

// Decisive returns the values of the parameters that decide what a run measures.
func Decisive(list []result.Parameter) map[string]string {
	m := map[string]string{}
	for _, p := range list {
		if v := fmt.Sprint(p.Value); params.Comparable(p.Name) && !LeftToTheRun(p.Name, v) {
			m[p.Name] = v
		}
	}
	return m
}

// LeftToTheRun reports whether value lets the run choose the setting: 0 for the workers or the
// storage capacity, auto for the chunks in flight.
func LeftToTheRun(name, value string) bool {
	return (name == SettingWorkers || name == SettingCapacity) && value == "0" ||
		name == SettingDepth && value == "auto"
}
