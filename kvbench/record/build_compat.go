package record

import (
	"fmt"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// slaMet is the compliance from which a class meets its target.
const slaMet = 0.95

// compatible fills the keys of the Python benchmark. They keep its sense where ours differs: re-reads count as hits,
// percentiles are given whatever the sample count.
func (b *builder) compatible(r *result.Result) {
	requests, tokens := b.sum(sumRequests), b.sum(sumTokens)
	storage, generation := time.Duration(b.sum(sumStorageNS)).Seconds(), time.Duration(b.sum(sumGenerationNS)).Seconds()
	history := r.Lookups.ByKind["multi_turn"]
	prefix := r.Lookups.ByKind["system"]
	r.RequestsCompleted = requests
	r.TotalTokensGenerated = tokens
	r.TotalStorageIOLatency = storage
	r.TotalGenerationLatency = generation
	r.MultiTurnCacheHits, r.MultiTurnCacheMisses = history.Hits, history.Misses
	r.Summary = result.Summary{
		TotalRequests:      requests,
		TotalTokens:        tokens,
		ElapsedTime:        b.window.Seconds(),
		AvgThroughput:      b.perSecond(float64(tokens)),
		TotalStorageIOTime: storage,
		StorageThroughput:  units.Ratio(float64(tokens), storage),
		RequestsPerSecond:  b.perSecond(float64(requests)),
		EndToEndLatency:    result.NewLatencyMS(b.t.hists.all[histEndToEnd]),
		StorageIOLatency:   result.NewLatencyMS(b.t.hists.all[histStorage]),
		GenerationLatency:  result.NewLatencyMS(b.t.hists.all[histGeneration]),
		CacheStats:         b.cacheStats(r),
		QoSMetrics:         make(map[string]result.QoSStat),
		PrefixCacheStats: result.PrefixCacheStats{
			PrefixHits: prefix.Hits, PrefixMisses: prefix.Misses, SystemPromptReuse: prefix.Hits,
			BytesSaved: b.sum(sumPrefixBytes),
		},
		AutoscalingStats: append([]result.Round{}, r.Summary.AutoscalingStats...), AutoscalingSummary: r.Summary.AutoscalingSummary,
		MultiTurnStats: result.MultiTurnStats{CacheHits: history.Hits, CacheMisses: history.Misses, HitRate: history.HitRate},
	}
	for c := range workloads.Class(workloads.NumClasses) {
		r.Summary.QoSMetrics[c.String()] = b.qos(c)
	}
}

func (b *builder) cacheStats(r *result.Result) result.CacheStats {
	rereads := b.sum(sumRereads)
	s := result.CacheStats{
		CacheHits:        r.Lookups.Hits + rereads,
		CacheMisses:      r.Lookups.Misses,
		PrefillWrites:    b.sum(sumPrefillWrites),
		DecodeReads:      b.sum(sumDecodeReads),
		SystemPromptHits: r.Lookups.ByKind["system"].Hits,
		UserCacheHits:    r.Lookups.ByKind["user"].Hits + rereads,
		MultiTurnHits:    r.Lookups.ByKind["multi_turn"].Hits,
		TotalReadBytes:   b.totalBytes(tiers.Read),
		TotalWriteBytes:  b.totalBytes(tiers.Write),
		LatencyMS:        make(map[string]float64),
	}
	s.CacheHitRate = units.Ratio(s.CacheHits, s.CacheHits+s.CacheMisses)
	s.TotalReadGiB, s.TotalWriteGiB = float64(s.TotalReadBytes)/bytesPerGiB, float64(s.TotalWriteBytes)/bytesPerGiB
	s.ReadWriteRatio = units.Ratio(s.TotalReadBytes, s.TotalWriteBytes)
	for _, n := range b.t.n.op {
		s.ReadIOPS += n[tiers.Read][opDone] + n[tiers.Read][opDemotion]
		s.WriteIOPS += n[tiers.Write][opDone] + n[tiers.Write][opDemotion]
	}
	for l, f := range map[tiers.Kind]tierKeys{
		tiers.GPU: {&s.GPUEntries, &s.GPUMemoryUsed, nil, &s.GPUWritten, &s.GPURead, &s.GPUReadBandwidth, &s.GPUWriteBandwidth},
		tiers.CPU: {&s.CPUEntries, &s.CPUMemoryUsed, &s.OffloadsCPU, &s.CPUWritten, &s.CPURead, &s.CPUReadBandwidth,
			&s.CPUWriteBandwidth},
		tiers.Storage: {&s.StorageEntries, nil, &s.OffloadsStorage, &s.StorageWritten, &s.StorageRead, &s.StorageReadBandwidth,
			&s.StorageWriteBandwidth},
	} {
		if b.exists[l] {
			b.tierKeys(l, f)
		}
	}
	if b.exists[tiers.Storage] {
		moved := b.levelBytes(tiers.Storage, tiers.Read) + b.levelBytes(tiers.Storage, tiers.Write)
		sizer := b.info.Sizer
		s.StorageTokensProcessed = units.Ratio(float64(moved)*float64(max(1, sizer.Divisor)), float64(sizer.BytesPerToken))
	}
	b.latencyKeys(s.LatencyMS)
	s.StorageHealth = result.NewStorageHealth(&s, b.info.Profile)
	return s
}

// tierKeys are the places of one tier's keys; nil where the Python benchmark has none.
type tierKeys struct {
	entries        **int64
	used           **float64
	offloads       **int64
	written, read  **float64
	readBW, writBW **float64
}

func (b *builder) tierKeys(l tiers.Kind, f tierKeys) {
	if g, ok := b.known[l.String()]; ok {
		*f.entries = new(g.Entries)
		if f.used != nil {
			*f.used = new(float64(g.UsedBytes) / bytesPerGiB)
		}
	}
	if f.offloads != nil {
		*f.offloads = new(b.t.n.op[l][tiers.Write][opDone] + b.t.n.op[l][tiers.Write][opDemotion])
	}
	written, read := float64(b.levelBytes(l, tiers.Write))/bytesPerGiB, float64(b.levelBytes(l, tiers.Read))/bytesPerGiB
	*f.written, *f.read = new(written), new(read)
	*f.writBW, *f.readBW = b.perSecond(written), b.perSecond(read)
}

// latencyKeys fills {tier}_{op}_{p}_ms and storage_{op}_{device,host}_{p}_ms.
func (b *builder) latencyKeys(out map[string]float64) {
	for l := range tiers.NumKinds {
		for op := range tiers.NumOps {
			h := &b.t.hists.op[l][op]
			name := fmt.Sprintf("%s_%s", l, op)
			percentileKeys(out, name, h[histIO])
			if l == tiers.Storage {
				percentileKeys(out, name+"_device", h[histDevice])
				percentileKeys(out, name+"_host", h[histHost])
			}
		}
	}
}

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

func (b *builder) qos(c workloads.Class) result.QoSStat {
	h := b.t.hists.all[histClass+hist(c)]
	queued := b.loads[c].Queued
	n := h.Count()
	if n+queued == 0 {
		return result.QoSStat{NoData: true}
	}
	target := b.info.QoS[c].P95
	sla := &result.SLA{TargetP95MS: result.Milliseconds(int64(target)), ActualP95MS: h.PercentileMS(0.95)}
	sla.Compliance = units.Ratio(float64(h.AtMost(int64(target))), float64(n+queued))
	sla.Met = units.OrZero(sla.Compliance) >= slaMet
	if n == 0 {
		return result.QoSStat{NoData: true, TotalRequests: new(int64(0)), SLA: sla}
	}
	all := result.NewLatencyMS(h)
	return result.QoSStat{
		TotalRequests: new(n),
		Latency:       &result.QoSLatencyMS{Mean: all.Mean, P50: all.P50, P95: all.P95, P99: all.P99, Max: new(result.Milliseconds(h.Max()))},
		SLA:           sla,
	}
}
