package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unit is what a number counts.
type Unit string

// The units. Their texts are those of the histograms in a result.
const (
	Number       Unit = ""
	Count        Unit = "count"
	Bytes        Unit = "B"
	BytesPerSec  Unit = "B/s"
	Nanoseconds  Unit = "ns"
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
	Share        Unit = "share" // of one: 0.5 is 50 %
	HitRatio     Unit = "ratio" // of one, to the five digits by which it is compared with the ideal
)

// Unknown stands where there is no number, or where too few samples support it: a reader who sees a
// number may believe it.
const Unknown = "–"

// Float is a number of the suite, or what a pointer to one points to. It is no number where that is
// unknown, and then text says so, or where v is a text, which stays as it is.
func Float(v any) (f float64, text string, ok bool) {
	switch v := v.(type) {
	case int:
		return float64(v), "", true
	case int64:
		return float64(v), "", true
	case float64:
		return v, "", true
	case time.Duration:
		return float64(v), "", true
	case *int64:
		if v != nil {
			return float64(*v), "", true
		}
	case *float64:
		if v != nil {
			return *v, "", true
		}
	case nil:
	default:
		return 0, fmt.Sprint(v), false
	}
	return 0, Unknown, false
}

// Text is a value as people read it: three digits, a binary unit or the unit of time that fits. It
// takes what [Float] takes.
func (u Unit) Text(v any) string {
	f, text, ok := Float(v)
	if !ok {
		return text
	}
	switch u {
	case Count:
		return count(int64(f))
	case Bytes:
		return binary(f)
	case BytesPerSec:
		return binary(f) + "/s"
	case Nanoseconds:
		return duration(f)
	case Milliseconds:
		return duration(f * 1e6)
	case Seconds:
		return duration(f * 1e9)
	case Share:
		return digits(f*100) + " %"
	case HitRatio:
		return strconv.FormatFloat(f, 'f', 5, 64)
	}
	return digits(f)
}

// Plural returns "1 thing" or "2 things".
func Plural[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count.Text(n) + " " + thing + "s"
}

// Percent is a share in a sentence, where a dash would not be read: "idle –" looks like a minus,
// "idle unknown" does not.
func Percent(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return Share.Text(v)
}

// Ratio returns a ÷ b, nil when there is no such number.
func Ratio[A, B int | int64 | float64 | time.Duration](a A, b B) *float64 {
	if b == 0 {
		return nil
	}
	return Finite(float64(a) / float64(b))
}

// Finite returns nil for what JSON cannot say and no reader should see.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// OrZero returns 0 for what is unknown, where a comparison wants a number: an unknown share is
// above no limit.
func OrZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// digits formats with three significant digits: more would say that a rate is known better than
// runs differ from each other. A whole number has no fraction.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a != 0 && a < 0.01:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a < 10:
		return whole(strconv.FormatFloat(v, 'f', 2, 64))
	case a < 100:
		return whole(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// whole drops the fraction of a whole number: 2.00 is 2, 2.50 stays.
func whole(s string) string {
	number, zeros, _ := strings.Cut(s, ".")
	if strings.Trim(zeros, "0") == "" {
		return number
	}
	return s
}

// binary formats bytes, with powers of 1024 throughout the suite.
func binary(v float64) string {
	names := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(names)-1 {
		v /= 1024
		i++
	}
	return digits(v) + " " + names[i]
}

// duration formats nanoseconds with the unit that fits; from 100 s on as Go does, in whole seconds.
func duration(ns float64) string {
	switch a := math.Abs(ns); {
	case a >= float64(100*time.Second):
		return time.Duration(ns).Round(time.Second).String()
	case a >= float64(time.Second):
		return digits(ns/1e9) + " s"
	case a >= float64(time.Millisecond):
		return digits(ns/1e6) + " ms"
	case a >= float64(time.Microsecond):
		return digits(ns/1e3) + " µs"
	}
	return digits(ns) + " ns"
}

// count groups thousands: 1,234,567. Counts are exact, so that none of their digits is left out.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Unit directions, as Unit lines name them.
const (
	HigherIsBetter = "higher"
	LowerIsBetter  = "lower"
)

// UnitDirection tells which direction of a metric is an improvement.
type UnitDirection struct{ Unit, Better string }

// UnitDirections are those of every unit on the suite's benchmark lines, in the order of their Unit
// lines. Units of the testing package (ns/op) have theirs already.
func UnitDirections() []UnitDirection {
	return []UnitDirection{
		{"req/s", HigherIsBetter}, {"tok/s", HigherIsBetter}, {"storage-tok/s", HigherIsBetter},
		{"read-B/s", HigherIsBetter}, {"write-B/s", HigherIsBetter},
		{"read-p50-ns", LowerIsBetter}, {"read-p95-ns", LowerIsBetter},
		{"read-p99-ns", LowerIsBetter}, {"write-p95-ns", LowerIsBetter},
		{"read-ns/MiB", LowerIsBetter}, {"e2e-p95-ns", LowerIsBetter},
		{"hit-ratio", HigherIsBetter}, {"served-ratio", HigherIsBetter},
		{"sustained-users", HigherIsBetter}, {"peak-B/s", HigherIsBetter},
		{"cpu-ns/B", LowerIsBetter}, {"peak-RSS-bytes", LowerIsBetter},
		{"device-read-ratio", HigherIsBetter}, {"ceiling-ratio", HigherIsBetter},
		{"copy-B/s", HigherIsBetter}, {"gen-B/s", HigherIsBetter},
		{"gen-copy-ratio", HigherIsBetter},
		{"zstd-ratio", HigherIsBetter}, {"duplicate-blocks", LowerIsBetter},
	}
}
