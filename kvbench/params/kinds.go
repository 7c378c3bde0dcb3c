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

	"gopkg.in/yaml.v3"

	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads/compute"
)

// kind is a flag.Value on a field: what a parameter, a key of the YAML file or a pair of
// -simulate-device may be. parse reads any spelling and refuses what is outside of the limits, with
// an error that completes the sentence "must be …"; the field then stays as it was. format is the
// canonical spelling, which is what is printed, compared and recorded, and which parse reads back
// to the same value.
type kind[T any] struct {
	to     *T
	parse  func(string) (T, error)
	format func(T) string
}

func (k kind[T]) String() string { return k.format(*k.to) }

func (k kind[T]) Set(text string) error {
	x, err := k.parse(text)
	if err == nil {
		*k.to = x
	}
	return err
}

func boolean(to *bool) kind[bool] {
	return kind[bool]{to, func(text string) (bool, error) {
		x, err := strconv.ParseBool(text)
		if err != nil {
			err = errors.New("true or false")
		}
		return x, err
	}, strconv.FormatBool}
}

// bounded refuses what is outside of two limits, and numbers that cannot be read, with a rule that
// names both limits: the first guess after a refusal is the limit itself.
func bounded[T cmp.Ordered](to *T, parse func(string) (T, error), format func(T) string, low, high T,
	rule string) kind[T] {
	return kind[T]{to, func(text string) (T, error) {
		x, err := parse(text)
		_, unread := err.(*strconv.NumError)
		if unread || err == nil && !(x >= low && x <= high) { // NaN is inside of nothing
			err = errors.New(rule)
		}
		return x, err
	}, format}
}

// in is a parser of sizes; unit counts where the text has none.
func in(unit int64) func(string) (int64, error) {
	return func(text string) (int64, error) { return units.ParseSize(text, unit) }
}

// The upper limits of what the specification only calls non-negative.
const (
	endless   = math.MaxInt
	unbounded = math.MaxFloat64
)

// whole is a whole number in decimal digits.
func whole[T int | int64](to *T, low, high T) kind[T] { return integer(10, to, low, high) }

// integer is a whole number; base 0 takes all spellings of YAML, where 0x10 and 1_000 are numbers.
func integer[T int | int64](base int, to *T, low, high T) kind[T] {
	rule := fmt.Sprintf("a whole number in %d…%d", low, high)
	if high == endless {
		rule = fmt.Sprintf("a whole number of at least %d", low)
	}
	return bounded(to, func(text string) (T, error) {
		x, err := strconv.ParseInt(text, base, 64)
		return T(x), err
	}, func(x T) string { return strconv.FormatInt(int64(x), 10) }, low, high, rule)
}

// number is any finite number.
func number(to *float64, low, high float64) kind[float64] {
	rule := "a number in " + formatFloat(low) + "…" + formatFloat(high)
	if high == unbounded {
		rule = "a number of at least " + formatFloat(low)
	}
	return bounded(to, parseFloat, formatFloat, low, high, rule)
}

func parseFloat(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// formatFloat is the shortest text that reads back to the same number, without an exponent.
func formatFloat(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// size is a size in bytes. Only binary units are read: half of those who write 1MB mean 1MiB.
func size(to *int64, low, high int64) kind[int64] {
	return bounded(to, in(1), units.FormatSize, low, high,
		"a size in "+units.FormatSize(low)+"…"+units.FormatSize(high))
}

// gib is a size that counts GiB when no unit is given, up to high GiB.
func gib(to *int64, high int64) kind[int64] {
	return bounded(to, in(units.GiB), units.FormatGiB, 0, high*units.GiB,
		fmt.Sprintf("a size in 0…%d GiB", high))
}

const day = 24 * time.Hour

// span is a time with its unit: a bare 90 could be seconds or minutes, and is refused.
func span(to *time.Duration, low, high time.Duration) kind[time.Duration] {
	return bounded(to, units.ParseDuration, units.FormatDuration, low, high,
		"a time in "+formatFloat(low.Seconds())+"s…"+formatFloat(high.Seconds())+"s")
}

// scaled is a time in a file of the Python benchmark: a number of some unit.
func scaled(to *time.Duration, unit time.Duration, low, high float64) kind[time.Duration] {
	count := number(nil, low, high)
	return kind[time.Duration]{to, func(text string) (time.Duration, error) {
		x, err := count.parse(text)
		return time.Duration(x * float64(unit)), err
	}, units.FormatDuration}
}

// several is a list of values of one kind, in brackets as YAML has it.
func several[T any](to *[]T, of kind[T]) kind[[]T] {
	return kind[[]T]{to, func(text string) (list []T, err error) {
		var items []yaml.Node // texts would hide what is nothing, or in quotes
		if yaml.Unmarshal([]byte(text), &items) != nil {
			return nil, errors.New("a list such as [1, 2]")
		}
		for _, item := range items {
			if item.Tag == "!!str" {
				item.Value = strconv.Quote(item.Value)
			}
			x, err := of.parse(item.Value)
			if err != nil {
				return nil, fmt.Errorf("a list of which each is %w", err)
			}
			list = append(list, x)
		}
		return list, nil
	}, func(list []T) string { return fmt.Sprint(list) }}
}

// bounds are two values of one kind that rise, or are equal.
func bounds[T cmp.Ordered](to *[2]T, of kind[T]) kind[[2]T] {
	return kind[[2]T]{to, func(text string) (pair [2]T, err error) {
		list, err := several(nil, of).parse(text)
		if err == nil && (len(list) != 2 || list[0] > list[1]) {
			err = errors.New("[low, high] with low at most high")
		}
		copy(pair[:], list)
		return pair, err
	}, func(pair [2]T) string { return fmt.Sprint(pair) }}
}

// named is a kind that also takes a word, which the field holds as a value of its own.
func named[T comparable](k kind[T], word string, means T) kind[T] {
	return kind[T]{k.to, func(text string) (T, error) {
		if text == word {
			return means, nil
		}
		x, err := k.parse(text)
		if err != nil {
			err = fmt.Errorf("%s or %w", word, err)
		}
		return x, err
	}, func(x T) string {
		if x == means {
			return word
		}
		return k.format(x)
	}}
}

// automatic is what the field of an auto holds until it is known.
const automatic = -1

// auto is a number, or left to whoever knows: the workers (-io-depth), the launcher (-rank, -ranks,
// -local-ranks).
func auto(number kind[int]) kind[int] { return named(number, "auto", automatic) }

// Window bounds the measured part of a trial: by length, or, when Completions is positive, by
// completed requests (-benchtime 500x), and then Length is 0.
type Window struct {
	Length      time.Duration
	Completions int64
}

// window is what the testing package takes for -test.benchtime: 30s or 500x. One call of a
// benchmark is one trial, so the testing package never counts iterations here: x counts requests.
func window(to *Window) kind[Window] {
	const form = "a time such as 30s or a number of requests such as 500x"
	return kind[Window]{to, func(text string) (w Window, err error) {
		if n, ok := strings.CutSuffix(text, "x"); ok {
			w.Completions, err = strconv.ParseInt(n, 10, 64)
			if err != nil || w.Completions < 1 {
				err = errors.New(form + ", at least 1x")
			}
			return w, err
		}
		if w.Length, err = units.ParseDuration(text); err != nil {
			hint := ""
			if n, number := strconv.ParseFloat(text, 64); number == nil && n > 0 {
				hint = fmt.Sprintf(", did you mean %ss or %sx?", text, text)
			}
			return w, errors.New(form + hint)
		}
		if w.Length <= 0 || w.Length > day {
			return w, errors.New("more than 0s and at most 24h")
		}
		return w, nil
	}, func(w Window) string {
		if w.Completions > 0 {
			return strconv.FormatInt(w.Completions, 10) + "x"
		}
		return units.FormatDuration(w.Length)
	}}
}

// text is kept as it is given, when parse takes it.
func text[T ~string](to *T, parse func(string) (T, error)) kind[T] {
	return kind[T]{to, parse, func(x T) string { return string(x) }}
}

// word is any text: what it means is found out when everything else is known.
func word[T ~string](to *T) kind[T] {
	return text(to, func(s string) (T, error) { return T(s), nil })
}

// oneOf is one of a few words. Texts are compared as they are: a word in capitals is another word.
func oneOf[T ~string](to *T, of ...string) kind[T] {
	return text(to, func(s string) (T, error) {
		if !slices.Contains(of, s) {
			return "", errors.New("one of " + strings.Join(of, ", ") + units.Suggestion(s, of))
		}
		return T(s), nil
	})
}

// backend is simulated; those who give another word know it from elsewhere.
func backend(to *string) kind[string] {
	return text(to, func(s string) (string, error) {
		if s != "simulated" {
			return "", errors.New("simulated: this build has no CUDA tier yet")
		}
		return s, nil
	})
}

// layouts are the words that -layout takes: the suite's own, then those of engines.
var layouts = func() []string {
	list := []string{"entry", "block", "slots"}
	for _, l := range tiers.EngineLayouts {
		list = append(list, l.Name)
	}
	return list
}()

// packedPrefix begins the layout of several blocks per file, minPacked…maxPacked of them.
const (
	packedPrefix         = "packed="
	minPacked, maxPacked = 2, 1024
)

// removedLayouts name the replacement of words that -layout took once.
var removedLayouts = map[string]string{"lmcache": " (lmcache was removed: lmcache-fs writes " +
	"LMCache's files, and on object stores -engine lmcache its objects)"}

// layout is one of a few words, or packed=N. Which of them a trace's blocks can have is known when
// the trace is read.
func layout(to *string) kind[string] {
	return text(to, func(s string) (string, error) {
		if slices.Contains(layouts, s) {
			return s, nil
		}
		rule := fmt.Sprintf("one of %s or packed=N with N in %d…%d", strings.Join(layouts, ", "),
			minPacked, maxPacked)
		count, packed := strings.CutPrefix(s, packedPrefix)
		n, err := strconv.Atoi(count)
		switch {
		case !packed:
			return "", errors.New(rule + cmp.Or(removedLayouts[s], units.Suggestion(s, layouts)))
		case err != nil || n < minPacked || n > maxPacked:
			return "", errors.New(rule)
		}
		return packedPrefix + strconv.Itoa(n), nil
	})
}

// cost is the time of computing tokens; 0 is free.
func cost(to *compute.Cost) kind[compute.Cost] {
	return kind[compute.Cost]{to, compute.ParseCost, compute.Cost.String}
}

// path means the directory base, in which the command was typed, when it is relative. Empty is
// none.
func path(to *string, base string) kind[string] {
	return text(to, func(s string) (string, error) {
		if s != "" && !filepath.IsAbs(s) {
			s = filepath.Join(base, s)
		}
		return s, nil
	})
}

// nonce seeds the content of entries. It is random, which the field holds as empty, or up to 32
// hexadecimal digits, which it holds all.
func nonce(to *string) kind[string] {
	return named(text(to, func(s string) (string, error) {
		const digits = 32
		full := strings.ToLower(strings.Repeat("0", max(0, digits-len(s))) + s)
		if _, err := hex.DecodeString(full); err != nil || s == "" || len(s) > digits {
			return "", errors.New("1 to 32 hexadecimal digits")
		}
		return full, nil
	}), "random", "")
}
