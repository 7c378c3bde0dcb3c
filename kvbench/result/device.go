package result

import (
	"fmt"
	"time"

	"kvbench/kvbench/units"
)

// SimulatedDevice is the device model of a simulated run as its result tells it:
// the queueing model of a drive, with the names and units of the JSON.
type SimulatedDevice struct {
	Read         float64       `json:"read_bytes_per_s"`
	Write        float64       `json:"write_bytes_per_s"`
	ReadIOPS     float64       `json:"read_iops"`  // requests/s, 0 = no bound
	WriteIOPS    float64       `json:"write_iops"` //
	ReadLatency  time.Duration `json:"read_latency_ns"`
	WriteLatency time.Duration `json:"write_latency_ns"`
	Parallelism  int           `json:"parallelism"`
	Duplex       bool          `json:"duplex"`
	Slice        time.Duration `json:"slice_ns"` // 0: the medium passes requests one by one
}

// String describes the model for people.
func (m SimulatedDevice) String() string {
	medium := "one medium for both"
	if m.Duplex {
		medium = "full duplex"
	}
	if m.Slice > 0 {
		medium += fmt.Sprintf(", in slices of %v", m.Slice)
	}
	iops := func(n float64) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(" and %.0f requests/s", n)
	}
	return fmt.Sprintf("simulated device (reads %s%s after %v, writes %s%s after %v, %d at a "+
		"time, %s)",
		units.BytesPerSec.Text(m.Read), iops(m.ReadIOPS), m.ReadLatency,
		units.BytesPerSec.Text(m.Write), iops(m.WriteIOPS), m.WriteLatency, m.Parallelism, medium)
}
