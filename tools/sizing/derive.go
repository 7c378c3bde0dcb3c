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

// Thresholds of the rules, found on a throttled loop device and a virtual disk.
const (
	// full is the share of the medium's rate from which on the medium counts as a run's limit.
	full = 0.9
	// short is the share of the rate that bandwidth and latency allow below which IOPS must be the
	// limit. Real drives scale worse than the model between one request at a time and enough of
	// them, which must not look like a bound of IOPS.
	short = 0.67
	// mixedShare is the least share of the bytes in either direction of a mixed run.
	mixedShare = 0.1
)

// derived is a device with the reasons for its parameters.
type derived struct {
	device  tiers.DeviceModel
	reasons []string
}

// because notes the reason for a parameter.
func (d *derived) because(parameter, format string, args ...any) {
	d.reasons = append(d.reasons, fmt.Sprintf("%-14s %s", parameter, fmt.Sprintf(format, args...)))
}

// The directions.
var directions = [2]string{"read", "write"}

// derive applies the rules of the package comment.
func derive(runs []measured) (d derived, err error) {
	// Kinds first: trials of one measurement are one.
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

// stream is a measurement of one direction.
type stream struct {
	kind
	rate  float64 // bytes/s
	times []float64
}

// String names a measurement in a reason, with the inputs of its rule.
func (s stream) String() string {
	return fmt.Sprintf("%s, %d × %s at a time: %s/s", s.name, s.outstanding,
		units.FormatSize(s.chunk), mib(s.rate))
}

// middles picks one measurement from several trials of a kind: the median by its bytes. Its rates
// and times belong together, as Little's law requires; a median of each value would mix trials. The
// kinds have the order of their first trials.
func middles(runs []measured) (out []measured) {
	trials := map[kind][]measured{}
	for _, r := range runs {
		trials[r.trial()] = append(trials[r.trial()], r)
	}
	for _, r := range runs {
		of := trials[r.trial()]
		if of == nil {
			continue
		}
		delete(trials, r.trial())
		slices.SortStableFunc(of, func(a, b measured) int {
			return cmp.Compare(a.read+a.write, b.read+b.write)
		})
		out = append(out, of[len(of)/2])
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

// direction derives the parameters of reads or of writes. The order matters: bandwidth gives a
// request's transfer time, and transfer time and latency give the IOPS that could show.
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

// requests is the requests per second, each the time of one request by Little's law.
func (s stream) requests() float64 { return s.rate / float64(s.chunk) }
func (s stream) each() float64     { return float64(s.outstanding) / s.requests() }

// medium is the parameters of one direction.
type medium struct{ bandwidth, iops float64 } // iops 0: no bound

// pass is the transfer time of a request.
func (m medium) pass(chunk int64) float64 {
	if m.iops > 0 {
		return max(float64(chunk)/m.bandwidth, 1/m.iops)
	}
	return float64(chunk) / m.bandwidth
}

// latency is the least time of a request beyond its transfer: queueing only adds to it. Runs that
// fill the medium with more than one request at a time are skipped. Of runs that agree to the
// microsecond the last counts; nil if no run remains.
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

// limitedByRequests reports whether the run with the most requests/s did fewer than the bandwidth
// and the latency allow.
func (m medium) limitedByRequests(runs []stream, latency float64) (stream, bool) {
	s := slices.MaxFunc(runs, func(a, b stream) int {
		return cmp.Compare(a.requests(), b.requests())
	})
	pass := m.pass(s.chunk)
	return s, s.requests() < short*min(1/pass, float64(s.outstanding)/(latency+pass))
}

// round rounds to a measurement's precision: whole MiB/s, where that is less than 1 %.
func round(rate float64) float64 {
	const mib = float64(units.MiB)
	if rate < 100*mib {
		return math.Round(rate)
	}
	return math.Round(rate/mib) * mib
}

// mib formats bytes in the report's one unit.
func mib(bytes float64) string { return units.Number.Text(bytes/float64(units.MiB)) + " MiB" }

// micros rounds to the precision of such measurements.
func micros(s float64) time.Duration { return seconds(s).Round(time.Microsecond) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// slice looks for a limiter. With one request at a time no request can take less than its share of
// the bandwidth, unless saved-up bandwidth lets many pass at once; then the next has to wait. A
// slice is one wait and the requests that passed before it: with w the wait, f the time of a fast
// request and c ÷ X the mean time, T = (w - f) ÷ (1 - f ÷ (c ÷ X)).
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

// duplex compares the rate of mixed runs with the rates of one medium and of two.
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
