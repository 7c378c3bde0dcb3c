package result

import (
	_ "embed"
	"reflect"
	"strings"

	"kvbench/kvbench/units"
)

// LineUnit is the unit of a value on benchmark lines.
type LineUnit struct {
	Name   string
	Better string // higher or lower, as Unit lines have it; empty: neither
	Title  string // for people
	Doc    string // Markdown; empty: that of the unit before
	Column bool   // of CSV and workbook, whose columns.txt does not have it: tags describe it
}

//go:embed lines.txt
var linesText string

// Lines are the units of the suite's benchmark lines: those of lines.txt in their order, then those
// that only the tags of a result's field describe.
//
// A number of a result that has the tag line:"UNIT" is on the line as it is. If lines.txt does not
// have the unit, the tags better, title and doc describe it: such a number is one line of code, and
// is on the line, in the tables of units, in the page and in the columns of CSV and workbook.
var Lines = func() (list []LineUnit) {
	for row := range strings.Lines(linesText) {
		if row = strings.TrimSpace(row); row != "" && row[0] != '#' {
			c := append(strings.SplitN(row, " | ", 4), "")
			list = append(list, LineUnit{Name: c[0], Better: strings.Trim(c[1], "-"),
				Title: c[2], Doc: c[3]})
		}
	}
	tagged(reflect.ValueOf(Result{}), true, func(tags reflect.StructTag, _ reflect.Value) {
		if tags.Get("title") != "" {
			list = append(list, LineUnit{tags.Get("line"), tags.Get("better"), tags.Get("title"),
				tags.Get("doc"), true})
		}
	})
	return list
}()

// Directed are the units of Lines that have a direction, and therefore a Unit line.
func Directed() (list []LineUnit) {
	for _, u := range Lines {
		if u.Better != "" {
			list = append(list, u)
		}
	}
	return list
}

// tagged calls f with the numbers of a structure that are on the line. All are also those of
// sections that the result does not have.
func tagged(of reflect.Value, all bool, f func(tags reflect.StructTag, v reflect.Value)) {
	for field, v := range of.Fields() {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() && !all {
				continue
			} else if v.IsNil() {
				v = reflect.New(v.Type().Elem())
			}
			v = v.Elem()
		}
		if field.Tag.Get("line") != "" {
			f(field.Tag, v)
		} else if v.Kind() == reflect.Struct {
			tagged(v, all, f)
		}
	}
}

// Metric is one value of the benchmark line.
type Metric struct {
	Unit  string
	Value float64
}

// Metrics returns the values of the benchmark line, without those that are unknown. Bytes and
// nanoseconds throughout, because benchstat rescales those. A percentile with too few samples
// behind it is unknown, here as in the summary: benchstat and the gate take what is on the line for
// a number. A failed trial gives what it has.
func (r *Result) Metrics() []Metric {
	var out []Metric
	add := func(unit string, v *float64) {
		if v != nil && units.Finite(*v) != nil {
			out = append(out, Metric{unit, *v})
		}
	}
	if c := r.Checkpoint; c != nil {
		// Rates are those of the rules, and of no window: that has pauses in it.
		c.metrics(add)
		r = &Result{CompletionUnit: UnitOperation,
			DeviceCounters: DeviceCounters{ReadRatio: c.DeviceRatio()},
			Harness: Harness{CPUNSPerByte: r.Harness.CPUNSPerByte,
				PeakRSSBytes: r.Harness.PeakRSSBytes}}
	}
	read, write := r.StorageTraffic()
	add("ns/op", units.Ratio(r.countedNS(), r.Completions()))
	if r.CompletionUnit != UnitOperation {
		add("req/s", r.Requests.RequestsPerSecond)
		add("tok/s", r.Requests.TokensPerSecond)
		add("storage-tok/s", r.Requests.StorageTokensPerSecond)
	}
	// A direction that was not measured has no rate: benchstat cannot average zeros.
	if read.Bytes > 0 {
		add("read-B/s", read.BytesPerSecond)
	}
	if write.Bytes > 0 {
		add("write-B/s", write.BytesPerSecond)
	}
	level := r.Latency.Levels[r.storageLevel()]
	add("read-p50-ns", number(level.Read.Device.P50))
	add("read-p95-ns", number(level.Read.Device.P95))
	add("read-p99-ns", number(level.Read.Device.P99))
	add("write-p95-ns", number(level.Write.Device.P95))
	// One request to the tier, which is what other tools call latency.
	add("read-io-p50-ns", number(level.Read.Request.P50))
	add("read-io-p99-ns", number(level.Read.Request.P99))
	add("write-io-p50-ns", number(level.Write.Request.P50))
	add("write-io-p99-ns", number(level.Write.Request.P99))
	if o := r.Objects; o != nil {
		add("ttfb-p95-ns", number(o.FirstByte.P95))
	}
	timeless := r.Simulation != nil && r.Simulation.Device == nil
	if !timeless {
		add("read-ns/MiB", read.NSPerMiB)
	}
	if v := r.Latency.Request.EndToEnd.P95; v != nil && r.CompletionUnit != UnitOperation &&
		!(timeless && *v == 0) {
		add("e2e-p95-ns", number(v))
	}
	if r.CompletionUnit != UnitOperation {
		if r.Benchmark == BenchmarkEngines {
			add("found-tok/s", r.FoundTokensPerSecond())
		}
		r.hitRatios(add)
		r.FirstToken.metrics(add)
		add("served-ratio", r.Load["total"].ServedRatio)
	}
	if p := r.PlainIO; p != nil && p.Knee != nil && p.Knee.Known() { // else it is none
		add("knee-bytes", new(float64(p.Knee.Bytes())))
	}
	r.Clients.metrics(add)
	tagged(reflect.ValueOf(*r), false, func(tags reflect.StructTag, v reflect.Value) {
		if v.CanInt() {
			add(tags.Get("line"), new(float64(v.Int())))
		} else {
			add(tags.Get("line"), new(v.Float()))
		}
	})
	return out
}

// countedNS is the time in which what is counted was done: of several clients, whose windows may
// end by counts of their own, the mean window.
func (r *Result) countedNS() int64 {
	if r.Clients != nil {
		return r.Clients.MeanWindowNS
	}
	return r.WindowNS
}

// FoundTokensPerSecond is how many tokens of prompts a second did not have to be computed, because
// they were found: tokens of the blocks found ÷ the window. Nil where no blocks were requested. A
// storage that is fast and finds little has few of them, as has one that finds much and is slow.
func (r *Result) FoundTokensPerSecond() *float64 {
	if r.BlockCache == nil || r.BlockCache.Tokens == 0 {
		return nil
	}
	return units.Ratio(float64(r.BlockCache.HitTokens), float64(r.countedNS())/1e9)
}

// hitRatios adds what was found in the cache. Blocks are what a block trace is compared by.
func (r *Result) hitRatios(add func(unit string, v *float64)) {
	switch {
	case r.BlockCache != nil:
		// Of a part of a trace that depends on the drive they are no hit ratios of the trace.
		if !r.PartOfInput() || r.EndedBy != EndedByDeadline {
			add("hit-ratio", r.BlockCache.HitRatio)
			add("token-hit-ratio", r.BlockCache.TokenHitRatio)
		}
	case r.Prompt != nil:
		add("hit-ratio", r.Prompt.HitRatio)
	}
}

// storageLevel names the tier whose numbers are on the line: the storage tier, and of a benchmark
// without requests, which measures one tier, whichever that is.
func (r *Result) storageLevel() string {
	if len(r.Tiers) == 1 && r.CompletionUnit == UnitOperation {
		return r.Tiers[0].Level
	}
	return "storage"
}

// StorageTraffic returns the two directions of the tier on the line, empty where there is none.
func (r *Result) StorageTraffic() (read, write TierTraffic) {
	for _, t := range r.Tiers {
		if t.Level == r.storageLevel() {
			return t.Read, t.Write
		}
	}
	return TierTraffic{}, TierTraffic{}
}

// StorageCapacity is how many bytes the tier on the line may hold, 0 where there is none or it has
// no limit.
func (r *Result) StorageCapacity() int64 {
	for _, t := range r.Tiers {
		if t.Level == r.storageLevel() {
			return units.OrZero(t.CapacityBytes)
		}
	}
	return 0
}

// PartOfInput says whether the window ended before the recorded input was replayed once.
func (r *Result) PartOfInput() bool {
	return r.Input != nil && r.Input.Cycles == 0 && r.EndedBy != EndedByInput
}

// number is nil where n is unknown.
func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// Completions counts in the unit of the benchmark.
func (r *Result) Completions() int64 {
	switch {
	case r.Removal != nil:
		return r.Removal.Files
	case r.CompletionUnit == UnitOperation:
		return r.Requests.Operations
	}
	return r.Requests.Completed
}
