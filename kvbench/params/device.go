package params

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// deviceExample is what a person is shown who got it wrong.
const deviceExample = "such as read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us," +
	"parallelism=128"

// Limits of a device; outside of them no drive and no calculation makes sense.
const (
	DefaultParallelism = 128 // of a device that says nothing of it
	maxParallelism     = 1 << 20
	maxDeviceLatency   = time.Minute
	maxDeviceRate      = 1 << 50
	maxDeviceIOPS      = 1_000_000_000
)

// deviceKeys are the pairs that -simulate-device takes. The text is recorded with every result and
// has to read back to the same model, so that a run can be repeated from its result.
func deviceKeys(m *tiers.DeviceModel) []parameter {
	always := []string{written}
	return []parameter{
		{name: "read", is: always, value: rate(&m.Read)},
		{name: "write", is: always, value: rate(&m.Write)},
		{name: "read-latency", is: always, value: latency(&m.ReadLatency)},
		{name: "write-latency", is: always, value: latency(&m.WriteLatency)},
		{name: "parallelism", is: always, value: whole(&m.Parallelism, 1, maxParallelism)},
		{name: "read-iops", value: iops(&m.ReadIOPS)},
		{name: "write-iops", value: iops(&m.WriteIOPS)},
		{name: "duplex", value: boolean(&m.Duplex)},
		{name: "slice", value: latency(&m.Slice)},
		{name: "flush", value: latency(&m.Flush)},
	}
}

// written sets pairs apart that are told even when they are nothing.
const written = "written"

// ParseDevice reads key=value pairs separated by commas. Read and write must be given; the
// latencies are 0, IOPS without a bound, parallelism 128, duplex false, no slices and free flushes
// otherwise. The error says what the text must be, to be put after "must be".
func ParseDevice(text string) (tiers.DeviceModel, error) {
	m := tiers.DeviceModel{Parallelism: DefaultParallelism}
	keys := deviceKeys(&m)
	seen := map[string]bool{}
	refuse := func(format string, args ...any) (tiers.DeviceModel, error) {
		return tiers.DeviceModel{}, fmt.Errorf("pairs "+format, args...)
	}
	// The first mistake is told alone: after it the rest is guesswork.
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		k := row(keys, key)
		switch {
		case !ok:
			return refuse("%s (%q is none)", deviceExample, part)
		case k == nil:
			return refuse("%s (%q is unknown%s)", deviceExample, key,
				units.Suggestion(key, names(keys)))
		case seen[key]:
			return refuse("%s (%s is there twice)", deviceExample, key)
		}
		seen[key] = true
		if err := k.value.Set(value); err != nil {
			return refuse("of which %s is %w", key, err)
		}
	}
	if m.Read == 0 || m.Write == 0 {
		return tiers.DeviceModel{}, errors.New("at least read and write, " + deviceExample)
	}
	return m, nil
}

// FormatDevice is the text that ParseDevice reads back, without what is not there.
func FormatDevice(m tiers.DeviceModel) string {
	var pairs []string
	nothing := deviceKeys(new(tiers.DeviceModel))
	for i, k := range deviceKeys(&m) {
		if text := k.value.String(); k.has(written) || text != nothing[i].value.String() {
			pairs = append(pairs, k.name+"="+text)
		}
	}
	return strings.Join(pairs, ",")
}

// The kinds of a pair are those of parameters where they fit; rates, IOPS and latencies have limits
// and spellings of their own, which are those of data sheets.

// decimal are the units of data sheets, which count rates in powers of ten.
var decimal = map[string]int64{"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}

// rate is bytes per second. What a data sheet says is meant: 14GB/s is 14,000,000,000, and 7 % less
// than 14GiB/s.
func rate(to *float64) kind[float64] {
	return bounded(to, func(text string) (float64, error) {
		size, perSecond := strings.CutSuffix(text, "/s")
		number := strings.TrimRight(size, "kKmMgGtTbB")
		if unit := decimal[strings.ToLower(size[len(number):])]; perSecond && unit > 0 {
			n, err := units.ParseSize(number, unit)
			return float64(n), err
		}
		n, err := units.ParseSize(size, 1)
		return float64(n), err
	}, func(x float64) string { return units.FormatSize(int64(x)) + "/s" }, 1, maxDeviceRate,
		"a rate of at least 1B/s and at most 1PiB/s, such as 7GiB/s or 7GB/s")
}

// iops is requests per second.
func iops(to *float64) kind[float64] {
	return bounded(to, func(text string) (float64, error) {
		n, err := strconv.Atoi(text)
		return float64(n), err
	}, formatFloat, 0, maxDeviceIOPS,
		fmt.Sprintf("a whole number of requests/s in 0…%d, 0 = no bound", maxDeviceIOPS))
}

// latency is a time that a drive takes.
func latency(to *time.Duration) kind[time.Duration] {
	return bounded(to, units.ParseDuration, func(d time.Duration) string {
		return strings.ReplaceAll(d.String(), "µ", "u")
	}, 0, maxDeviceLatency, fmt.Sprintf("a time from 0s to %s", maxDeviceLatency))
}

// device is a simulated drive, or nil.
func device(to **tiers.DeviceModel) kind[*tiers.DeviceModel] {
	return kind[*tiers.DeviceModel]{to, func(text string) (*tiers.DeviceModel, error) {
		if text == "" {
			return nil, nil
		}
		model, err := ParseDevice(text)
		return &model, err
	}, func(model *tiers.DeviceModel) string {
		if model == nil {
			return ""
		}
		return FormatDevice(*model)
	}}
}
