package units

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
)

// Sizes are binary throughout the suite, as those of memory, of chunks and of files are; drives
// alone are sold in powers of ten.
const (
	KiB = int64(1) << 10
	MiB = int64(1) << 20
	GiB = int64(1) << 30
	TiB = int64(1) << 40
)

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", 1}}

// ParseSize reads bytes: a number with B, KiB, MiB, GiB or TiB, or without a unit, which then
// counts unit bytes (1 for plain bytes, GiB for the -…-gb parameters). Fractions are rounded down
// to a byte. Decimal units (KB, MB, GB) are refused, because half of the readers of "4GB" mean 4
// GiB. The error says what a size must be, to be put after "must be".
func ParseSize(text string, unit int64) (int64, error) {
	text = strings.TrimSpace(text)
	digits := len(text) - len(strings.TrimLeft(text, "+-.0123456789"))
	number, name := strings.TrimSpace(text[:digits]), strings.TrimSpace(text[digits:])
	known := name == ""
	for _, u := range sizeUnits {
		if strings.EqualFold(name, u.name) {
			unit, known = u.bytes, true
		}
	}
	if !known {
		return 0, fmt.Errorf("a size with a known unit (B, KiB, MiB, GiB, TiB; %q is unknown%s)",
			name, Suggestion(name, []string{"KiB", "MiB", "GiB", "TiB", "B"}))
	}
	whole, err := strconv.ParseInt(number, 10, 64)
	if err == nil && whole <= math.MaxInt64/unit && whole >= math.MinInt64/unit {
		return whole * unit, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, errors.New("a size such as 512KiB, 1MiB or 4GiB")
	}
	if f *= float64(unit); math.Abs(f) >= math.MaxInt64 {
		return 0, errors.New("a size below 8 EiB")
	}
	return int64(math.Floor(f)), nil
}

// FormatSize writes bytes with the largest unit that divides them, so that ParseSize(FormatSize(n),
// 1) is n.
func FormatSize(n int64) string {
	for _, u := range sizeUnits {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// FormatGiB writes bytes as GiB, with the fewest digits that ParseSize reads back to n (below 8
// PiB).
func FormatGiB(n int64) string {
	f := float64(n) / float64(GiB)
	for digits := range 10 {
		text := strconv.FormatFloat(f, 'f', digits, 64)
		if back, err := ParseSize(text, GiB); err == nil && back == n {
			return text
		}
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// ParseDuration reads a time with its unit. The error says what a time must be, to be put after
// "must be".
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if _, number := strconv.ParseFloat(text, 64); number == nil {
		return 0, fmt.Errorf("a time with its unit, did you mean %ss?", text)
	}
	return 0, errors.New("a time such as 500ms, 90s or 5m (units ns, us, ms, s, m, h)")
}

// FormatDuration writes whole seconds as 300s rather than 5m0s, as the specification does.
func FormatDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// Nearest returns the candidate with the smallest edit distance (Levenshtein) to word, and that
// distance. Of equals it is the one that begins longest as the word does: llama3-8b means
// llama3.1-8b rather than llama2-7b.
func Nearest(word string, candidates []string) (best string, distance int) {
	word = strings.ToLower(word)
	distance, begin := math.MaxInt, -1
	for _, c := range candidates {
		lower := strings.ToLower(c)
		d, n := levenshtein.ComputeDistance(word, lower), 0
		for n < min(len(word), len(lower)) && word[n] == lower[n] {
			n++
		}
		if d < distance || d == distance && n > begin {
			best, distance, begin = c, d, n
		}
	}
	return best, distance
}

// Slip reports whether a distance from a word is small enough for a typing error: a third of its
// letters, or two letters of a short word, of which at least half stay.
func Slip(word string, distance int) bool {
	return distance <= max(min(2, len(word)/2), len(word)/3)
}

// Suggestion is `, did you mean "x"?` when the nearest candidate is a typing error away, else
// empty.
func Suggestion(word string, candidates []string) string {
	best, d := Nearest(word, candidates)
	if !Slip(word, d) {
		return ""
	}
	return `, did you mean "` + best + `"?`
}
