package host

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"
)

// Usage is the consumption of this process since its start, except PeakRSS. The difference of two readings
// around a window is the suite's own cost. A zero PeakRSS or context switch count means that the system
// does not report it.
type Usage struct {
	CPU time.Duration // user and system, of all threads, exited ones included

	PeakRSS int64 // bytes; since ResetPeakRSS where that works, else since the start

	Mallocs    uint64 // heap objects allocated
	AllocBytes uint64
	NumGC      uint64        // completed collections
	GCPause    time.Duration // Σ time the world was stopped for them

	// Waits of this process's goroutines, summed over them, from the Go runtime.
	LockWait  time.Duration // mutexes
	SchedWait time.Duration // a processor, when they could have run: an estimate
	GCAssist  time.Duration // allocations that had to help the collector first

	VolCtxSw   int64 // voluntary context switches: blocked
	InvolCtxSw int64 // involuntary ones: preempted
}

// ReadUsage reads the counters now. It does not stop the world and may be called from any
// goroutine, inside the window too: it costs some tens of microseconds.
func ReadUsage() Usage {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &ru) // cannot fail with these arguments
	u := Usage{
		CPU:      time.Duration(ru.Utime.Nano() + ru.Stime.Nano()),
		PeakRSS:  peakRSS(int64(ru.Maxrss)),
		VolCtxSw: int64(ru.Nvcsw), InvolCtxSw: int64(ru.Nivcsw),
	}
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"},
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/sync/mutex/wait/total:seconds"}, {Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/sched/latencies:seconds"},
	}
	metrics.Read(samples)
	// The next two panic for a metric that a later Go release drops: the tests of that upgrade show it.
	count := func(sample int) uint64 { return samples[sample].Value.Uint64() }
	seconds := func(sample int) time.Duration {
		return time.Duration(samples[sample].Value.Float64() * float64(time.Second))
	}
	// Tiny allocations share an object and are counted separately; the sum is the allocs of -benchmem.
	u.Mallocs = count(0) + count(1)
	u.AllocBytes, u.NumGC = count(2), count(3)
	u.LockWait, u.GCAssist = seconds(4), seconds(5)
	u.SchedWait = schedSample * sum(samples[6].Value.Float64Histogram())
	// runtime/metrics has the pauses only as a histogram, whose sum would be wrong by up to a
	// quarter. This keeps the exact total and takes the heap lock for a copy of 256 numbers,
	// without stopping the world.
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.GCPause = gc.PauseTotal
	return u
}

// schedSample: the Go runtime measures one of so many waits for a processor (gTrackingPeriod, since 1.17).
// It scales waits for mutexes itself.
const schedSample = 8

// sum adds up a histogram of seconds with the middle of each bucket, whose bounds are at most a quarter
// apart. The two unbounded buckets count with their only bound.
func sum(h *metrics.Float64Histogram) time.Duration {
	var total float64
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		from, to := max(h.Buckets[i], 0), h.Buckets[i+1]
		if math.IsInf(to, 0) {
			to = from
		}
		total += float64(n) * (from + to) / 2
	}
	return time.Duration(total * float64(time.Second))
}
