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

// Record is one trial: a result line of benchmark text, a result file, or both. Comparisons need
// Name, Config and Values; pages need the file. With several clients a record is one rank, or, read
// with Options.Trials, the merged trial.
type Record struct {
	// Source is the argument it came from: the run that it belongs to in comparisons.
	Source string `json:"source"`
	File   string `json:"file"`           // where it stands
	Line   int    `json:"line,omitempty"` // 0 in a result file

	Name  string `json:"name"`                 // as on the line: StorageCeiling/op=read-2
	Iters int    `json:"iterations,omitempty"` // 0 without a line
	// Config is in force at the line. It is shared between records and not to be changed.
	Config []Setting `json:"config,omitempty"`
	Values Values    `json:"values"` // none of a trial that is not complete

	Path   string          `json:"result_path,omitempty"` // empty where there is no result file
	Raw    json.RawMessage `json:"result,omitempty"`      // the result file as it stands
	Result *result.Result  `json:"-"`                     // nil for the Python benchmark's
	Python bool            `json:"-"`                     // it is the Python benchmark's
	// Missing says why the result file that the text names could not be read.
	Missing string `json:"result_missing,omitempty"`

	// Ranks are the records that were merged, nil for one client.
	Ranks []*Record `json:"-"`
	trial string    // of a rank, equal for all ranks of the trial
	rank  int

	// The file is a saved text of bpftrace, with nothing else of the above but File and Name.
	Bpftrace *Bpftrace `json:"-"`

	sections map[string]json.RawMessage // of the file, by the keys at its top
	decoded  map[string]any             // decoded on demand by Lookup
}

// Setting is one line of a text's configuration.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Values are the values of a benchmark line, tidied as benchfmt does, with the original value and
// unit.
type Values []benchfmt.Value

// entryValue is one value in its printed unit. Value is a number, or a text for Inf and NaN, which
// JSON lacks.
type entryValue struct {
	Unit  string `json:"unit"`
	Value any    `json:"value"`
}

// MarshalJSON writes the values as they were printed.
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

// UnmarshalJSON is the inverse.
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

// tidy makes a value as benchfmt reads it.
func tidy(value float64, unit string) benchfmt.Value {
	v, u := benchunit.Tidy(value, unit)
	if u == unit {
		return benchfmt.Value{Value: value, Unit: unit}
	}
	return benchfmt.Value{Value: v, Unit: u, OrigValue: value, OrigUnit: unit}
}

// pythonKeys are the keys at the top of a result of the Python benchmark.
var pythonKeys = strings.Fields("requests_completed total_tokens_generated " +
	"total_storage_io_latency total_generation_latency multi_turn_cache_hits " +
	"multi_turn_cache_misses summary validation")

// section is what stands under a key at the top of the result file, nil where there is none.
func (rec *Record) section(key string) json.RawMessage {
	if rec.sections == nil && rec.Raw != nil {
		_ = json.Unmarshal(rec.Raw, &rec.sections) // it was valid when it was read
	}
	// Of our results the keys of the Python benchmark are made when they are needed, without its
	// percentiles: ours are elsewhere, and histograms take long to decode.
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

// Lookup returns the value under a dotted path of keys in the result file: string, float64, bool,
// map or list, or nil where the file has no such key, the key is null, or there is no file.
func (rec *Record) Lookup(path string) any {
	key, rest, deeper := strings.Cut(path, ".")
	v, ok := rec.decoded[key]
	if !ok {
		// Only requested sections are decoded: histograms are most of a file.
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

// Parameter returns the value in force of a parameter, nil where it is unknown.
func (rec *Record) Parameter(name string) any {
	if rec.Result == nil {
		return nil
	}
	return rec.Result.Parameter(name)
}

// Failure is how a trial without values ended, empty for a trial with values.
func (rec *Record) Failure() string {
	switch {
	case len(rec.Values) > 0:
		return ""
	case rec.Result != nil:
		return merge.Fate(rec.Result)
	}
	return cmp.Or(rec.Missing, "no values on its line")
}

// Clients are the records of a trial's ranks, itself where there is one client.
func (rec *Record) Clients() []*Record {
	if rec.Ranks == nil {
		return []*Record{rec}
	}
	return rec.Ranks
}

// Block names the block of a paired run in which the trial was measured together with trials of the
// other side. kvreport turns writes it as a line "turn: 3" above the trial's. Without it it is empty.
func (rec *Record) Block() string { return rec.configured("turn") }

// Tracing returns the histograms of block-layer tracing in the result file that have samples. Results
// without tracing have none.
func (rec *Record) Tracing() (out []tracing.Named) {
	// The raw file is read, not the typed result: the Python benchmark has the same keys.
	section := rec.section("device_latency_tracing")
	if section == nil { // as of thousands of lines without a file
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
		// The Python benchmark has the buckets alone.
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

// Course returns the traced histograms as a time series; nil where the file has none.
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
