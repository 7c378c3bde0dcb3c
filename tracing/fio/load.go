package fio

import (
	"math"
	"slices"

	"kvbench/tracing"
)

// fio's limits, and the thresholds for pauses, flushes and sequential loads in a job.
const (
	maxDepth    = 256
	idleShare   = 0.1  // of the window
	gapMinUS    = 20   // fio itself has shorter gaps
	pausesMin   = 3    // fewer do not repeat
	pausesShare = 0.9  // of the idle time: the job's pauses cover it
	singleDepth = 1.5  // below, requests come one by one
	underOne    = 0.75 // below, a separate direction gets pauses
	flushesMin  = 3    // fewer do not repeat
	mostly      = 0.9  // a load is sequential if this share of its requests is
)

type direction int

const (
	reads  direction = 0
	writes direction = 1
)

var names = [2]string{reads: "reads", writes: "writes"}

// load describes the arrival of requests in a trace.
type load struct {
	dirs   [2]tracing.Direction
	window float64 // ns in which there was load; 0 for a text without a window
	busy   float64 // share of the window outside the job's pauses
	// Pauses in which no request was in flight: their number, length, and the requests before each.
	pauses      int64
	pauseUS     int64
	pauseBlocks int64
	flushes     int64
	flushNS     float64 // wait of the writers for them
}

// loadOf reads a trace. It ignores the time before the first request and after the last.
func loadOf(t *tracing.Trace) load {
	p := &t.Capture
	l := load{dirs: [2]tracing.Direction{reads: p.Read, writes: p.Write}, busy: 1,
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

// flushes returns the number of flushes that the load requested: those of the watched processes, or, if
// only these were traced and a journal flushes for them, the kernel's; otherwise those at the device. A
// trace of a whole device has the flushes of all processes.
func flushes(p *tracing.Capture) int64 {
	if p.Filter != tracing.FilterProcess {
		return max(p.FlushWaits, p.Flushes)
	}
	if p.OwnFlushWaits > 0 || p.FlushWaits > p.KernelFlushWaits {
		return p.OwnFlushWaits
	}
	return max(p.KernelFlushWaits, p.Flushes)
}

// together reports whether reads and writes share one queue: one request at a time, common pauses, or a
// text that has only their common depth.
func (l *load) together() bool {
	return l.window == 0 || l.pauses > 0 || l.depth(reads)+l.depth(writes) < singleDepth
}

// depth returns how many requests of a direction were in flight under load. It excludes the time in which
// writers waited for a flush, because the job's writers wait, too.
func (l *load) depth(d direction) float64 {
	if l.window == 0 {
		return l.dirs[d].MeanDepth
	}
	busy := l.window * l.busy
	if d == writes && l.pauses == 0 && l.dirs[d].D2C() > busy && l.flushNS < busy/2 {
		busy -= l.flushNS
	}
	return l.dirs[d].D2C() / busy
}

// none reports that a direction has too few requests and bytes to be part of the load.
func (l *load) none(d direction) bool {
	const least = 0.005
	own, other := l.dirs[d], l.dirs[1-d]
	requests, bytes := float64(other.Requests+own.Requests), float64(other.Bytes+own.Bytes)
	return own.Requests == 0 ||
		float64(own.Requests) < least*requests && float64(own.Bytes) < least*bytes
}

// sequential returns the share of a direction's requests that begin where another one ended.
func (l *load) sequential(d direction) float64 {
	return float64(l.dirs[d].Sequential) / float64(max(1, l.dirs[d].Requests))
}

// rate returns the requests/s of a direction.
func (l *load) rate(d direction) float64 {
	if l.window == 0 {
		return 0
	}
	return float64(l.dirs[d].Requests) / l.window * 1e9
}

// writesToFlush returns how many writes came between two flushes.
func (l *load) writesToFlush() int64 {
	n := l.dirs[writes].Requests
	if l.flushes < flushesMin || n == 0 {
		return 0
	}
	return max(1, (n+l.flushes/2)/l.flushes)
}

// gapMin returns the shortest gap in microseconds that the job must make as a pause. At a depth of about
// one every gap that is longer than fio's own is the application's. At larger depths the device also
// idles between bursts of completions, for less than its latency, and does so under fio.
func gapMin(p *tracing.Capture, d2c, window float64) float64 {
	busy := max(window-float64(p.IdleNS-p.LeadNS-p.TailNS), 1)
	if d2c/busy < singleDepth {
		return gapMinUS
	}
	return max(gapMinUS, float64(p.Read.D2CNS+p.Write.D2CNS)/float64(max(1, p.Requests()))/1000)
}

// pauses sums the gaps of at least that length, in microseconds, and counts the longest ones, which are
// nearly all of that time: many short gaps would make every pause too short.
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
