package verdict

import (
	"fmt"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// What bounded the number of requests in flight, as Verdict.Bound names it.
const (
	Workers    = "workers"
	Depth      = "depth"
	WriteLimit = "write limit"
	Room       = "room" // entries that have to leave are being read or written
	Engine     = "engine threads"
)

// Judge says what limited a run, of which the result has everything but the verdict.
//
// The order is that in which one answer makes the next question empty. Where the storage moved all
// it could, nothing else can have been the limit. Idle workers mean that nothing behind them was
// tested. The harness hides what is behind it, and deletions make the storage look slower than it
// is.
func Judge(r *result.Result) result.Verdict {
	e := gather(r)
	h := &r.Harness
	v := result.Verdict{
		IdleShare:     units.Ratio(h.WorkerIdleNS, h.WorkerIdleNS+h.WorkerBusyNS),
		HostWaitShare: units.Ratio(h.Busy.HostNS+h.Busy.BuffersNS, h.WorkerBusyNS),
		HarnessShare:  units.Finite(e.harness), Bound: e.bound(),
	}
	if e.busy == 0 || interrupted(r) {
		v.HarnessShare = nil
	}
	if r.Simulation == nil {
		v.CPUShare = units.Ratio(h.CPUNS, r.Limits.Cores*float64(r.WindowNS))
	}
	if e.storage.Level != "" {
		v.InFlight = units.Finite(e.inFlight)
	}
	v.Kind, v.Reason = e.judge()
	if v.Kind != result.ConcurrencyLimited {
		v.Bound = ""
	}
	return v
}

func (e *evidence) judge() (kind, reason string) {
	yes, no := e.couldMore()
	switch {
	case e.window <= 0:
		return result.NoVerdict, "there was no window in which anything could be measured"
	case e.saturates():
		return result.StorageLimited, e.gaveAll()
	case e.idle > idleLimit && e.window < loadShows:
		return result.Undecided, e.unknown()
	case e.idle > idleLimit:
		return result.LoadLimited, e.askedLittle()
	case e.cpu >= cpuLimit:
		return result.HarnessLimited, e.usedUp()
	case e.harness > waitLimit:
		return result.HarnessLimited, e.parts()
	case e.gc > waitLimit:
		return result.HarnessLimited, fmt.Sprintf("the garbage collector stopped or delayed the "+
			"workers for %s of their time (limit %s)", share(e.gc), share(waitLimit))
	case e.removal() > waitLimit, e.discards() > waitLimit && e.slowed():
		return result.DiscardLimited, e.deleted()
	case yes:
		return result.ConcurrencyLimited, e.few()
	case no && e.inMemory():
		return result.HarnessLimited, e.copied()
	// These two are of the whole process. The part that kept workers from the storage is counted
	// above already; the rest may hide in the time of requests.
	case e.sampled(e.Harness.LockWaitNS) > waitLimit:
		return result.HarnessLimited, fmt.Sprintf("waits for this process's locks came to %s of "+
			"the time of workers and requests (limit %s)",
			share(e.sampled(e.Harness.LockWaitNS)), share(waitLimit))
	case e.sampled(e.Harness.SchedWaitNS) > waitLimit:
		return result.HarnessLimited, fmt.Sprintf("waits for a processor came to %s of the "+
			"time of workers and requests (limit %s)", share(e.sampled(e.Harness.SchedWaitNS)),
			share(waitLimit))
	case no && e.of(e.Harness.Busy.OtherTiersNS) <= waitLimit && !e.fromCache() && e.atWork():
		return result.StorageLimited, e.gaveAll()
	}
	return result.Undecided, e.unknown()
}

// bound names what kept more requests from being in flight: the wait that took most, else what an
// operation or the number of them can have.
func (e *evidence) bound() string {
	b := &e.Harness.Busy
	limit, room := e.of(b.WriteLimitNS), e.of(b.RoomNS+b.WriterNS)
	switch {
	case limit > waitLimit && limit >= room:
		return WriteLimit
	case room > waitLimit:
		return Room
	case e.of(b.EngineNS) > waitLimit:
		return Engine
	case e.Workload.Workers > 1 && e.deep():
		return Depth
	}
	return Workers
}

// deep says that operations had as many requests in flight as they may: more workers would help as
// well, but a deeper operation is the smaller change. An operation of one request has no use for
// depth.
func (e *evidence) deep() bool {
	operations := ratio(float64(e.Harness.Busy.StorageNS), float64(e.window))
	read, write := &e.storage.Read, &e.storage.Write
	several := read.Requests+write.Requests > 2*(read.Operations+write.Operations)
	return several && operations > 0 && e.inFlight >= 0.8*operations*float64(e.IO.Depth)
}
