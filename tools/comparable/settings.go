package comparable

import (
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench"
	"kvbench/params"
)

// Setting is one thing that a result was measured with.
type Setting struct{ Name, Value string }

// The settings that define what the numbers mean. Results that differ in one of them are never compared or aggregated.
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

var defining = []string{Format, Simulated, Division, IO, IOUsed, DecodeReads, WriteDevice}

// titles name the defining settings in a sentence.
var titles = map[string]string{
	Format: "format", Simulated: "simulated", Division: "division", IO: "I/O", IOUsed: "I/O", DecodeReads: "decode reads",
	WriteDevice: "device time of writes",
}

// Defines tells whether a setting decides what the numbers mean, so that nobody may ask to overlook it.
func Defines(name string) bool { return slices.Contains(defining, name) }

// Matters tells whether results that differ in a setting measured different things.
func Matters(name string) bool { return Defines(name) || params.Comparable(name) }

// Order sorts settings: what defines the numbers first, the rest by name.
func Order(name string) string {
	if i := slices.Index(defining, name); i >= 0 {
		return fmt.Sprintf("0%d", i)
	}
	return "1" + name
}

// OfPython are the settings of every result of the Python benchmark: it measures in one way only.
func OfPython() []Setting {
	return []Setting{{Simulated, Measured}, {IO, "buffered"}, {IOUsed, "buffered"}, {DecodeReads, "batched"}, {WriteDevice, kvbench.WriteDeviceFlush}}
}

// OfResult are the settings of a result file.
func OfResult(r *kvbench.Result) []Setting {
	var list []Setting
	for _, p := range r.Parameters {
		if params.Comparable(p.Name) {
			list = append(list, Setting{p.Name, fmt.Sprint(p.Value)})
		}
	}
	for _, s := range []Setting{{Simulated, simulated(r)}, {Division, r.Division}, {IOUsed, r.IO.Mode}, {DecodeReads, r.Workload.DecodeReads}, {WriteDevice, r.IO.WriteDevice}} {
		if s.Value != "" {
			list = slices.DeleteFunc(list, func(have Setting) bool { return have.Name == s.Name })
			list = append(list, s)
		}
	}
	return list
}

// simulated is the value of Simulated of a result file.
func simulated(r *kvbench.Result) string {
	switch {
	case r.Simulation == nil:
		return Measured
	case r.Simulation.Device == nil:
		return InfinitelyFast
	}
	return DeviceModel
}

// OfName are the swept parameters in a benchmark's name, such as MaxStorageStress/num-users=8.
func OfName(name string) []Setting {
	var list []Setting
	for part := range strings.SplitSeq(name, "/") {
		if key, value, ok := strings.Cut(part, "="); ok && params.Comparable(key) {
			list = append(list, Setting{key, value})
		}
	}
	return list
}
