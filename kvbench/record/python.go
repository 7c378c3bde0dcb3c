package record

import (
	"maps"
	"reflect"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// python fills the keys of the Python benchmark, so that its spreadsheet, its aggregation and its
// validation read our files unchanged. They keep its sense where ours differs:
//
//   - re-reads and reads of what the request wrote itself count as hits, so that the hit rate here
//     is above that of Lookups;
//   - percentiles are given whatever the sample count;
//   - "offloads" are entries that came into a tier, whether written or demoted;
//   - totals and "iops" are of requests' operations as a whole: demotions and what the window's end
//     cut off are in the bytes of the tiers alone; "iops" are counts and no rates;
//   - 0 stands where there is nothing, null nowhere;
//   - latencies are milliseconds, and of the storage tier also apart for device and host.
func (b *builder) python() {
	r, n, seconds := b.r, &b.n.Requests, b.window.Seconds()
	storage := time.Duration(n.StorageLatencyNS).Seconds()
	history := r.Lookups.ByKind["multi_turn"]
	r.RequestsCompleted, r.TotalTokensGenerated = n.Completed, n.GeneratedTokens
	r.TotalStorageIOLatency = storage
	r.TotalGenerationLatency = time.Duration(n.GenerationLatencyNS).Seconds()
	r.MultiTurnCacheHits, r.MultiTurnCacheMisses = history.Hits, history.Misses
	s := &r.Summary
	s.TotalRequests, s.TotalTokens, s.ElapsedTime = n.Completed, n.GeneratedTokens, seconds
	s.TotalStorageIOTime = storage
	s.AvgThroughput = ratio(n.GeneratedTokens, seconds)
	s.StorageThroughput = ratio(n.GeneratedTokens, storage)
	s.RequestsPerSecond = ratio(n.Completed, seconds)
	s.CacheStats = b.cacheStats()
	s.PrefixCacheStats = b.prefixStats()
	s.MultiTurnStats = python.MultiTurnStats{CacheHits: history.Hits, CacheMisses: history.Misses}
	s.QoSMetrics = make(map[string]python.QoSStat)
	for c, target := range b.info.QoS {
		s.QoSMetrics[workloads.Class(c).String()] = python.QoSStat{
			SLA: &python.SLA{TargetP95MS: result.Milliseconds(int64(target.P95))}}
	}
	s.AutoscalingStats, s.AutoscalingSummary = result.NewScaleEvents(r)
}

// ratio is a ÷ b, and 0 where that is not a number: the Python benchmark divides so.
func ratio[A, B int64 | float64](a A, b B) float64 { return units.OrZero(units.Ratio(a, b)) }

// cacheStats counts as the Python benchmark does. Its rates are GiB, whatever their names say, and
// its "iops" are counts.
func (b *builder) cacheStats() python.CacheStats {
	lookups, own := b.r.Lookups, b.n.Lookups[workloads.ForPrefill]
	rereads := b.n.ByPurpose[workloads.ForReread][tiers.Read].Operations
	s := python.CacheStats{
		CacheHits:        lookups.Hits + own.Hits + rereads,
		CacheMisses:      lookups.Misses + own.Misses,
		PrefillWrites:    b.n.ByPhase[tiers.Write][tiers.Prefill],
		DecodeReads:      b.n.ByPhase[tiers.Read][tiers.Decode],
		SystemPromptHits: lookups.ByKind["system"].Hits,
		UserCacheHits:    lookups.ByKind["user"].Hits + own.Hits + rereads,
		MultiTurnHits:    lookups.ByKind["multi_turn"].Hits,
	}
	for _, n := range b.n.ByPurpose {
		s.TotalReadBytes += n[tiers.Read].Bytes
		s.TotalWriteBytes += n[tiers.Write].Bytes
		s.ReadIOPS += n[tiers.Read].Operations
		s.WriteIOPS += n[tiers.Write].Operations
	}
	keys, seconds := make(map[string]any), b.window.Seconds()
	for _, t := range b.r.Tiers {
		read, written := gib(t.Read.Bytes), gib(t.Write.Bytes)
		maps.Copy(keys, map[string]any{
			t.Level + "_entries":                        t.Entries,
			t.Level + "_memory_used_gb":                 gib(t.UsedBytes),
			"offloads_" + t.Level:                       t.Write.Operations + t.DemotedIn.Entries,
			"tier_" + t.Level + "_kv_bytes_written_gb":  written,
			"tier_" + t.Level + "_kv_bytes_read_gb":     read,
			"tier_" + t.Level + "_read_bandwidth_gbps":  ratio(read, seconds),
			"tier_" + t.Level + "_write_bandwidth_gbps": ratio(written, seconds),
		})
		if sizer := b.info.Sizer; t.Level == tiers.Storage.String() {
			s.StorageTokensProcessed = ratio(
				(t.Read.Bytes+t.Write.Bytes)*max(1, sizer.Divisor),
				sizer.BytesPerToken*max(1, sizer.Ranks))
		}
	}
	// The keys that the Python benchmark does not have, such as the offloads to the fastest tier,
	// are no fields and are left out.
	for field, at := range reflect.ValueOf(&s).Elem().Fields() {
		if v, ok := keys[field.Tag.Get("json")]; ok {
			at.Set(reflect.ValueOf(v))
		}
	}
	s.TotalReadGiB, s.TotalWriteGiB = gib(s.TotalReadBytes), gib(s.TotalWriteBytes)
	return s
}

// prefixStats takes every request that began in the window for one that looked for a prefix.
func (b *builder) prefixStats() python.PrefixCacheStats {
	if b.r.CompletionUnit == result.UnitOperation {
		return python.PrefixCacheStats{}
	}
	hits := b.r.Lookups.ByKind["system"].Hits
	return python.PrefixCacheStats{
		PrefixHits: hits, SystemPromptReuse: hits,
		PrefixMisses: max(b.r.Load["total"].Started-hits, 0),
		BytesSaved:   b.n.ByPurpose[workloads.ForPrefix][tiers.Read].Bytes,
	}
}

func gib(bytes int64) float64 { return float64(bytes) / float64(units.GiB) }
