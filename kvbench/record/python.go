package record

import (
	"fmt"
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
	r, requests, tokens := b.r, b.n.Requests.Completed, b.n.Requests.GeneratedTokens
	storage := time.Duration(r.Requests.StorageLatencyNS).Seconds()
	history, prefix := r.Lookups.ByKind["multi_turn"], r.Lookups.ByKind["system"]
	r.RequestsCompleted, r.TotalTokensGenerated = requests, tokens
	r.TotalStorageIOLatency = storage
	r.TotalGenerationLatency = time.Duration(r.Requests.GenerationLatencyNS).Seconds()
	r.MultiTurnCacheHits, r.MultiTurnCacheMisses = history.Hits, history.Misses
	r.Summary = result.Summary{
		TotalRequests: requests, TotalTokens: tokens, ElapsedTime: b.window.Seconds(),
		TotalStorageIOTime: storage,
		AvgThroughput:      b.perSecond(float64(tokens)),
		StorageThroughput:  units.Ratio(tokens, storage),
		RequestsPerSecond:  b.perSecond(float64(requests)),
		EndToEndLatency:    result.NewLatencyMS(b.hists.all[histEndToEnd]),
		StorageIOLatency:   result.NewLatencyMS(b.hists.all[histStorage]),
		GenerationLatency:  result.NewLatencyMS(b.hists.all[histGeneration]),
		CacheStats:         b.cacheStats(),
		QoSMetrics:         make(map[string]result.QoSStat),
		PrefixCacheStats: result.PrefixCacheStats{
			PrefixHits: prefix.Hits, PrefixMisses: prefix.Misses, SystemPromptReuse: prefix.Hits,
			BytesSaved: b.n.PrefixBytes,
		},
		AutoscalingStats:   append([]result.Round{}, r.Summary.AutoscalingStats...),
		AutoscalingSummary: r.Summary.AutoscalingSummary,
		MultiTurnStats: result.MultiTurnStats{
			CacheHits: history.Hits, CacheMisses: history.Misses, HitRate: history.HitRate,
		},
	}
	for c := range workloads.Class(workloads.NumClasses) {
		r.Summary.QoSMetrics[c.String()] = b.qos(c)
	}
}

// cacheStats counts as the Python benchmark does. Its rates are GiB, whatever their names say, and
// its "iops" are counts.
func (b *builder) cacheStats() result.CacheStats {
	lookups, rereads := b.r.Lookups, b.n.Rereads
	moved := func(t *result.TierTraffic) int64 { return t.Bytes }
	done := func(t *result.TierTraffic) int64 { return t.Operations }
	s := result.CacheStats{
		CacheHits: lookups.Hits + rereads, CacheMisses: lookups.Misses,
		PrefillWrites: b.n.PrefillWrites, DecodeReads: b.n.DecodeReads,
		SystemPromptHits: lookups.ByKind["system"].Hits,
		UserCacheHits:    lookups.ByKind["user"].Hits + rereads,
		MultiTurnHits:    lookups.ByKind["multi_turn"].Hits,
		TotalReadBytes:   b.n.total(tiers.Read, moved),
		TotalWriteBytes:  b.n.total(tiers.Write, moved),
		ReadIOPS:         b.n.total(tiers.Read, done) + b.n.demotions(tiers.Read),
		WriteIOPS:        b.n.total(tiers.Write, done) + b.n.demotions(tiers.Write),
		LatencyMS:        make(map[string]float64),
	}
	s.CacheHitRate = units.Ratio(s.CacheHits, s.CacheHits+s.CacheMisses)
	s.TotalReadGiB, s.TotalWriteGiB = gib(s.TotalReadBytes), gib(s.TotalWriteBytes)
	s.ReadWriteRatio = units.Ratio(s.TotalReadBytes, s.TotalWriteBytes)
	// The places of each tier's keys; nil where the Python benchmark has none.
	keys := map[tiers.Kind]tierKeys{
		tiers.GPU: {&s.GPUEntries, nil, &s.GPUMemoryUsed, &s.GPUWritten, &s.GPURead,
			&s.GPUReadBandwidth, &s.GPUWriteBandwidth},
		tiers.CPU: {&s.CPUEntries, &s.OffloadsCPU, &s.CPUMemoryUsed, &s.CPUWritten, &s.CPURead,
			&s.CPUReadBandwidth, &s.CPUWriteBandwidth},
		tiers.Storage: {&s.StorageEntries, &s.OffloadsStorage, nil, &s.StorageWritten,
			&s.StorageRead,
			&s.StorageReadBandwidth, &s.StorageWriteBandwidth},
	}
	for _, l := range b.levels {
		b.fill(l, keys[l])
		if l == tiers.Storage {
			moved := float64(b.moved(l, tiers.Read) + b.moved(l, tiers.Write))
			sizer := b.info.Sizer
			s.StorageTokensProcessed = units.Ratio(moved*float64(max(1, sizer.Divisor)),
				sizer.BytesPerToken)
		}
	}
	for l := range tiers.NumKinds {
		for op := range tiers.NumOps {
			h, name := &b.hists.op[l][op], fmt.Sprintf("%s_%s", l, op)
			percentileKeys(s.LatencyMS, name, h[histIO])
			if l == tiers.Storage {
				percentileKeys(s.LatencyMS, name+"_device", h[histDevice])
				percentileKeys(s.LatencyMS, name+"_host", h[histHost])
			}
		}
	}
	s.StorageHealth = result.NewStorageHealth(&s, b.info.Profile)
	return s
}

// tierKeys are the places of one tier's keys.
type tierKeys struct {
	entries, offloads                       **int64
	used, written, read, readRate, writRate **float64
}

// fill writes a tier's keys. Entries came into a tier by writes or by demotions, which are
// offloads.
func (b *builder) fill(l tiers.Kind, k tierKeys) {
	if t, ok := b.known[l.String()]; ok {
		*k.entries = new(t.Entries)
		if k.used != nil {
			*k.used = new(gib(t.UsedBytes))
		}
	}
	t := &b.n.Tiers[l]
	if k.offloads != nil {
		*k.offloads = new(t.Write.Operations + b.n.Demotions[l][tiers.Write])
	}
	written, read := gib(t.Write.Bytes), gib(t.Read.Bytes)
	*k.written, *k.read = &written, &read
	*k.writRate, *k.readRate = b.perSecond(written), b.perSecond(read)
}

func gib(bytes int64) float64 { return float64(bytes) / float64(units.GiB) }

// percentileKeys writes {name}_{p}_ms, where there are samples.
func percentileKeys(out map[string]float64, name string, h *result.Histogram) {
	for _, p := range []struct {
		share float64
		name  string
	}{{0.5, "p50"}, {0.95, "p95"}, {0.99, "p99"}, {0.999, "p999"}, {0.9999, "p9999"}} {
		if v := h.PercentileMS(p.share); v != nil {
			out[name+"_"+p.name+"_ms"] = *v
		}
	}
}

// qos judges a class by its target. Requests still queued at the deadline are violations.
func (b *builder) qos(c workloads.Class) result.QoSStat {
	h, queued := b.hists.all[histClass+hist(c)], b.r.Load[c.String()].Queued
	n := h.Count()
	if n+queued == 0 {
		return result.QoSStat{NoData: true}
	}
	target := int64(b.info.QoS[c].P95)
	sla := &result.SLA{
		TargetP95MS: result.Milliseconds(target), ActualP95MS: h.PercentileMS(0.95),
		Compliance: units.Ratio(h.AtMost(target), n+queued),
	}
	sla.Met = units.OrZero(sla.Compliance) >= slaMet
	stat := result.QoSStat{NoData: n == 0, TotalRequests: &n, SLA: sla}
	if n > 0 {
		all := result.NewLatencyMS(h)
		stat.Latency = &result.QoSLatencyMS{
			Mean: all.Mean, P50: all.P50, P95: all.P95, P99: all.P99,
			Max: new(result.Milliseconds(h.Max())),
		}
	}
	return stat
}
