package result

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
)

// EncodePython returns the result's file with the keys of the Python benchmark before its own keys.
// The spreadsheet and the aggregation of the Python benchmark can read it.
func (r *Result) EncodePython() ([]byte, error) {
	type keys = python.Result
	data, err := json.MarshalIndent(struct {
		*keys
		*Result
	}{r.Python(), r}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	return append(data, '\n'), nil
}

// Python returns the result with the keys of the Python benchmark. Where definitions differ, it
// uses the definitions of the Python benchmark:
//
//   - re-reads and reads of what the request wrote itself count as hits, so that the hit rate is
//     above that of Lookups;
//   - percentiles are given whatever the sample count;
//   - "offloads" are entries that came into a tier, whether written or demoted;
//   - totals and "iops" are of requests' operations as a whole: demotions and what the window's end
//     cut off are in the bytes of the tiers alone; "iops" are counts and no rates;
//   - 0 stands where there is nothing, null nowhere;
//   - latencies are milliseconds, and of the storage tier also of device and host;
//   - every request that began in the window looked for a prefix.
//
// It leaves out histograms that cannot be decoded.
func (r *Result) Python() *python.Result {
	hists := Histograms{}
	for name, data := range r.Histograms {
		if slices.Contains(pythonHistograms, name) || strings.HasPrefix(name, "request_end_to_end_") {
			hists[name], _ = data.Decode()
		}
	}
	n, m, history := &r.Requests, &r.Moved, r.Lookups.ByKind["multi_turn"]
	p := &python.Result{RequestsCompleted: n.Completed, TotalTokensGenerated: n.GeneratedTokens,
		TotalStorageIOLatency:  time.Duration(n.StorageLatencyNS).Seconds(),
		TotalGenerationLatency: time.Duration(n.GenerationLatencyNS).Seconds(),
		MultiTurnCacheHits:     history.Hits, MultiTurnCacheMisses: history.Misses}
	s := &p.Summary
	*s = python.Summary{TotalRequests: n.Completed, TotalTokens: n.GeneratedTokens,
		ElapsedTime:        time.Duration(r.WindowNS).Seconds(),
		TotalStorageIOTime: p.TotalStorageIOLatency,
		AvgThroughput:      units.OrZero(n.TokensPerSecond),
		StorageThroughput:  units.OrZero(n.StorageTokensPerSecond),
		RequestsPerSecond:  units.OrZero(n.RequestsPerSecond),
		EndToEndLatency:    newLatencyMS(hists["request_end_to_end"]),
		StorageIOLatency:   newLatencyMS(hists["request_storage"]),
		GenerationLatency:  newLatencyMS(hists["request_generation"]),
		CacheStats:         r.cacheStats(hists), QoSMetrics: map[string]python.QoSStat{},
		MultiTurnStats: python.MultiTurnStats{CacheHits: history.Hits, CacheMisses: history.Misses}}
	s.MultiTurnStats.Derive()
	if r.CompletionUnit != UnitOperation {
		hits := r.Lookups.ByKind["system"].Hits
		s.PrefixCacheStats = python.PrefixCacheStats{PrefixHits: hits, SystemPromptReuse: hits,
			PrefixMisses: max(r.Load["total"].Started-hits, 0), BytesSaved: m.PrefixBytes}
	}
	for _, class := range Classes {
		s.QoSMetrics[class] = qosStat(hists["request_end_to_end_"+class], r.Load[class])
	}
	s.AutoscalingStats, s.AutoscalingSummary = scaleEvents(r)
	p.Validation = validation(r, s.CacheStats.CacheHitRate)
	return p
}

// cacheStats returns the counts by the Python benchmark's definitions. Sizes are in GiB and rates
// in GiB/s, although the keys end in _gb and _gbps.
func (r *Result) cacheStats(hists Histograms) python.CacheStats {
	l, m := &r.Lookups, &r.Moved
	s := python.CacheStats{
		CacheHits: l.Hits + m.OwnFound, CacheMisses: l.Misses + m.OwnGone,
		PrefillWrites: m.PrefillWrites, DecodeReads: m.DecodeReads,
		SystemPromptHits: l.ByKind["system"].Hits,
		UserCacheHits:    l.ByKind["user"].Hits + m.OwnFound,
		MultiTurnHits:    l.ByKind["multi_turn"].Hits,
		TotalReadBytes:   m.ReadBytes, TotalWriteBytes: m.WriteBytes, ReadIOPS: m.ReadOperations,
		WriteIOPS: m.WriteOperations, TotalReadGiB: gib(m.ReadBytes),
		TotalWriteGiB: gib(m.WriteBytes), LatencyMS: hists.pythonLatencies(),
	}
	keys := make(map[string]any)
	for _, t := range r.Tiers {
		maps.Copy(keys, map[string]any{
			t.Level + "_entries":                        t.Entries,
			t.Level + "_memory_used_gb":                 gib(t.UsedBytes),
			"offloads_" + t.Level:                       t.Write.Operations + t.DemotedIn.Entries,
			"tier_" + t.Level + "_kv_bytes_written_gb":  gib(t.Write.Bytes),
			"tier_" + t.Level + "_kv_bytes_read_gb":     gib(t.Read.Bytes),
			"tier_" + t.Level + "_read_bandwidth_gbps":  gib(units.OrZero(t.Read.BytesPerSecond)),
			"tier_" + t.Level + "_write_bandwidth_gbps": gib(units.OrZero(t.Write.BytesPerSecond)),
		})
		if t.Level == "storage" {
			s.StorageTokensProcessed = units.OrZero(units.Ratio(t.Read.Bytes+t.Write.Bytes,
				r.Model.RankBytesPerToken*max(1, int64(r.Model.StoringRanks))))
		}
	}
	// Keys that are no field of CacheStats, such as the offloads to the fastest tier, are left out.
	for field, at := range reflect.ValueOf(&s).Elem().Fields() {
		if v, ok := keys[field.Tag.Get("json")]; ok {
			at.Set(reflect.ValueOf(v))
		}
	}
	s.Derive()
	s.StorageHealth = python.NewStorageHealth(&s,
		fmt.Sprint(r.Parameter("performance-profile")), hists.cpuP95MS())
	return s
}

func gib[N int64 | float64](bytes N) float64 { return float64(bytes) / float64(units.GiB) }

// pythonHistograms are the histograms whose percentiles the Python benchmark has.
var pythonHistograms = strings.Fields("gpu_read gpu_write cpu_read cpu_write storage_read " +
	"storage_write storage_read_device storage_write_device storage_read_host storage_write_host " +
	"request_end_to_end request_storage request_generation")

// scaleEvents returns the rounds of the autoscaler other than hold, in the form of the Python
// benchmark, and their summary. The summary is nil without an autoscaler.
func scaleEvents(r *Result) ([]python.ScaleEvent, *python.ScaleSummary) {
	events, a := []python.ScaleEvent{}, r.Autoscaler
	if a == nil {
		return events, nil
	}
	sum := &python.ScaleSummary{InitialUsers: a.InitialUsers, FinalUsers: a.FinalUsers}
	if a.Mode == AutoscaleCapacity {
		sum.PeakUsers, sum.PeakThroughput = &a.SustainedUsers, &a.SustainedRate
	}
	// The start of the window, zero if unknown.
	start, _ := time.Parse(time.RFC3339Nano, r.StartTime)
	for _, round := range a.History {
		if round.Action == ScaleHold {
			continue
		}
		e := python.ScaleEvent{
			Timestamp: start.Add(time.Duration(round.AtS * 1e9)).Format(time.RFC3339Nano),
			Mode:      a.Mode, Action: round.Action, Users: round.NextUsers,
			Saturation: units.OrZero(round.Saturation),
			ReadP95:    units.OrZero(round.ReadSoFarMS),
			WriteP95:   units.OrZero(round.WriteSoFarMS), Throughput: round.TokensPerSecond,
		}
		if e.Action == ScaleStop {
			e.PeakThroughput = &a.SustainedRate
		}
		events = append(events, e)
	}
	sum.Events = len(events)
	return events, sum
}

// validation returns the Python benchmark's comparison with the recorded hit rate. hitRate counts
// re-reads as hits. It returns nil without a recorded hit rate.
func validation(r *Result, hitRate float64) *python.Validation {
	rec := r.Recording
	if rec == nil || rec.HitRate.Recorded == nil {
		return nil
	}
	c := python.ValidationCheck{Benchmark: hitRate,
		Trace: *rec.HitRate.Recorded}
	// If the recorded hit rate is 0, the error is absolute.
	c.ErrorPct = 100 * math.Abs(c.Benchmark-c.Trace)
	if c.Trace > 0 {
		c.ErrorPct /= c.Trace
	}
	c.Within = c.ErrorPct <= 5
	return &python.Validation{Passed: c.Within, AvgError: c.ErrorPct,
		Comparison: python.ValidationChecks{CacheHitRate: c}, TraceStats: rec.Stats}
}

// slaMet is the compliance from which a class meets its target, which is a p95.
const slaMet = 0.95

// qosStat compares a class with its target. h is the histogram of its end-to-end latencies.
func qosStat(h *Histogram, o ClassOutcome) python.QoSStat {
	n := o.Completed
	if n+o.Unmet() == 0 {
		return python.QoSStat{NoData: true}
	}
	sla := &python.SLA{TargetP95MS: Milliseconds(o.TargetP95NS), ActualP95MS: h.PercentileMS(0.95),
		Compliance: o.Compliance, Met: units.OrZero(o.Compliance) >= slaMet}
	stat := python.QoSStat{NoData: n == 0, TotalRequests: &n, SLA: sla}
	if h.Count() > 0 {
		all := newLatencyMS(h)
		stat.Latency = &python.QoSLatencyMS{Mean: all.Mean, P50: all.P50, P95: all.P95,
			P99: all.P99, Max: new(Milliseconds(h.n.Max))}
	}
	return stat
}

// newLatencyMS returns the mean and percentiles of h in ms. h may be nil.
func newLatencyMS(h *Histogram) python.LatencyMS {
	var l python.LatencyMS
	if mean, ok := h.Mean(); ok {
		l.Mean = new(mean / float64(time.Millisecond))
	}
	l.P50, l.P95, l.P99 = h.PercentileMS(0.5), h.PercentileMS(0.95), h.PercentileMS(0.99)
	l.P999, l.P9999 = h.PercentileMS(0.999), h.PercentileMS(0.9999)
	return l
}

// pythonLatencies returns the keys {level}_{op}_{p}_ms, and for the storage tier also
// {level}_{op}_{device,host}_{p}_ms, with their values. Keys without samples are absent.
func (hs Histograms) pythonLatencies() map[string]float64 {
	keys := make(map[string]float64)
	for _, name := range pythonHistograms[:10] {
		for p, share := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99,
			"p999": 0.999, "p9999": 0.9999} {
			if v := hs[name].PercentileMS(share); v != nil {
				keys[name+"_"+p+"_ms"] = *v
			}
		}
	}
	return keys
}

// cpuP95MS returns the p95 latency in ms of the cpu tier's reads and writes together, nil without
// samples.
func (hs Histograms) cpuP95MS() *float64 {
	all := NewHistogram(units.Nanoseconds)
	all.Merge(hs["cpu_read"])
	all.Merge(hs["cpu_write"])
	return all.PercentileMS(0.95)
}
