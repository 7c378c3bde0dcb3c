package load

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchunit"

	"kvbench/kvbench/merge"
	"kvbench/kvbench/result"
	"kvbench/tracing"
)

// Record is one trial: a line of benchmark text, a result file, or both. With several clients a record
// is one rank, or the merged trial with Options.Trials. Comparisons need Name, Config and Values; pages
// need the result file.
type Record struct {
	// Source is the argument that the record comes from. It is the run in comparisons.
	Source string `json:"source"`
	File   string `json:"file"`           // the file of the line or of the result
	Line   int    `json:"line,omitempty"` // 0 for a result file

	Name  string `json:"name"`                 // as on the line: StorageCeiling/op=read-2
	Iters int    `json:"iterations,omitempty"` // 0 without a line
	// Config is the configuration of the text above the line. Records share it; do not change it.
	Config []Setting `json:"config,omitempty"`
	Values Values    `json:"values"` // empty if the trial is not complete

	Path   string          `json:"result_path,omitempty"` // "" without a result file
	Raw    json.RawMessage `json:"result,omitempty"`      // the content of the result file
	Result *result.Result  `json:"-"`                     // nil for a result of the Python benchmark
	Python bool            `json:"-"`                     // the result file is from the Python benchmark
	// Missing is why the result file that the text names could not be read.
	Missing string `json:"result_missing,omitempty"`
	Named   string `json:"result_named,omitempty"` // that file, as the text names it

	// Ranks are the merged records, nil for one client.
	Ranks []*Record `json:"-"`
	trial string    // equal for all ranks of the trial
	rank  int

	// Bpftrace is set for saved bpftrace output, which has only File and Name.
	Bpftrace *Bpftrace `json:"-"`

	sections map[string]json.RawMessage // of the result file, by top-level key
	decoded  map[string]any             // by top-level key, for Lookup
}

// Setting is one configuration line of a text.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Values are the values of a benchmark line, tidied by benchfmt, with the original values and units.
type Values []benchfmt.Value

// entryValue is one value in its printed unit. Value is a number, or a string for Inf and NaN, which
// JSON cannot encode.
type entryValue struct {
	Unit  string `json:"unit"`
	Value any    `json:"value"`
}

// MarshalJSON writes the values in their printed units.
func (v Values) MarshalJSON() ([]byte, error) {
	list := make([]entryValue, len(v))
	for i, have := range v {
		value, unit := have.Value, have.Unit
		if have.OrigUnit != "" {
			value, unit = have.OrigValue, have.OrigUnit
		}
		list[i] = entryValue{unit, value}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			list[i].Value = fmt.Sprint(value)
		}
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (v *Values) UnmarshalJSON(data []byte) error {
	var list []entryValue
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	for _, e := range list {
		value, err := strconv.ParseFloat(fmt.Sprint(e.Value), 64)
		if err != nil {
			return fmt.Errorf("%v %s is no number", e.Value, e.Unit)
		}
		*v = append(*v, tidy(value, e.Unit))
	}
	return nil
}

// tidy returns a value with its tidied unit, as benchfmt reads it.
func tidy(value float64, unit string) benchfmt.Value {
	v, u := benchunit.Tidy(value, unit)
	if u == unit {
		return benchfmt.Value{Value: value, Unit: unit}
	}
	return benchfmt.Value{Value: v, Unit: u, OrigValue: value, OrigUnit: unit}
}

// pythonKeys are the top-level keys of a Python benchmark's result.
var pythonKeys = strings.Fields("requests_completed total_tokens_generated " +
	"total_storage_io_latency total_generation_latency multi_turn_cache_hits " +
	"multi_turn_cache_misses summary validation")

// section returns the value of a top-level key of the result file, nil if there is none.
func (rec *Record) section(key string) json.RawMessage {
	if rec.sections == nil && rec.Raw != nil {
		_ = json.Unmarshal(rec.Raw, &rec.sections) // the JSON was valid when it was read
	}
	// For a kvbench result, make the keys of the Python benchmark when they are needed, without its
	// percentiles: kvbench has them under other keys, and histograms take long to decode.
	if rec.sections[key] == nil && rec.Result != nil && slices.Contains(pythonKeys, key) {
		r := *rec.Result
		r.Histograms = nil
		data, err := json.Marshal(r.Python())
		if err == nil {
			_ = json.Unmarshal(data, &rec.sections)
		}
	}
	return rec.sections[key]
}

// Lookup returns the value at a dotted path of keys in the result file: a string, float64, bool, map or
// list. It returns nil if the key is missing or null, or if there is no file.
func (rec *Record) Lookup(path string) any {
	key, rest, deeper := strings.Cut(path, ".")
	v, ok := rec.decoded[key]
	if !ok {
		// Decode only the requested section: histograms are most of a file.
		_ = json.Unmarshal(rec.section(key), &v)
		if rec.decoded == nil {
			rec.decoded = map[string]any{}
		}
		rec.decoded[key] = v
	}
	for deeper {
		key, rest, deeper = strings.Cut(rest, ".")
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// Parameter returns the value of a parameter, nil if unknown.
func (rec *Record) Parameter(name string) any {
	if rec.Result == nil {
		return nil
	}
	return rec.Result.Parameter(name)
}

// Failure returns how a trial without values ended, "" for a trial with values.
func (rec *Record) Failure() string {
	switch {
	case len(rec.Values) > 0:
		return ""
	case rec.Result != nil:
		return merge.Fate(rec.Result)
	}
	return cmp.Or(rec.Missing, "no values on its line")
}

// Clients returns the records of the trial's ranks, or the record itself for one client.
func (rec *Record) Clients() []*Record {
	if rec.Ranks == nil {
		return []*Record{rec}
	}
	return rec.Ranks
}

// Block returns the block of a paired run to which the trial belongs, "" without a block. kvreport turns
// writes it as a line "turn: 3" above the trial.
func (rec *Record) Block() string { return rec.configured("turn") }

// Tracing returns the block-layer histograms of the result file that have samples.
func (rec *Record) Tracing() (out []tracing.Named) {
	// Read the raw section: the Python benchmark has the same keys.
	section := rec.section("device_latency_tracing")
	if section == nil { // usual for lines without a result file
		return nil
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(section, &all)
	for _, kind := range tracing.Kinds {
		var h tracing.Histogram
		if json.Unmarshal(all[kind.Key], &h) != nil {
			continue
		}
		h.Buckets = slices.DeleteFunc(h.Buckets,
			func(b tracing.Bucket) bool { return b.Count <= 0 })
		// A Python result has only buckets: compute the count and the percentiles.
		full := tracing.NewHistogram(h.Unit, h.Sum, h.Buckets)
		if h.Count = full.Count; h.P50 == nil || h.P95 == nil || h.P99 == nil {
			h = full
		}
		if h.Count > 0 {
			out = append(out, tracing.Named{Kind: kind, Histogram: h})
		}
	}
	return out
}

// Course returns the traced histograms over time, nil if the file has none.
func (rec *Record) Course() *tracing.Course {
	var seen struct {
		Course *tracing.Course `json:"over_time"`
	}
	section := rec.section("device_latency_tracing")
	if section == nil || json.Unmarshal(section, &seen) != nil || seen.Course == nil ||
		!seen.Course.Sound() {
		return nil
	}
	return seen.Course
}
