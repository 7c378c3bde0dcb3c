package params

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kvbench/kvbench/units"
	"kvbench/workloads/compute"
	"kvbench/workloads/model"
)

// kind is the type of a parameter, of a key of the YAML file or of a pair of -simulate-device. parse
// reads any spelling. For values outside of the limits it returns an error whose text completes the sentence
// "must be …". format returns the canonical spelling, which kvbench prints, compares and records. parse reads
// this spelling back to the same value.
type kind struct {
	parse  func(string) (any, error)
	format func(any) string
	base   reflect.Kind
}

// newKind returns the kind of values of the Go type T. A field may have another type to which T can be
// converted.
func newKind[T any](parse func(string) (T, error), format func(T) string) kind {
	to := reflect.TypeFor[T]()
	return kind{func(text string) (any, error) { return parse(text) }, func(x any) string {
		return format(reflect.ValueOf(x).Convert(to).Interface().(T))
	}, to.Kind()}
}

// kinds has the kinds without limits, by name.
var kinds = map[string]kind{
	"text": text(func(s string) (string, error) { return s, nil }),
	"name": text(parseName),
	"path": newKind(parsePath, func(p path) string { return string(p) }),
	"bool": newKind(parseBool, strconv.FormatBool),

	"window":           newKind(parseWindow, Window.String),
	"dtype":            oneOf(model.DTypes()...),
	"engine":           oneOf(engineNames()...),
	"layout":           text(parseLayout),
	"cost":             newKind(compute.ParseCost, compute.Cost.String),
	"directories":      {parseDirectories, newKind[[]string](nil, formatDirectories).format, reflect.Slice},
	"device":           newKind(parseDevice, formatDevice),
	"address":          text(parseAddress),
	"listen":           text(parseListen),
	"balance":          text(parseBalance),
	"nonce":            text(parseNonce),
	"checkpoint-model": text(parseCheckpointModel),
	"scale":            newKind(parseScale, formatScale),
}

// parseName reads a name, which is a cell of tables.
func parseName(s string) (string, error) {
	const most = 200
	if utf8.RuneCountInString(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
		return "", fmt.Errorf("at most %d characters, without control characters", most)
	}
	return s, nil
}

// parsePath refuses what a file of environment variables adds to a path.
func parsePath(s string) (path, error) {
	if strings.HasSuffix(s, "\r") || strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) {
		return "", errors.New("a path without quotes around it and without a carriage return at its end")
	}
	return path(s), nil
}

// kindOf reads a column of the table: a kind and its limits, "one of" words, or a word "or" a kind.
func kindOf(column string) kind {
	if word, rest, either := strings.Cut(column, " or "); either {
		return named(word, rest)
	}
	words := strings.Fields(column)
	limits := words[1:]
	switch words[0] {
	case "whole":
		return bounded("a whole number", "", parseWhole(10), formatWhole, limits)
	case "integer": // all spellings of YAML, where 0x10 and 1_000 are numbers
		return bounded("a whole number", "", parseWhole(0), formatWhole, limits)
	case "number":
		return bounded("a number", "", parseFloat, formatFloat, limits)
	case "size":
		return bounded("a size", "", sizeIn(1), units.FormatSize, limits)
	case "GiB":
		return bounded("a size", " GiB", sizeIn(units.GiB), units.FormatGiB, limits)
	case "time": // with its unit: a bare 90 could be seconds or minutes
		return bounded("a time", "", units.ParseDuration, units.FormatDuration, limits)
	case "latency": // as data sheets write it
		return bounded("a time", "", units.ParseDuration, func(d time.Duration) string {
			return strings.ReplaceAll(d.String(), "µ", "u")
		}, limits)
	case "rate":
		return bounded("a rate", ", such as 7GiB/s or 7GB/s", parseRate, formatRate, limits)
	case "seconds":
		return scaled(time.Second, limits)
	case "milliseconds":
		return scaled(time.Millisecond, limits)
	case "list":
		return list(kindOf(strings.Join(limits, " ")), false)
	case "range":
		return list(kindOf(strings.Join(limits, " ")), true)
	case "one":
		return oneOf(limits[1:]...)
	}
	return kinds[words[0]]
}

// bounded refuses values below the first limit or above the second, if there is one, and numbers
// that cannot be read, with a rule that names the limits: the first guess after a refusal is the
// limit itself.
func bounded[T cmp.Ordered](what, unit string, parse func(string) (T, error),
	format func(T) string, limits []string) kind {
	low, _ := parse(limits[0])
	high, rule := low, what+" of at least "+limits[0]+unit
	if len(limits) > 1 {
		high, _ = parse(limits[1])
		rule = what + " in " + limits[0] + "…" + limits[1] + unit
	}
	return newKind(func(text string) (T, error) {
		x, err := parse(text)
		unread := errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange)
		// NaN is not above any limit.
		if unread || err == nil && (!(x >= low) || len(limits) > 1 && x > high) {
			err = errors.New(rule)
		}
		return x, err
	}, format)
}

func parseWhole(base int) func(string) (int64, error) {
	return func(text string) (int64, error) { return strconv.ParseInt(text, base, 64) }
}

func formatWhole(x int64) string { return strconv.FormatInt(x, 10) }

// parseFloat reads a finite number.
func parseFloat(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if math.IsInf(x, 0) {
		err = strconv.ErrRange
	}
	return x, err
}

// formatFloat is the shortest text that reads back to the same number, without an exponent.
func formatFloat(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// sizeIn reads sizes; unit counts where the text has none. Only binary units are read: 1MB
// often means 1MiB.
func sizeIn(unit int64) func(string) (int64, error) {
	return func(text string) (int64, error) { return units.ParseSize(text, unit) }
}

func parseBool(text string) (bool, error) {
	x, err := strconv.ParseBool(text)
	if err != nil {
		err = errors.New("true or false")
	}
	return x, err
}

// scaled is a time in a file of the Python benchmark: a number of some unit.
func scaled(unit time.Duration, limits []string) kind {
	number := kindOf("number " + strings.Join(limits, " "))
	return newKind(func(text string) (time.Duration, error) {
		x, err := number.parse(text)
		return time.Duration(x.(float64) * float64(unit)), err
	}, units.FormatDuration)
}

// list is a list of values of one kind, in brackets as in YAML, or two numbers that rise or are equal.
func list(item kind, rising bool) kind {
	return kind{func(text string) (any, error) {
		inner, begins := strings.CutPrefix(text, "[")
		inner, ends := strings.CutSuffix(inner, "]")
		if !begins || !ends {
			return nil, errors.New("a list such as [1, 2]")
		}
		var values []any
		for part := range strings.FieldsFuncSeq(inner, func(r rune) bool { return r == ',' }) {
			x, err := item.parse(strings.TrimSpace(part))
			if err != nil {
				return nil, fmt.Errorf("a list of which each is %w", err)
			}
			values = append(values, x)
		}
		if rising && (len(values) != 2 ||
			number(reflect.ValueOf(values[0])) > number(reflect.ValueOf(values[1]))) {
			return nil, errors.New("[low, high] with low at most high")
		}
		return values, nil
	}, func(x any) string { return fmt.Sprint(x) }, reflect.Slice}
}

// automatic is the value of a number that is not yet known, because the workers, the launcher or the
// engine determine it.
const automatic = -1

// noTier is the capacity of a storage tier that the user does not want.
const noTier = -1

// words are what the field holds of a kind that a word may replace: of numbers [automatic], of
// capacities [noTier], of sizes and texts nothing.
var words = map[string]any{"whole": int64(automatic), "GiB": int64(noTier), "size": int64(0), "nonce": ""}

// named is a kind that also takes a word, such as auto.
func named(word, column string) kind {
	k := kindOf(column)
	name, _, _ := strings.Cut(column, " ")
	means := words[name]
	return kind{func(text string) (any, error) {
		if text == word {
			return means, nil
		}
		x, err := k.parse(text)
		if err != nil {
			err = fmt.Errorf("%s or %w", word, err)
		}
		return x, err
	}, func(x any) string {
		if reflect.ValueOf(x).Convert(reflect.TypeOf(means)).Interface() == means {
			return word
		}
		return k.format(x)
	}, k.base}
}

// text is a kind of texts that parse takes, and may complete.
func text(parse func(string) (string, error)) kind {
	return newKind(parse, func(s string) string { return s })
}

// path is a text that means a file, relative to the directory of the command.
type path string

// oneOf is one of a few words. Texts are compared as they are: a word in capitals is another word.
func oneOf(words ...string) kind {
	return text(func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", errors.New("one of " + strings.Join(words, ", ") + units.Suggestion(s, words))
		}
		return s, nil
	})
}

// Window bounds the measured part of a trial: by length, or, when Completions is positive, by
// completed requests (-benchtime 500x), and then Length is 0.
type Window struct {
	Length      time.Duration
	Completions int64
}

func (w Window) String() string {
	if w.Completions > 0 {
		return strconv.FormatInt(w.Completions, 10) + "x"
	}
	return units.FormatDuration(w.Length)
}

// parseWindow reads what the testing package takes for -test.benchtime: 30s or 500x. One call of a
// benchmark is one trial, so the testing package never counts iterations here: x counts requests.
func parseWindow(text string) (w Window, err error) {
	const form = "a time such as 30s or a number of requests such as 500x"
	if n, ok := strings.CutSuffix(text, "x"); ok {
		if w.Completions, err = strconv.ParseInt(n, 10, 64); err != nil || w.Completions < 1 {
			err = errors.New(form + ", at least 1x")
		}
		return w, err
	}
	if w.Length, err = time.ParseDuration(text); err != nil {
		return w, errors.New(form)
	}
	if w.Length <= 0 || w.Length > 24*time.Hour {
		err = errors.New("more than 0s and at most 24h")
	}
	return w, err
}

// parseNonce reads up to 32 hexadecimal digits and completes them to 32.
func parseNonce(s string) (string, error) {
	const digits = 32
	full := strings.ToLower(strings.Repeat("0", max(0, digits-len(s))) + s)
	if _, err := hex.DecodeString(full); err != nil || s == "" || len(s) > digits {
		return "", errors.New("1 to 32 hexadecimal digits")
	}
	return full, nil
}

// parseListen reads the address of a server on this machine.
func parseListen(s string) (string, error) {
	_, port, err := net.SplitHostPort(s)
	if _, noPort := strconv.ParseUint(port, 10, 16); err != nil || noPort != nil {
		return "", errors.New("HOST:PORT, such as 127.0.0.1:9464")
	}
	return s, nil
}
