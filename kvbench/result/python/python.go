package python

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Result is a result file of the Python benchmark, without its arrays of single latencies. Merge
// tags are as in package result.
type Result struct {
	RequestsCompleted    int64 `json:"requests_completed" merge:"sum"`
	TotalTokensGenerated int64 `json:"total_tokens_generated" merge:"sum"`
	// seconds, summed over parallel requests
	TotalStorageIOLatency  float64     `json:"total_storage_io_latency" merge:"sum"`
	TotalGenerationLatency float64     `json:"total_generation_latency" merge:"sum"` // seconds
	MultiTurnCacheHits     int64       `json:"multi_turn_cache_hits" merge:"sum"`
	MultiTurnCacheMisses   int64       `json:"multi_turn_cache_misses" merge:"sum"`
	Summary                Summary     `json:"summary"`
	Validation             *Validation `json:"validation" merge:"drop"`
}

// Parse reads a result file of the Python benchmark.
func Parse(data []byte) (*Result, error) {
	r := &Result{}
	err := json.Unmarshal(data, r)
	kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if ok && strings.HasPrefix(kind.Field, "summary.autoscaling_") {
		err = nil // some versions have another form; the other keys are decoded
	}
	return r, err
}

// Summary is the part that the Python benchmark's spreadsheet reads. A number without data is 0,
// because that benchmark's aggregation cannot add null.
type Summary struct {
	TotalRequests      int64              `json:"total_requests" merge:"sum"`
	TotalTokens        int64              `json:"total_tokens" merge:"sum"`
	ElapsedTime        float64            `json:"elapsed_time" merge:"max"` // seconds: the window
	AvgThroughput      float64            `json:"avg_throughput_tokens_per_sec" merge:"sum"`
	TotalStorageIOTime float64            `json:"total_storage_io_time" merge:"sum"` // seconds
	StorageThroughput  float64            `json:"storage_throughput_tokens_per_sec" merge:"sum"`
	RequestsPerSecond  float64            `json:"requests_per_second" merge:"sum"`
	EndToEndLatency    LatencyMS          `json:"end_to_end_latency_ms" merge:"-"`
	StorageIOLatency   LatencyMS          `json:"storage_io_latency_ms" merge:"-"`
	GenerationLatency  LatencyMS          `json:"generation_latency_ms" merge:"-"`
	CacheStats         CacheStats         `json:"cache_stats"`
	QoSMetrics         map[string]QoSStat `json:"qos_metrics" merge:"drop"`
	PrefixCacheStats   PrefixCacheStats   `json:"prefix_cache_stats"`
	AutoscalingStats   []ScaleEvent       `json:"autoscaling_stats" merge:"drop"`
	AutoscalingSummary *ScaleSummary      `json:"autoscaling_summary" merge:"drop"` // null: no autoscaler
	MultiTurnStats     MultiTurnStats     `json:"multi_turn_stats"`
}

// LatencyMS is a distribution in milliseconds. It has percentiles for any number of samples.
type LatencyMS struct {
	Mean  *float64 `json:"mean"`
	P50   *float64 `json:"p50"`
	P95   *float64 `json:"p95"`
	P99   *float64 `json:"p99"`
	P999  *float64 `json:"p999"`
	P9999 *float64 `json:"p9999"`
}

// PrefixCacheStats counts requests by prefix hit: a hit is a request with a system prompt whose
// entry was found, a miss every other request.
type PrefixCacheStats struct {
	PrefixHits        int64 `json:"prefix_hits" merge:"sum"`
	PrefixMisses      int64 `json:"prefix_misses" merge:"sum"`
	SystemPromptReuse int64 `json:"system_prompt_reuse" merge:"sum"`
	CommonPhraseReuse int64 `json:"common_phrase_reuse" merge:"sum"` // always 0: there are no common phrases
	BytesSaved        int64 `json:"bytes_saved" merge:"sum"`         // of hits
}

// ScaleEvent is a change of the number of users by the autoscaler, or the end of its search.
type ScaleEvent struct {
	Timestamp  string  `json:"timestamp"` // RFC 3339
	Mode       string  `json:"mode"`
	Action     string  `json:"action"` // scale_up, scale_down, stop
	Users      int     `json:"users"`  // afterwards
	Saturation float64 `json:"saturation_level"`
	// of all operations on the storage tier so far, of all sizes, in milliseconds
	ReadP95  float64 `json:"read_latency_p95_ms"`
	WriteP95 float64 `json:"write_latency_p95_ms"`
	// generated tokens ÷ time since the window opened
	Throughput float64 `json:"throughput_tokens_per_sec"`
	// of the round after which throughput stopped growing; only for stop
	PeakThroughput *float64 `json:"peak_throughput_tokens_per_sec,omitempty"`
}

// ScaleSummary is the outcome of the autoscaler. Only capacity mode has peaks.
type ScaleSummary struct {
	InitialUsers   int      `json:"initial_users"`
	FinalUsers     int      `json:"final_users"`
	Events         int      `json:"total_scale_events"`
	PeakUsers      *int     `json:"peak_user_count,omitempty"`
	PeakThroughput *float64 `json:"peak_throughput_tokens_per_sec,omitempty"`
}

// Validation compares the hit rate with a recorded hit rate.
type Validation struct {
	Passed     bool             `json:"passed"`
	AvgError   float64          `json:"avg_error_pct"` // over the comparisons
	Comparison ValidationChecks `json:"comparison"`
	TraceStats RecordedStats    `json:"trace_stats"`
}

// ValidationChecks has the only comparison.
type ValidationChecks struct {
	CacheHitRate ValidationCheck `json:"cache_hit_rate"`
}

// ValidationCheck compares one number of both runs.
type ValidationCheck struct {
	Benchmark float64 `json:"benchmark"`
	Trace     float64 `json:"trace"`
	ErrorPct  float64 `json:"error_pct"` // relative to the trace; absolute if that is 0
	Within    bool    `json:"within_5pct"`
}

// RecordedStats describe the recorded run.
type RecordedStats struct {
	Requests       int64   `json:"total_requests"`
	CacheHitRate   float64 `json:"cache_hit_rate"`
	ReadWriteRatio float64 `json:"read_write_ratio"`
	ContextMean    float64 `json:"context_tokens_mean"`
	GenerationMean float64 `json:"generation_tokens_mean"`
}

// MultiTurnStats counts lookups of a conversation's history. A lookup of a turn that is not yet
// written is neither hit nor miss.
type MultiTurnStats struct {
	CacheHits   int64   `json:"cache_hits" merge:"sum"`
	CacheMisses int64   `json:"cache_misses" merge:"sum"`
	HitRate     float64 `json:"hit_rate" merge:"-"`
}

// QoSStat is the latency of one class. NoData is true if no request of the class completed. It then
// has an SLA only if requests of the class missed their target unfinished.
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

// SLA compares a class with its target. Compliance is the share of requests within the target.
// Requests queued at the deadline, or in flight for longer than the target, count as violations.
type SLA struct {
	TargetP95MS float64  `json:"target_p95_ms"`
	ActualP95MS *float64 `json:"actual_p95_ms"`
	Compliance  *float64 `json:"compliance"`
	Met         bool     `json:"met"`
}

// CacheStats has the cache counts by the Python benchmark's definitions. Values of a tier that does
// not exist are 0.
type CacheStats struct {
	// re-reads counted as hits, as the Python benchmark does
	CacheHitRate float64 `json:"cache_hit_rate" merge:"-"`
	CacheHits    int64   `json:"cache_hits" merge:"sum"`
	CacheMisses  int64   `json:"cache_misses" merge:"sum"`

	GPUEntries     int64   `json:"gpu_entries" merge:"sum"`
	CPUEntries     int64   `json:"cpu_entries" merge:"sum"`
	StorageEntries int64   `json:"storage_entries" merge:"sum"`
	GPUMemoryUsed  float64 `json:"gpu_memory_used_gb" merge:"sum"`
	CPUMemoryUsed  float64 `json:"cpu_memory_used_gb" merge:"sum"`
	// entries that came into the tier, written or demoted
	OffloadsCPU     int64 `json:"offloads_cpu" merge:"sum"`
	OffloadsStorage int64 `json:"offloads_storage" merge:"sum"`

	StorageHealth StorageHealth `json:"storage_health" merge:"-"`

	PrefillWrites int64 `json:"prefill_writes" merge:"sum"`
	DecodeReads   int64 `json:"decode_reads" merge:"sum"`

	GPUWritten     float64 `json:"tier_gpu_kv_bytes_written_gb" merge:"sum"`
	CPUWritten     float64 `json:"tier_cpu_kv_bytes_written_gb" merge:"sum"`
	StorageWritten float64 `json:"tier_storage_kv_bytes_written_gb" merge:"sum"`
	GPURead        float64 `json:"tier_gpu_kv_bytes_read_gb" merge:"sum"`
	CPURead        float64 `json:"tier_cpu_kv_bytes_read_gb" merge:"sum"`
	StorageRead    float64 `json:"tier_storage_kv_bytes_read_gb" merge:"sum"`

	GPUReadBandwidth      float64 `json:"tier_gpu_read_bandwidth_gbps" merge:"sum"`
	GPUWriteBandwidth     float64 `json:"tier_gpu_write_bandwidth_gbps" merge:"sum"`
	CPUReadBandwidth      float64 `json:"tier_cpu_read_bandwidth_gbps" merge:"sum"`
	CPUWriteBandwidth     float64 `json:"tier_cpu_write_bandwidth_gbps" merge:"sum"`
	StorageReadBandwidth  float64 `json:"tier_storage_read_bandwidth_gbps" merge:"sum"`
	StorageWriteBandwidth float64 `json:"tier_storage_write_bandwidth_gbps" merge:"sum"`

	SystemPromptHits int64 `json:"system_prompt_hits" merge:"sum"`
	CommonPhraseHits int64 `json:"common_phrase_hits" merge:"sum"`
	UserCacheHits    int64 `json:"user_cache_hits" merge:"sum"`
	MultiTurnHits    int64 `json:"multi_turn_hits" merge:"sum"`

	// Bytes of completed operations of requests on all tiers, without demotions. The per-tier
	// values above have all moved bytes.
	TotalReadBytes  int64   `json:"total_read_bytes" merge:"sum"`
	TotalWriteBytes int64   `json:"total_write_bytes" merge:"sum"`
	TotalReadGiB    float64 `json:"total_read_gb" merge:"sum"`
	TotalWriteGiB   float64 `json:"total_write_gb" merge:"sum"`
	// read ÷ written bytes; read bytes if none were written
	ReadWriteRatio float64 `json:"read_write_ratio" merge:"-"`
	// number of these operations, not a rate; a run of blocks is one
	ReadIOPS  int64 `json:"read_iops" merge:"sum"`
	WriteIOPS int64 `json:"write_iops" merge:"sum"` // as ReadIOPS

	StorageTokensProcessed float64 `json:"storage_tokens_processed" merge:"sum"`

	// LatencyMS has the keys {gpu,cpu,storage}_{read,write}_{p50,p95,p99,p999,p9999}_ms and
	// storage_{read,write}_{device,host}_{p50,…}_ms. Keys without samples are absent. In the JSON
	// they are next to the other keys.
	LatencyMS map[string]float64 `json:"-" merge:"-"`
}

// StorageHealth is the Python benchmark's assessment of the storage. It ignores entry sizes. It is
// kept for readers of that benchmark.
type StorageHealth struct {
	OverallStatus string      `json:"overall_status"` // PASS, FAIL
	Criteria      []Criterion `json:"criteria"`
	PassedCount   int         `json:"passed_count"`
	TotalCount    int         `json:"total_count"`
}

// Criterion is one criterion of StorageHealth. Target and Actual are numbers, for bandwidth texts.
type Criterion struct {
	Name   string `json:"name"`
	Target any    `json:"target"`
	Actual any    `json:"actual"`
	Unit   string `json:"unit"`
	Passed bool   `json:"passed"`
}

// NewStorageHealth returns the assessment with the names and targets of the Python benchmark.
// cpuP95 is the p95 in ms of the cpu tier's reads and writes together, nil for none. A criterion
// without data is left out. Without criteria the assessment passes. The throughput profile has only
// bandwidth criteria: bytes moved in each direction that the load has.
func NewStorageHealth(s *CacheStats, profile string, cpuP95 *float64) StorageHealth {
	h := StorageHealth{Criteria: []Criterion{}, OverallStatus: "PASS"}
	add := func(c Criterion) {
		if h.TotalCount++; c.Passed {
			h.PassedCount++
		} else {
			h.OverallStatus = "FAIL"
		}
		h.Criteria = append(h.Criteria, c)
	}
	if profile == "throughput" {
		moved := func(name string, rate, other float64) {
			if rate > 0 || other == 0 {
				add(Criterion{name, ">0", fmt.Sprintf("%.2f", rate), "GiB/s", rate > 0})
			}
		}
		moved("Storage KV Read Bandwidth", s.StorageReadBandwidth, s.StorageWriteBandwidth)
		moved("Storage KV Write Bandwidth", s.StorageWriteBandwidth, s.StorageReadBandwidth)
		return h
	}
	below := func(name string, target float64, p95 *float64) {
		if p95 != nil {
			add(Criterion{name, target, *p95, "ms", *p95 < target})
		}
	}
	below("Storage Tier Write Device P95 < 500ms", 500, s.latency("storage_write_device_p95_ms"))
	below("Storage Tier Read Device P95 < 200ms", 200, s.latency("storage_read_device_p95_ms"))
	below("CPU RAM P95 < 150ms", 150, cpuP95)
	if s.CacheHits+s.CacheMisses > 0 {
		add(Criterion{"Cache Hit Rate > 30%", 0.3, s.CacheHitRate, "ratio", s.CacheHitRate > 0.3})
	}
	return h
}

// latency returns the value of a key of LatencyMS, nil if absent.
func (c *CacheStats) latency(key string) *float64 {
	if v, ok := c.LatencyMS[key]; ok {
		return &v
	}
	return nil
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
	declared[len(declared)-1] = ',' // replaces the closing brace
	return append(declared, latencies[1:]...), nil
}

// UnmarshalJSON is the inverse of MarshalJSON.
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

// Derive computes the hit rate, 0 without lookups.
func (m *MultiTurnStats) Derive() { m.HitRate = share(m.CacheHits, m.CacheHits+m.CacheMisses) }

// Derive computes the ratios by the Python benchmark's definitions.
func (s *CacheStats) Derive() {
	s.CacheHitRate = share(s.CacheHits, s.CacheHits+s.CacheMisses)
	s.ReadWriteRatio = share(s.TotalReadBytes, max(s.TotalWriteBytes, 1))
}

// share returns a ÷ b, 0 if b is 0, as the Python benchmark does.
func share(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// CheckpointSummary has the keys of the summary that DLIO, the engine of MLPerf Storage's
// checkpoint workload, writes at the end of a run (dlio_benchmark, utils/statscounter.py), as far
// as DLIO's report reads them. GB is GiB. A direction without checkpoints has no keys.
type CheckpointSummary struct {
	NumAccelerators int              `json:"num_accelerators"`
	NumHosts        int              `json:"num_hosts"`
	HostMemoryGB    []float64        `json:"host_memory_GB"` // per host
	Start           string           `json:"start"`
	End             string           `json:"end"`
	Metric          CheckpointMetric `json:"metric"`
	Notice          string           `json:"notice"` // ours: what it is not
}

// StreamSummary has the keys of the reference's streaming checkpoint. Times are in seconds, keys in
// gbps in GiB/s.
type StreamSummary struct {
	GenTime         float64  `json:"gen_time"` // of one producer, without waits
	IOTime          float64  `json:"io_time"`  // with a write in flight, and the flush
	CloseTime       float64  `json:"close_time"`
	TotalTime       float64  `json:"total_time"`
	TotalBytes      int64    `json:"total_bytes"`
	Chunks          int64    `json:"chunks"`
	GenGB           *float64 `json:"gen_throughput_gbps"`
	IOGB            *float64 `json:"io_throughput_gbps"`
	ThroughputRatio *float64 `json:"throughput_ratio"`
	OverheadPercent *float64 `json:"pipeline_overhead_pct"`
	Bottleneck      string   `json:"bottleneck"`
	Notice          string   `json:"notice"` // ours: what it is not
}

// StreamNotice is the value of StreamSummary.Notice.
const StreamNotice = "made by kvbench in the form of the reference's streaming checkpoint; gbps " +
	"are GiB/s"

// CheckpointMetric has the means and population standard deviations over checkpoints, of durations
// and of rates. The mean rate is not size ÷ mean duration.
type CheckpointMetric struct {
	*Saved
	*Loaded
	SizeGB float64 `json:"checkpoint_size_GB"`
}

// Saved has the metrics of the writes.
type Saved struct {
	IOMean        float64 `json:"save_checkpoint_io_mean_GB_per_second"`
	IOStdev       float64 `json:"save_checkpoint_io_stdev_GB_per_second"`
	DurationMean  float64 `json:"save_checkpoint_duration_mean_seconds"`
	DurationStdev float64 `json:"save_checkpoint_duration_stdev_seconds"`
}

// Loaded has the metrics of the reads.
type Loaded struct {
	IOMean        float64 `json:"load_checkpoint_io_mean_GB_per_second"`
	IOStdev       float64 `json:"load_checkpoint_io_stdev_GB_per_second"`
	DurationMean  float64 `json:"load_checkpoint_duration_mean_seconds"`
	DurationStdev float64 `json:"load_checkpoint_duration_stdev_seconds"`
}

// CheckpointNotice is the value of CheckpointSummary.Notice.
const CheckpointNotice = "made by kvbench in the form of DLIO's summary.json: no MLPerf result"
