package collector

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"kvbench/tracing"
)

// The directions of requests. The BPF programs have the same numbers.
const (
	dirRead  = 0
	dirWrite = 1
)

// build makes the Trace of a window.
func (c *Collector) build(w *window) (*tracing.Trace, error) {
	t := &tracing.Trace{Capture: c.common}
	p := &t.Capture
	p.Status, p.WindowNS = tracing.StatusTraced, int64(w.end.Sub(w.start))
	p.Warnings = slices.Clone(p.Warnings)
	if w.stat != nil && w.statEnd != nil {
		stat := w.statEnd.Sub(w.stat)
		p.Stat = &stat.DeviceStat
	}
	if c.unavailable != nil {
		p.Status = tracing.StatusCounters
		p.Reason, p.Needs = c.unavailable.Reason, []string{c.unavailable.Need}
		if p.Stat == nil {
			p.Status = tracing.StatusNone
		}
		return t, nil
	}
	if err := c.programs.read(t); err != nil {
		return nil, err
	}
	depths := []*tracing.Histogram{dirRead: &t.DepthRead, dirWrite: &t.DepthWrite}
	for dir, d := range []*tracing.Direction{dirRead: &p.Read, dirWrite: &p.Write} {
		d.InFlightBefore, d.InFlightAfter = w.before.inFlight[dir], w.after.inFlight[dir]
		lost := min(w.lost.counted[dir], d.InFlightAfter)
		d.Stale, d.InFlightAfter = d.Stale+lost, d.InFlightAfter-lost
		d.DepthExcess += float64(w.lost.miscounted[dir]) / max(1, depths[dir].Sum)
		if p.WindowNS > 0 {
			d.MeanDepth = d.D2C() / float64(p.WindowNS)
		}
	}
	p.LeadNS, p.TailNS = w.margins()
	p.UnobservedNS += w.lost.unobserved
	// Lost completions at the same time count several times in UnobservedNS: then gaps may exceed the window.
	gaps := int64(float64(p.IdleNS) / max(p.Seen(), seeingMin))
	p.IdleNS = p.LeadNS + p.TailNS
	p.IdleKnown = p.Seen() > seeingMin && p.IdleNS+gaps <= p.WindowNS
	if p.IdleKnown {
		p.IdleNS += gaps
	}
	p.Losses.Missed = w.after.missed - w.before.missed
	if p.FileAttach == byNothing {
		p.Warn("calls on files are not traced: %s", strings.Join(p.NotBetter, "; "))
	}
	c.judge(t)
	return t, nil
}

// margins returns the times before the first dispatch and after the last completion. A time is 0 if a
// request was in flight in it.
func (w *window) margins() (lead, tail int64) {
	span := func(from, to uint64) int64 { return int64(max(to, from) - from) }
	if w.after.first == 0 && w.before.inFlight == [2]int64{} {
		return span(w.before.now, w.after.now), 0
	}
	if w.before.inFlight == [2]int64{} {
		lead = span(w.before.now, w.after.first)
	}
	if w.after.inFlight == [2]int64{} && w.after.idle > 0 {
		tail = span(max(w.after.idle, w.before.now), w.after.now)
	}
	return lead, tail
}

// A request with a lost completion counts as in flight until the trace finds the loss. It finds it at a
// later dispatch, if the request is the oldest in flight or its address is used again. A depth that may be
// more than excessTolerated too high is left out. Lost completions hide gaps, but the visible gaps are
// right. Their sum is scaled up to the whole window, if gaps were visible in more than seeingMin of it.
const (
	excessTolerated = 5 // percent
	seeingMin       = 0.5
)

// judge adds the warnings about the numbers.
func (c *Collector) judge(t *tracing.Trace) {
	p := &t.Capture
	warn := func(when bool, format string, args ...any) {
		if when {
			p.Warn(format, args...)
		}
	}
	stale, total := p.Read.Stale+p.Write.Stale, p.Requests()
	warn(stale > 0, "the tracer saw no completion of %d of %d I/O requests: "+
		"they count as issued, and are missing from the histograms", stale, total+stale)
	depth := func(name string, d tracing.Direction, h *tracing.Histogram) {
		excess := 100 * d.DepthExcess
		warn(excess > 0 && excess <= excessTolerated,
			"the queue depth of %s is corrected for lost completions: its mean is at most %.2g %% too high",
			name, excess)
		if excess > excessTolerated {
			p.Warn("the queue depth of %s is left out: lost completions make its mean up to %.2g %% too "+
				"high", name, excess)
			*h = tracing.Histogram{}
		}
	}
	depth("reads", p.Read, &t.DepthRead)
	depth("writes", p.Write, &t.DepthWrite)
	if !p.IdleKnown {
		p.Warn("lost completions hide when nothing was in flight: the idle time is left out")
		t.Idle, p.Gaps = tracing.Histogram{}, 0
	}
	// A request may complete while the counters of a window's edge are read. Then it may count as in flight
	// at the edge and as completed before it.
	n := p.Read.Imbalance() + p.Write.Imbalance()
	warn(max(n, -n) > int64(4*runtime.NumCPU()), "issued and completed requests differ by %d", n)
	l := &p.Losses
	warn(l.Full > 0, "%d requests were not followed: more were in flight than there is room for",
		l.Full)
	warn(l.Processes > 0, "%d processes of the family were not watched: there is no room for more",
		l.Processes)
	warn(l.Calls > 0, "%d calls on files were not followed to their end: they are in no histogram",
		l.Calls)
	warn(l.Missed > 0, "the kernel skipped %d runs of the programs", l.Missed)
	foreign := p.Read.ForeignRequests + p.Write.ForeignRequests
	kernel := p.Write.KernelRequests
	warn(kernel > 0 && p.Filter == tracing.FilterProcess,
		"the kernel wrote %d requests (%.1f MiB) on behalf of no process: pages that were written before "+
			"the trace began, metadata or a journal; some may be of %s", kernel,
		float64(p.Write.KernelBytes)/(1<<20), p.Watched)
	warn(foreign > 0 && p.Filter == tracing.FilterDevice && len(c.targets) > 0,
		"%d of %d requests (%.1f MiB) were queued by others than %s: other processes, or the "+
			"kernel writing back", foreign, total,
		float64(p.Read.ForeignBytes+p.Write.ForeignBytes)/(1<<20), p.Watched)
	warn(p.WindowNS < int64(time.Millisecond), "the window was shorter than a millisecond")
}
