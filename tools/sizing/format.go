package sizing

import (
	"encoding/json"

	"kvbench/kvbench/params"
)

// Formats are those of Device, for an error and a help text.
const Formats = "text or json"

// formats are how a derived drive is written.
var formats = map[string]func(derived) (string, error){
	"text": func(d derived) (string, error) { return params.FormatDevice(d.device), nil },
	"json": asJSON,
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
