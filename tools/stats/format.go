package stats

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/units"
)

// ranks order metrics as the suite lists its units; bandwidths come first, because they are what
// most people look for.
var ranks = func() map[string]int {
	m := map[string]int{}
	for _, u := range units.UnitDirections() {
		_, tidy := benchunit.Tidy(1, u.Unit)
		m[tidy] = len(m)
	}
	m["read-B/s"], m["write-B/s"] = -2, -1
	return m
}()

// rank puts units that are not the suite's behind all others.
func rank(unit string) int {
	if r, ok := ranks[unit]; ok {
		return r
	}
	return len(ranks)
}

// Title is a metric's name for people: read-sec/MiB is "read time per MiB".
func Title(unit string) string {
	if t, ok := titles[unit]; ok {
		return t
	}
	return unit
}

// titles are the suite's units for people.
var titles = map[string]string{
	"read-B/s": "read bandwidth", "write-B/s": "write bandwidth", "sec/op": "time per operation",
	"req/s": "requests", "tok/s": "tokens (wall)", "storage-tok/s": "tokens (storage time)",
	"read-p50-sec": "read p50", "read-p95-sec": "read p95", "read-p99-sec": "read p99",
	"write-p95-sec": "write p95",
	"read-sec/MiB":  "read time per MiB", "e2e-p95-sec": "end-to-end p95", "hit-ratio": "hit ratio",
	"served-ratio": "served share of the load", "cpu-sec/B": "CPU time per byte",
	"peak-RSS-bytes":    "peak memory",
	"device-read-ratio": "device reads ÷ application reads",
	"ceiling-ratio":     "share of the ceiling",
	"copy-B/s":          "copying", "gen-B/s": "data generation",
	"gen-copy-ratio": "generation ÷ copying",
	"zstd-ratio":     "zstd ratio", "duplicate-blocks": "duplicate blocks",
}

// Line returns the unit as benchmark lines have it, nanoseconds instead of seconds, and what to
// multiply values with.
func Line(unit string) (string, float64) {
	if s := nanoseconds.ReplaceAllString(unit, "${1}ns${2}"); s != unit {
		return s, 1e9
	}
	return unit, 1
}

// nanoseconds finds the seconds in a tidied unit: benchfmt turns ns into sec, and nobody looks for
// read-p95-sec.
var nanoseconds = regexp.MustCompile(`(^|[-/])sec([-/]|$)`)

// Format writes a value with its unit: 4.65 GiB/s, 1.24 ms, 0.93. Tidied units end in what they
// count, so that the end decides; times per byte end in bytes as well and come first.
func Format(v float64, unit string) string {
	ends := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes,
			func(s string) bool { return strings.HasSuffix(unit, s) })
	}
	switch {
	case math.IsInf(v, 0), math.IsNaN(v):
		return "–"
	case ends("sec/B"):
		return Seconds(v) + "/B"
	case ends("sec/MiB"):
		return Seconds(v) + "/MiB"
	case ends("B/s"):
		return Binary(v) + "/s"
	case ends("-bytes", "B", "B/op"):
		return Binary(v)
	case ends("sec", "sec/op"):
		return Seconds(v)
	case ends("-ratio"):
		return Number(v)
	}
	return Number(v) + " " + unit
}

// Number has three significant digits and groups thousands.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0"
	case a < 0.001:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a < 1:
		return trim(strconv.FormatFloat(v, 'f', 3, 64))
	case a < 10:
		return trim(strconv.FormatFloat(v, 'f', 2, 64))
	case a < 100:
		return trim(strconv.FormatFloat(v, 'f', 1, 64))
	case a < 1e15:
		return Thousands(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// trim drops zeros that say nothing: 4.60 is 4.6.
func trim(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }

// Thousands groups the digits of n.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Binary formats bytes with a binary unit.
func Binary(v float64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return Number(v) + " " + units[i]
}

// Seconds formats a time with the unit that fits.
func Seconds(v float64) string {
	switch a := math.Abs(v); {
	case a == 0 || a >= 1:
		return Number(v) + " s"
	case a >= 1e-3:
		return Number(v*1e3) + " ms"
	case a >= 1e-6:
		return Number(v*1e6) + " µs"
	}
	return Number(v*1e9) + " ns"
}
