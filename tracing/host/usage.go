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
	}
	waits := []metrics.Sample{
		{Name: "/sync/mutex/wait/total:seconds"}, {Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
		{Name: "/sched/latencies:seconds"},
	}
	samples = append(samples, waits...)
	metrics.Read(samples)
	waits = samples[len(samples)-len(waits):]
	u.LockWait, u.GCAssist = metricTime(waits[0]), metricTime(waits[1])
	if h := waits[2].Value; h.Kind() == metrics.KindFloat64Histogram {
		u.SchedWait = schedSample * sum(h.Float64Histogram())
	}
	// Tiny allocations share an object and are counted separately; the sum is the allocs of -benchmem.
	u.Mallocs = metricCount(samples[0]) + metricCount(samples[1])
	u.AllocBytes = metricCount(samples[2])
	u.NumGC = metricCount(samples[3])
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

// metricTime returns 0 for a metric that this Go release does not have.
func metricTime(s metrics.Sample) time.Duration {
	if s.Value.Kind() != metrics.KindFloat64 {
		return 0
	}
	return time.Duration(s.Value.Float64() * float64(time.Second))
}

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

// metricCount returns 0 for a metric that this Go release does not have.
func metricCount(s metrics.Sample) uint64 {
	if s.Value.Kind() != metrics.KindUint64 { // a Go release that dropped the metric
		return 0
	}
	return s.Value.Uint64()
}
