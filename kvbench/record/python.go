package record

import (
	"reflect"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// slaMet is the compliance from which a class meets its target: its p95 is what the target is of.
const slaMet = 0.95

// python fills the keys of the Python benchmark, so that its spreadsheet and its validation read
// our files unchanged. They keep its sense where ours differs:
//
//   - re-reads count as hits, so that the hit rate here is above that of Lookups;
//   - percentiles are given whatever the sample count;
//   - "offloads" are entries that came into a tier, whether written or demoted;
//   - "iops" are counts of operations and no rates, demotions among them;
//   - latencies are milliseconds, and of the storage tier also apart for device and host.
func (b *builder) python() {
	r, n, seconds := b.r, &b.n.Requests, b.window.Seconds()
	storage := time.Duration(n.StorageLatencyNS).Seconds()
	history, prefix := r.Lookups.ByKind["multi_turn"], r.Lookups.ByKind["system"]
	r.RequestsCompleted, r.TotalTokensGenerated = n.Completed, n.GeneratedTokens
	r.TotalStorageIOLatency = storage
	r.TotalGenerationLatency = time.Duration(n.GenerationLatencyNS).Seconds()
	r.MultiTurnCacheHits, r.MultiTurnCacheMisses = history.Hits, history.Misses
	s := &r.Summary // the engine has filled in the autoscaler's part
	s.TotalRequests, s.TotalTokens, s.ElapsedTime = n.Completed, n.GeneratedTokens, seconds
	s.TotalStorageIOTime = storage
	s.AvgThroughput = units.Ratio(n.GeneratedTokens, seconds)
	s.StorageThroughput = units.Ratio(n.GeneratedTokens, storage)
	s.RequestsPerSecond = units.Ratio(n.Completed, seconds)
	s.EndToEndLatency = result.NewLatencyMS(b.hists["request_end_to_end"])
	s.StorageIOLatency = result.NewLatencyMS(b.hists["request_storage"])
	s.GenerationLatency = result.NewLatencyMS(b.hists["request_generation"])
	s.CacheStats = b.cacheStats()
	prefixes := b.n.ByPurpose[workloads.ForPrefix]
	s.PrefixCacheStats = result.PrefixCacheStats{PrefixHits: prefix.Hits,
		PrefixMisses: prefix.Misses, SystemPromptReuse: prefix.Hits,
		BytesSaved: prefixes[tiers.Read].Bytes + prefixes[tiers.Write].Bytes}
	s.AutoscalingStats = append([]result.Round{}, s.AutoscalingStats...)
	s.MultiTurnStats = result.MultiTurnStats{CacheHits: history.Hits, CacheMisses: history.Misses,
		HitRate: history.HitRate}
	s.QoSMetrics = make(map[string]result.QoSStat)
	for c, target := range b.info.QoS {
		name := workloads.Class(c).String()
		s.QoSMetrics[name] = b.qos(name, int64(target.P95))
	}
}

// cacheStats counts as the Python benchmark does. Its rates are GiB, whatever their names say, and
// its "iops" are counts.
func (b *builder) cacheStats() result.CacheStats {
	lookups := b.r.Lookups
	rereads := b.n.ByPurpose[workloads.ForReread][tiers.Read].Operations
	s := result.CacheStats{
		CacheHits: lookups.Hits + rereads, CacheMisses: lookups.Misses,
		PrefillWrites:    b.n.ByPhase[tiers.Write][tiers.Prefill],
		DecodeReads:      b.n.ByPhase[tiers.Read][tiers.Decode],
		SystemPromptHits: lookups.ByKind["system"].Hits,
		UserCacheHits:    lookups.ByKind["user"].Hits + rereads,
		MultiTurnHits:    lookups.ByKind["multi_turn"].Hits,
		LatencyMS:        b.latencyKeys(),
	}
	keys, seconds := make(map[string]any), b.window.Seconds()
	for _, t := range b.r.Tiers {
		// A demotion is a read of the one level and a write to the other.
		reads := t.Read.Operations + t.DemotedOut.Entries
		writes := t.Write.Operations + t.DemotedIn.Entries
		read, written := gib(t.Read.Bytes), gib(t.Write.Bytes)
		s.TotalReadBytes += t.Read.Bytes
		s.TotalWriteBytes += t.Write.Bytes
		s.ReadIOPS += reads
		s.WriteIOPS += writes
		keys[t.Level+"_entries"] = &t.Entries
		keys[t.Level+"_memory_used_gb"] = new(gib(t.UsedBytes))
		keys["offloads_"+t.Level] = &writes
		keys["tier_"+t.Level+"_kv_bytes_written_gb"] = &written
		keys["tier_"+t.Level+"_kv_bytes_read_gb"] = &read
		keys["tier_"+t.Level+"_read_bandwidth_gbps"] = units.Ratio(read, seconds)
		keys["tier_"+t.Level+"_write_bandwidth_gbps"] = units.Ratio(written, seconds)
		if sizer := b.info.Sizer; t.Level == tiers.Storage.String() {
			s.StorageTokensProcessed = units.Ratio(
				(t.Read.Bytes+t.Write.Bytes)*max(1, sizer.Divisor), sizer.BytesPerToken)
		}
	}
	// The keys that the Python benchmark does not have, such as the offloads to the fastest tier,
	// are no fields and are left out.
	for field, at := range reflect.ValueOf(&s).Elem().Fields() {
		if v, ok := keys[field.Tag.Get("json")]; ok {
			at.Set(reflect.ValueOf(v))
		}
	}
	s.CacheHitRate = units.Ratio(s.CacheHits, s.CacheHits+s.CacheMisses)
	s.TotalReadGiB, s.TotalWriteGiB = gib(s.TotalReadBytes), gib(s.TotalWriteBytes)
	s.ReadWriteRatio = units.Ratio(s.TotalReadBytes, s.TotalWriteBytes)
	s.StorageHealth = result.NewStorageHealth(&s, b.info.Profile)
	return s
}

// latencyKeys are {level}_{op}_{p}_ms, and of the storage also {level}_{op}_{device,host}_{p}_ms,
// where there are samples.
func (b *builder) latencyKeys() map[string]float64 {
	keys := make(map[string]float64)
	for _, name := range strings.Fields("gpu_read gpu_write cpu_read cpu_write storage_read " +
		"storage_write storage_read_device storage_write_device storage_read_host " +
		"storage_write_host") {
		for p, share := range map[string]float64{"p50": 0.5, "p95": 0.95, "p99": 0.99,
			"p999": 0.999, "p9999": 0.9999} {
			if v := b.hists[name].PercentileMS(share); v != nil {
				keys[name+"_"+p+"_ms"] = *v
			}
		}
	}
	return keys
}

func gib(bytes int64) float64 { return float64(bytes) / float64(units.GiB) }

// qos judges a class by its target. Requests still queued at the deadline are violations.
func (b *builder) qos(class string, target int64) result.QoSStat {
	h, queued := b.hists["request_end_to_end_"+class], b.r.Load[class].Queued
	n := h.Count()
	if n+queued == 0 {
		return result.QoSStat{NoData: true}
	}
	sla := &result.SLA{
		TargetP95MS: result.Milliseconds(target), ActualP95MS: h.PercentileMS(0.95),
		Compliance: units.Ratio(h.AtMost(target), n+queued),
	}
	sla.Met = units.OrZero(sla.Compliance) >= slaMet
	stat := result.QoSStat{NoData: n == 0, TotalRequests: &n, SLA: sla}
	if n > 0 {
		all, most := result.NewLatencyMS(h), *b.r.Latency.Request.ByClass[class].Max
		stat.Latency = &result.QoSLatencyMS{Mean: all.Mean, P50: all.P50, P95: all.P95,
			P99: all.P99, Max: new(result.Milliseconds(most))}
	}
	return stat
}
