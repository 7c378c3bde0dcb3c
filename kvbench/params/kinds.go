package params

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// The kinds of parameters: each is a flag.Value on a field of Values. Set reads any spelling and
// refuses what is outside of the limits, with an error that completes the sentence "must be …"; it
// then leaves the field as it was. String is the canonical spelling of the field, which is what is
// printed, compared and recorded, and which Set reads back to the same value.

// boolean is true or false.
type boolean struct{ to *bool }

func (b boolean) String() string { return strconv.FormatBool(*b.to) }

func (b boolean) Set(text string) error {
	x, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("true or false")
	}
	*b.to = x
	return nil
}

// limited is a value between two limits. The message for one outside names both, because the first
// guess after a refusal is the limit itself.
type limited[T cmp.Ordered] struct {
	to       *T
	min, max T
	what     string                  // a value is called: a whole number
	parse    func(string) (T, error) // errRule: what cannot be read is told as what is outside
	format   func(T) string
	limit    func(T) string // a limit in messages; nil: format
	unit     string         // of limits, behind the second
	endless  T              // the max that is none
}

// errRule stands for the kind's own sentence.
var errRule = errors.New("the rule")

func (l limited[T]) String() string { return l.format(*l.to) }

func (l limited[T]) Set(text string) error {
	x, err := l.parse(text)
	if err == nil && (x < l.min || x > l.max) {
		err = errRule
	}
	limit := l.limit
	if limit == nil {
		limit = l.format
	}
	switch {
	case err == nil:
		*l.to = x
		return nil
	case !errors.Is(err, errRule):
		return err
	case l.max == l.endless:
		return fmt.Errorf("%s of at least %s", l.what, limit(l.min))
	}
	return fmt.Errorf("%s in %s…%s%s", l.what, limit(l.min), limit(l.max), l.unit)
}

// whole is a whole number; without a bound max is endless.
func whole[T int | int64](to *T, low, high T) limited[T] {
	return limited[T]{to: to, min: low, max: high, what: "a whole number", endless: endless,
		parse: func(text string) (T, error) {
			x, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				err = errRule
			}
			return T(x), err
		},
		format: func(x T) string { return strconv.FormatInt(int64(x), 10) }}
}

// number is any finite number; without a bound max is unbounded.
func number(to *float64, low, high float64) limited[float64] {
	return limited[float64]{to: to, min: low, max: high, what: "a number", endless: unbounded,
		parse: func(text string) (float64, error) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				err = errRule
			}
			return x, err
		}, format: formatFloat}
}

// size is a size in bytes. Only binary units are read: half of those who write 1MB mean 1MiB.
func size(to *int64, low, high int64) limited[int64] {
	return limited[int64]{to: to, min: low, max: high, what: "a size",
		parse:  func(text string) (int64, error) { return units.ParseSize(text, 1) },
		format: units.FormatSize}
}

// gib is a size that counts GiB when no unit is given, up to high GiB.
func gib(to *int64, high int64) limited[int64] {
	return limited[int64]{to: to, max: high * units.GiB, what: "a size",
		parse:  func(text string) (int64, error) { return units.ParseSize(text, units.GiB) },
		format: units.FormatGiB,
		limit:  func(n int64) string { return formatFloat(float64(n) / float64(units.GiB)) },
		unit:   " GiB"}
}

// span is a time with its unit: a bare 90 could be seconds or minutes, and is refused.
func span(to *time.Duration, low, high time.Duration) limited[time.Duration] {
	return limited[time.Duration]{to: to, min: low, max: high, what: "a time",
		parse: units.ParseDuration, format: units.FormatDuration,
		limit: func(d time.Duration) string { return formatFloat(d.Seconds()) + "s" }}
}

// formatFloat is the shortest text that reads back to the same number, without an exponent.
func formatFloat(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// auto is a whole number, or left to whoever knows: the workers (-io-depth), the launcher (-rank,
// -ranks, -local-ranks).
type auto struct{ limited[int] }

// automatic is what the field of an auto holds until it is known.
const automatic = -1

func (a auto) String() string {
	if *a.to == automatic {
		return "auto"
	}
	return a.limited.String()
}

func (a auto) Set(text string) error {
	if text == "auto" {
		*a.to = automatic
		return nil
	}
	if err := a.limited.Set(text); err != nil {
		return fmt.Errorf("auto or %w", err)
	}
	return nil
}

// window is what the testing package takes for -test.benchtime: 30s or 500x.
type window struct{ to *Window }

func (w window) String() string {
	if w.to.Completions > 0 {
		return strconv.FormatInt(w.to.Completions, 10) + "x"
	}
	return units.FormatDuration(w.to.Length)
}

func (w window) Set(text string) error {
	// One call of a benchmark is one trial, so the testing package never counts iterations here: x
	// counts requests.
	if n, ok := strings.CutSuffix(text, "x"); ok {
		count, err := strconv.ParseInt(n, 10, 64)
		if err != nil || count < 1 {
			return errors.New(
				"a time such as 30s or a number of requests such as 500x, at least 1x")
		}
		*w.to = Window{Completions: count}
		return nil
	}
	length, err := units.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("a time such as 30s or a number of requests such as 500x")
	case length <= 0 || length > day:
		return errors.New("more than 0s and at most 24h")
	}
	*w.to = Window{Length: length}
	return nil
}

// choice is one of a few words. Texts are compared as they are: a word in capitals is another word.
// Those in refused exist elsewhere but not here; it says what must be
// given instead.
type choice[T ~string] struct {
	to      *T
	of      []string
	refused map[string]string
}

// oneOf is a choice without words that are refused by name.
func oneOf[T ~string](to *T, of ...string) choice[T] { return choice[T]{to: to, of: of} }

func (c choice[T]) String() string { return string(*c.to) }

func (c choice[T]) Set(text string) error {
	if slices.Contains(c.of, text) {
		*c.to = T(text)
		return nil
	}
	if why, ok := c.refused[text]; ok {
		return errors.New(why)
	}
	return errors.New("one of " + strings.Join(c.of, ", ") + units.Suggestion(text, c.of))
}

// layout is a choice, or packed=N. Which of them a trace's blocks can have is known when the trace
// is read.
type layout struct{ to *string }

var layouts = []string{"entry", "block", "slots", "lmcache"}

// packedPrefix begins the layout of several blocks per file, minPacked…maxPacked of them.
const (
	packedPrefix         = "packed="
	minPacked, maxPacked = 2, 1024
)

func (l layout) String() string { return *l.to }

func (l layout) Set(text string) error {
	rule := fmt.Sprintf("one of %s or packed=N with N in %d…%d", strings.Join(layouts, ", "),
		minPacked, maxPacked)
	if count, ok := strings.CutPrefix(text, packedPrefix); ok {
		n, err := strconv.Atoi(count)
		if err != nil || n < minPacked || n > maxPacked {
			return errors.New(rule)
		}
		text = packedPrefix + strconv.Itoa(n)
	} else if !slices.Contains(layouts, text) {
		return errors.New(rule + units.Suggestion(text, layouts))
	}
	*l.to = text
	return nil
}

// path means the directory in which the command was typed when it is relative. Empty is none.
type path struct {
	to   *string
	base string
}

func (p path) String() string { return *p.to }

func (p path) Set(text string) error {
	if text != "" && !filepath.IsAbs(text) {
		text = filepath.Join(p.base, text)
	}
	*p.to = text
	return nil
}

// directory is a path that is no bucket.
type directory struct{ path }

func (d directory) Set(text string) error {
	// filepath.Join would make a directory of it, s3:/bucket, beside the user's files.
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		return fmt.Errorf("a directory (object storage, %s://, is not in this version)", scheme)
	}
	return d.path.Set(text)
}

// word is a model's name, or all sweeps: what it means is found out when everything else is known.
type word struct{ to *string }

func (w word) String() string { return *w.to }

func (w word) Set(text string) error {
	*w.to = text
	return nil
}

// nonce seeds the content of entries. It is random, which the field holds as empty, or up to 32
// hexadecimal digits, which it holds all.
type nonce struct{ to *string }

func (n nonce) String() string { return cmp.Or(*n.to, "random") }

func (n nonce) Set(text string) error {
	if text == "random" {
		*n.to = ""
		return nil
	}
	const digits = 32
	full := strings.ToLower(strings.Repeat("0", max(0, digits-len(text))) + text)
	if _, err := hex.DecodeString(full); err != nil || text == "" || len(text) > digits {
		return errors.New("random, or 1 to 32 hexadecimal digits")
	}
	*n.to = full
	return nil
}

// device is a simulated drive, or nil.
type device struct{ to **tiers.DeviceModel }

func (d device) String() string {
	if *d.to == nil {
		return ""
	}
	return FormatDevice(**d.to)
}

func (d device) Set(text string) error {
	if text == "" {
		*d.to = nil
		return nil
	}
	model, err := ParseDevice(text)
	if err == nil {
		*d.to = &model
	}
	return err
}
