// Package metrics shows the progress of a run as OpenMetrics, for Prometheus and Grafana.
//
//	server.go     Server: the endpoint, for as long as the run
//	series.go     the state of each benchmark and rank: counters over its trials, current gauges
//	families.go   the metrics: names, units, help, and the source of each value
//
// Names are vLLM's where it has the same (kv_offload_tiering_read_bytes, prefix_cache_hits,
// num_requests_running, …) with kvbench_ before them instead of vllm:, because OpenMetrics keeps
// colons for rules, and with the units in which Prometheus counts: bytes and seconds. Levels are
// the label tier, as there.
//
// The engine takes a snapshot about once a second, as it does for the live line; a scrape prints
// the latest, so that it costs the load nothing, and without an endpoint none is taken. Counters
// count what results count, the measured windows, and go on from trial to trial: warm-up, filling
// and removal are stages, and not counted. When a trial is over its counters are those of its
// result.
//
// Methods of a Server may be called from any goroutine; those of the nil Server do nothing.
package metrics
