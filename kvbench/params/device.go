package params

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/units"
)

// Device is the drive of -simulate-device. Bandwidths are bytes per second, IOPS requests per second, 0 = as many as the
// bandwidth lets pass.
type Device struct {
	Read, Write               int64
	ReadIOPS, WriteIOPS       int
	ReadLatency, WriteLatency time.Duration
	Parallelism               int
	Duplex                    bool          // reads and writes do not share the medium
	Slice                     time.Duration // in which a limiter hands out bandwidth, 0 = evenly
}

// deviceExample is what a person is shown who got it wrong.
const deviceExample = "such as read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us,parallelism=128"

// Limits of a device; outside of them no drive and no calculation makes sense.
const (
	DefaultParallelism = 128 // of a device that says nothing of it
	maxParallelism     = 1 << 20
	maxDeviceLatency   = time.Minute
	maxDeviceRate      = 1 << 50
	maxDeviceIOPS      = 1_000_000_000
)

var deviceKeys = []string{"read", "write", "read-iops", "write-iops", "read-latency", "write-latency", "parallelism", "duplex", "slice"}

// ParseDevice reads key=value pairs separated by commas. Read and write must be given; the latencies are 0, IOPS
// without a bound, parallelism 128, duplex false and no slices otherwise. The error says what the text must be, to be put after "must be".
func ParseDevice(text string) (Device, error) {
	d := Device{Parallelism: DefaultParallelism}
	seen := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return Device{}, fmt.Errorf("pairs %s (%q is none)", deviceExample, part)
		}
		if seen[key] {
			return Device{}, fmt.Errorf("pairs %s (%s is there twice)", deviceExample, key)
		}
		seen[key] = true
		if err := d.set(key, value); err != nil {
			return Device{}, err
		}
	}
	if !seen["read"] || !seen["write"] {
		return Device{}, errors.New("at least read and write, " + deviceExample)
	}
	return d, nil
}

func (d *Device) set(key, value string) (err error) {
	switch key {
	case "read":
		d.Read, err = deviceRate(value)
	case "write":
		d.Write, err = deviceRate(value)
	case "read-iops":
		d.ReadIOPS, err = deviceIOPS(value)
	case "write-iops":
		d.WriteIOPS, err = deviceIOPS(value)
	case "read-latency":
		d.ReadLatency, err = deviceLatency(value)
	case "write-latency":
		d.WriteLatency, err = deviceLatency(value)
	case "parallelism":
		d.Parallelism, err = strconv.Atoi(value)
		if err != nil || d.Parallelism < 1 || d.Parallelism > maxParallelism {
			err = fmt.Errorf("a whole number in 1…%d", maxParallelism)
		}
	case "slice":
		d.Slice, err = deviceLatency(value)
	case "duplex":
		if d.Duplex, err = strconv.ParseBool(value); err != nil {
			err = errors.New("true or false")
		}
	default:
		return fmt.Errorf("pairs %s (%q is unknown%s)", deviceExample, key, units.Suggestion(key, deviceKeys))
	}
	if err != nil {
		return fmt.Errorf("pairs of which %s is %w", key, err)
	}
	return nil
}

func deviceRate(text string) (int64, error) {
	n, err := units.ParseSize(strings.TrimSuffix(text, "/s"), 1)
	if err == nil && (n < 1 || n > maxDeviceRate) {
		err = errors.New("a rate of at least 1B/s and at most 1PiB/s, such as 7GiB/s")
	}
	return n, err
}

func deviceIOPS(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxDeviceIOPS {
		return 0, fmt.Errorf("a whole number of requests/s in 0…%d, 0 = no bound", maxDeviceIOPS)
	}
	return n, nil
}

func deviceLatency(text string) (time.Duration, error) {
	l, err := units.ParseDuration(text)
	if err == nil && (l < 0 || l > maxDeviceLatency) {
		err = fmt.Errorf("a time from 0s to %s", maxDeviceLatency)
	}
	return l, err
}

// String is the canonical text.
func (d Device) String() string {
	rate := func(n int64) string { return units.FormatSize(n) + "/s" }
	text := fmt.Sprintf("read=%s,write=%s,read-latency=%s,write-latency=%s,parallelism=%d",
		rate(d.Read), rate(d.Write), d.ReadLatency, d.WriteLatency, d.Parallelism)
	if d.ReadIOPS > 0 {
		text += fmt.Sprintf(",read-iops=%d", d.ReadIOPS)
	}
	if d.WriteIOPS > 0 {
		text += fmt.Sprintf(",write-iops=%d", d.WriteIOPS)
	}
	if d.Duplex {
		text += ",duplex=true"
	}
	if d.Slice > 0 {
		text += fmt.Sprintf(",slice=%s", d.Slice)
	}
	return strings.ReplaceAll(text, "µ", "u")
}

// SimulatedDevice is the drive of -simulate-device; ok is false when none is given.
func (v *Values) SimulatedDevice() (d Device, ok bool) {
	if v.SimulateDevice == "" {
		return Device{}, false
	}
	d, err := ParseDevice(v.SimulateDevice)
	return d, err == nil
}
