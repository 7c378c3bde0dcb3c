package units

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"gonum.org/v1/gonum/stat"
)

// Unit is the unit of a number.
type Unit string

// The units. Histograms in a result have the same names.
const (
	Number       Unit = ""
	Count        Unit = "count"
	Bytes        Unit = "B"
	BytesPerSec  Unit = "B/s"
	Nanoseconds  Unit = "ns"
	Milliseconds Unit = "ms"
	Seconds      Unit = "s"
	Share        Unit = "share" // 0.5 is 50 %
	HitRatio     Unit = "ratio" // printed with five digits, to compare it with the ideal
)

// Unknown is the text of a missing number, or of a number with too few samples.
const Unknown = "–"

// Float returns a number, or the number that a pointer points to. If v is a nil pointer, text is
// Unknown. If v is a text, text is v. In both cases ok is false.
func Float(v any) (f float64, text string, ok bool) {
	switch n := reflect.Indirect(reflect.ValueOf(v)); {
	case !n.IsValid():
		return 0, Unknown, false
	case n.CanInt():
		return float64(n.Int()), "", true
	case n.CanFloat():
		return n.Float(), "", true
	}
	return 0, fmt.Sprint(v), false
}

// Text formats a value for people: three digits, with the binary unit or the unit of time that
// fits. It accepts the values that [Float] accepts.
func (u Unit) Text(v any) string {
	f, text, ok := Float(v)
	if !ok {
		return text
	}
	switch u {
	case Count:
		return humanize.Comma(int64(f))
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
		switch {
		case f > 0 && f < 0.0001:
			return "< 0.01 %"
		case f < 0 && f > -0.0001: // a rounding error
			return "0 %"
		}
		return digits(f*100) + " %"
	case HitRatio:
		return strconv.FormatFloat(f, 'f', 5, 64)
	}
	return digits(f)
}

// InOneUnit returns the format function for values that are printed together. Sizes and rates of
// bytes have the unit of the largest value, so that a reader does not mistake 980 MiB/s for more
// than 1.02 GiB/s. Sizes of which the smallest is at most 1/1000 of that unit, and all times, each
// have the unit that fits.
func (u Unit) InOneUnit(values ...any) func(v any) string {
	least, largest := math.Inf(1), 0.0
	for _, v := range values {
		if f, _, ok := Float(v); ok && f != 0 {
			least, largest = min(least, math.Abs(f)), max(largest, math.Abs(f))
		}
	}
	_, name := fit(largest, 1024, binaryUnits...)
	scale := math.Pow(1024, float64(slices.Index(binaryUnits, name)))
	switch {
	case u != BytesPerSec && u != Bytes, largest < 1024, u == Bytes && least*1000 <= scale:
		return u.Text
	case u == BytesPerSec:
		name += "/s"
	}
	return func(v any) string {
		f, text, ok := Float(v)
		if !ok {
			return text
		}
		return digits(f/scale) + " " + name
	}
}

// lineUnits are the units of benchmark lines, by the suffix of the unit's name after benchfmt's
// tidying (sec instead of ns). The first match counts, because a time per byte also has the suffix
// B.
var lineUnits = []struct {
	end  string
	unit Unit
	per  string
}{
	{"sec/MiB", Seconds, "/MiB"}, {"sec/io", Seconds, "/io"}, {"sec/B", Seconds, "/B"},
	{"sec", Seconds, ""}, {"sec/op", Seconds, ""}, {"-ns", Nanoseconds, ""}, {"B/s", BytesPerSec, ""},
	{"-bytes", Bytes, ""}, {"B/op", Bytes, ""}, {"B", Bytes, ""}, {"-ratio", Number, ""},
	{"io/s", Count, " io/s"},
}

// OfLine returns the format function for values of a benchmark line's unit: 4.65 GiB/s, 1.24 ms,
// 0.93. together are the values that are printed together; rates of bytes then have one unit.
func OfLine(unit string, together ...any) func(v float64) string {
	u, per := Number, " "+unit
	for _, l := range lineUnits {
		if strings.HasSuffix(unit, l.end) {
			u, per = l.unit, l.per
			break
		}
	}
	text := u.Text
	if u == BytesPerSec && len(together) > 0 {
		text = u.InOneUnit(together...)
	}
	return func(v float64) string {
		if Finite(v) == nil {
			return Unknown
		}
		return text(v) + per
	}
}

// Change formats a relative difference as a percentage, such as +2.5 %. It returns Unknown if share
// is not finite, as after a division by 0.
func Change(share float64) string {
	if Finite(share) == nil {
		return Unknown
	}
	text := fmt.Sprintf("%+.1f %%", 100*share)
	if text[1:] == "0.0 %" {
		return text[1:]
	}
	return text
}

// Plural returns "1 thing" or "2 things".
func Plural(n any, thing string) string {
	if many := Count.Text(n); many != "1" {
		return many + " " + thing + "s"
	}
	return "1 " + thing
}

// Shorten cuts the middle of a text of more than n letters: Tier/tie…read/size=16MiB.
func Shorten(text string, n int) string {
	letters := []rune(text)
	if len(letters) <= n {
		return text
	}
	return string(letters[:n/3]) + "…" + string(letters[len(letters)-n+n/3+1:])
}

// List returns numbers as text for a sentence, such as "0, 3, 4".
func List(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}

// Percent formats a share in a sentence. It returns "unknown" for nil, because "–" would look like
// a minus.
func Percent(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return Share.Text(v)
}

// Ratio returns a ÷ b, nil if that is not finite.
func Ratio[A, B int | int64 | float64 | time.Duration](a A, b B) *float64 {
	return Finite(float64(a) / float64(b))
}

// Finite returns a pointer to v, nil for NaN and infinity, which JSON lacks.
func Finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// OrZero returns *v, zero for nil.
func OrZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// digits formats v with three significant digits, because runs differ by more than the next digit.
// A whole number has no fraction, and 0.5 is 0.50.
func digits(v float64) string {
	text := strconv.FormatFloat
	switch a := math.Abs(v); {
	case a != 0 && a < 0.0995:
		return text(v, 'g', 3, 64)
	case a != 0 && a < 0.9995:
		return strings.TrimSuffix(text(v, 'f', 3, 64), "0")
	case a < 10:
		return strings.TrimSuffix(text(v, 'f', 2, 64), ".00")
	case a < 100:
		return strings.TrimSuffix(text(v, 'f', 1, 64), ".0")
	}
	return text(v, 'f', 0, 64)
}

var binaryUnits = []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}

// binary formats bytes with units of powers of 1024.
func binary(v float64) string { return fitted(v, 1024, binaryUnits...) }

// duration formats nanoseconds with the unit that fits. From 100 s on it uses two units (3m49s,
// 3d18h), from 365 days on years.
func duration(ns float64) string {
	const day = 24 * time.Hour
	switch d := time.Duration(ns).Round(time.Second); {
	case math.Abs(ns) < 100e9:
		return fitted(ns, 1000, "ns", "µs", "ms", "s")
	case math.Abs(ns) >= 365*float64(day):
		return fmt.Sprintf("%.1f years", ns/365/float64(day))
	case d.Abs() >= 2*day:
		return fmt.Sprintf("%dd%dh", d/day, d.Abs()%day/time.Hour)
	case d.Abs() >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d.Abs()%time.Hour/time.Minute)
	default:
		return d.String()
	}
}

// fitted formats v in the unit that fits.
func fitted(v, many float64, units ...string) string {
	v, unit := fit(v, many, units...)
	return digits(v) + " " + unit
}

// fit returns v in the largest unit in which digits prints at least 1. Each unit is many times the
// previous unit.
func fit(v, many float64, units ...string) (of float64, unit string) {
	for math.Abs(v) >= many-0.5 && len(units) > 1 {
		v, units = v/many, units[1:]
	}
	return v, units[0]
}

// Median returns the median of values, false without values.
func Median(values []float64) (float64, bool) {
	n := len(values)
	if n == 0 {
		return 0, false
	}
	values = slices.Sorted(slices.Values(values))
	return (values[(n-1)/2] + values[n/2]) / 2, true
}

// Variation returns the coefficient of variation: sample standard deviation ÷ |mean|. It is NaN for
// fewer than two values.
func Variation(values []float64) float64 {
	mean, deviation := stat.MeanStdDev(values, nil)
	return deviation / math.Abs(mean)
}
