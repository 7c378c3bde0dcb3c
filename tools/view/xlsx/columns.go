package xlsx

import (
	"cmp"
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tools/load"
	"kvbench/tools/stats"
)

// column is one column of the Summary sheet. Its value for a result is a number, a string, a bool or a
// time, so that spreadsheets sort correctly. nil is an empty cell.
type column struct {
	title string
	value func(*load.Record) any
}

// columnText lists the columns. Its head comment explains the format.
//
//go:embed columns.txt
var columnText string

// summaryColumns returns the columns of columns.txt, which begin with those of the Python benchmark's
// sheet in its order.
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
	return list
}

// printed returns the value of a unit on the benchmark line, in the printed unit.
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

// scales convert values of the result file to the column's unit. Multiplication gives the same last
// digit as the Python benchmark's sheet; division does not.
var scales = map[string]float64{"": 1, "ms": 1e-6, "MiB": 1.0 / (1 << 20), "GiB": 1.0 / (1 << 30)}

// ofTier finds the tier in the keys of the Python benchmark that are 0 without that tier.
var ofTier = regexp.MustCompile(`(gpu|cpu|storage)_(entries|throughput|kv_bytes|(read|write)_bandwidth)`)

// bases are the divisors of the Python benchmark's ratios. With a divisor of 0 that benchmark has a number,
// and here the ratio is unknown.
var bases = map[string]func(*result.Result) int64{
	"summary.cache_stats.cache_hit_rate": func(r *result.Result) int64 {
		return r.Lookups.Hits + r.Lookups.Misses + r.Moved.OwnFound + r.Moved.OwnGone
	},
	"summary.cache_stats.read_write_ratio": func(r *result.Result) int64 { return r.Moved.WriteBytes },
	"summary.multi_turn_stats.hit_rate": func(r *result.Result) int64 {
		turns := r.Lookups.ByKind["multi_turn"]
		return turns.Hits + turns.Misses
	},
	"summary.avg_throughput_tokens_per_sec":     func(r *result.Result) int64 { return r.WindowNS },
	"summary.requests_per_second":               func(r *result.Result) int64 { return r.WindowNS },
	"summary.storage_throughput_tokens_per_sec": func(r *result.Result) int64 { return r.Requests.StorageLatencyNS },
}

// key returns the value function of an entry of columns.txt: "path", "path / unit" or "path | metric".
// path is a key of the result file. Without a result file the column has the metric of the benchmark
// line, which has fewer digits. "path ? other" reads other, in ms, from a kvbench result: the Python
// benchmark's percentiles at path may have too few samples.
func key(from string) func(*load.Record) any {
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
				if v = rate * scales["GiB"]; !stats.OnStorage(r.Name) { // of another tier
					return nil
				}
			}
			return v
		}
		if m := ofTier.FindStringSubmatch(path); m != nil && r.Result != nil {
			t := r.Result.Tier(m[1])
			if t.Level == "" || m[3] == "read" && t.Read.BytesPerSecond == nil || m[3] == "write" && t.Write.BytesPerSecond == nil {
				return nil
			}
		}
		if base := bases[path]; base != nil && r.Result != nil && base(r.Result) == 0 {
			return nil
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

// plainNumber matches numbers of parameters. 1234e10 is part of a nonce, and a text with a leading 0 or
// a plus sign is a name.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?(e[-+]\d+)?$`)

// mostDigits is the number of digits that a spreadsheet keeps. A longer seed stays a string.
const mostDigits = 15

// Typed converts a parameter's string to a number or a bool, because a spreadsheet needs types. "" and
// "–" give nil.
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

// special has the columns whose value is not a key of the result file.
var special = map[string]func(*load.Record) any{
	"=timestamp": timestamp, "=window": window, "=gpu-memory": gpuMemory, "=simulated": simulated,
	"=storage-requests": storageRequests,
	// The argument of kvreport in which the result was found.
	"=run": func(r *load.Record) any { return r.Source },
	// The seed, to which the rank is added.
	"=seed": func(r *load.Record) any {
		// Raw decodes the seed as float64, which loses digits.
		if r.Result == nil {
			return r.Lookup("seed")
		}
		return Typed(strconv.FormatUint(r.Result.Seed, 10))
	},
	// The benchmark's name, with its point of a sweep.
	"=benchmark": func(r *load.Record) any { return stats.NameOf(r) },
	// The number of warnings.
	"=warnings": func(r *load.Record) any {
		if list, ok := r.Lookup("warnings").([]any); ok {
			return float64(len(list))
		}
		return nil
	},
	// The result file, otherwise the text file.
	"=file": func(r *load.Record) any { return cmp.Or(r.Path, r.File) },
}

// timestamp returns the start time in UTC, because spreadsheets know no time zones.
func timestamp(r *load.Record) any {
	if r.Result == nil {
		return nil
	}
	if t, err := time.Parse(time.RFC3339Nano, r.Result.StartTime); err == nil {
		return t.UTC()
	}
	return nil
}

// window returns the nominal window in seconds, or the actual one if the run ended by a count. The
// Python benchmark calls both duration.
func window(r *load.Record) any {
	if r.Result == nil {
		return nil
	}
	if n := r.Result.NominalWindowNS; n != nil && *n > 0 {
		return float64(*n) / 1e9
	}
	return float64(r.Result.WindowNS) / 1e9
}

// storageRequests returns the request rate of json_to_xlsx.py: completed requests ÷ the sum of their
// storage waits in seconds. Waits of concurrent requests add up, so this is no rate per second of time.
func storageRequests(r *load.Record) any {
	n, ok1 := r.Lookup("requests_completed").(float64)
	seconds, ok2 := r.Lookup("total_storage_io_latency").(float64)
	if !ok1 || !ok2 || seconds <= 0 {
		return nil
	}
	return n / seconds
}

// gpuMemory returns the GPU tier's memory of all GPUs in GiB.
func gpuMemory(r *load.Record) any {
	card, ok1 := Typed(r.Parameter("gpu-mem-gb")).(float64)
	cards, ok2 := Typed(r.Parameter("num-gpus")).(float64)
	if !ok1 || !ok2 {
		return nil
	}
	return card * cards
}

// simulated returns whether the result is simulated; empty if unknown, as in text of other programs.
func simulated(r *load.Record) any {
	if how := r.Simulation(); how != "" {
		return how != merge.Measured
	}
	return nil
}
