package result

import "kvbench/kvbench/units"

// Metric is one value of the benchmark line.
type Metric struct {
	Unit  string
	Value float64
}

// Metrics returns the values of the benchmark line in their documented order, without those that
// are unknown. Bytes and nanoseconds throughout, because benchstat rescales those. A percentile
// with too few samples behind it is unknown, here as in the summary: benchstat and the gate take
// what is on the line for a number. A failed trial gives what it has.
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
		add("cpu-ns/B", r.Harness.CPUNSPerByte)
		add("peak-RSS-bytes", number(r.Harness.PeakRSSBytes))
		return out
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
	if s := r.Autoscaler; s != nil {
		add("sustained-users", new(float64(s.SustainedUsers)))
		add("peak-B/s", new(s.PeakRate))
	}
	if p := r.PlainIO; p != nil {
		add("io/s", p.RequestsPerSecond)
		add("cpu-ns/io", p.CPUNSPerRequest)
		if p.Knee != nil && p.Knee.Known() { // else it would be compared with knees
			add("knee-bytes", new(float64(p.Knee.Bytes())))
		}
	}
	add("cpu-ns/B", r.Harness.CPUNSPerByte)
	add("peak-RSS-bytes", number(r.Harness.PeakRSSBytes))
	add("device-read-ratio", r.DeviceWitness.ReadRatio)
	add("ceiling-ratio", r.CeilingRatio)
	r.Clients.metrics(add)
	if rm := r.Removal; rm != nil {
		add("removals/s", rm.FilesPerSecond)
		add("freed-B/s", rm.BytesPerSecond)
	}
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
// they were found: tokens of the blocks found ÷ the window. Nil where no blocks were asked for. A
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
