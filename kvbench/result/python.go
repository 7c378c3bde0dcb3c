package result

import (
	"math"
	"time"

	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
)

// NewScaleEvents are the rounds of an autoscaler that changed something, as the Python benchmark
// tells them.
func NewScaleEvents(r *Result) ([]python.ScaleEvent, *python.ScaleSummary) {
	events, a := []python.ScaleEvent{}, r.Autoscaler
	if a == nil {
		return events, nil
	}
	sum := &python.ScaleSummary{InitialUsers: a.InitialUsers, FinalUsers: a.FinalUsers}
	if a.Mode == AutoscaleCapacity {
		sum.PeakUsers, sum.PeakThroughput = &a.SustainedUsers, &a.SustainedRate
	}
	// The window's opening; zero where none is known.
	start, _ := time.Parse(time.RFC3339Nano, r.StartTime)
	for _, round := range a.History {
		if round.Action == ScaleHold {
			continue
		}
		e := python.ScaleEvent{
			Timestamp: start.Add(time.Duration(round.AtS * 1e9)).Format(time.RFC3339Nano),
			Mode:      a.Mode, Action: round.Action, Users: round.NextUsers,
			Saturation: units.OrZero(round.Saturation),
			ReadP95:    units.OrZero(round.ReadSoFarMS),
			WriteP95:   units.OrZero(round.WriteSoFarMS), Throughput: round.TokensPerSecond,
		}
		if e.Action == ScaleStop {
			e.PeakThroughput = &a.SustainedRate
		}
		events = append(events, e)
	}
	sum.Events = len(events)
	return events, sum
}

// NewValidation is what the Python benchmark says of a recorded run: its hit rate counts
// re-reads as hits, and there is nothing to compare with a record that does not tell it.
func NewValidation(r *Result) *python.Validation {
	rec := r.Recording
	if rec == nil || rec.HitRate.Recorded == nil {
		return nil
	}
	c := python.ValidationCheck{Benchmark: r.Summary.CacheStats.CacheHitRate,
		Trace: *rec.HitRate.Recorded}
	// A record without a hit has nothing to relate to: the difference is then that of the rates.
	c.ErrorPct = 100 * math.Abs(c.Benchmark-c.Trace)
	if c.Trace > 0 {
		c.ErrorPct /= c.Trace
	}
	c.Within = c.ErrorPct <= 5
	return &python.Validation{Passed: c.Within, AvgError: c.ErrorPct,
		Comparison: python.ValidationChecks{CacheHitRate: c}, TraceStats: rec.Stats}
}

// pythonKeys makes the keys of the Python benchmark that are no sums, in its sense of them: 0 where
// there is nothing.
func (r *Result) pythonKeys(hists Histograms, profile string) {
	s := &r.Summary
	s.EndToEndLatency = NewLatencyMS(hists["request_end_to_end"])
	s.StorageIOLatency = NewLatencyMS(hists["request_storage"])
	s.GenerationLatency = NewLatencyMS(hists["request_generation"])
	s.MultiTurnStats.Derive()
	c := &s.CacheStats
	c.Derive()
	c.LatencyMS = hists.PythonLatencies()
	c.StorageHealth = python.NewStorageHealth(c, profile, hists.CPUP95MS())
	for class, q := range s.QoSMetrics {
		target := 0.0
		if q.SLA != nil {
			target = q.SLA.TargetP95MS
		}
		s.QoSMetrics[class] = NewQoSStat(hists["request_end_to_end_"+class],
			r.Load[class].Unmet(), int64(math.Round(target*1e6)))
	}
}

// slaMet is the compliance from which a class meets its target: its p95 is what the target is of.
const slaMet = 0.95

// NewQoSStat judges a class by its target in nanoseconds; the histogram is of its requests from end
// to end. Unmet are those that have not ended and are violations all the same, see
// ClassOutcome.Unmet.
func NewQoSStat(h *Histogram, unmet, target int64) python.QoSStat {
	n := h.Count()
	if n+unmet == 0 {
		return python.QoSStat{NoData: true}
	}
	sla := &python.SLA{
		TargetP95MS: Milliseconds(target), ActualP95MS: h.PercentileMS(0.95),
		Compliance: units.Ratio(h.AtMost(target), n+unmet),
	}
	sla.Met = units.OrZero(sla.Compliance) >= slaMet
	stat := python.QoSStat{NoData: n == 0, TotalRequests: &n, SLA: sla}
	if n > 0 {
		all := NewLatencyMS(h)
		stat.Latency = &python.QoSLatencyMS{Mean: all.Mean, P50: all.P50, P95: all.P95,
			P99: all.P99, Max: new(Milliseconds(h.n.Max))}
	}
	return stat
}
