package xlsx

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
	"kvbench/tools/view"
)

// value is a column's value for a result: a number, a text, a boolean or a time, so that
// spreadsheets sort it correctly, or nil for an empty cell.
type value func(*load.Record) any

// column is one column of the Summary sheet.
type column struct {
	title string
	value value
}

// columnText lists the columns; its head explains the format.
//
//go:embed columns.txt
var columnText string

// pythonColumns is the number of columns that the Python benchmark's sheet has too; ours follow.
const pythonColumns = 99

// summaryColumns are the columns of the Python benchmark's sheet in its order, then ours: the rest of
// columns.txt, and the units of the benchmark line from the tags of a result's fields.
func summaryColumns() (list []column) {
	for line := range strings.Lines(columnText) {
		title, from, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || strings.HasPrefix(title, "#") {
			continue
		}
		from = strings.TrimSpace(from)
		c := column{title, special[from]}
		kind, name, _ := strings.Cut(from, ":")
		switch {
		case kind == "param":
			c.value = func(r *load.Record) any { return Typed(r.Parameter(name)) }
		case kind == "not":
			// Some flags of the Python benchmark disable a feature that its sheet names positively.
			c.value = func(r *load.Record) any {
				if off, ok := Typed(r.Parameter(name)).(bool); ok {
					return !off
				}
				return nil
			}
		case c.value == nil:
			c.value = key(from)
		}
		list = append(list, c)
	}
	for _, u := range result.Lines {
		if u.Column {
			list = append(list, column{fmt.Sprintf("%s (%s)", u.Title, u.Name),
				func(r *load.Record) any { return printed(r, u.Name) }})
		}
	}
	return list
}

// printed is the value of a unit on the benchmark line, as it was printed.
func printed(r *load.Record, unit string) any {
	for _, v := range r.Values {
		switch unit {
		case v.OrigUnit:
			return v.OrigValue
		case v.Unit:
			return v.Value
		}
	}
	return nil
}

// scales are the factors of the result file's values, by the unit of the product. They are
// multiplied, because a division would differ from the Python sheet in the last digit.
var scales = map[string]float64{"": 1, "ms": 1e-6, "MiB": 1.0 / (1 << 20), "GiB": 1.0 / (1 << 30)}

// key is a value of the result file, else of the benchmark line: "path", "path / unit", "path |
// metric". A result file has all digits, a line those that are printed: with a file the line is
// not used. "path ? other" is of our result the other, in ms: the Python benchmark's keys have
// percentiles of any number of samples, ours only those that enough samples support.
func key(from string) value {
	path, metric, _ := strings.Cut(from, " | ")
	path, other, _ := strings.Cut(path, " ? ")
	path, unit, _ := strings.Cut(path, " / ")
	return func(r *load.Record) any {
		if len(r.Raw) == 0 {
			if metric == "" {
				return nil
			}
			v := printed(r, metric)
			if rate, ok := v.(float64); ok && strings.HasSuffix(metric, "B/s") {
				if v = rate * scales["GiB"]; !view.OnStorage(r.Name) { // of another tier
					return nil
				}
			}
			return v
		}
		if other != "" && r.Result != nil {
			if ns, ok := r.Lookup(other).(float64); ok {
				return ns / 1e6
			}
			return nil
		}
		v := r.Lookup(path)
		if x, ok := v.(float64); ok {
			return x * scales[unit]
		}
		return v
	}
}

// plainNumber matches numbers as our parameters and the Python benchmark's have them: 1234e10 is
// part of a nonce, and a text with a leading 0 or a sign is a name.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?(e[-+]\d+)?$`)

// mostDigits is the precision of a whole number in a spreadsheet: a longer seed is a text.
const mostDigits = 15

// Typed converts a parameter's text to its value. Empty and – are nothing. Results have parameters
// as texts, like flags; a spreadsheet needs numbers.
func Typed(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	if s == "" || s == "–" {
		return nil
	}
	if m := plainNumber.FindStringSubmatch(s); m != nil && len(m[1]) <= mostDigits {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	}
	if b, err := strconv.ParseBool(s); err == nil && len(s) > 1 {
		return b
	}
	return s
}

// simulatedHead is the column that colours rows.
const simulatedHead = "Simulated"

// special are the columns that are no plain value of the result file.
var special = map[string]value{
	"=timestamp": timestamp, "=window": window, "=gpu-memory": gpuMemory, "=simulated": simulated,
	"=storage-requests": storageRequests,
	"=run":              func(r *load.Record) any { return r.Source },
	// A long number of the raw file has lost its last digits.
	"=seed": func(r *load.Record) any {
		if r.Result == nil {
			return r.Lookup("seed")
		}
		return Typed(strconv.FormatUint(r.Result.Seed, 10))
	},
	"=benchmark": func(r *load.Record) any { return stats.NameOf(r) },
	// the number; the file has their texts
	"=warnings": func(r *load.Record) any {
		if list, ok := r.Lookup("warnings").([]any); ok {
			return float64(len(list))
		}
		return nil
	},
	// the result file, else the text
	"=file": func(r *load.Record) any { return cmp.Or(r.Path, r.File) },
}

// timestamp is the start in UTC: spreadsheets know no zones.
func timestamp(r *load.Record) any {
	if r.Result == nil {
		return nil
	}
	if t, err := time.Parse(time.RFC3339Nano, r.Result.StartTime); err == nil {
		return t.UTC()
	}
	return nil
}

// window is the nominal length, or the real one where the run ended by a count. Both are what the
// Python benchmark calls its duration.
func window(r *load.Record) any {
	if r.Result == nil {
		return nil
	}
	if n := r.Result.NominalWindowNS; n != nil && *n > 0 {
		return float64(*n) / 1e9
	}
	return float64(r.Result.WindowNS) / 1e9
}

// storageRequests is json_to_xlsx.py's rate of requests: completed requests ÷ the sum of their
// times of waiting for storage. It is no rate per second of the clock: the waits of concurrent
// requests add up.
func storageRequests(r *load.Record) any {
	n, ok1 := r.Lookup("requests_completed").(float64)
	seconds, ok2 := r.Lookup("total_storage_io_latency").(float64)
	if !ok1 || !ok2 || seconds <= 0 {
		return nil
	}
	return n / seconds
}

// gpuMemory is the memory of all cards.
func gpuMemory(r *load.Record) any {
	card, ok1 := Typed(r.Parameter("gpu-mem-gb")).(float64)
	cards, ok2 := Typed(r.Parameter("num-gpus")).(float64)
	if !ok1 || !ok2 {
		return nil
	}
	return card * cards
}

// simulated is empty where it is unknown, as in text of other programs.
func simulated(r *load.Record) any {
	if how := r.Simulation(); how != "" {
		return how != merge.Measured
	}
	return nil
}
