package result

import (
	"encoding/json"
	"errors"
	"strings"
)

// Summary is the part of the Python benchmark that its spreadsheet reads.
type Summary struct {
	TotalRequests      int64              `json:"total_requests"`
	TotalTokens        int64              `json:"total_tokens"`
	ElapsedTime        float64            `json:"elapsed_time"` // seconds: the window
	AvgThroughput      *float64           `json:"avg_throughput_tokens_per_sec"`
	TotalStorageIOTime float64            `json:"total_storage_io_time"` // seconds
	StorageThroughput  *float64           `json:"storage_throughput_tokens_per_sec"`
	RequestsPerSecond  *float64           `json:"requests_per_second"`
	EndToEndLatency    LatencyMS          `json:"end_to_end_latency_ms"`
	StorageIOLatency   LatencyMS          `json:"storage_io_latency_ms"`
	GenerationLatency  LatencyMS          `json:"generation_latency_ms"`
	CacheStats         CacheStats         `json:"cache_stats"`
	QoSMetrics         map[string]QoSStat `json:"qos_metrics"`
	PrefixCacheStats   PrefixCacheStats   `json:"prefix_cache_stats"`
	AutoscalingStats   []Round            `json:"autoscaling_stats"` // one per round
	AutoscalingSummary *AutoscaleSummary  `json:"autoscaling_summary"`
	MultiTurnStats     MultiTurnStats     `json:"multi_turn_stats"`
}

// LatencyMS is a distribution in the Python benchmark's form: milliseconds, percentiles given
// whatever the sample count.
type LatencyMS struct {
	Mean  *float64 `json:"mean"`
	P50   *float64 `json:"p50"`
	P95   *float64 `json:"p95"`
	P99   *float64 `json:"p99"`
	P999  *float64 `json:"p999"`
	P9999 *float64 `json:"p9999"`
}

// PrefixCacheStats counts lookups of system prompts.
type PrefixCacheStats struct {
	PrefixHits        int64 `json:"prefix_hits"`
	PrefixMisses      int64 `json:"prefix_misses"`
	SystemPromptReuse int64 `json:"system_prompt_reuse"`
	CommonPhraseReuse int64 `json:"common_phrase_reuse"` // always 0: there are no common phrases
	// bytes read as a prefix instead of being written again
	BytesSaved int64 `json:"bytes_saved"`
}

// MultiTurnStats counts lookups of a conversation's history. Turns not yet written are in neither.
type MultiTurnStats struct {
	CacheHits   int64    `json:"cache_hits"`
	CacheMisses int64    `json:"cache_misses"`
	HitRate     *float64 `json:"hit_rate"`
}

// QoSStat is one class. NoData is set, as in the Python benchmark, when nothing of the class
// completed; if requests of it were waiting all the same, SLA tells it.
type QoSStat struct {
	NoData        bool          `json:"no_data,omitempty"`
	TotalRequests *int64        `json:"total_requests,omitempty"`
	Latency       *QoSLatencyMS `json:"latency_ms,omitempty"`
	SLA           *SLA          `json:"sla,omitempty"`
}

// QoSLatencyMS is the end-to-end latency of one class in milliseconds.
type QoSLatencyMS struct {
	Mean *float64 `json:"mean"`
	P50  *float64 `json:"p50"`
	P95  *float64 `json:"p95"`
	P99  *float64 `json:"p99"`
	Max  *float64 `json:"max"`
}

// SLA compares a class with its target. Compliance is the share of requests within it; those still
// queued at the deadline count as violations.
type SLA struct {
	TargetP95MS float64  `json:"target_p95_ms"`
	ActualP95MS *float64 `json:"actual_p95_ms"`
	Compliance  *float64 `json:"compliance"`
	Met         bool     `json:"met"`
}

// CacheStats has the Python benchmark's keys. Values of a tier that does not exist are null.
type CacheStats struct {
	// re-reads counted as hits, as the Python benchmark does
	CacheHitRate *float64 `json:"cache_hit_rate"`
	CacheHits    int64    `json:"cache_hits"`
	CacheMisses  int64    `json:"cache_misses"`

	GPUEntries     *int64   `json:"gpu_entries"`
	CPUEntries     *int64   `json:"cpu_entries"`
	StorageEntries *int64   `json:"storage_entries"`
	GPUMemoryUsed  *float64 `json:"gpu_memory_used_gb"`
	CPUMemoryUsed  *float64 `json:"cpu_memory_used_gb"`
	// entries that came into the tier, written or demoted
	OffloadsCPU     *int64 `json:"offloads_cpu"`
	OffloadsStorage *int64 `json:"offloads_storage"`

	StorageHealth StorageHealth `json:"storage_health"`

	PrefillWrites int64 `json:"prefill_writes"`
	DecodeReads   int64 `json:"decode_reads"`

	GPUWritten     *float64 `json:"tier_gpu_kv_bytes_written_gb"`
	CPUWritten     *float64 `json:"tier_cpu_kv_bytes_written_gb"`
	StorageWritten *float64 `json:"tier_storage_kv_bytes_written_gb"`
	GPURead        *float64 `json:"tier_gpu_kv_bytes_read_gb"`
	CPURead        *float64 `json:"tier_cpu_kv_bytes_read_gb"`
	StorageRead    *float64 `json:"tier_storage_kv_bytes_read_gb"`

	GPUReadBandwidth      *float64 `json:"tier_gpu_read_bandwidth_gbps"`
	GPUWriteBandwidth     *float64 `json:"tier_gpu_write_bandwidth_gbps"`
	CPUReadBandwidth      *float64 `json:"tier_cpu_read_bandwidth_gbps"`
	CPUWriteBandwidth     *float64 `json:"tier_cpu_write_bandwidth_gbps"`
	StorageReadBandwidth  *float64 `json:"tier_storage_read_bandwidth_gbps"`
	StorageWriteBandwidth *float64 `json:"tier_storage_write_bandwidth_gbps"`

	SystemPromptHits int64 `json:"system_prompt_hits"`
	CommonPhraseHits int64 `json:"common_phrase_hits"`
	UserCacheHits    int64 `json:"user_cache_hits"`
	MultiTurnHits    int64 `json:"multi_turn_hits"`

	TotalReadBytes  int64    `json:"total_read_bytes"`
	TotalWriteBytes int64    `json:"total_write_bytes"`
	TotalReadGiB    float64  `json:"total_read_gb"`
	TotalWriteGiB   float64  `json:"total_write_gb"`
	ReadWriteRatio  *float64 `json:"read_write_ratio"`
	// a count of operations, whatever the name says; a run of blocks is one
	ReadIOPS  int64 `json:"read_iops"`
	WriteIOPS int64 `json:"write_iops"` // likewise

	StorageTokensProcessed *float64 `json:"storage_tokens_processed"`

	// LatencyMS has the keys {gpu,cpu,storage}_{read,write}_{p50,p95,p99,p999,p9999}_ms and
	// storage_{read,write}_{device,host}_{p50,…}_ms, where there are samples; in the JSON they
	// stand beside the others.
	LatencyMS map[string]float64 `json:"-"`
}

// StorageHealth is the Python benchmark's assessment. It ignores entry size and is kept for its
// readers.
type StorageHealth struct {
	OverallStatus string      `json:"overall_status"`
	Criteria      []Criterion `json:"criteria"`
	PassedCount   int         `json:"passed_count"`
	TotalCount    int         `json:"total_count"`
}

// Criterion is one line of it.
type Criterion struct {
	Name   string  `json:"name"`
	Target float64 `json:"target"`
	Actual float64 `json:"actual"`
	Unit   string  `json:"unit"`
	Passed bool    `json:"passed"`
}

// NewStorageHealth is that assessment with its own names and targets. A criterion without samples
// is left out, as there. In the throughput profile latency is not judged: only that bytes moved.
func NewStorageHealth(s *CacheStats, profile string) StorageHealth {
	h := StorageHealth{Criteria: []Criterion{}}
	add := func(name string, target float64, unit string, actual *float64) {
		if actual == nil {
			return
		}
		c := Criterion{Name: name, Target: target, Actual: *actual, Unit: unit}
		c.Passed = c.Actual > target
		if unit == "ms" {
			c.Passed = c.Actual < target
		}
		if c.Passed {
			h.PassedCount++
		}
		h.Criteria = append(h.Criteria, c)
	}
	if profile == "throughput" {
		add("Storage Read Bandwidth > 0", 0, "GiB/s", s.StorageReadBandwidth)
		add("Storage Write Bandwidth > 0", 0, "GiB/s", s.StorageWriteBandwidth)
	} else {
		p95 := func(of string) *float64 { return s.latency(of + "_p95_ms") }
		add("Storage Tier Write Device P95 < 500ms", 500, "ms", p95("storage_write_device"))
		add("Storage Tier Read Device P95 < 200ms", 200, "ms", p95("storage_read_device"))
		add("CPU RAM P95 < 150ms", 150, "ms", larger(p95("cpu_read"), p95("cpu_write")))
	}
	add("Cache Hit Rate > 30%", 0.3, "ratio", s.CacheHitRate)
	h.TotalCount, h.OverallStatus = len(h.Criteria), "FAIL"
	if h.TotalCount == 0 {
		h.OverallStatus = "NO DATA"
	} else if h.PassedCount == h.TotalCount {
		h.OverallStatus = "PASS"
	}
	return h
}

// latency is one of LatencyMS, nil when there is none.
func (c *CacheStats) latency(key string) *float64 {
	if v, ok := c.LatencyMS[key]; ok {
		return &v
	}
	return nil
}

// larger returns the larger number, nil when there is none.
func larger(a, b *float64) *float64 {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}

// cacheStatsKeys is CacheStats without its methods.
type cacheStatsKeys CacheStats

// MarshalJSON appends the keys of LatencyMS, sorted, to the declared ones.
func (c CacheStats) MarshalJSON() ([]byte, error) {
	declared, err := json.Marshal(cacheStatsKeys(c))
	if err != nil || len(c.LatencyMS) == 0 {
		return declared, err
	}
	latencies, err := json.Marshal(c.LatencyMS)
	if err != nil {
		return nil, err
	}
	declared[len(declared)-1] = ',' // in the place of the brace between the two
	return append(declared, latencies[1:]...), nil
}

// UnmarshalJSON is the inverse.
func (c *CacheStats) UnmarshalJSON(in []byte) error {
	var all map[string]any
	if err := errors.Join(json.Unmarshal(in, (*cacheStatsKeys)(c)),
		json.Unmarshal(in, &all)); err != nil {
		return err
	}
	c.LatencyMS = make(map[string]float64)
	for k, v := range all {
		if ms, ok := v.(float64); ok && strings.HasSuffix(k, "_ms") {
			c.LatencyMS[k] = ms
		}
	}
	return nil
}
