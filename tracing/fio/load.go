package fio

import (
	"math"
	"slices"

	"kvbench/tracing"
)

// fio's limits, and what counts as a pause, a flush or a stream that a job should have.
const (
	maxDepth    = 256
	idleShare   = 0.1  // of the window
	gapMinUS    = 20   // shorter ones fio has of itself
	pausesMin   = 3    // fewer are no rhythm
	pausesShare = 0.9  // of the idle time: what the pauses of the job are counted from
	singleDepth = 1.5  // below, requests come one by one
	underOne    = 0.75 // below, a direction of its own pauses
	flushesMin  = 3    // fewer are no rhythm
	mostly      = 0.9  // of the requests follow another one's place: a sequential load
)

type direction int

const (
	reads  direction = 0
	writes direction = 1
)

var names = [2]string{reads: "reads", writes: "writes"}

// load is what a trace says of how requests came.
type load struct {
	of     [2]tracing.Direction
	window float64 // ns in which there was load; 0 for a text without a window
	busy   float64 // share of it that is not the job's own pauses
	// Pauses in which nothing was in flight: how many, how long each, after how many requests.
	pauses      int64
	pauseUS     int64
	pauseBlocks int64
	flushes     int64
	flushNS     float64 // that writers waited for them
}

// loadOf reads a trace. The time before the first request and after the last says nothing.
func loadOf(t *tracing.Trace) load {
	p := &t.Capture
	l := load{of: [2]tracing.Direction{reads: p.Read, writes: p.Write}, busy: 1,
		window: max(0, float64(p.WindowNS-p.LeadNS-p.TailNS)), flushes: flushes(p)}
	if p.FlushWaits > 0 {
		l.flushNS = t.FlushWait.Sum * 1000 * min(1, float64(l.flushes)/float64(p.FlushWaits))
	}
	if l.window == 0 {
		return l
	}
	d2c := p.Read.D2C() + p.Write.D2C()
	n, us := pauses(t.Idle, gapMin(p, d2c, l.window))
	idle := us * 1000 / p.Seen()
	if n >= pausesMin && idle >= idleShare*l.window {
		l.pauses, l.pauseUS = n, int64(math.Round(us/float64(n)))
		l.pauseBlocks = max(1,
			int64(math.Round(float64(p.Requests())*p.Seen()/float64(n))))
		l.busy = max(1-idle/l.window, d2c/l.window/maxDepth)
	}
	return l
}

// flushes counts those that the load asked for: of the watched processes, or where only those were
// traced and a journal asks for them, the kernel's; without any, what reached the device. A device
// that is traced whole has everybody's.
func flushes(p *tracing.Capture) int64 {
	if p.Filter != tracing.FilterProcess {
		return max(p.FlushWaits, p.Flushes)
	}
	if p.OwnFlushWaits > 0 || p.FlushWaits > p.KernelFlushWaits {
		return p.OwnFlushWaits
	}
	return max(p.KernelFlushWaits, p.Flushes)
}

// together says whether reads and writes are one queue's: one request at a time, all of them
// pausing at the same time, or of a text that knows no more than their depth.
func (l *load) together() bool {
	return l.window == 0 || l.pauses > 0 || l.depth(reads)+l.depth(writes) < singleDepth
}

// depth is how many requests of a direction were in flight while there was load. A writer that
// waits for a flush writes nothing meanwhile, and neither does the job.
func (l *load) depth(d direction) float64 {
	if l.window == 0 {
		return l.of[d].MeanDepth
	}
	busy := l.window * l.busy
	if d == writes && l.pauses == 0 && l.of[d].D2C() > busy && l.flushNS < busy/2 {
		busy -= l.flushNS
	}
	return l.of[d].D2C() / busy
}

// none says that a direction has too few requests and bytes to be a part of the load.
func (l *load) none(d direction) bool {
	const least = 0.005
	its, all := l.of[d], l.of[1-d]
	requests, bytes := float64(all.Requests+its.Requests), float64(all.Bytes+its.Bytes)
	return its.Requests == 0 ||
		float64(its.Requests) < least*requests && float64(its.Bytes) < least*bytes
}

// sequential is the share of the requests of a direction that follow another one's place.
func (l *load) sequential(d direction) float64 {
	return float64(l.of[d].Sequential) / float64(max(1, l.of[d].Requests))
}

// rate is requests/s.
func (l *load) rate(d direction) float64 {
	if l.window == 0 {
		return 0
	}
	return float64(l.of[d].Requests) / l.window * 1e9
}

// writesToFlush is how many writes came from one flush to the next.
func (l *load) writesToFlush() int64 {
	n := l.of[writes].Requests
	if l.flushes < flushesMin || n == 0 {
		return 0
	}
	return max(1, (n+l.flushes/2)/l.flushes)
}

// gapMin is the shortest gap in microseconds that a job must make by itself. At a depth of about
// one every gap that fio would not have anyway is the application's. Deeper, the device runs dry
// between two handfuls of completions, for less than one of its own latencies, and so it does under
// fio.
func gapMin(p *tracing.Capture, d2c, window float64) float64 {
	busy := max(window-float64(p.IdleNS-p.LeadNS-p.TailNS), 1)
	if d2c/busy < singleDepth {
		return gapMinUS
	}
	return max(gapMinUS, float64(p.Read.D2CNS+p.Write.D2CNS)/float64(max(1, p.Requests()))/1000)
}

// pauses sums the gaps of at least that length, in microseconds, and counts the longest of them,
// which make nearly all of that time: many short ones among them would make every pause too short.
func pauses(idle tracing.Histogram, least float64) (n int64, us float64) {
	time := func(b tracing.Bucket) float64 { return float64(b.Count) * b.Middle() }
	for _, b := range idle.Buckets {
		if b.Range[0] >= least {
			us += time(b)
		}
	}
	covered := 0.0
	for _, b := range slices.Backward(idle.Buckets) {
		if b.Range[0] < least || covered >= pausesShare*us {
			break
		}
		covered += time(b)
		n += b.Count
	}
	return n, us
}
