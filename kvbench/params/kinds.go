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

// whole is a whole number.
type whole[T int | int64] struct {
	to       *T
	min, max int64
}

func (w whole[T]) String() string { return strconv.FormatInt(int64(*w.to), 10) }

func (w whole[T]) Set(text string) error {
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil || x < w.min || x > w.max {
		return errors.New("a whole number" + within(w.min, w.max, math.MaxInt64, formatInt, ""))
	}
	*w.to = T(x)
	return nil
}

// auto is a whole number, or left to whoever knows: the workers, the launcher.
type auto struct{ whole[int] }

// automatic is what the field of an auto holds until it is known.
const automatic = -1

func (a auto) String() string {
	if *a.to == automatic {
		return "auto"
	}
	return a.whole.String()
}

func (a auto) Set(text string) error {
	if text == "auto" {
		*a.to = automatic
		return nil
	}
	if err := a.whole.Set(text); err != nil {
		return fmt.Errorf("auto or %w", err)
	}
	return nil
}

// number is any finite number.
type number struct {
	to       *float64
	min, max float64
}

func (n number) String() string { return formatFloat(*n.to) }

func (n number) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || x < n.min || x > n.max {
		return errors.New("a number" + within(n.min, n.max, unbounded, formatFloat, ""))
	}
	*n.to = x
	return nil
}

// gib is a size that counts GiB when no unit is given, up to max GiB.
type gib struct {
	to  *int64
	max float64
}

func (g gib) String() string { return units.FormatGiB(*g.to) }

func (g gib) Set(text string) error {
	x, err := units.ParseSize(text, units.GiB)
	if err != nil {
		return err
	}
	if in := float64(x) / float64(units.GiB); in < 0 || in > g.max {
		return errors.New("a size" + within(0, g.max, unbounded, formatFloat, " GiB"))
	}
	*g.to = x
	return nil
}

// size is a size in bytes.
type size struct {
	to       *int64
	min, max int64
}

func (s size) String() string { return units.FormatSize(*s.to) }

func (s size) Set(text string) error {
	x, err := units.ParseSize(text, 1)
	if err != nil {
		return err
	}
	if x < s.min || x > s.max {
		return errors.New("a size" + within(s.min, s.max, math.MaxInt64, units.FormatSize, ""))
	}
	*s.to = x
	return nil
}

// span is a time with its unit.
type span struct {
	to       *time.Duration
	min, max time.Duration
}

func (s span) String() string { return units.FormatDuration(*s.to) }

func (s span) Set(text string) error {
	x, err := units.ParseDuration(text)
	if err != nil {
		return err
	}
	if x < s.min || x > s.max {
		seconds := func(d time.Duration) string { return formatFloat(d.Seconds()) + "s" }
		return errors.New("a time" + within(s.min, s.max, math.MaxInt64, seconds, ""))
	}
	*s.to = x
	return nil
}

// within names limits; a max of open is none.
func within[T cmp.Ordered](low, high, open T, format func(T) string, unit string) string {
	if high == open {
		return " of at least " + format(low) + unit
	}
	return " in " + format(low) + "…" + format(high) + unit
}

func formatInt(n int64) string     { return strconv.FormatInt(n, 10) }
func formatFloat(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// window is what the testing package takes for -test.benchtime: 30s or 500x.
type window struct{ to *Window }

func (w window) String() string {
	if w.to.Completions > 0 {
		return strconv.FormatInt(w.to.Completions, 10) + "x"
	}
	return units.FormatDuration(w.to.Length)
}

func (w window) Set(text string) error {
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

// choice is one of a few words. Those in refused exist elsewhere but not here; it says what must be
// given instead.
type choice[T ~string] struct {
	to      *T
	of      []string
	refused map[string]string
}

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

// layout is a choice, or packed=N.
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
	if scheme, _, ok := strings.Cut(text, "://"); ok {
		return fmt.Errorf("a directory (object storage, %s://, is not in this version)", scheme)
	}
	return d.path.Set(text)
}

// word is a model's name: what it means is found out when everything else is known.
type word struct{ to *string }

func (w word) String() string { return *w.to }

func (w word) Set(text string) error {
	*w.to = text
	return nil
}

// nonce is random, which the field holds as empty, or up to 32 hexadecimal digits, which it holds
// all.
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
