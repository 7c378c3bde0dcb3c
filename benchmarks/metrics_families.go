package benchmarks

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/tiers"
	"kvbench/tiers/cache"
)

// family is a metric with all its series. A family without values is absent, never 0.
type family struct {
	desc    *prometheus.Desc
	kind    prometheus.ValueType
	collect func(s *series, emit emit)
}

// emit takes one value, with the value of the family's own label if it has one.
type emit func(value float64, label ...string)

// newFamily describes a metric. The unit is a suffix of its name; "" is a plain number.
func newFamily(kind prometheus.ValueType, name, unit, help string, collect func(*series, emit),
	label ...string) family {
	// The prefix separates the names from those of the inference server on the same dashboard.
	name = "kvbench_" + name
	if unit != "" {
		name += "_" + unit
	}
	if kind == prometheus.CounterValue {
		name += "_total"
	}
	labels := prometheus.UnconstrainedLabels(append([]string{"benchmark", "rank"}, label...))
	return family{prometheus.V2.NewDesc(name, help, labels, nil, prometheus.WithUnit(unit)), kind,
		collect}
}

// tierCounter counts for every tier of the benchmark.
func tierCounter(name, unit, help string, value func(record.Live, tiers.Kind) float64) family {
	return newFamily(prometheus.CounterValue, name, unit, help, func(s *series, emit emit) {
		t := s.total()
		for kind := range tiers.Kind(tiers.NumKinds) {
			// A tier without traffic does not belong to this load, unless it has a gauge.
			exists := t.Bytes[kind] != [tiers.NumOps]int64{} || kind == tiers.Storage
			for _, g := range s.now.Tiers {
				exists = exists || g.Level == kind
			}
			if exists {
				emit(value(t, kind), kind.String())
			}
		}
	}, "tier")
}

// counter counts for the whole benchmark, from the first trial of the run on.
func counter(name, help string, value func(record.Live) int64) family {
	return newFamily(prometheus.CounterValue, name, "", help,
		func(s *series, emit emit) { emit(float64(value(s.total()))) })
}

// gauge exists only while a trial runs: between two trials its last value would be stale.
func gauge(name, unit, help string, collect func(*kvbench.Snapshot, emit), label ...string) family {
	return newFamily(prometheus.GaugeValue, name, unit, help, func(s *series, emit emit) {
		if s.running {
			collect(&s.now, emit)
		}
	}, label...)
}

func tierGauge(name, unit, help string, value func(cache.Gauge) float64) family {
	return gauge(name, unit, help, func(now *kvbench.Snapshot, emit emit) {
		for _, g := range now.Tiers {
			emit(value(g), g.Level.String())
		}
	}, "tier")
}

// Collect implements prometheus.Collector. The lock is not held while a slow client reads.
func (s *metricsServer) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range families {
		for _, one := range s.series {
			f.collect(one, func(value float64, label ...string) {
				to <- prometheus.MustNewConstMetric(f.desc, f.kind, value,
					append([]string{one.benchmark, strconv.Itoa(one.rank)}, label...)...)
			})
		}
	}
}

// Describe implements prometheus.Collector.
func (s *metricsServer) Describe(to chan<- *prometheus.Desc) {
	for _, f := range families {
		to <- f.desc
	}
}

// tierTraffic counts the bytes and the I/O requests of one direction.
func tierTraffic(op tiers.Op, moved, requests, also string) []family {
	name := "kv_offload_tiering_" + op.String()
	return []family{
		tierCounter(name, "bytes", "Bytes "+moved+" the tier.",
			func(t record.Live, k tiers.Kind) float64 { return float64(t.Bytes[k][op]) }),
		tierCounter(name+"_time", "seconds", "Time that I/O requests of "+requests+also+" were in "+
			"flight at the tier, summed over parallel ones.",
			func(t record.Live, k tiers.Kind) float64 { return t.IO[k][op].InFlight.Seconds() }),
		tierCounter(name+"_requests", "", "I/O requests of "+requests+" that the tier completed.",
			func(t record.Live, k tiers.Kind) float64 { return float64(t.IO[k][op].Requests) }),
	}
}

// families are all metrics. Names are those of vLLM's OffloadingConnector and its tiers
// (vllm/v1/kv_offload) and of its engine (docs/usage/metrics.md), where the counted events are the
// same or nearly so: blocks there, entries here. They begin with kvbench_ instead of vllm:, because
// OpenMetrics keeps colons for rules, and have the units in which Prometheus counts: bytes and seconds.
var families = append(append(tierTraffic(tiers.Read, "read from", "reads", ""),
	tierTraffic(tiers.Write, "written to", "writes", ", flushes among them,")...), []family{
	tierCounter("kv_offload_eviction", "", "Entries that were evicted from the tier.",
		func(t record.Live, k tiers.Kind) float64 { return float64(t.Evicted[k]) }),
	counter("prefix_cache_queries", "Prompt tokens of completed requests.",
		func(t record.Live) int64 { return t.PromptTokens }),
	counter("prefix_cache_hits", "Prompt tokens of completed requests that were found in a tier.",
		func(t record.Live) int64 { return t.FoundTokens }),
	counter("request_success", "Requests completed; operations for plain I/O.",
		func(t record.Live) int64 { return t.Requests }),
	counter("generation_tokens", "Tokens generated by completed requests.",
		func(t record.Live) int64 { return t.Tokens }),
	counter("operation_failures", "Operations on tiers that failed, also outside of windows.",
		func(t record.Live) int64 { return t.Failures }),

	gauge("num_requests_running", "", "Requests in flight.",
		func(now *kvbench.Snapshot, emit emit) { emit(float64(now.InFlight)) }),
	gauge("num_requests_waiting", "", "Requests that wait for a worker.",
		func(now *kvbench.Snapshot, emit emit) { emit(float64(now.Queued)) }),
	tierGauge("kv_offload_cache_usage_perc", "", "Used part of the tier's capacity; 1 is full.",
		func(g cache.Gauge) float64 { return float64(g.Used) / float64(max(g.Capacity, 1)) }),
	tierGauge("kv_offload_cache_used", "bytes", "Bytes of entries and of capacity reserved for "+
		"them.",
		func(g cache.Gauge) float64 { return float64(g.Used) }),
	tierGauge("kv_offload_cache_capacity", "bytes", "Capacity of the tier.",
		func(g cache.Gauge) float64 { return float64(g.Capacity) }),
	tierGauge("kv_offload_cache_entries", "", "Entries in the tier.",
		func(g cache.Gauge) float64 { return float64(g.Entries) }),
	gauge("filesystem_free", "bytes", "Free space of the storage tier's filesystem.",
		func(now *kvbench.Snapshot, emit emit) {
			if now.Free >= 0 {
				emit(float64(now.Free))
			}
		}),
	gauge("stuck_io_requests", "", "I/O requests that the storage has not completed for long.",
		func(now *kvbench.Snapshot, emit emit) { emit(float64(now.Stuck)) }),
	gauge("stage", "", "1 for the current stage of the trial, by its name.",
		func(now *kvbench.Snapshot, emit emit) { emit(1, now.Stage) }, "stage"),
	gauge("stage_elapsed", "seconds", "Time since the current stage began.",
		func(now *kvbench.Snapshot, emit emit) { emit(now.Elapsed.Seconds()) }),
	newFamily(prometheus.GaugeValue, "trial", "", "Number of the current trial, from 0.",
		func(s *series, emit emit) {
			if s.running {
				emit(float64(s.trial))
			}
		}),
}...)
