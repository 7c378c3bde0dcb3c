package device

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"kvbench/params"
)

const (
	// below is the share of a bound under which a run was limited by something else.
	below = 0.9
	// flat is the share of the rate that half of the outstanding requests must reach, or more requests did help.
	flat = 0.9
	// mixedShare of the bytes must be of either direction, or a run was not a mixed one.
	mixedShare = 0.1
)

type derived struct {
	device  params.Device
	reasons []string
}

func (d *derived) because(parameter, format string, args ...any) {
	d.reasons = append(d.reasons, fmt.Sprintf("%-14s %s", parameter, fmt.Sprintf(format, args...)))
}

// derive applies the rules of the package comment.
func derive(runs []measured) (derived, error) {
	reads, writes, mixed := sort(medians(runs))
	var d derived
	var errs []error
	for _, s := range []struct {
		name string
		runs []stream
	}{{"read", reads}, {"write", writes}} {
		if len(s.runs) == 0 {
			errs = append(errs, fmt.Errorf("nothing but %ss: run StorageCeiling, or Tier/tier=storage/op=%s", other(s.name), s.name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return d, err
	}
	d.device.Parallelism = params.DefaultParallelism
	d.device.Read, d.device.ReadIOPS, d.device.ReadLatency = d.direction("read", reads)
	d.device.Write, d.device.WriteIOPS, d.device.WriteLatency = d.direction("write", writes)
	d.duplex(mixed)
	return d, nil
}

func other(direction string) string {
	if direction == "read" {
		return "write"
	}
	return "read"
}

// stream is a measurement of one direction.
type stream struct {
	kind
	rate float64 // bytes/s
}

func (s stream) String() string {
	return fmt.Sprintf("%s, %d × %s at a time: %s/s", s.name, s.outstanding, params.FormatSize(s.chunk), size(s.rate))
}

// medians makes one measurement of several trials.
func medians(runs []measured) []measured {
	var order []kind
	trials := map[kind][]measured{}
	for _, r := range runs {
		if len(trials[r.kind]) == 0 {
			order = append(order, r.kind)
		}
		trials[r.kind] = append(trials[r.kind], r)
	}
	out := make([]measured, len(order))
	for i, k := range order {
		of := func(rate func(measured) float64) float64 {
			var v []float64
			for _, r := range trials[k] {
				v = append(v, rate(r))
			}
			slices.Sort(v)
			return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
		}
		out[i] = measured{k, of(func(r measured) float64 { return r.read }), of(func(r measured) float64 { return r.write })}
	}
	return out
}

// sort tells reads, writes and mixed runs apart.
func sort(runs []measured) (reads, writes []stream, mixed []measured) {
	for _, r := range runs {
		switch share := r.read / (r.read + r.write); {
		case share >= 1-mixedShare:
			reads = append(reads, stream{r.kind, r.read})
		case share <= mixedShare:
			writes = append(writes, stream{r.kind, r.write})
		default:
			mixed = append(mixed, r)
		}
	}
	return reads, writes, mixed
}

func (d *derived) direction(name string, runs []stream) (bandwidth int64, iops int, latency time.Duration) {
	best := slices.MaxFunc(runs, func(a, b stream) int { return cmpFloat(a.rate, b.rate) })
	bandwidth = round(best.rate)
	d.because(name, "most bytes/s: %s", best)

	limit := 0.0
	if s, ok := limitedByRequests(runs, best.rate); ok {
		iops = int(math.Round(s.rate / float64(s.chunk)))
		limit = float64(iops)
		d.because(name+"-iops", "more at a time did not help: %s, which are %d requests/s", s, iops)
	} else {
		d.because(name+"-iops", "no bound seen")
	}
	s, pass, ok := limitedByLatency(runs, best.rate, limit)
	if !ok {
		d.because(name+"-latency", "none seen: no run stayed below the bandwidth for lack of outstanding requests")
		return bandwidth, iops, 0
	}
	each := float64(s.outstanding) * float64(s.chunk) / s.rate
	latency = time.Duration((each - pass) * float64(time.Second)).Round(time.Microsecond)
	d.because(name+"-latency", "%s, that is %s for each, of which the medium needs %s", s, micros(each), micros(pass))
	return bandwidth, iops, latency
}

// round keeps what a measurement can mean: whole MiB/s, where that is less than 1 %.
func round(rate float64) int64 {
	if rate < 100*float64(params.MiB) {
		return int64(math.Round(rate))
	}
	return int64(math.Round(rate/float64(params.MiB))) * params.MiB
}

func size(bytes float64) string { return fmt.Sprintf("%.4g MiB", bytes/float64(params.MiB)) }

func micros(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// limitedByRequests finds the run with the most requests/s among those that neither the bandwidth nor the number of
// outstanding requests held back.
func limitedByRequests(runs []stream, bandwidth float64) (best stream, ok bool) {
	for _, s := range runs {
		if s.rate >= below*bandwidth || (ok && s.rate/float64(s.chunk) <= best.rate/float64(best.chunk)) {
			continue
		}
		for _, fewer := range runs {
			if fewer.chunk == s.chunk && 2*fewer.outstanding <= s.outstanding && fewer.rate >= flat*s.rate {
				best, ok = s, true
			}
		}
	}
	return best, ok
}

// limitedByLatency finds the run that tells the latency best: below bandwidth and IOPS, the fewest outstanding requests, the
// most requests in a file, because opening and flushing it count, too. pass is how long the medium takes for one request.
func limitedByLatency(runs []stream, bandwidth, iops float64) (best stream, pass float64, ok bool) {
	for _, s := range runs {
		p := float64(s.chunk) / bandwidth
		if iops > 0 {
			p = max(p, 1/iops)
		}
		if s.rate*p >= below*float64(s.chunk) {
			continue
		}
		if ok && (s.outstanding > best.outstanding || s.outstanding == best.outstanding && s.entry/s.chunk <= best.entry/best.chunk) {
			continue
		}
		best, pass, ok = s, p, true
	}
	return best, pass, ok
}

// duplex compares what mixed runs moved with what one medium and what two would have.
func (d *derived) duplex(mixed []measured) {
	if len(mixed) == 0 {
		d.because("duplex", "not known without StorageCeiling/op=mixed: one medium is assumed, the worse case")
		return
	}
	best := slices.MaxFunc(mixed, func(a, b measured) int { return cmpFloat(a.read+a.write, b.read+b.write) })
	r, w := float64(d.device.Read), float64(d.device.Write)
	total := best.read + best.write
	share := best.read / total
	one := 1 / (share/r + (1-share)/w)
	two := min(r/share, w/(1-share))
	d.device.Duplex = math.Abs(math.Log(total/two)) < math.Abs(math.Log(total/one))
	d.because("duplex", "%s moved %s/s with %.0f %% reads; one medium would have moved %s/s, two %s/s", best.kind.name, size(total), 100*share, size(one), size(two))
}
