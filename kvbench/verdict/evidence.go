package verdict

import (
	"slices"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// evidence has the numbers that the rules compare. An unknown share is 0 or a nil pointer, and then its
// rule does not apply.
type evidence struct {
	*result.Result
	storage result.Tier // Level is "" if the run has no storage tier
	busy    float64     // ns, busy time summed over workers

	// idle is the share of the workers' time in which they waited for a GPU, or had no request. It is 0 for
	// checkpoints. A request may be queued while workers are idle: it waits for the previous turn of its
	// conversation, or for its user.
	idle     float64
	shared   float64  // bytes of the device ÷ bytes of the run
	requests float64  // requests of the device ÷ the run's part of them
	capacity float64  // share of busy time: waiting for capacity
	deletion float64  // share of busy time: deleting entries
	discards float64  // share of the window: the device discarded
	cpu      *float64 // share of the cores that the workers can use
	rest     float64  // share of busy time: in no operation
	harness  *float64 // share of busy time: work of this process outside of tiers
	process  float64  // share of busy time: harness and memory tiers

	rate     float64  // bytes/s of the storage tier
	inFlight float64  // mean number of requests in flight in the storage tier
	latency  float64  // ns, mean latency of a request
	alone    float64  // ns, mean unloaded latency of the same requests
	slowdown *float64 // latency ÷ alone
}

func gather(r *result.Result) *evidence {
	h, b := &r.Harness, &r.Harness.Busy
	e := &evidence{Result: r, storage: r.Tier("storage"), busy: float64(h.WorkerBusyNS)}
	if r.Checkpoint == nil { // an accelerator that has ended waits for the slowest
		e.idle = ratio(b.ThinkingNS+h.WorkerIdleNS, h.WorkerIdleNS+h.WorkerBusyNS)
	}
	e.capacity, e.deletion = e.of(b.RoomNS), e.of(b.RemovalNS)
	// Discards overlap, so the sum of their times may exceed the window.
	e.discards = min(1, ratio(units.OrZero(r.DeviceCounters.DiscardNS), r.MeasuredNS()))
	if cores := e.cores(); r.Simulation == nil && cores > 0 {
		e.cpu = units.Ratio(float64(h.CPUNS), cores*float64(r.MeasuredNS()))
	}
	e.compareDevice()
	e.divideBusyTime()
	e.compareLatency()
	return e
}

func ratio[N int64 | float64](a, b N) float64 { return units.OrZero(units.Ratio(a, b)) }

// of returns ns as a share of the busy time.
func (e *evidence) of(ns int64) float64 { return ratio(float64(ns), e.busy) }

// cores returns how many cores the workers can keep busy. The rings' threads do all work of plain I/O.
func (e *evidence) cores() float64 {
	n := e.Limits.Cores
	if e.Workload.Workers > 0 {
		n = min(n, float64(e.Workload.Workers))
	}
	if e.PlainIO != nil && e.IO.Rings > 0 {
		n = min(n, float64(e.IO.Rings))
	}
	return n
}

// compareDevice compares the device's bytes and requests with the run's. It skips three cases. With buffered I/O
// read-ahead and write-back change the device's bytes. A removal moves only the filesystem's own bytes. With
// one rank of several, other ranks may use the device.
func (e *evidence) compareDevice() {
	d := &e.DeviceCounters
	if d.ReadBytes == nil || d.WriteBytes == nil || e.IO.Mode != "direct" || e.Removal != nil ||
		e.Ranks > 1 && len(e.MergedRanks) == 0 {
		return
	}
	files := e.storage.Write.Operations + e.storage.Deleted.Entries + e.storage.Evicted.Entries
	moved, own := *d.ReadBytes+*d.WriteBytes, d.AppReadBytes+d.AppWriteBytes+metadataBytes*files
	e.shared = ratio(moved, own)
	if d.ReadIOs == nil || d.WriteIOs == nil {
		return
	}
	// The kernel splits a request of the run if the file is in pieces on the device. So a surplus of requests
	// does not prove another process. It counts up to (device's bytes − run's bytes) ÷ blockBytes.
	all := *d.ReadIOs + *d.WriteIOs
	others := min(all-e.storage.Read.Requests-e.storage.Write.Requests-metadataRequests*files, (moved-own)/blockBytes)
	e.requests = ratio(all, all-max(0, others))
}

// divideBusyTime computes the shares of busy time in which this process itself worked. After a signal
// rest and harness are unknown, because operations are still in flight.
func (e *evidence) divideBusyTime() {
	b := &e.Harness.Busy
	process := b.GenerationNS + b.HostNS + b.DispatchNS + b.HandoverNS
	if e.EndedBy != result.EndedBySignal && e.busy > 0 {
		operations := b.StorageNS + b.OtherTiersNS + max(b.ClearingNS, b.RemovalNS) + b.RoomNS +
			b.WriteLimitNS + b.WriterNS + b.BuffersNS + b.ThinkingNS + process - b.HandoverNS // HandoverNS is a part of StorageNS
		e.rest = max(0, 1-e.of(operations))
		e.harness = units.Finite(e.rest + e.of(process))
	}
	e.process = e.rest + e.of(process+b.OtherTiersNS)
}

// compareLatency compares the mean latency of the window's requests with the unloaded latency of
// requests of the same size. It ignores a direction without an unloaded latency. If that direction has
// more than half of the time in flight, the slowdown is unknown. With buffered writes only flushes are
// in flight.
func (e *evidence) compareLatency() {
	read, write := &e.storage.Read, &e.storage.Write
	e.inFlight = units.OrZero(read.MeanInFlight) + units.OrZero(write.MeanInFlight)
	e.rate = units.OrZero(read.BytesPerSecond) + units.OrZero(write.BytesPerSecond)
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

// ofSize returns the unloaded latency in ns of requests of a size. It interpolates between two measured
// sizes. Larger requests have the rate of the largest measured size. Smaller requests have the latency
// of the smallest.
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

// waiting reports whether enough requests were in flight that a request may have waited for another one.
func (e *evidence) waiting() bool { return e.inFlight >= queueAbove }

// inMemory reports whether all directories of the storage tier are in memory. There this process copies
// the bytes during a request.
func (e *evidence) inMemory() bool {
	return !slices.ContainsFunc(e.Filesystems(),
		func(fs result.Filesystem) bool { return !fs.InMemory })
}

// simulatedFull reports whether the medium of a simulated device was busy, or all of its slots had a
// request, for at least deviceFull.
func (e *evidence) simulatedFull() bool {
	s := e.Simulation
	return s != nil && s.Device != nil && (units.OrZero(s.DeviceBusyShare) >= deviceFull ||
		e.inFlight >= deviceFull*float64(s.Device.Parallelism))
}

// bound returns what limited the number of requests in flight: the write limit, the engine's threads,
// the buffers, the depth or the number of workers.
func (e *evidence) bound() string {
	b := &e.Harness.Busy
	switch {
	case e.of(b.WriteLimitNS) > waitLimit:
		return result.BoundWriteLimit
	case e.of(b.EngineNS) > waitLimit:
		return result.BoundEngine
	case e.of(b.BuffersNS) > waitLimit:
		return result.BoundBuffers
	case e.Workload.Workers > 1 && e.deep():
		return result.BoundDepth
	}
	return result.BoundWorkers
}

// deep reports whether operations had nearly as many requests in flight as the depth allows. It returns
// false if most operations have one request, which cannot use a larger depth.
func (e *evidence) deep() bool {
	operations := ratio(e.Harness.Busy.StorageNS, e.WindowNS)
	read, write := &e.storage.Read, &e.storage.Write
	several := read.Requests+write.Requests > 2*(read.Operations+write.Operations)
	return several && operations > 0 && e.inFlight >= 0.8*operations*float64(e.IO.Depth)
}
