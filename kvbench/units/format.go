package units

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// Finite returns nil for what JSON cannot say and no reader should see.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Ratio returns a ÷ b, nil when there is no such number.
func Ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	return Finite(a / b)
}

func OrZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// Unknown is printed where there is no number, or too few samples for it.
const Unknown = "–"

// Number formats with three significant digits.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case a != 0 && a < 0.01:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a < 10:
		return trimZeros(strconv.FormatFloat(v, 'f', 2, 64))
	case a < 100:
		return trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// trimZeros drops the fraction of a whole number: 2.00 is 2, 2.50 stays.
func trimZeros(s string) string {
	if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return s
}

// Bytes formats bytes with a binary unit.
func Bytes(v float64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return Number(v) + " " + units[i]
}

func BytesOf(v *int64) string {
	if v == nil {
		return Unknown
	}
	return Bytes(float64(*v))
}

// Rate formats bytes per second.
func Rate(v *float64) string {
	if v == nil {
		return Unknown
	}
	return Bytes(*v) + "/s"
}

// Duration formats nanoseconds with the unit that fits.
func Duration(ns float64) string {
	switch a := math.Abs(ns); {
	case a >= float64(100*time.Second):
		return time.Duration(ns).Round(time.Second).String()
	case a >= float64(time.Second):
		return Number(ns/1e9) + " s"
	case a >= float64(time.Millisecond):
		return Number(ns/1e6) + " ms"
	case a >= float64(time.Microsecond):
		return Number(ns/1e3) + " µs"
	}
	return Number(ns) + " ns"
}

func DurationOf(ns *int64) string {
	if ns == nil {
		return Unknown
	}
	return Duration(float64(*ns))
}

func Seconds(s *float64) string {
	if s == nil {
		return Unknown
	}
	return Duration(*s * 1e9)
}

// Percent formats a share.
func Percent(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return Number(*v*100) + " %"
}

func NumberOf(v *float64) string {
	if v == nil {
		return Unknown
	}
	return Number(*v)
}

// Count groups thousands: 1,234,567.
func Count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural returns "1 thing" or "2 things".
func Plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}

// Millis formats milliseconds that may be unknown.
func Millis(v *float64) string {
	if v == nil {
		return Unknown
	}
	return Duration(*v * 1e6)
}

func PercentKnown(v *float64) string {
	if v == nil {
		return Unknown
	}
	return Percent(v)
}

func RateOf(v *int64) string {
	if v == nil {
		return Unknown
	}
	return Bytes(float64(*v)) + "/s"
}
