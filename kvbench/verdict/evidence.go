package verdict

import (
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Limits. They are conventions and no measurements, each with the reason for its place.
const (
	// Of the workers' time: a fifth of them without requests can hide one in five requests that the
	// storage would have completed.
	idleLimit = 0.20
	// Of a window: in a shorter one workers without requests may be the load's beginning, as users
	// come one after the other, or the pause between two of them.
	loadShows = 3 * time.Second
	// Of the cores: above it the scheduler is short of cores, and runnable threads wait.
	cpuLimit = 0.85
	// Of the workers' busy time: removing a smaller part would speed the run up by less than 1 ÷
	// 0.7 = 1.43.
	waitLimit = 0.30
	// Of busy time: Go's runtime samples one wait in eight for a lock or a processor and multiplies
	// it by eight, so that a single wait of 100 ms would exceed waitLimit of a shorter time.
	samplesShow = 3 * time.Second
	// Percent of the run's bytes: a device that moves more serves other processes, too. A
	// filesystem's own I/O is some percent, with small files more.
	ownBytes = 120
	// Steps of the sweep are short: two with the same load differ by up to 10 % on a quiet disk. So
	// up to noMore counts as equal, and only from more on as more; between the two nothing is
	// shown.
	noMore = 1.10
	more   = 1.20
	// A run that moves at least this share of plain I/O was not slowed down by work that plain I/O
	// lacks, such as deletions: the rest is opening, flushing and metadata. A step is a burst, so a
	// smaller share alone does not prove the contrary.
	nearPlain = 0.75
	// Of the window. The kernel counts busy in ticks of a millisecond and more. Less does not mean
	// that the storage had capacity left: a cgroup's io.max, and a filesystem's locks, hold
	// requests back above the device.
	deviceBusy = 0.90
	// A run at this share of the best rate that the storage showed at any concurrency cannot be
	// made faster by anything else.
	saturated = 0.95
)

// evidence is the verdict's input in addition to the result. Unknown shares are zero: they show
// nothing.
type evidence struct {
	*result.Result
	storage result.Tier // without a level: there is none
	window  time.Duration

	idle    float64 // workers without a request, or sleeping as a GPU would compute
	cpu     float64 // of the cores
	busy    float64 // ns of all workers
	rest    float64 // ns of it that belong to nothing
	harness float64 // share of busy time that was neither storage nor waiting for it
	gc      float64 // share in which the collector stopped or delayed them

	inFlight float64 // requests at the storage, on average
	rate     float64 // bytes/s, both directions
	request  int64   // bytes of one, on average: a chunk where entries are not smaller
}

func gather(r *result.Result) *evidence {
	h, b := &r.Harness, &r.Harness.Busy
	e := &evidence{Result: r, window: time.Duration(r.WindowNS), busy: float64(h.WorkerBusyNS),
		request: int64(r.IO.ChunkBytes)}
	all := float64(h.WorkerIdleNS + h.WorkerBusyNS)
	e.idle = ratio(float64(h.WorkerIdleNS+b.ThinkingNS), all)
	if r.Simulation == nil {
		e.cpu = ratio(float64(h.CPUNS), r.Limits.Cores*float64(e.window))
	}
	known := b.StorageNS + b.OtherTiersNS + max(b.ClearingNS, b.RemovalNS) + b.RoomNS +
		b.WriteLimitNS + b.WriterNS + b.BuffersNS + b.GenerationNS + b.HostNS + b.DispatchNS +
		b.ThinkingNS
	// The result of an interrupted run is made while operations are in flight. Their time is not
	// counted yet, and must not count as the harness's.
	if !interrupted(r) {
		e.rest = max(0, e.busy-float64(known))
	}
	e.harness = ratio(e.rest+float64(b.BuffersNS+b.GenerationNS+b.HostNS+b.DispatchNS+
		b.HandoverNS), e.busy)
	e.gc = ratio(float64(h.GCPauseNS), float64(e.window)) + e.of(h.GCAssistNS)
	isStorage := func(t result.Tier) bool { return t.Level == "storage" }
	if i := slices.IndexFunc(r.Tiers, isStorage); i >= 0 {
		e.storage = r.Tiers[i]
	}
	read, write := &e.storage.Read, &e.storage.Write
	e.inFlight = units.OrZero(read.MeanInFlight) + units.OrZero(write.MeanInFlight)
	e.rate = ratio(float64(read.Bytes+write.Bytes), e.window.Seconds())
	e.request = min(e.request, (read.Bytes+write.Bytes)/max(1, read.Requests+write.Requests))
	return e
}

func interrupted(r *result.Result) bool { return r.EndedBy == result.EndedBySignal }

// ratio is 0 where it is unknown.
func ratio(a, b float64) float64 { return units.OrZero(units.Ratio(a, b)) }

// inMemory reports whether the tier's files lie in memory, in all directories: a request's time
// there is copying by this process, and not storage.
func (e *evidence) inMemory() bool {
	return !slices.ContainsFunc(e.Filesystems(),
		func(fs result.Filesystem) bool { return !fs.InMemory })
}

// of returns a share of the busy time.
func (e *evidence) of(ns int64) float64 { return ratio(float64(ns), e.busy) }

// sampled returns a time that Go's runtime samples, as a share. The samples cover all goroutines,
// so the share is of all that may have waited: the workers, and the threads that execute their
// requests. The runtime samples every eighth stop of a goroutine: a goroutine that stops at the
// same places repeatedly may be counted up to eightfold, or not at all. With 64 requests in flight
// it reported 138 s of waits in 4 s; an execution trace had 27. So sampled is 0 where the kernel's
// own count shows the requests at the device.
func (e *evidence) sampled(ns int64) float64 {
	if e.busy < float64(samplesShow) || e.atDevice() {
		return 0
	}
	return ratio(float64(ns), max(e.busy, e.inFlight*float64(e.window)))
}

// atDevice reports whether the device had the requests for nearly all of their time, by the
// kernel's count: then this process's waits cannot be part of that time. Requests of other
// processes and the page cache's writes would count as the run's, so they exclude it.
func (e *evidence) atDevice() bool {
	w := &e.DeviceWitness
	if w.QueueNS == nil || e.IO.Mode != "direct" ||
		units.OrZero(w.ReadBytes) > ownBytes*w.AppReadBytes/100 ||
		units.OrZero(w.WriteBytes) > ownBytes*w.AppWriteBytes/100 {
		return false
	}
	moving := *w.QueueNS - units.OrZero(w.DiscardNS) - units.OrZero(w.FlushNS)
	return ratio(float64(moving), e.inFlight*float64(e.window)) >= 1-waitLimit
}

// rungs returns the steps of a sweep that shows something and was not disturbed by deletions.
func (e *evidence) rungs() []result.Rung {
	if l := e.Harness.Ladder; l != nil && disturbed(l) {
		return nil
	}
	return e.least()
}

// least returns the steps of a sweep, disturbed or not, as lower bounds of what the storage can
// move: two or more in which enough requests completed, none of them limited by the processor.
func (e *evidence) least() []result.Rung {
	l := e.Harness.Ladder
	if l == nil || units.OrZero(l.CPUShare) >= cpuLimit {
		return nil
	}
	rungs := l.Rungs
	brief := func(r result.Rung) bool { return r.Brief(e.request) }
	if i := slices.IndexFunc(rungs, brief); i >= 0 {
		rungs = rungs[:i]
	}
	if len(rungs) < 2 {
		return nil
	}
	return rungs
}

// disturbed reports whether the device discarded during the sweep long enough to lower its steps by
// their own uncertainty or more.
func disturbed(l *result.Ladder) bool { return units.OrZero(l.DiscardShare) > noMore-1 }

// alike returns the rate of plain I/O with as many in flight as the run. The first step has a whole
// number; with fewer a device moves at best in proportion.
func (e *evidence) alike(rungs []result.Rung) float64 {
	return rungs[0].Rate() * min(1, ratio(e.inFlight, float64(rungs[0].InFlight)))
}

func best(rungs []result.Rung) (rate float64) {
	for _, r := range rungs {
		rate = max(rate, r.Rate())
	}
	return rate
}

// beyond reports whether the run moved more than plain I/O at any concurrency. Plain I/O is then no
// measure of it: it reads single blocks where a run reads several at once, and other processes may
// have used the device.
func (e *evidence) beyond() bool {
	rungs := e.rungs()
	return rungs != nil && e.rate >= more*best(rungs)
}

// slice is the period of a throttling kernel (blk-throttle behind a cgroup's io.max; a cloud's
// limiter is similar): it passes the bytes of one period at once.
const slice = 100 * time.Millisecond

// gain is the factor by which more in flight has to move more to show anything: more than noise,
// and more than noise plus one slice of a throttle in the shortest step.
func gain(rungs []result.Rung) float64 {
	shortest := rungs[0].NS
	for _, r := range rungs {
		shortest = min(shortest, r.NS)
	}
	return max(more, noMore*(1+ratio(float64(slice), float64(shortest))))
}

// couldMore reports whether the storage shows that more in flight would have moved more, or that it
// would not. Both are false where nothing shows it.
func (e *evidence) couldMore() (yes, no bool) {
	if s := e.Simulation; s != nil {
		if s.Device == nil || s.DeviceBusyShare == nil {
			return false, false
		}
		// The model's only bounds: bytes occupy the medium, requests occupy slots.
		full := *s.DeviceBusyShare >= deviceBusy ||
			e.inFlight >= deviceBusy*float64(s.Device.Parallelism)
		return !full, full
	}
	rungs := e.rungs()
	if rungs == nil || e.beyond() {
		return false, false
	}
	// A run that moves as much as the best step shows that the first step proves nothing.
	higher := best(rungs[1:])
	return higher >= gain(rungs)*max(e.alike(rungs), e.rate), higher <= noMore*e.alike(rungs)
}

// atWork reports whether the storage had requests all the time. The sweep cannot show that: a run
// with no requests for half of the window, and twice as many in the other half, has the same mean
// in flight and the same sweep, and was limited by whatever kept the requests away. Either of two
// things excludes that:
//
//   - The kernel counted the device as busy. A run with a busy device may still move less than
//     plain I/O: each request takes longer at the same number in flight, as on a storage whose
//     write cache is full.
//   - The run's own rate. The storage moves no more at any concurrency, so a share of the window
//     without requests makes the run slower than plain I/O by at least that share. The run may
//     therefore fall short by the share that any other limit may take.
//
// Below that, with a device that was not busy or not observed, a burst into a cache and a storage
// without requests look the same.
func (e *evidence) atWork() bool {
	rungs := e.rungs()
	return rungs == nil || units.OrZero(e.DeviceWitness.BusyShare) >= deviceBusy ||
		e.rate >= (1-waitLimit)*e.alike(rungs)
}

// fromCache reports whether the device has not seen the reads: a cache completed them.
func (e *evidence) fromCache() bool {
	c := e.DeviceWitness.ServedFromCache
	return c != nil && *c
}

// saturates reports whether the run moved all that the storage could.
func (e *evidence) saturates() bool {
	_, no := e.couldMore()
	if s := e.Simulation; s != nil {
		return no
	}
	rungs := e.rungs()
	return no && units.OrZero(e.DeviceWitness.BusyShare) >= deviceBusy && !e.fromCache() &&
		e.rate >= saturated*best(rungs)
}

// removal is the share of busy time spent on deletions. discards is the share of the window with
// discards at the device, at most: they may overlap.
func (e *evidence) removal() float64 { return e.of(e.Harness.Busy.RemovalNS) }

func (e *evidence) discards() float64 {
	if ns := e.DeviceWitness.DiscardNS; ns != nil {
		return min(1, ratio(float64(*ns), float64(e.window)))
	}
	return 0
}

// deletes reports whether the run itself deleted anything in the window.
func (e *evidence) deletes() bool { return e.removal() > 0 || e.storage.Deleted.Entries > 0 }

// slowed reports whether plain I/O without the run's deletions, with as many in flight, moved more
// than the run. Discards left from before lower plain I/O, so the real difference is larger.
func (e *evidence) slowed() bool {
	rungs := e.least()
	return rungs != nil && e.rate < nearPlain*e.alike(rungs)
}
