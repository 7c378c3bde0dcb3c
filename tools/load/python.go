package load

import (
	"encoding/json"
	"errors"
	"strings"

	"kvbench/kvbench/result"
)

// pythonResult decodes a result of the Python benchmark, whose keys ours have too.
func pythonResult(raw json.RawMessage) (*result.Result, error) {
	r := &result.Result{}
	err := json.Unmarshal(raw, r)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && strings.HasPrefix(kind.Field, "summary.autoscaling_") {
		err = nil // its autoscaler is another, and nobody reads it; all else was decoded
	}
	return r, err
}

// pythonMetrics are the values of our benchmark line that a result of the Python benchmark has
// under a key of the same meaning. What it does not have is not invented; a direction without
// traffic has no rate.
func pythonMetrics(raw json.RawMessage) (out []result.Metric) {
	var doc struct {
		Summary struct {
			Requests *float64            `json:"requests_per_second"`
			Tokens   *float64            `json:"avg_throughput_tokens_per_sec"`
			Storage  *float64            `json:"storage_throughput_tokens_per_sec"`
			EndToEnd map[string]*float64 `json:"end_to_end_latency_ms"`
			Cache    struct {
				HitRate  *float64 `json:"cache_hit_rate"`
				Read     *float64 `json:"tier_storage_read_bandwidth_gbps"`
				Write    *float64 `json:"tier_storage_write_bandwidth_gbps"`
				ReadP50  *float64 `json:"storage_read_device_p50_ms"`
				ReadP95  *float64 `json:"storage_read_device_p95_ms"`
				ReadP99  *float64 `json:"storage_read_device_p99_ms"`
				WriteP95 *float64 `json:"storage_write_device_p95_ms"`
			} `json:"cache_stats"`
		} `json:"summary"`
	}
	if json.Unmarshal(raw, &doc) != nil {
		return nil // keys of another type: the columns show them, the line cannot
	}
	// A rate of 0 means that there was no traffic, which its file cannot tell from unknown.
	add := func(unit string, v *float64, scale float64) {
		if v != nil && *v != 0 {
			out = append(out, result.Metric{Unit: unit, Value: *v * scale})
		}
	}
	// Its names say gbps and hold GiB/s.
	const gib, ms = 1 << 30, 1e6
	s, c := doc.Summary, doc.Summary.Cache
	add("req/s", s.Requests, 1)
	add("tok/s", s.Tokens, 1)
	add("storage-tok/s", s.Storage, 1)
	add("read-B/s", c.Read, gib)
	add("write-B/s", c.Write, gib)
	add("read-p50-ns", c.ReadP50, ms)
	add("read-p95-ns", c.ReadP95, ms)
	add("read-p99-ns", c.ReadP99, ms)
	add("write-p95-ns", c.WriteP95, ms)
	add("e2e-p95-ns", s.EndToEnd["p95"], ms)
	return out
}
