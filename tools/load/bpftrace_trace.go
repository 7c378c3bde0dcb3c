package load

import (
	"fmt"
	"math"
	"time"

	"kvbench/tracing"
)

// What a bpftrace text is worth.
const (
	textDepth = 32 // where nothing tells the depth; the Python benchmark's own distiller takes at least that
	// textGauge is how far the script's counters may end above their mean. A counter that never went wrong ends at 0, or at
	// about its mean when the script ended before the load.
	textGauge = 1.25
	// textTimes is how many times of requests that were left over span the time of tracing well enough.
	textTimes = 20
	// textTrim is the share of the longest device times that is left out: the script finds requests by their place, and one
	// whose end it lost is matched with the next in the same place, seconds later.
	textTrim = 0.001
	textKeys = 4000 // bpftrace keeps 4096 keys in a map; a full one follows no further request
	textOff  = 0.01 // of the requests may be missing without a word
)

// depthFrom says where a text's depth comes from.
type depthFrom int

const (
	depthGiven depthFrom = iota // Little's law over a window that was given
	depthGauge                  // the script's counters of requests in flight
	depthTimes                  // Little's law over what the left-over times span
	depthGuess
)

// Trace makes of the text what a Collector's Snapshot would have been, as far as it tells; the histograms are shared with
// b. The window is how long the script ran while there was load: the text does not tell, and the mean depth follows from
// it. 0 = unknown; the depth then comes from the script's own counters, unless they ran away. Doubts are in
// Capture.Warnings.
//
// About is what the header of a job says of the text.
func (b *Bpftrace) Trace(window time.Duration) (t *tracing.Trace, about []string) {
	t = &tracing.Trace{Histograms: b.hists, Capture: tracing.Capture{
		Status: tracing.StatusTraced, Attach: "bpftrace", Level: tracing.LevelBlock.String(), Filter: tracing.FilterDevice.String(),
		WindowNS: int64(window), IdleKnown: false,
	}}
	p := &t.Capture
	if b.process != "" {
		p.Watched = b.process
	}
	b.requests(p)
	from := b.depth(p)
	if n := dropEmpty(t); n > 0 {
		warn(p, "%d requests of less than 1 KiB were left out: most disks take none", n)
	}
	for _, h := range []string{"bssplit_read_kb", "bssplit_write_kb", "d2c_read_us", "d2c_write_us"} {
		if n := b.below[h]; n > 0 {
			warn(p, "%d samples of @%s are negative and were left out", n, h)
		}
	}
	if b.keyed {
		warn(p, "the histograms have keys: those of one name were added up")
	}
	return t, aboutText(p, from)
}

func warn(c *tracing.Capture, format string, args ...any) {
	c.Warnings = append(c.Warnings, fmt.Sprintf(format, args...))
}

// aboutText says what the text tells, and what it does not.
func aboutText(c *tracing.Capture, from depthFrom) []string {
	about := []string{
		"not in the text: model, users, bytes per token, exact sizes and bytes, the device, flushes, pauses",
		"every process is in it, and every block device unless the script was given one",
		fmt.Sprintf("requests: %d reads, %d writes", c.Read.Requests, c.Write.Requests),
		"sizes are the lower ends of their buckets, which reach to twice that",
	}
	depth := fmt.Sprintf("mean depth about %.1f", c.Read.MeanDepth+c.Write.MeanDepth)
	switch from {
	case depthGiven:
		about = append(about, fmt.Sprintf("%s: the time at the device ÷ the given window of %s", depth, c.Window()))
	case depthGauge:
		about = append(about, depth+", by the script's counters of requests in flight")
	case depthTimes:
		about = append(about, depth)
	}
	return about
}

// requests reckons how many there were. The script counts dispatches, exactly, and completions, as far as it finds them.
// What is missing was lost, and left in the script's map, or was no request of its own: a device whose queue is full gives
// a request back, and it is dispatched again.
func (b *Bpftrace) requests(p *tracing.Capture) {
	sides := []struct {
		to        *tracing.Direction
		size, d2c *tracing.Histogram
	}{{&p.Read, b.hists.SizeRead, b.hists.D2CRead}, {&p.Write, b.hists.SizeWrite, b.hists.D2CWrite}}
	issued, missing, odd := int64(0), int64(0), int64(0)
	for _, s := range sides {
		s.to.Issued, s.to.Requests = s.size.Samples(), s.size.Samples()
		issued += s.to.Issued
		if n := s.size.Samples() - s.d2c.Samples(); n > 0 && s.d2c.Samples() > 0 {
			missing += n
		} else if n < 0 {
			odd -= n
		}
	}
	again := missing > 2*b.left && b.left < textKeys
	for _, s := range sides {
		if n := s.d2c.Samples(); again && n > 0 && n < s.to.Issued {
			s.to.Requeued, s.to.Requests = s.to.Issued-n, n
		}
		s.to.D2CNS = int64(1000 * trimmedMean(s.d2c) * float64(s.to.Requests))
	}
	off := textOff * float64(issued)
	switch {
	case float64(missing) > off && again:
		warn(p, "%d of %d dispatches were not the first of their request (the device's queue was full): their sizes count twice", missing, issued)
	case float64(missing) > off:
		warn(p, "the script lost the completions of %d of %d requests", missing, issued)
	}
	if float64(odd) > off {
		warn(p, "the script saw %d completions more than dispatches: it finds requests by their place on the device, which two may share", odd)
	}
}

// trimmedMean is the mean without the largest values.
func trimmedMean(h *tracing.Histogram) float64 {
	if h.Samples() == 0 {
		return 0
	}
	keep := h.Count - int64(textTrim*float64(h.Count))
	n, sum := int64(0), 0.0
	for _, b := range h.Buckets {
		k := min(b.Count, keep-n)
		n, sum = n+k, sum+float64(k)*b.Middle()
	}
	return sum / float64(n)
}

func (b *Bpftrace) depth(p *tracing.Capture) (from depthFrom) {
	d2c := float64(p.Read.D2CNS + p.Write.D2CNS)
	span := b.leftLast - b.leftFirst
	read, readOK := b.gauge("read", b.hists.DepthRead, p.Read.Issued-b.hists.D2CRead.Samples())
	write, writeOK := b.gauge("write", b.hists.DepthWrite, p.Write.Issued-b.hists.D2CWrite.Samples())
	switch {
	case p.WindowNS > 0 && d2c > 0:
		from = depthGiven
	case readOK && writeOK && read+write > 0:
		from = depthGauge
		p.WindowNS, p.Read.MeanDepth, p.Write.MeanDepth = 0, read, write
		return from
	case b.leftTimes >= textTimes && span > float64(time.Second) && d2c > 0:
		from = depthTimes
		p.WindowNS = int64(span)
	default:
		from = depthGuess
		p.WindowNS, p.Read.MeanDepth, p.Write.MeanDepth = 0, textDepth, 0
		warn(p, "the depth %d is a guess: %s, and the text does not say how long it was traced; -window tells", textDepth, b.ranAway())
		return from
	}
	p.Read.MeanDepth, p.Write.MeanDepth = float64(p.Read.D2CNS)/float64(p.WindowNS), float64(p.Write.D2CNS)/float64(p.WindowNS)
	if from == depthTimes {
		warn(p, "%s: the depth is the time at the device ÷ %s, which the times of requests left over span; if it was traced for longer, the depth was less, and -window tells",
			b.ranAway(), p.Window().Round(100*time.Millisecond))
	}
	return from
}

// gauge is the mean of the script's counter of requests in flight, sampled at dispatch, and whether it can be believed. It
// is not counted atomically and misses completions: it may drift anywhere, below zero too. Missing completions are where it
// must have ended if the text does not show it.
func (b *Bpftrace) gauge(name string, h *tracing.Histogram, missing int64) (float64, bool) {
	if h.Samples() == 0 {
		return 0, b.below["qd_"+name] == 0 && missing == 0
	}
	sum := h.Sum
	// Depths crowd at the largest that the load reached, which often is a power of two: the last bucket stands for its
	// lower end.
	last := h.Buckets[len(h.Buckets)-1]
	sum -= float64(last.Count) * (last.Middle() - last.Range[0])
	mean := sum / float64(h.Count)
	end, told := b.gauges[name]
	if !told {
		end = missing
	}
	believed := math.Abs(float64(end)) <= textGauge*mean && float64(b.below["qd_"+name]) <= textOff*float64(h.Count)
	return mean, believed
}

// ranAway says what the script's counters came to.
func (b *Bpftrace) ranAway() string {
	read, readTold := b.gauges["read"]
	write, writeTold := b.gauges["write"]
	if !readTold && !writeTold {
		return "the script's counters of requests in flight are missing or make no sense"
	}
	return fmt.Sprintf("the script's counters of requests in flight ran away (they ended at %d for reads, %d for writes)", read, write)
}

// dropEmpty removes requests of less than 1 KiB, unless there are no others: a disk with blocks of 4 KiB refuses a job
// with them.
func dropEmpty(t *tracing.Trace) (dropped int64) {
	for _, h := range []**tracing.Histogram{&t.SizeRead, &t.SizeWrite} {
		if (*h).Samples() == 0 || (*h).Buckets[0].Range[0] > 0 || len((*h).Buckets) == 1 {
			continue
		}
		dropped += (*h).Buckets[0].Count
		*h = textHistogram((*h).Unit, append([]tracing.Bucket(nil), (*h).Buckets[1:]...))
	}
	return dropped
}
