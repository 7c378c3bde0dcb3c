package stats

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// order and titles are those of the suite's list of units, by their tidied names. Bandwidths come
// first, because they are what most people look for.
var order, titles = func() ([]string, map[string]string) {
	list, titles := []string{"read-B/s", "write-B/s"}, map[string]string{}
	for _, u := range result.Lines {
		_, tidy := benchunit.Tidy(1, u.Name)
		if titles[tidy] = u.Title; tidy != "sec/op" { // of every benchmark, so that it is the last
			list = append(list, tidy)
		}
	}
	return list, titles
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
