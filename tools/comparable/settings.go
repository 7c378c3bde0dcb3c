package comparable

import (
	"flag"
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
)

var defining = []string{Format, Division, IO, IOUsed, DecodeReads, WriteDevice}

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
	return []Setting{{IOUsed, "buffered"}, {DecodeReads, "batched"}, {WriteDevice, kvbench.WriteDeviceFlush}}
}

// OfResult are the settings of a result file.
func OfResult(r *kvbench.Result) []Setting {
	var list []Setting
	for _, p := range r.Parameters {
		if params.Comparable(p.Name) {
			list = append(list, Setting{p.Name, fmt.Sprint(p.Value)})
		}
	}
	for _, s := range []Setting{{Division, r.Division}, {IOUsed, r.IO.Mode}, {DecodeReads, r.Workload.DecodeReads}, {WriteDevice, r.IO.WriteDevice}} {
		if s.Value != "" {
			list = slices.DeleteFunc(list, func(have Setting) bool { return have.Name == s.Name })
			list = append(list, s)
		}
	}
	return list
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

// Defaults are the settings of a benchmark in a division when nobody sets any: benchmark text names only what the user
// changed. Nil for a division that is none of ours.
func Defaults(bench, division string) map[string]string {
	base, _, _ := strings.Cut(strings.TrimPrefix(bench, "Benchmark"), "/")
	b, ok := params.Benchmark(base)
	if !ok {
		b = params.Bench{}
	}
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	set := params.Register(fs)
	if division == "" || fs.Parse([]string{"-division=" + division}) != nil {
		return nil
	}
	v, err := set.Resolve(params.Inputs{Bench: b, Base: "/", CheckCacheDir: func(string) error { return nil }})
	if err != nil {
		return nil
	}
	d := map[string]string{WriteDevice: kvbench.WriteDeviceTransfer}
	if v.Division == params.Closed {
		d[WriteDevice] = kvbench.WriteDeviceFlush
	}
	for _, p := range v.Parameters() {
		if params.Comparable(p.Name) {
			d[p.Name] = p.Value
		}
	}
	return d
}
