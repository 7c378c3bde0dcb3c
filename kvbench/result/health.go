package result

// NewStorageHealth is the Python benchmark's assessment with its own names and targets. A criterion
// without samples is left out, as there. In the throughput profile latency is not judged: only that
// bytes moved.
func NewStorageHealth(s *CacheStats, profile string) StorageHealth {
	h := StorageHealth{Criteria: []Criterion{}}
	add := func(name string, target float64, actual *float64, unit string,
		passed func(float64) bool) {
		if actual != nil {
			h.Criteria = append(h.Criteria, Criterion{name, target, *actual, unit, passed(*actual)})
		}
	}
	below := func(target float64) func(float64) bool {
		return func(v float64) bool { return v < target }
	}
	above := func(target float64) func(
		float64) bool {
		return func(v float64) bool { return v > target }
	}
	if profile == "throughput" {
		add("Storage Read Bandwidth > 0", 0, s.StorageReadBandwidth, "GiB/s", above(0))
		add("Storage Write Bandwidth > 0", 0, s.StorageWriteBandwidth, "GiB/s", above(0))
	} else {
		add("Storage Tier Write Device P95 < 500ms", 500, s.latency("storage_write_device_p95_ms"),
			"ms", below(500))
		add("Storage Tier Read Device P95 < 200ms", 200, s.latency("storage_read_device_p95_ms"),
			"ms", below(200))
		add("CPU RAM P95 < 150ms", 150,
			larger(s.latency("cpu_read_p95_ms"), s.latency("cpu_write_p95_ms")), "ms", below(150))
	}
	add("Cache Hit Rate > 30%", 0.3, s.CacheHitRate, "ratio", above(0.3))
	h.TotalCount = len(h.Criteria)
	h.OverallStatus = "PASS"
	for _, c := range h.Criteria {
		if c.Passed {
			h.PassedCount++
		} else {
			h.OverallStatus = "FAIL"
		}
	}
	if h.TotalCount == 0 {
		h.OverallStatus = "NO DATA"
	}
	return h
}

func (c *CacheStats) latency(key string) *float64 {
	if v, ok := c.LatencyMS[key]; ok {
		return &v
	}
	return nil
}

func larger(a, b *float64) *float64 {
	if a == nil || (b != nil && *b > *a) {
		return b
	}
	return a
}
