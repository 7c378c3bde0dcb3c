package gate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/perf/benchunit"
)

// DefaultLimit is the default of the loss that a gated metric may have, a share.
const DefaultLimit = 0.05

// Limits has the allowed loss of each metric. Named metrics are gated in addition to each benchmark's
// headline.
type Limits struct {
	Default float64
	limits  map[string]float64 // by tidied unit
	named   []string           // as typed, in order
}

// String returns the named metrics. String and Set implement flag.Value.
func (l *Limits) String() string { return strings.Join(l.named, ",") }

// Set parses "read-B/s=5%,read-p95-ns=10%" and adds to earlier limits. A metric without a percentage
// has the default; a percentage without a metric changes the default.
func (l *Limits) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, valued := strings.Cut(strings.TrimSpace(part), "=")
		// "10%" alone changes the default.
		if !valued && strings.HasSuffix(name, "%") {
			name, value, valued = "default", name, true
		}
		// NaN means the default, which a later flag may still change.
		name, limit := strings.TrimSpace(name), math.NaN()
		if name == "" || name == "default" && !valued {
			return fmt.Errorf("%q: a metric and a percentage are expected, for example read-B/s=5%%", text)
		}
		if valued {
			var err error
			if limit, err = percent(value); err != nil {
				return fmt.Errorf("%q: %w", part, err)
			}
		}
		if name == "default" {
			l.Default = limit
			continue
		}
		if l.limits == nil {
			l.limits = make(map[string]float64)
		}
		_, unit := benchunit.Tidy(1, name)
		l.limits[unit] = limit
		l.named = append(l.named, name)
	}
	return nil
}

// percent parses a percentage into a share. The % sign is required: 5 could mean 5 % or 500 %.
func percent(text string) (float64, error) {
	digits, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is no percentage such as 5%%", text)
	}
	return v / 100, nil
}

// limit returns the allowed loss of a metric, and whether it is a named metric.
func (l *Limits) limit(unit string) (float64, bool) {
	v, named := l.limits[unit]
	if !named || math.IsNaN(v) {
		v = l.Default
	}
	return v, named
}
