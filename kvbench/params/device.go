package params

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kvbench/kvbench/units"
	"kvbench/tiers"
)

const deviceExample = "such as read=14GiB/s,write=7GiB/s,read-latency=80us,write-latency=20us," +
	"parallelism=128"

// DefaultParallelism is the parallelism of a device whose description gives none.
const DefaultParallelism = 128

//go:embed device.txt
var deviceText string

// devicePairs are the pairs that -simulate-device takes. The text is recorded with every result and
// has to read back to the same model, so that a run can be repeated from its result.
var devicePairs []*parameter

func init() { devicePairs = read(deviceText) } // which the kinds of the other tables need

// ParseDevice reads key=value pairs separated by commas. Read and write must be given; the
// latencies are 0, IOPS without a bound, parallelism 128, duplex false, no slices and free flushes
// otherwise. The error says what the text must be, to be put after "must be".
func ParseDevice(text string) (tiers.DeviceModel, error) {
	m := tiers.DeviceModel{Parallelism: DefaultParallelism}
	refuse := func(format string, args ...any) (tiers.DeviceModel, error) {
		return tiers.DeviceModel{}, fmt.Errorf("pairs "+format, args...)
	}
	seen := map[string]bool{}
	// Only the first mistake is reported: what follows it is guesswork.
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		i := slices.IndexFunc(devicePairs, func(p *parameter) bool { return p.name == key })
		switch {
		case !ok:
			return refuse("%s (%q is none)", deviceExample, part)
		case i < 0:
			return refuse("%s (%q is unknown%s)", deviceExample, key,
				units.Suggestion(key, names(devicePairs)))
		case seen[key]:
			return refuse("%s (%s is there twice)", deviceExample, key)
		}
		seen[key] = true
		if err := devicePairs[i].set(&m, "", value); err != nil {
			return refuse("of which %s is %w", key, err)
		}
	}
	if m.Read == 0 || m.Write == 0 {
		return tiers.DeviceModel{}, errors.New("at least read and write, " + deviceExample)
	}
	return m, nil
}

// FormatDevice is the text that ParseDevice reads back. Pairs without an effect are left out.
func FormatDevice(m tiers.DeviceModel) string {
	var pairs []string
	for _, p := range devicePairs {
		if text := p.text(&m); p.has("written") || text != p.text(new(tiers.DeviceModel)) {
			pairs = append(pairs, p.name+"="+text)
		}
	}
	return strings.Join(pairs, ",")
}

// decimal are the units of data sheets, which count rates in powers of ten.
var decimal = map[string]int64{"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}

// parseRate reads bytes per second as a data sheet means them: 14GB/s is 14,000,000,000, and 7 %
// less than 14GiB/s.
func parseRate(text string) (float64, error) {
	size, perSecond := strings.CutSuffix(text, "/s")
	number := strings.TrimRight(size, "kKmMgGtTbB")
	unit := int64(1)
	if d := decimal[strings.ToLower(size[len(number):])]; perSecond && d > 0 {
		size, unit = number, d
	}
	n, err := units.ParseSize(size, unit)
	return float64(n), err
}

func formatRate(x float64) string { return units.FormatSize(int64(x)) + "/s" }

// parseDevice and formatDevice are for a field that is nil without a device.
func parseDevice(text string) (*tiers.DeviceModel, error) {
	m, err := ParseDevice(text)
	return &m, err
}

func formatDevice(m *tiers.DeviceModel) string {
	if m == nil {
		return ""
	}
	return FormatDevice(*m)
}
