package sizing

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"kvbench/kvbench/params"
)

// Formats are those of Device, for an error and a help text.
const Formats = "text, json or blis"

// formats are how a derived drive is written.
var formats = map[string]func(derived) (string, error){
	"text": func(d derived) (string, error) { return params.FormatDevice(d.device), nil },
	"json": asJSON,
	"blis": asTier,
}

// document is a drive in JSON. Rates are bytes/s and requests/s, times nanoseconds; 0 of a rate of
// requests is no bound.
type document struct {
	SimulateDevice string   `json:"simulate_device"` // the text that -simulate-device takes
	ReadRate       float64  `json:"read_bytes_per_second"`
	WriteRate      float64  `json:"write_bytes_per_second"`
	ReadIOPS       float64  `json:"read_iops"`
	WriteIOPS      float64  `json:"write_iops"`
	ReadLatencyNS  int64    `json:"read_latency_ns"`
	WriteLatencyNS int64    `json:"write_latency_ns"`
	Parallelism    int      `json:"parallelism"`
	Duplex         bool     `json:"duplex"`
	SliceNS        int64    `json:"slice_ns"`
	Reasons        []string `json:"reasons"` // one for each parameter, for people
}

func asJSON(d derived) (string, error) {
	m := d.device
	text, err := json.MarshalIndent(document{params.FormatDevice(m), m.Read, m.Write, m.ReadIOPS,
		m.WriteIOPS, int64(m.ReadLatency), int64(m.WriteLatency), m.Parallelism, m.Duplex,
		int64(m.Slice), d.reasons}, "", "  ")
	return string(text), err
}

// asTier is a storage tier as BLIS (github.com/inference-sim/inference-sim) has them under
// kv_offload_devices of its defaults.yaml: rates in units of 1,000,000 bytes/s, and one latency in
// microseconds, added to each transfer. Its models know no bound of requests and no queue, so a
// drive that has one is better than that tier says of small blocks, or worse.
func asTier(d derived) (string, error) {
	m := d.device
	const mb = 1e6
	micro := func(t time.Duration) float64 { return float64(t) / float64(time.Microsecond) }
	var b strings.Builder
	fmt.Fprintf(&b, "# Derived from runs on the drive. The latency is that of reads, that of "+
		"writes was %v.\n", m.WriteLatency)
	if m.ReadIOPS+m.WriteIOPS > 0 {
		fmt.Fprintf(&b, "# Not in this format: %.0f reads/s and %.0f writes/s at most (0 = no "+
			"bound).\n", m.ReadIOPS, m.WriteIOPS)
	}
	if !m.Duplex {
		b.WriteString("# Not in this format: reads and writes share the bandwidth.\n")
	}
	fmt.Fprintf(&b, "measured: {read_bandwidth_mb_s: %.1f, write_bandwidth_mb_s: %.1f, "+
		"base_latency_us: %.1f}", m.Read/mb, m.Write/mb, micro(m.ReadLatency))
	return b.String(), nil
}
