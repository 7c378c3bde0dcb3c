package verdict

import (
	"slices"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Limits. They are conventions and no measurements, each with the reason for its place.
const (
	// Of the workers' time: a fifth of them without work can hide one in five requests that the
	// storage would have taken.
	idleLimit = 0.20
	// Of a window: in a shorter one workers without requests may be the load's beginning, as users
	// come one after the other, or the pause between two of them.
	loadShows = 3 * time.Second
	// Of the cores: above it the scheduler has no room, and who is ready waits.
	cpuLimit = 0.85
	// Of the workers' busy time: of what takes less, even its end would not make the run half as
	// fast again (1 ÷ 0.7 = 1.43).
	waitLimit = 0.30
	// Of busy time: Go's runtime looks at one wait in eight for a lock or a processor and tells it
	// eightfold, so that a single one of 100 ms would be above waitLimit of less.
	samplesShow = 3 * time.Second
	// Percent of the run's bytes: what a device moves beyond is somebody else's. A filesystem's own
	// are some percent, of small files more.
	ownBytes = 120
	// Rungs of a ladder are short: two of the same load differ by up to 10 % on a quiet disk. So
	// that much more is no more, and only twice that much is more; between the two nothing is
	// shown.
	noMore = 1.10
	more   = 1.20
	// A run that moves at least this share of what plain I/O moves was slowed down by nothing that
	// plain I/O does not do, as deletions: the rest is opening, flushing and metadata. A rung is a
	// burst, so that less does not mean the contrary by itself.
	nearPlain = 0.75
	// Of the window. The kernel counts busy in ticks of a millisecond and more. Less does not mean
	// that the storage had room: a cgroup's io.max, and a filesystem's locks, hold requests back
	// above the device.
	deviceBusy = 0.90
	// A run at this share of the best that the storage showed in any concurrency cannot be made
	// faster by anything else.
	saturated = 0.95
)

// evidence is what the verdict is made of, beside the result. Shares that are unknown are zero:
// they show nothing.
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
	// The result of an interrupted run is made while operations are under way, whose time nobody
	// has counted yet: what is missing is not the harness's.
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

// inMemory says that the tier's files lie in memory: what takes the time of a request there is the
// processor's copying, which is this process's, and no storage. Of several directories all do.
func (e *evidence) inMemory() bool {
	return !slices.ContainsFunc(e.Filesystems(),
		func(fs result.Filesystem) bool { return !fs.InMemory })
}

// of is a share of the busy time.
func (e *evidence) of(ns int64) float64 { return ratio(float64(ns), e.busy) }

// sampled is the share of a time that Go's runtime tells from some of the waits. They are those of
// all goroutines, so that it is one of all who may have waited: the workers, and who carries out
// requests for them. The runtime looks at every eighth stop of a goroutine: one that stops in the
// same places again and again may be told of up to eightfold, or not at all. With 64 requests in
// flight it told 138 s of waits in 4 s where an execution trace had 27. So it shows nothing where
// the kernel counted the requests elsewhere.
func (e *evidence) sampled(ns int64) float64 {
	if e.busy < float64(samplesShow) || e.atDevice() {
		return 0
	}
	return ratio(float64(ns), max(e.busy, e.inFlight*float64(e.window)))
}

// atDevice says that the device had the requests for nearly all the time that they took, by the
// kernel's own count: then no wait of this process's can hide in it. Others' requests, and what
// the page cache writes, would be counted in the place of the run's.
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

// rungs are those of a ladder that shows something, without deletions that disturbed it.
func (e *evidence) rungs() []result.Rung {
	if l := e.Harness.Ladder; l != nil && disturbed(l) {
		return nil
	}
	return e.least()
}

// least are the rungs of a ladder, disturbed or not, with what the storage moved at least: two or
// more that saw enough requests end, none of them the processor's limit.
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

// disturbed says that the device had deletions to do while the ladder was climbed, which made its
// rungs lower by what a rung is uncertain anyway, or more.
func disturbed(l *result.Ladder) bool { return units.OrZero(l.DiscardShare) > noMore-1 }

// alike is what plain I/O moved with as many in flight as the run. The first rung has a whole
// number of them; with fewer a device moves at best in proportion.
func (e *evidence) alike(rungs []result.Rung) float64 {
	return rungs[0].Rate() * min(1, ratio(e.inFlight, float64(rungs[0].InFlight)))
}

func best(rungs []result.Rung) (rate float64) {
	for _, r := range rungs {
		rate = max(rate, r.Rate())
	}
	return rate
}

// beyond says that the run moved more than plain I/O in any concurrency, which is then no measure
// of it: it reads block by block what a run reads together, and others may have used the device.
func (e *evidence) beyond() bool {
	rungs := e.rungs()
	return rungs != nil && e.rate >= more*best(rungs)
}

// slice is how long a kernel that throttles (blk-throttle behind a cgroup's io.max; a cloud's
// limiter is alike) lets pass what a limit allows for that long, all at once.
const slice = 100 * time.Millisecond

// gain is what more in flight has to move more to show anything: more than noise, and, beside the
// noise that is no more, one slice of a throttle more than the shortest rung had.
func gain(rungs []result.Rung) float64 {
	shortest := rungs[0].NS
	for _, r := range rungs {
		shortest = min(shortest, r.NS)
	}
	return max(more, noMore*(1+ratio(float64(slice), float64(shortest))))
}

// couldMore says whether the storage shows that more in flight would have moved more, or that it
// would not. Neither, where nothing shows it.
func (e *evidence) couldMore() (yes, no bool) {
	if s := e.Simulation; s != nil {
		if s.Device == nil || s.DeviceBusyShare == nil {
			return false, false
		}
		// Bytes pass the medium, requests take places: the model has no other bounds.
		full := *s.DeviceBusyShare >= deviceBusy ||
			e.inFlight >= deviceBusy*float64(s.Device.Parallelism)
		return !full, full
	}
	rungs := e.rungs()
	if rungs == nil || e.beyond() {
		return false, false
	}
	// Who moves as much as the best rung already shows that the first one shows nothing.
	higher := best(rungs[1:])
	return higher >= gain(rungs)*max(e.alike(rungs), e.rate), higher <= noMore*e.alike(rungs)
}

// atWork says whether the storage had work all the time. That more in flight moves no more is a
// fact of plain I/O, which always has requests at the storage; a run that had none there for half
// of the window, and twice as many in the other half, has the same mean in flight, and the same
// ladder, and was limited by whatever kept them away. Either of two things excludes that:
//
//   - The kernel counted the device as busy. That a run with a busy device moved less than plain
//     I/O is no objection: for each request to take longer, as many being in flight, the storage
//     has to answer later, as one does whose write cache is full.
//   - The run's own rate. The storage moves no more in any concurrency, so one that had no work
//     for a share of the window makes the run slower than plain I/O by that share at least. What a
//     run falls short may therefore be as much as anything else may take that is not the storage.
//
// Below that, with a device that was not busy or that nobody watched, a burst into a cache and a
// storage without work look the same.
func (e *evidence) atWork() bool {
	rungs := e.rungs()
	return rungs == nil || units.OrZero(e.DeviceWitness.BusyShare) >= deviceBusy ||
		e.rate >= (1-waitLimit)*e.alike(rungs)
}

// fromCache says that the device has not seen the reads: whatever answered them was not it.
func (e *evidence) fromCache() bool {
	c := e.DeviceWitness.ServedFromCache
	return c != nil && *c
}

// saturates says that the run moved all that the storage could, whatever else went on.
func (e *evidence) saturates() bool {
	_, no := e.couldMore()
	if s := e.Simulation; s != nil {
		return no
	}
	rungs := e.rungs()
	return no && units.OrZero(e.DeviceWitness.BusyShare) >= deviceBusy && !e.fromCache() &&
		e.rate >= saturated*best(rungs)
}

// removal is the share of busy time that went into deletions, and discards for how much of the
// window discards were at the device, at most: they may overlap.
func (e *evidence) removal() float64 { return e.of(e.Harness.Busy.RemovalNS) }

func (e *evidence) discards() float64 {
	if ns := e.DeviceWitness.DiscardNS; ns != nil {
		return min(1, ratio(float64(*ns), float64(e.window)))
	}
	return 0
}

// deletes says whether the run itself has deleted anything in the window.
func (e *evidence) deletes() bool { return e.removal() > 0 || e.storage.Deleted.Entries > 0 }

// slowed says that plain I/O without deletions, with as many in flight, moved more than the run. If
// deletions of before were left for it, it would have moved even more without them.
func (e *evidence) slowed() bool {
	rungs := e.least()
	return rungs != nil && e.rate < nearPlain*e.alike(rungs)
}
