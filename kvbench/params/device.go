package params

import (
	"errors"
	"flag"
	"fmt"
	"slices"
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

// deviceKey is one of the pairs that -simulate-device takes. The text is recorded with every result
// and has to read back to the same model, so that a run can be repeated from its result.
type deviceKey struct {
	name   string
	always bool // is written even when it is nothing
	value  flag.Value
}

func deviceKeys(m *tiers.DeviceModel) []deviceKey {
	return []deviceKey{
		{"read", true, rate(&m.Read)},
		{"write", true, rate(&m.Write)},
		{"read-latency", true, latency(&m.ReadLatency)},
		{"write-latency", true, latency(&m.WriteLatency)},
		{"parallelism", true, whole(&m.Parallelism, 1, maxParallelism)},
		{"read-iops", false, iops(&m.ReadIOPS)},
		{"write-iops", false, iops(&m.WriteIOPS)},
		{"duplex", false, boolean(&m.Duplex)},
		{"slice", false, latency(&m.Slice)},
	}
}

// ParseDevice reads key=value pairs separated by commas. Read and write must be given; the
// latencies are 0, IOPS without a bound, parallelism 128, duplex false and no slices otherwise. The
// error says what the text must be, to be put after "must be".
func ParseDevice(text string) (tiers.DeviceModel, error) {
	m := tiers.DeviceModel{Parallelism: DefaultParallelism}
	keys := deviceKeys(&m)
	var names, seen []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	refuse := func(format string, args ...any) (tiers.DeviceModel, error) {
		return tiers.DeviceModel{}, fmt.Errorf("pairs "+format, args...)
	}
	// The first mistake is told alone: after it the rest is guesswork.
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		i := slices.Index(names, key)
		switch {
		case !ok:
			return refuse("%s (%q is none)", deviceExample, part)
		case slices.Contains(seen, key):
			return refuse("%s (%s is there twice)", deviceExample, key)
		case i < 0:
			return refuse("%s (%q is unknown%s)", deviceExample, key, units.Suggestion(key, names))
		}
		seen = append(seen, key)
		if err := keys[i].value.Set(value); err != nil {
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
		if text := k.value.String(); k.always || text != nothing[i].value.String() {
			pairs = append(pairs, k.name+"="+text)
		}
	}
	return strings.Join(pairs, ",")
}

// The kinds of a pair are those of parameters where they fit; rates, IOPS and latencies have limits
// and spellings of their own, which are those of data sheets.

// rate is bytes per second.
func rate(to *float64) kind[float64] {
	return bounded(kind[float64]{to, func(text string) (float64, error) {
		n, err := units.ParseSize(strings.TrimSuffix(text, "/s"), 1)
		return float64(n), err
	}, func(x float64) string { return units.FormatSize(int64(x)) + "/s" }}, 1, maxDeviceRate,
		"a rate of at least 1B/s and at most 1PiB/s, such as 7GiB/s")
}

// iops is requests per second.
func iops(to *float64) kind[float64] {
	return bounded(kind[float64]{to, func(text string) (float64, error) {
		n, err := strconv.Atoi(text)
		return float64(n), err
	}, formatFloat}, 0, maxDeviceIOPS,
		fmt.Sprintf("a whole number of requests/s in 0…%d, 0 = no bound", maxDeviceIOPS))
}

// latency is a time that a drive takes.
func latency(to *time.Duration) kind[time.Duration] {
	return bounded(kind[time.Duration]{to, units.ParseDuration, func(d time.Duration) string {
		return strings.ReplaceAll(d.String(), "µ", "u")
	}}, 0, maxDeviceLatency, fmt.Sprintf("a time from 0s to %s", maxDeviceLatency))
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
