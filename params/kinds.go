package params

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// kind says how a parameter's text is read.
type kind uint8

const (
	kindString kind = iota
	kindBool
	kindInt
	kindFloat
	kindEnum
	kindSize     // bytes, limits in bytes
	kindGiB      // bytes given as GiB, limits in GiB
	kindDuration // limits in seconds
	kindWindow   // 30s or 500x, limits in seconds
	kindAuto     // a whole number or auto (-1 until the launcher is asked)
	kindPath     // relative to the directory in which the command was typed
	kindCacheDir // a path that must not be a bucket
	kindModel    // a model key or a path
	kindNonce    // random, or up to 32 hex digits
	kindSweep    // key=a,b,c
	kindDevice   // a simulated drive, empty or key=value pairs
	kindLayout   // an enum, or packed=N with N in the limits
)

// automatic is what kindAuto holds before the launcher is asked.
const automatic = -1

// parsed is one value in all the forms that a field may want.
type parsed struct {
	flag   bool
	int    int64
	float  float64
	length time.Duration
	window Window
	text   string // canonical: what is printed, compared and recorded
}

// parse reads text and checks it against the limits. The error completes the sentence "must be …".
func (p *parameter) parse(text, base string) (parsed, error) {
	v, err := p.read(text, base)
	if err != nil {
		return v, err
	}
	if x, limited := p.measure(v); limited && (x < p.min || x > p.max) {
		return v, errors.New(p.rule())
	}
	return v, nil
}

func (p *parameter) read(text, base string) (parsed, error) {
	v := parsed{text: text}
	var err error
	switch p.kind {
	case kindBool:
		if v.flag, err = strconv.ParseBool(text); err != nil {
			return v, errors.New("true or false")
		}
		v.text = strconv.FormatBool(v.flag)
	case kindInt, kindAuto:
		if p.kind == kindAuto && text == "auto" {
			v.int = automatic
			return v, nil
		}
		if v.int, err = strconv.ParseInt(text, 10, 64); err != nil {
			return v, errors.New(p.rule())
		}
		v.text = strconv.FormatInt(v.int, 10)
	case kindFloat:
		v.float, err = strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(v.float) || math.IsInf(v.float, 0) {
			return v, errors.New(p.rule())
		}
		v.text = strconv.FormatFloat(v.float, 'f', -1, 64)
	case kindEnum:
		return p.readEnum(text)
	case kindLayout:
		if count, ok := strings.CutPrefix(text, packedPrefix); ok {
			n, err := strconv.Atoi(count)
			if err != nil || float64(n) < p.min || float64(n) > p.max {
				return v, errors.New(p.rule())
			}
			v.text = packedPrefix + strconv.Itoa(n)
			return v, nil
		}
		return p.readEnum(text)
	case kindSize:
		if v.int, err = ParseSize(text, 1); err != nil {
			return v, err
		}
		v.text = FormatSize(v.int)
	case kindGiB:
		if v.int, err = ParseSize(text, GiB); err != nil {
			return v, err
		}
		v.text = formatGiB(v.int)
	case kindDuration:
		if v.length, err = parseDuration(text); err != nil {
			return v, err
		}
		v.text = formatDuration(v.length)
	case kindWindow:
		return readWindow(text)
	case kindPath:
		v.text = absolute(text, base)
	case kindCacheDir:
		if scheme, _, ok := strings.Cut(text, "://"); ok {
			return v, fmt.Errorf("a directory (object storage, %s://, is not in this version)", scheme)
		}
		v.text = absolute(text, base)
	case kindNonce:
		return readNonce(text)
	case kindDevice:
		if text == "" {
			return v, nil
		}
		d, err := ParseDevice(text)
		if err != nil {
			return v, err
		}
		v.text = d.String()
	}
	return v, nil
}

func (p *parameter) readEnum(text string) (parsed, error) {
	for _, c := range p.choices {
		if text == c {
			return parsed{text: c}, nil
		}
	}
	if why, ok := p.refused[text]; ok {
		return parsed{}, errors.New(why)
	}
	return parsed{}, errors.New(p.rule() + suggestion(text, p.choices))
}

// readWindow reads what the testing package accepts for -test.benchtime.
func readWindow(text string) (parsed, error) {
	v := parsed{text: text}
	if n, ok := strings.CutSuffix(text, "x"); ok {
		count, err := strconv.ParseInt(n, 10, 64)
		if err != nil || count < 1 {
			return v, errors.New("a time such as 30s or a number of requests such as 500x, at least 1x")
		}
		v.window.Completions = count
		v.text = strconv.FormatInt(count, 10) + "x"
		return v, nil
	}
	length, err := parseDuration(text)
	if err != nil {
		return v, errors.New("a time such as 30s or a number of requests such as 500x")
	}
	if length <= 0 || length > 24*time.Hour {
		return v, errors.New("more than 0s and at most 24h")
	}
	v.window.Length = length
	v.text = formatDuration(length)
	return v, nil
}

func readNonce(text string) (parsed, error) {
	v := parsed{text: "random"}
	if text == "random" {
		return v, nil
	}
	const digits = 32
	if len(text) > digits || text == "" {
		return v, errors.New("random, or 1 to 32 hexadecimal digits")
	}
	v.text = strings.ToLower(strings.Repeat("0", digits-len(text)) + text)
	if _, err := hex.DecodeString(v.text); err != nil {
		return v, errors.New("random, or 1 to 32 hexadecimal digits")
	}
	return v, nil
}

// absolute resolves a path against the directory in which the command was typed. Empty stays empty: not given.
func absolute(path, base string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

// measure is the number that min and max bound.
func (p *parameter) measure(v parsed) (x float64, limited bool) {
	switch p.kind {
	case kindInt, kindSize:
		return float64(v.int), true
	case kindAuto:
		return float64(v.int), v.int != automatic || v.text != "auto"
	case kindGiB:
		return float64(v.int) / float64(GiB), true
	case kindFloat:
		return v.float, true
	case kindDuration:
		return v.length.Seconds(), true
	}
	return 0, false
}

// rule says what a value must be, to be put after "must be".
func (p *parameter) rule() string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	switch p.kind {
	case kindBool:
		return "true or false"
	case kindInt:
		return "a whole number" + p.limits(number, "")
	case kindAuto:
		return "auto or a whole number" + p.limits(number, "")
	case kindFloat:
		return "a number" + p.limits(number, "")
	case kindGiB:
		return "a size" + p.limits(number, " GiB")
	case kindSize:
		return "a size" + p.limits(func(x float64) string { return FormatSize(int64(x)) }, "")
	case kindDuration:
		return "a time" + p.limits(func(x float64) string { return number(x) + "s" }, "")
	case kindEnum:
		return "one of " + strings.Join(p.choices, ", ")
	case kindLayout:
		return "one of " + strings.Join(p.choices, ", ") + " or packed=N with N" + p.limits(number, "")
	}
	return "text"
}

func (p *parameter) limits(format func(float64) string, unit string) string {
	if math.IsInf(p.max, 1) {
		return " of at least " + format(p.min) + unit
	}
	return " in " + format(p.min) + "…" + format(p.max) + unit
}

// store puts the value into its field.
func (p *parameter) store(v parsed, values *Values) {
	switch field := p.field(values).(type) {
	case *bool:
		*field = v.flag
	case *int:
		*field = int(v.int)
	case *int64:
		*field = v.int
	case *float64:
		*field = v.float
	case *time.Duration:
		*field = v.length
	case *Window:
		*field = v.window
	case *string:
		*field = v.text
	case *Division:
		*field = Division(v.text)
	}
}
