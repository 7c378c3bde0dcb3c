package result

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"

	"kvbench/kvbench/units"
)

// LineUnit is the unit of a value on benchmark lines.
type LineUnit struct {
	Name   string
	Better string // higher or lower, for Unit lines; empty: neither
	Title  string // for people
	Doc    string // Markdown; empty: the text of the previous unit applies
}

//go:embed lines.txt
var linesText string

// Lines are the units of benchmark lines in the order of lines.txt, which describes them. A number
// field of a result with the tag line:"UNIT" is on the benchmark line.
var Lines = func() (list []LineUnit) {
	for row := range strings.Lines(linesText) {
		if row = strings.TrimSpace(row); row != "" && row[0] != '#' {
			c := append(strings.SplitN(row, " | ", 4), "")
			list = append(list, LineUnit{Name: c[0], Better: strings.Trim(c[1], "-"),
				Title: c[2], Doc: c[3]})
		}
	}
	return list
}()

// Directed returns the units of Lines with a direction. Benchmark text has a Unit line for each.
func Directed() (list []LineUnit) {
	for _, u := range Lines {
		if u.Better != "" {
			list = append(list, u)
		}
	}
	return list
}

// tagged calls f for each number of a structure whose field has the tag line. It skips nil sections.
func tagged(of reflect.Value, f func(unit string, v reflect.Value)) {
	for field, v := range of.Fields() {
		v = reflect.Indirect(v)
		if unit := field.Tag.Get("line"); unit != "" && v.IsValid() {
			f(unit, v)
		} else if v.Kind() == reflect.Struct {
			tagged(v, f)
		}
	}
}

// Metric is one value of the benchmark line.
type Metric struct {
	Unit  string
	Value float64
}

// Metrics returns the known values of the benchmark line. Sizes are in bytes and times in
// nanoseconds, because benchstat scales these units. A percentile with too few samples is unknown.
// A failed trial has the values that are known.
func (r *Result) Metrics() []Metric {
	var out []Metric
	add := func(unit string, v *float64) {
		if v != nil && units.Finite(*v) != nil {
			out = append(out, Metric{unit, *v})
		}
	}
	if c := r.Checkpoint; c != nil {
		// Use the rates of the rules, because the window has pauses.
		c.metrics(add)
		r = &Result{CompletionUnit: UnitOperation, Clients: r.Clients,
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
	// Leave out the rate of a direction without traffic: it was not measured.
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
	// The latency of one request to the tier, as in other benchmarks.
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
	if p := r.PlainIO; p != nil && p.Knee != nil && p.Knee.Known() { // unknown otherwise
		add("knee-bytes", new(float64(p.Knee.Bytes())))
	}
	r.Clients.metrics(add)
	tagged(reflect.ValueOf(*r), func(unit string, v reflect.Value) {
		value, _, _ := units.Float(v.Interface())
		add(unit, &value)
	})
	return out
}

// countedNS returns the window in ns. For several clients it returns the mean window, because
// windows that end after a number of operations differ.
func (r *Result) countedNS() int64 {
	if r.Clients != nil {
		return r.Clients.MeanWindowNS
	}
	return r.WindowNS
}

// MeasuredNS returns the part of the window in ns that the counters of process and device have: the time of
// the checkpoints, without the pauses between them, else the window.
func (r *Result) MeasuredNS() (ns int64) {
	c := r.Checkpoint
	if c == nil {
		return r.WindowNS
	}
	for _, run := range slices.Concat(c.Writes, c.Reads) {
		ns += run.DurationNS
	}
	return ns
}

// FoundTokensPerSecond returns the prompt tokens per second that the cache had, so that no prefill
// computes them: tokens of found blocks ÷ window. It returns nil if no blocks were requested.
func (r *Result) FoundTokensPerSecond() *float64 {
	if r.BlockCache == nil || r.BlockCache.Tokens == 0 {
		return nil
	}
	return units.Ratio(float64(r.BlockCache.HitTokens), float64(r.countedNS())/1e9)
}

// hitRatios adds the hit ratios: of blocks for a block trace, else of prompt tokens.
func (r *Result) hitRatios(add func(unit string, v *float64)) {
	switch {
	case r.BlockCache != nil:
		// If the deadline cuts the trace, the replayed part depends on the drive, so its hit ratios
		// are not comparable.
		if !r.PartOfInput() || r.EndedBy != EndedByDeadline {
			add("hit-ratio", r.BlockCache.HitRatio)
			add("token-hit-ratio", r.BlockCache.TokenHitRatio)
		}
	case r.Prompt != nil:
		add("hit-ratio", r.Prompt.HitRatio)
	}
}

// storageLevel returns the level of the tier whose numbers are on the benchmark line: the storage
// tier, or the only tier of a benchmark without requests.
func (r *Result) storageLevel() string {
	if len(r.Tiers) == 1 && r.CompletionUnit == UnitOperation {
		return r.Tiers[0].Level
	}
	return "storage"
}

// Tier returns the tier of a level, zero if there is no such tier.
func (r *Result) Tier(level string) Tier {
	for _, t := range r.Tiers {
		if t.Level == level {
			return t
		}
	}
	return Tier{}
}

// ShortTier returns the tier for whose capacity the workers waited the longest, and the flag that sets its
// capacity. Without such waits it is the lowest tier. r must have a tier.
func (r *Result) ShortTier() (t Tier, flag string) {
	t = r.Tiers[len(r.Tiers)-1]
	for _, other := range r.Tiers {
		if other.RoomNS > t.RoomNS {
			t = other
		}
	}
	if t.Level == "storage" {
		return t, "-storage-capacity-gb"
	}
	return t, "-" + t.Level + "-mem-gb"
}

// StorageTraffic returns both directions of the tier on the benchmark line, zero if there is no
// such tier.
func (r *Result) StorageTraffic() (read, write TierTraffic) {
	t := r.Tier(r.storageLevel())
	return t.Read, t.Write
}

// StorageCapacity returns the capacity in bytes of the tier on the benchmark line, 0 if there is no
// such tier or it has no limit.
func (r *Result) StorageCapacity() int64 {
	return units.OrZero(r.Tier(r.storageLevel()).CapacityBytes)
}

// PartOfInput reports whether the window ended before the whole recorded input was replayed once.
func (r *Result) PartOfInput() bool {
	return r.Input != nil && r.Input.Cycles == 0 && r.EndedBy != EndedByInput
}

// number converts n to float64. It returns nil for nil.
func number(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return new(float64(*n))
}

// Completions returns the number of completed requests, operations or removed files.
func (r *Result) Completions() int64 {
	switch {
	case r.Removal != nil:
		return r.Removal.Files
	case r.CompletionUnit == UnitOperation:
		return r.Requests.Operations
	}
	return r.Requests.Completed
}
