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

// Binary units of sizes in bytes.
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

// ParseSize parses a size and returns bytes. The size is a number with B, KiB, MiB, GiB or TiB. A
// number without a unit is multiplied by unit (1 for bytes, GiB for the -…-gb parameters).
// Fractions of a byte are rounded down. Decimal units (KB, MB, GB) are an error, because some users
// write 4GB for 4 GiB. The error text completes a sentence that ends in "must be".
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

// FormatSize formats n bytes with the largest unit that divides n, so ParseSize(FormatSize(n), 1)
// returns n.
func FormatSize(n int64) string {
	for _, u := range sizeUnits {
		if n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// FormatGiB formats n bytes in GiB, with the fewest digits from which ParseSize returns n (for n
// below 8 PiB).
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

// ParseDuration parses a time with its unit. The error text completes a sentence that ends in "must
// be".
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

// FormatDuration formats whole seconds as 300s, not as 5m0s, and other times as d.String does.
func FormatDuration(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// Nearest returns the candidate with the smallest edit distance (Levenshtein) to word, and that
// distance. Of several such candidates it returns the candidate with the longest common prefix: for
// llama3-8b llama3.1-8b, not llama2-7b.
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

// IsTypo reports whether an edit distance from word is small enough for a typing error: at most a third of
// the letters. In a short word it allows two letters, but at most half of them.
func IsTypo(word string, distance int) bool {
	return distance <= max(min(2, len(word)/2), len(word)/3)
}

// Suggestion returns `, did you mean "x"?` if the nearest candidate x is within a typing error of
// word, else "".
func Suggestion(word string, candidates []string) string {
	best, d := Nearest(word, candidates)
	if !IsTypo(word, d) {
		return ""
	}
	return `, did you mean "` + best + `"?`
}
