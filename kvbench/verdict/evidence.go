package verdict

import (
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// What bounded the number of requests in flight, as Verdict.Bound names it.
const (
	Workers    = "workers"
	Depth      = "depth"
	WriteLimit = "write limit"
	Engine     = "engine threads"
)

// evidence is what the rules compare. A share that is unknown is zero and decides nothing; a
// pointer is nil then.
type evidence struct {
	*result.Result
	storage result.Tier // without a level: the run has no storage tier
	busy    float64     // ns, summed over workers
	queued  int64       // requests at the end of the window

	// Of the workers' time: without a request and with none queued at the end, or waiting for a GPU.
	unloaded float64
	shared   float64  // bytes of the device ÷ bytes of the run
	capacity float64  // of busy time
	deletion float64  // of busy time
	discards float64  // of the window
	cpu      *float64 // of the cores that the workers can use
	rest     float64  // of busy time, in no operation
	harness  *float64 // of busy time, neither in a tier nor waiting for it
	process  float64  // of busy time, harness and memory tiers

	inFlight float64  // mean number of requests in the storage tier
	latency  float64  // ns, mean
	alone    float64  // ns, of the same requests without others
	slowdown *float64 // latency ÷ alone
}

func gather(r *result.Result) *evidence {
	h, b := &r.Harness, &r.Harness.Busy
	e := &evidence{Result: r, busy: float64(h.WorkerBusyNS), queued: r.Load["total"].Queued}
	isStorage := func(t result.Tier) bool { return t.Level == "storage" }
	if i := slices.IndexFunc(r.Tiers, isStorage); i >= 0 {
		e.storage = r.Tiers[i]
	}
	without := b.ThinkingNS
	if e.queued == 0 {
		without += h.WorkerIdleNS
	}
	e.unloaded = ratio(without, h.WorkerIdleNS+h.WorkerBusyNS)
	e.capacity, e.deletion = e.of(b.RoomNS), e.of(b.RemovalNS)
	// Discards overlap: their times may add up to more than the window.
	e.discards = min(1, ratio(units.OrZero(r.DeviceCounters.DiscardNS), r.WindowNS))
	if cores := e.cores(); r.Simulation == nil && cores > 0 {
		e.cpu = units.Ratio(float64(h.CPUNS), cores*float64(r.WindowNS))
	}
	e.compareBytes()
	e.divideBusyTime()
	e.compareLatency()
	return e
}

func ratio[N int64 | float64](a, b N) float64 { return units.OrZero(units.Ratio(a, b)) }

// of returns a share of the busy time.
func (e *evidence) of(ns int64) float64 { return ratio(float64(ns), e.busy) }

// cores is how many cores the workers can keep busy.
func (e *evidence) cores() float64 {
	if n := e.Workload.Workers; n > 0 {
		return min(e.Limits.Cores, float64(n))
	}
	return e.Limits.Cores
}

// compareBytes compares the device's bytes with the run's. The page cache reads ahead and writes
// back later, and other ranks may use the device: then the bytes show nothing.
func (e *evidence) compareBytes() {
	d := &e.DeviceCounters
	if d.ReadBytes == nil || d.WriteBytes == nil || e.IO.Mode != "direct" ||
		e.Ranks > 1 && len(e.MergedRanks) == 0 {
		return
	}
	files := e.storage.Write.Operations + e.storage.Deleted.Entries + e.storage.Evicted.Entries
	e.shared = ratio(*d.ReadBytes+*d.WriteBytes,
		d.AppReadBytes+d.AppWriteBytes+metadataBytes*files)
}

// divideBusyTime finds the part of the busy time that this process took itself. Operations of an
// interrupted run are still in flight, so that their part is unknown.
func (e *evidence) divideBusyTime() {
	b := &e.Harness.Busy
	process := b.BuffersNS + b.GenerationNS + b.HostNS + b.DispatchNS + b.HandoverNS
	if e.EndedBy != result.EndedBySignal && e.busy > 0 {
		operations := b.StorageNS + b.OtherTiersNS + max(b.ClearingNS, b.RemovalNS) + b.RoomNS +
			b.WriteLimitNS + b.WriterNS + b.ThinkingNS + process - b.HandoverNS // part of StorageNS
		e.rest = max(0, 1-e.of(operations))
		e.harness = units.Finite(e.rest + e.of(process))
	}
	e.process = e.rest + e.of(process+b.OtherTiersNS)
}

// compareLatency compares the mean latency of the window's requests with the latency of single
// requests of their size. A direction without a measurement is left out if it has less than half of
// the time in flight. Behind the page cache only the flushes of writes are in flight.
func (e *evidence) compareLatency() {
	read, write := &e.storage.Read, &e.storage.Write
	e.inFlight = units.OrZero(read.MeanInFlight) + units.OrZero(write.MeanInFlight)
	levels, u := e.Latency.Levels["storage"], &e.Harness.Unloaded
	var requests, took, alone, compared float64
	for _, d := range []struct {
		traffic  *result.TierTraffic
		latency  *float64
		unloaded []result.UnloadedLatency
	}{{read, levels.Read.Request.Mean, u.Read}, {write, levels.Write.Request.Mean, u.Write}} {
		n := d.traffic.Requests
		if n == 0 {
			n, d.latency = d.traffic.Operations, units.Ratio(d.traffic.InFlightNS,
				d.traffic.Operations)
		}
		if n == 0 || d.latency == nil || len(d.unloaded) == 0 {
			continue
		}
		requests += float64(n)
		took += float64(n) * *d.latency
		alone += float64(n) * ofSize(d.unloaded, ratio(d.traffic.Bytes, n))
		compared += float64(d.traffic.InFlightNS)
	}
	if compared > 0 && 2*compared >= float64(read.InFlightNS+write.InFlightNS) {
		e.latency, e.alone = took/requests, alone/requests
		e.slowdown = units.Ratio(took, alone)
	}
}

// ofSize is the latency of single requests of a size: between two measured sizes in proportion,
// above them at the same rate. Smaller requests than the measured ones may take as long.
func ofSize(measured []result.UnloadedLatency, bytes float64) float64 {
	small, large := measured[0], measured[len(measured)-1]
	from, to := float64(small.RequestBytes), float64(large.RequestBytes)
	switch {
	case bytes <= from:
		return float64(small.NS)
	case bytes < to:
		return float64(small.NS) + float64(large.NS-small.NS)*(bytes-from)/(to-from)
	}
	return float64(large.NS) * bytes / to
}

// waiting reports whether requests can have waited for other requests of the run.
func (e *evidence) waiting() bool { return e.inFlight >= queueAbove }

// inMemory reports whether the tier's files lie in memory, in all directories: a request's time
// there is copying by this process.
func (e *evidence) inMemory() bool {
	return !slices.ContainsFunc(e.Filesystems(),
		func(fs result.Filesystem) bool { return !fs.InMemory })
}

// simulatedFull reports whether a simulated device had no capacity left: bytes occupy its medium,
// requests its slots.
func (e *evidence) simulatedFull() bool {
	s := e.Simulation
	return s != nil && s.Device != nil && (units.OrZero(s.DeviceBusyShare) >= deviceFull ||
		e.inFlight >= deviceFull*float64(s.Device.Parallelism))
}

// bound names what kept more requests from being in flight: the wait that took most, else what an
// operation or the number of them can have.
func (e *evidence) bound() string {
	b := &e.Harness.Busy
	switch {
	case e.of(b.WriteLimitNS) > waitLimit:
		return WriteLimit
	case e.of(b.EngineNS) > waitLimit:
		return Engine
	case e.Workload.Workers > 1 && e.deep():
		return Depth
	}
	return Workers
}

// deep reports whether operations had as many requests in flight as they may: more workers would
// help as well, but a deeper operation is the smaller change. An operation of one request has no
// use for depth.
func (e *evidence) deep() bool {
	operations := ratio(e.Harness.Busy.StorageNS, e.WindowNS)
	read, write := &e.storage.Read, &e.storage.Write
	several := read.Requests+write.Requests > 2*(read.Operations+write.Operations)
	return several && operations > 0 && e.inFlight >= 0.8*operations*float64(e.IO.Depth)
}
