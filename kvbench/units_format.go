package kvbench

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// finite returns nil for what JSON cannot say and no reader should see.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// ratio returns a ÷ b, nil when there is no such number.
func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	return finite(a / b)
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// unknown is printed where there is no number, or too few samples for it.
const unknown = "–"

// number formats with three significant digits.
func number(v float64) string {
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

// binary formats bytes with a binary unit.
func binary(v float64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return number(v) + " " + units[i]
}

func binaryOf(v *int64) string {
	if v == nil {
		return unknown
	}
	return binary(float64(*v))
}

// rate formats bytes per second.
func rate(v *float64) string {
	if v == nil {
		return unknown
	}
	return binary(*v) + "/s"
}

// duration formats nanoseconds with the unit that fits.
func duration(ns float64) string {
	switch a := math.Abs(ns); {
	case a >= float64(100*time.Second):
		return time.Duration(ns).Round(time.Second).String()
	case a >= float64(time.Second):
		return number(ns/1e9) + " s"
	case a >= float64(time.Millisecond):
		return number(ns/1e6) + " ms"
	case a >= float64(time.Microsecond):
		return number(ns/1e3) + " µs"
	}
	return number(ns) + " ns"
}

func durationOf(ns *int64) string {
	if ns == nil {
		return unknown
	}
	return duration(float64(*ns))
}

func seconds(s *float64) string {
	if s == nil {
		return unknown
	}
	return duration(*s * 1e9)
}

// percent formats a share.
func percent(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return number(*v*100) + " %"
}

func numberOf(v *float64) string {
	if v == nil {
		return unknown
	}
	return number(*v)
}

// count groups thousands: 1,234,567.
func count(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural returns "1 thing" or "2 things".
func plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return count(n) + " " + thing + "s"
}

// millis formats milliseconds that may be unknown.
func millis(v *float64) string {
	if v == nil {
		return unknown
	}
	return duration(*v * 1e6)
}

func percentKnown(v *float64) string {
	if v == nil {
		return unknown
	}
	return percent(v)
}

func perSecondOf(v *int64) string {
	if v == nil {
		return unknown
	}
	return binary(float64(*v)) + "/s"
}
