package sizing

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kvbench/kvbench/params"
	"kvbench/kvbench/units"
	"kvbench/tiers"
)

// Thresholds of the rules, chosen by runs on a throttled loop device and a virtual disk.
const (
	// full is the share of the medium's rate from which on the medium limits a run.
	full = 0.9
	// short is the share of the request rate that bandwidth and latency allow below which IOPS limit a
	// run. Real drives scale less than the model at medium depths, which must not look like an IOPS
	// limit.
	short = 0.67
	// mixedShare is the smallest share of bytes of each direction in a mixed run.
	mixedShare = 0.1
)

// derived is a device with the reasons for its parameters.
type derived struct {
	device  tiers.DeviceModel
	reasons []string
}

// because adds the reason for a parameter.
func (d *derived) because(parameter, format string, args ...any) {
	d.reasons = append(d.reasons, fmt.Sprintf("%-14s %s", parameter, fmt.Sprintf(format, args...)))
}

// directions are the names of the two directions.
var directions = [2]string{"read", "write"}

// derive applies the rules of the package comment to the runs.
func derive(runs []measured) (d derived, err error) {
	// First take the median trial of each kind.
	streams, mixed := sort(middles(runs))
	for i, s := range streams {
		if len(s) == 0 {
			err = errors.Join(err, fmt.Errorf("nothing but %ss: run StorageCeiling, or "+
				"Tier/tier=storage/op=%s", directions[1-i], directions[i]))
		}
	}
	if err != nil {
		return d, err
	}
	m := &d.device
	m.Parallelism = params.DefaultParallelism
	m.Read, m.ReadIOPS, m.ReadLatency = d.direction("read", streams[0])
	m.Write, m.WriteIOPS, m.WriteLatency = d.direction("write", streams[1])
	d.slice(slices.Concat(streams[:]...))
	d.duplex(mixed)
	return d, nil
}

// stream is one direction of a measurement.
type stream struct {
	kind
	rate  float64 // bytes/s
	times []float64
}

// String returns the measurement with the inputs of its rule, for a reason.
func (s stream) String() string {
	return fmt.Sprintf("%s, %d × %s at a time: %s/s", s.name, s.outstanding,
		units.FormatSize(s.chunk), mib(s.rate))
}

// middles returns the trial with the median bytes/s of each kind, in the order of their first trials.
// It uses the rates and times of one trial, because Little's law holds only for values of one trial.
func middles(runs []measured) (out []measured) {
	trials := map[kind][]measured{}
	for _, r := range runs {
		trials[r.trial()] = append(trials[r.trial()], r)
	}
	for _, r := range runs {
		same := trials[r.trial()]
		if same == nil {
			continue
		}
		delete(trials, r.trial())
		slices.SortStableFunc(same, func(a, b measured) int {
			return cmp.Compare(a.read+a.write, b.read+b.write)
		})
		out = append(out, same[len(same)/2])
	}
	return out
}

// sort separates reads, writes and mixed runs.
func sort(runs []measured) (streams [2][]stream, mixed []measured) {
	for _, r := range runs {
		switch share := r.read / (r.read + r.write); {
		case share >= 1-mixedShare:
			streams[0] = append(streams[0], stream{r.kind, r.read, r.times})
		case share <= mixedShare:
			streams[1] = append(streams[1], stream{r.kind, r.write, r.times})
		default:
			mixed = append(mixed, r)
		}
	}
	return streams, mixed
}

// direction derives the parameters of one direction: first the bandwidth, which gives a request's
// transfer time, then the IOPS, then the latency.
func (d *derived) direction(name string, runs []stream) (bandwidth, iops float64,
	latency time.Duration) {
	best := slices.MaxFunc(runs, func(a, b stream) int { return cmp.Compare(a.rate, b.rate) })
	d.because(name, "most bytes/s: %s", best)
	m := medium{bandwidth: best.rate}
	first, _ := m.latency(runs)
	if s, ok := m.limitedByRequests(runs, first); ok {
		m.iops = s.requests()
		d.because(name+"-iops", "the most requests/s, and neither bandwidth nor latency allows "+
			"so few: %s, which are %.0f", s, m.iops)
	} else {
		d.because(name+"-iops", "no bound seen: bandwidth and latency explain all runs")
	}
	least, s := m.latency(runs)
	switch {
	case s == nil:
		d.because(name+"-latency",
			"not known without a run of -workers 1 -io-depth 1: 0 is assumed")
	case s.kind == best.kind: // its own bandwidth explains all of its time
		d.because(name+"-latency", "not known, because no run moved more than this one: %s, and "+
			"nothing shows which part of %s for each is latency: 0 is assumed; measure with more "+
			"requests at a time", s, micros(s.each()))
	default:
		d.because(name+"-latency", "%s, that is %s for each, of which the medium needs %s", s,
			micros(s.each()), micros(m.pass(s.chunk)))
	}
	return round(best.rate), math.Round(m.iops), micros(least)
}

// requests returns the requests per second. each returns the time of one request by Little's law.
func (s stream) requests() float64 { return s.rate / float64(s.chunk) }
func (s stream) each() float64     { return float64(s.outstanding) / s.requests() }

// medium has the parameters of one direction.
type medium struct{ bandwidth, iops float64 } // iops 0: no limit

// pass returns the transfer time of a request of chunk bytes, in seconds.
func (m medium) pass(chunk int64) float64 {
	if m.iops > 0 {
		return max(float64(chunk)/m.bandwidth, 1/m.iops)
	}
	return float64(chunk) / m.bandwidth
}

// latency returns the smallest time of a request minus its transfer time: queueing only adds to it. It
// skips runs that fill the medium with several requests at a time. from is nil if no run remains.
func (m medium) latency(runs []stream) (least float64, from *stream) {
	for i, s := range runs {
		if s.outstanding > 1 && s.requests()*m.pass(s.chunk) >= full {
			continue
		}
		if l := max(0, s.each()-m.pass(s.chunk)); from == nil || l < least {
			least, from = l, &runs[i]
		}
	}
	return least, from
}

// limitedByRequests returns the run with the most requests/s, and whether that is fewer than bandwidth
// and latency allow.
func (m medium) limitedByRequests(runs []stream, latency float64) (stream, bool) {
	s := slices.MaxFunc(runs, func(a, b stream) int {
		return cmp.Compare(a.requests(), b.requests())
	})
	pass := m.pass(s.chunk)
	return s, s.requests() < short*min(1/pass, float64(s.outstanding)/(latency+pass))
}

// round rounds to whole MiB/s, or to bytes/s below 100 MiB/s.
func round(rate float64) float64 {
	const mib = float64(units.MiB)
	if rate < 100*mib {
		return math.Round(rate)
	}
	return math.Round(rate/mib) * mib
}

// mib formats bytes in MiB.
func mib(bytes float64) string { return units.Number.Text(bytes/float64(units.MiB)) + " MiB" }

// micros rounds to microseconds.
func micros(s float64) time.Duration { return seconds(s).Round(time.Microsecond) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// slice looks for a rate limiter that grants bandwidth in time slices. With one request at a time, a
// request cannot be faster than its share of the bandwidth, except with a limiter: then many fast
// requests pass, and the next one waits. A slice is one wait and the fast requests before it: with the
// wait w, the time f of a fast request and the mean time c ÷ X, the slice is T = (w - f) ÷ (1 - f ÷ (c
// ÷ X)).
func (d *derived) slice(runs []stream) {
	for _, s := range runs {
		if s.outstanding != 1 || s.entry != s.chunk || len(s.times) == 0 {
			continue
		}
		fast, mean := s.times[0], s.each()
		slow := slices.IndexFunc(s.times, func(t float64) bool { return t > mean })
		if fast >= mean/2 || slow < 0 {
			continue
		}
		wait := s.times[slow]
		d.device.Slice = seconds((wait - fast) / (1 - fast/mean)).Round(time.Millisecond)
		d.because("slice", "%s, half of them in %s, less than bandwidth allows, the slow ones in "+
			"%s", s, micros(fast), micros(wait))
		return
	}
	d.because("slice", "none seen")
}

// duplex compares the rate of mixed runs with the rates of one shared medium and of two.
func (d *derived) duplex(mixed []measured) {
	if len(mixed) == 0 {
		d.because("duplex", "not known without StorageCeiling/op=mixed: one medium is assumed, "+
			"the worse case")
		return
	}
	best := slices.MaxFunc(mixed, func(a, b measured) int {
		return cmp.Compare(a.read+a.write, b.read+b.write)
	})
	r, w := d.device.Read, d.device.Write
	total := best.read + best.write
	share := best.read / total
	one := 1 / (share/r + (1-share)/w)
	two := min(r/share, w/(1-share))
	d.device.Duplex = math.Abs(math.Log(total/two)) < math.Abs(math.Log(total/one))
	d.because("duplex", "%s moved %s/s with %.0f %% reads; one medium would have moved %s/s, two "+
		"%s/s", best.name, mib(total), 100*share, mib(one), mib(two))
}
