package stats

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/units"
)

// order is that of the suite's list of units; bandwidths come first, because they are what most
// people look for.
var order = func() []string {
	list := []string{"read-B/s", "write-B/s"}
	for _, u := range units.UnitDirections() {
		_, tidy := benchunit.Tidy(1, u.Unit)
		list = append(list, tidy)
	}
	return append(list, "device-read-ratio", "knee-bytes") // which have no direction
}()

// rank puts units that are not the suite's behind all others.
func rank(unit string) int {
	if i := slices.Index(order, unit); i >= 0 {
		return i
	}
	return len(order)
}

// Title is a metric's name for people: read-sec/MiB is "read time per MiB".
func Title(unit string) string { return cmp.Or(titles[unit], unit) }

// titles are the suite's units for people.
var titles = map[string]string{
	"read-B/s": "read bandwidth", "write-B/s": "write bandwidth", "sec/op": "time per operation",
	"req/s": "requests", "tok/s": "tokens (wall)", "storage-tok/s": "tokens (storage time)",
	"found-tok/s":  "tokens found",
	"read-p50-sec": "read p50", "read-p95-sec": "read p95", "read-p99-sec": "read p99",
	"write-p95-sec":   "write p95",
	"read-io-p50-sec": "I/O request read p50", "read-io-p99-sec": "I/O request read p99",
	"write-io-p50-sec": "I/O request write p50", "write-io-p99-sec": "I/O request write p99",
	"read-sec/MiB": "read time per MiB", "e2e-p95-sec": "end-to-end p95", "hit-ratio": "hit ratio",
	"ttfb-p95-sec":  "first byte p95",
	"ttft-mean-sec": "mean time to first token", "ttft-p50-sec": "time to first token p50",
	"ttft-p95-sec": "time to first token p95", "ttft-saved-ratio": "share of first token saved",
	"break-even-tokens": "break-even length", "token-hit-ratio": "token hit ratio",
	"served-ratio": "served share of the load", "cpu-sec/B": "CPU time per byte",
	"peak-RSS-bytes": "peak memory", "device-read-ratio": "device reads ÷ application reads",
	"slowest-write-B/s": "slowest checkpoint written", "slowest-read-B/s": "slowest one read",
	"flush-p95-sec": "flush of a file p95", "ceiling-ratio": "share of the ceiling",
	"removals/s": "removals", "io/s": "I/O requests", "cpu-sec/io": "CPU time per I/O request",
	"knee-bytes": "fewest bytes in flight",
	"freed-B/s":  "freed space", "copy-B/s": "copying", "gen-B/s": "data generation",
	"gen-copy-ratio": "generation ÷ copying", "zstd-ratio": "zstd ratio",
	"duplicate-blocks": "duplicate blocks", "sustained-users": "users sustained",
	"peak-B/s": "peak bandwidth", "start-skew-sec": "skew of the clients' starts",
	"slowest-rank-read-p95-sec":  "slowest client's read p95",
	"slowest-rank-write-p95-sec": "slowest client's write p95",
}

// Line returns the unit as benchmark lines have it, nanoseconds instead of seconds, and what to
// multiply values with.
func Line(unit string) (string, float64) {
	if s := nanoseconds.ReplaceAllString(unit, "${1}ns${2}"); s != unit {
		return s, 1e9
	}
	return unit, 1
}

// nanoseconds finds the seconds in a tidied unit: benchfmt turns ns into sec, and the lines say
// read-p95-ns.
var nanoseconds = regexp.MustCompile(`(^|[-/])sec([-/]|$)`)

// formats are how values are written, by the end of their tidied unit. Times per MiB end in bytes as
// well and come first.
var formats = []struct {
	end  string
	unit units.Unit
	per  string
}{
	{"sec/MiB", units.Seconds, "/MiB"},
	{"sec/io", units.Seconds, "/io"}, {"B/s", units.BytesPerSec, ""},
	{"-bytes", units.Bytes, ""}, {"B", units.Bytes, ""}, {"B/op", units.Bytes, ""},
	{"sec", units.Seconds, ""}, {"sec/op", units.Seconds, ""},
}

// Format writes a value with its unit: 4.65 GiB/s, 1.24 ms, 0.93.
func Format(v float64, unit string) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return units.Unknown
	}
	if strings.HasSuffix(unit, "sec/B") { // a part of a nanosecond
		return Number(1e9*v) + " ns/B"
	}
	for _, f := range formats {
		if strings.HasSuffix(unit, f.end) {
			return f.unit.Text(v) + f.per
		}
	}
	if strings.HasSuffix(unit, "-ratio") {
		return Number(v)
	}
	return Number(v) + " " + unit
}

// Number has three significant digits, groups thousands, and drops zeros that say nothing: 4.60 is
// 4.6.
func Number(v float64) string {
	digits := 3
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 0.001 || a >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 100:
		return units.Count.Text(math.Round(v))
	case a >= 10:
		digits = 1
	case a >= 1:
		digits = 2
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
