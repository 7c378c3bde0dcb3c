package result

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"kvbench/kvbench/units"
)

// Python is a result with the keys of the Python benchmark: a JSON object. [ParsePython] reads one,
// Result.Python makes one.
type Python map[string]any

// ParsePython reads a result file of the Python benchmark. It refuses a file in which a key that Result.Python
// writes has a value of another kind.
func ParsePython(data []byte) (p Python, err error) {
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	return p, sameKinds("", (&Result{}).Python(), p)
}

// sameKinds returns an error if a number or an object of want is something else in have. A missing key and null
// are no error. path is the place of both, for the error.
func sameKinds(path string, want, have map[string]any) error {
	for key, w := range want {
		h, at := have[key], path+key
		if h == nil {
			continue
		}
		switch w := w.(type) {
		case int, int64, float64:
			if _, ok := h.(float64); !ok {
				return fmt.Errorf("%s: want a number, have %v", at, h)
			}
		case map[string]any:
			inner, ok := h.(map[string]any)
			if !ok {
				return fmt.Errorf("%s: want an object, have %v", at, h)
			}
			if err := sameKinds(at+".", w, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// Number returns the number at a dotted path of keys, 0 if there is none.
func (p Python) Number(path string) float64 {
	object, key := below(p, path, false)
	return float(object[key])
}

// float returns a number of an object, 0 for other values.
func float(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	case int:
		return float64(n)
	}
	return 0
}

// SumPython adds the counts and rates of a trial's ranks. Percentiles, classes and autoscalers
// cannot be added.
func SumPython(ranks []Python) Python {
	sum, elapsed := (&Result{}).Python(), 0.0
	for _, r := range ranks {
		addNumbers(sum, r)
		elapsed = max(elapsed, r.Number("summary.elapsed_time"))
	}
	summary := sum["summary"].(map[string]any)
	summary["elapsed_time"], summary["qos_metrics"] = elapsed, nil
	turns, cache := summary["multi_turn_stats"].(map[string]any), summary["cache_stats"].(map[string]any)
	turns["hit_rate"] = hitRate(turns)
	cache["cache_hit_rate"] = hitRate(cache)
	cache["read_write_ratio"] = float(cache["total_read_bytes"]) /
		max(float(cache["total_write_bytes"]), 1)
	cache["storage_health"] = storageHealth(cache, "", nil)
	return sum
}

// addNumbers adds the numbers of an object to those of sum, key by key.
func addNumbers(sum, object map[string]any) {
	for key, v := range sum {
		switch v := v.(type) {
		case int, int64, float64:
			sum[key] = float(v) + float(object[key])
		case map[string]any:
			inner, _ := object[key].(map[string]any)
			addNumbers(v, inner)
		}
	}
}

// hitRate returns the share of hits, 0 without lookups.
func hitRate(counts map[string]any) float64 {
	hits := float(counts["cache_hits"])
	return units.OrZero(units.Ratio(hits, hits+float(counts["cache_misses"])))
}

// EncodePython returns the result's file with the keys of the Python benchmark before its own keys.
// The spreadsheet and the aggregation of the Python benchmark can read it.
func (r *Result) EncodePython() ([]byte, error) {
	keys, err := json.MarshalIndent(r.Python(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	own, err := r.Encode()
	return append(append(keys[:len(keys)-2], ','), own[1:]...), err
}

// Python returns the result with the keys of the Python benchmark. Where definitions differ, it
// uses the definitions of the Python benchmark:
//
//   - re-reads and reads of what the request wrote itself count as hits, so that the hit rate is
//     above that of Lookups;
//   - percentiles are given whatever the sample count, and interpolated as np.percentile does: see
//     Histogram.InterpolatedMS;
//   - "offloads" are entries that came into a tier, whether written or demoted;
//   - totals and "iops" are of requests' operations as a whole: demotions and what the window's end
//     cut off are in the bytes of the tiers alone; "iops" are counts and no rates;
//   - a number without data is 0, because that benchmark's aggregation cannot add null;
//   - sizes are GiB and rates GiB/s, although keys end in _gb and _gbps;
//   - latencies are milliseconds, and of the storage tier also of device and host;
//   - every request that began in the window looked for a prefix, and none for a common phrase.
//
// It leaves out histograms that cannot be decoded.
func (r *Result) Python() Python {
	hists := Histograms{}
	for name, data := range r.Histograms {
		if strings.Contains(pythonHistograms, " "+name+" ") ||
			strings.HasPrefix(name, "request_end_to_end_") {
			hists[name], _ = data.Decode()
		}
	}
	n, history := &r.Requests, r.Lookups.ByKind["multi_turn"]
	storage := time.Duration(n.StorageLatencyNS).Seconds()
	cache := r.cacheStats(hists)
	var prefixHits, prefixMisses, prefixBytes int64
	if r.CompletionUnit != UnitOperation {
		prefixHits, prefixBytes = r.Lookups.ByKind["system"].Hits, r.Moved.PrefixBytes
		prefixMisses = max(r.Load["total"].Started-prefixHits, 0)
	}
	classes := map[string]any{}
	for _, class := range Classes {
		classes[class] = qosStat(hists["request_end_to_end_"+class], r.Load[class])
	}
	turns := map[string]any{"cache_hits": history.Hits, "cache_misses": history.Misses}
	turns["hit_rate"] = hitRate(turns)
	events, scaled := r.scaleEvents()
	return Python{
		"requests_completed":       n.Completed,
		"total_tokens_generated":   n.GeneratedTokens,
		"total_storage_io_latency": storage, // summed over parallel requests
		"total_generation_latency": time.Duration(n.GenerationLatencyNS).Seconds(),
		"multi_turn_cache_hits":    history.Hits,
		"multi_turn_cache_misses":  history.Misses,
		"validation":               r.pythonValidation(float(cache["cache_hit_rate"])),
		"summary": map[string]any{
			"total_requests":                    n.Completed,
			"total_tokens":                      n.GeneratedTokens,
			"elapsed_time":                      time.Duration(r.WindowNS).Seconds(),
			"avg_throughput_tokens_per_sec":     units.OrZero(n.TokensPerSecond),
			"total_storage_io_time":             storage,
			"storage_throughput_tokens_per_sec": units.OrZero(n.StorageTokensPerSecond),
			"requests_per_second":               units.OrZero(n.RequestsPerSecond),
			"end_to_end_latency_ms":             latencyMS(hists["request_end_to_end"]),
			"storage_io_latency_ms":             latencyMS(hists["request_storage"]),
			"generation_latency_ms":             latencyMS(hists["request_generation"]),
			"cache_stats":                       cache,
			"qos_metrics":                       classes,
			"prefix_cache_stats": map[string]any{
				"prefix_hits":         prefixHits,
				"prefix_misses":       prefixMisses,
				"system_prompt_reuse": prefixHits,
				"common_phrase_reuse": 0,
				"bytes_saved":         prefixBytes,
			},
			"autoscaling_stats":   events,
			"autoscaling_summary": scaled,
			"multi_turn_stats":    turns,
		},
	}
}

// cacheStats returns the counts of the cache. Numbers of a tier that does not exist are 0.
func (r *Result) cacheStats(hists Histograms) map[string]any {
	l, m := &r.Lookups, &r.Moved
	all := map[string]any{
		"cache_hits":         l.Hits + m.OwnFound,
		"cache_misses":       l.Misses + m.OwnGone,
		"prefill_writes":     m.PrefillWrites,
		"decode_reads":       m.DecodeReads,
		"system_prompt_hits": l.ByKind["system"].Hits,
		"common_phrase_hits": 0,
		"user_cache_hits":    l.ByKind["user"].Hits + m.OwnFound,
		"multi_turn_hits":    l.ByKind["multi_turn"].Hits,
		"total_read_bytes":   m.ReadBytes,
		"total_write_bytes":  m.WriteBytes,
		"total_read_gb":      gib(m.ReadBytes),
		"total_write_gb":     gib(m.WriteBytes),
		"read_write_ratio":   float64(m.ReadBytes) / float64(max(m.WriteBytes, 1)),
		"read_iops":          m.ReadOperations,
		"write_iops":         m.WriteOperations,
	}
	all["cache_hit_rate"] = hitRate(all)
	for _, level := range []string{"gpu", "cpu", "storage"} {
		t := r.Tier(level)
		all[level+"_entries"] = t.Entries
		all["tier_"+level+"_kv_bytes_written_gb"] = gib(t.Write.Bytes)
		all["tier_"+level+"_kv_bytes_read_gb"] = gib(t.Read.Bytes)
		all["tier_"+level+"_read_bandwidth_gbps"] = gib(units.OrZero(t.Read.BytesPerSecond))
		all["tier_"+level+"_write_bandwidth_gbps"] = gib(units.OrZero(t.Write.BytesPerSecond))
		switch level {
		case "gpu":
			all["gpu_memory_used_gb"] = gib(t.UsedBytes)
		case "cpu":
			all["cpu_memory_used_gb"] = gib(t.UsedBytes)
			all["offloads_cpu"] = t.Write.Operations + t.DemotedIn.Entries
		case "storage":
			all["offloads_storage"] = t.Write.Operations + t.DemotedIn.Entries
			all["storage_tokens_processed"] = units.OrZero(units.Ratio(t.Read.Bytes+t.Write.Bytes,
				r.Model.RankBytesPerToken*max(1, int64(r.Model.StoringRanks))))
		}
	}
	// Keys without samples are absent.
	for _, name := range strings.Fields(pythonHistograms)[:10] {
		for p, share := range pythonPercentiles {
			if v := hists[name].InterpolatedMS(share); v != nil {
				all[name+"_"+p+"_ms"] = *v
			}
		}
	}
	all["storage_health"] = storageHealth(all, r.Parameter("performance-profile"), hists)
	return all
}

// pythonHistograms are the histograms whose percentiles the Python benchmark has, the first ten in
// its cache_stats.
const pythonHistograms = " gpu_read gpu_write cpu_read cpu_write storage_read storage_write " +
	"storage_read_device storage_write_device storage_read_host storage_write_host " +
	"request_end_to_end request_storage request_generation "

var pythonPercentiles = map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999,
	"p9999": 0.9999}

func gib[N int64 | float64](bytes N) float64 { return float64(bytes) / float64(units.GiB) }

// storageHealth returns the Python benchmark's assessment of the storage, with its names and
// targets. It ignores entry sizes. A criterion without data is left out. Without criteria the
// assessment passes. The throughput profile has only bandwidth criteria: bytes moved in each
// direction that the load has.
func storageHealth(cache map[string]any, profile any, hists Histograms) map[string]any {
	criteria, passed, status := []any{}, 0, "PASS"
	add := func(name string, target, actual any, unit string, ok bool) {
		if ok {
			passed++
		} else {
			status = "FAIL"
		}
		criteria = append(criteria, map[string]any{"name": name, "target": target,
			"actual": actual, "unit": unit, "passed": ok})
	}
	below := func(name string, target float64, p95 any) {
		if v, ok := p95.(float64); ok {
			add(name, target, v, "ms", v < target)
		}
	}
	if profile == "throughput" {
		moved := func(name, way, other string) {
			rate := float(cache["tier_storage_"+way+"_bandwidth_gbps"])
			if rate > 0 || float(cache["tier_storage_"+other+"_bandwidth_gbps"]) == 0 {
				add(name, ">0", fmt.Sprintf("%.2f", rate), "GiB/s", rate > 0)
			}
		}
		moved("Storage KV Read Bandwidth", "read", "write")
		moved("Storage KV Write Bandwidth", "write", "read")
	} else {
		below("Storage Tier Write Device P95 < 500ms", 500, cache["storage_write_device_p95_ms"])
		below("Storage Tier Read Device P95 < 200ms", 200, cache["storage_read_device_p95_ms"])
		cpu := NewHistogram(units.Nanoseconds)
		cpu.Merge(hists["cpu_read"])
		cpu.Merge(hists["cpu_write"])
		below("CPU RAM P95 < 150ms", 150, latencyMS(cpu)["p95"])
		rate := float(cache["cache_hit_rate"])
		if float(cache["cache_hits"])+float(cache["cache_misses"]) > 0 {
			add("Cache Hit Rate > 30%", 0.3, rate, "ratio", rate > 0.3)
		}
	}
	return map[string]any{"overall_status": status, "criteria": criteria, "passed_count": passed,
		"total_count": len(criteria)}
}

// scaleEvents returns the rounds of the autoscaler other than hold, and their summary. The summary
// is nil without an autoscaler. Only capacity mode has peaks.
func (r *Result) scaleEvents() (events []any, summary map[string]any) {
	events = []any{}
	a := r.Autoscaler
	if a == nil {
		return events, nil
	}
	start, _ := time.Parse(time.RFC3339Nano, r.StartTime) // zero if unknown
	for _, round := range a.History {
		if round.Action == ScaleHold {
			continue
		}
		event := map[string]any{
			"timestamp": start.Add(time.Duration(round.AtS * 1e9)).Format(time.RFC3339Nano),
			"mode":      a.Mode,
			"action":    round.Action,
			"users":     round.NextUsers,
			// of all operations on the storage tier so far, of all sizes
			"saturation_level":          units.OrZero(round.Saturation),
			"read_latency_p95_ms":       units.OrZero(round.ReadSoFarMS),
			"write_latency_p95_ms":      units.OrZero(round.WriteSoFarMS),
			"throughput_tokens_per_sec": round.TokensPerSecond,
		}
		if round.Action == ScaleStop {
			event["peak_throughput_tokens_per_sec"] = a.SustainedRate
		}
		events = append(events, event)
	}
	summary = map[string]any{"initial_users": a.InitialUsers, "final_users": a.FinalUsers,
		"total_scale_events": len(events)}
	if a.Mode == AutoscaleCapacity {
		summary["peak_user_count"] = a.SustainedUsers
		summary["peak_throughput_tokens_per_sec"] = a.SustainedRate
	}
	return events, summary
}

// pythonValidation returns the comparison with the recorded hit rate, nil without one. If the
// recorded hit rate is 0, the error is absolute.
func (r *Result) pythonValidation(hitRate float64) map[string]any {
	rec := r.Recording
	if rec == nil || rec.HitRate.Recorded == nil {
		return nil
	}
	percent := 100 * math.Abs(hitRate-*rec.HitRate.Recorded)
	if *rec.HitRate.Recorded > 0 {
		percent /= *rec.HitRate.Recorded
	}
	return map[string]any{
		"passed":        percent <= 5,
		"avg_error_pct": percent,
		"comparison": map[string]any{"cache_hit_rate": map[string]any{"benchmark": hitRate,
			"trace": *rec.HitRate.Recorded, "error_pct": percent, "within_5pct": percent <= 5}},
		"trace_stats": rec.Stats,
	}
}

// slaMet is the compliance from which a class meets its target, which is a p95.
const slaMet = 0.95

// qosStat compares a class with its target. h is the histogram of its end-to-end latencies. A class
// of which no request completed has an SLA only if requests missed their target unfinished: queued
// ones, and ones in flight for longer than the target.
func qosStat(h *Histogram, o ClassOutcome) map[string]any {
	if o.Completed+o.Unmet() == 0 {
		return map[string]any{"no_data": true}
	}
	stat := map[string]any{"total_requests": o.Completed, "sla": map[string]any{
		"target_p95_ms": Milliseconds(o.TargetP95NS),
		"actual_p95_ms": h.InterpolatedMS(0.95),
		"compliance":    o.Compliance,
		"met":           units.OrZero(o.Compliance) >= slaMet,
	}}
	if o.Completed == 0 {
		stat["no_data"] = true
	}
	if h.Count() > 0 {
		all := latencyMS(h)
		stat["latency_ms"] = map[string]any{"mean": all["mean"], "p50": all["p50"],
			"p95": all["p95"], "p99": all["p99"], "max": Milliseconds(h.n.Max)}
	}
	return stat
}

// latencyMS returns the mean and percentiles of h in ms, null without values. h may be nil.
func latencyMS(h *Histogram) map[string]any {
	all := map[string]any{"mean": nil, "p50": nil, "p95": nil, "p99": nil, "p999": nil, "p9999": nil}
	if mean, ok := h.Mean(); ok {
		all["mean"] = mean / float64(time.Millisecond)
		for key, p := range pythonPercentiles {
			all[key] = *h.InterpolatedMS(p)
		}
	}
	return all
}
