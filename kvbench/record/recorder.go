package record

import (
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// Recorder counts what happens in one trial. All methods are safe for concurrent use. Counters live
// in a fixed number of shards with a mutex each, so that workers of different shards never meet;
// [Build] merges them once.
//
// Before Open nothing counts. After Open only samples that complete inside the window count, both
// ends included. Memory does not grow with the run: histograms have a fixed size, and the timeline
// has a maximum number of buckets.
type Recorder struct {
	// The bounds of the window. Every sample reads them, and a trial writes them a few times. Both
	// are the constant never before the window opens.
	start, end atomic.Int64
	closed     atomic.Bool
	// limit is the number of completed requests that ends the window, 0 = none. done is how many
	// requests have taken a number. A request takes its number before it counts, so exactly limit
	// requests count. full is called after the last of these was counted.
	limit, done atomic.Int64
	full        func()

	shards []shard
	// Timeless: operations take no time, and their latencies are not recorded. Rounds: the storage
	// tier's latencies are also kept for the autoscaler. Both are set before the first sample.
	Timeless, Rounds bool
	// Paused returns how long the process was paused in the last time of a length. The latency of a sample
	// with such a time is not recorded. nil: never.
	Paused func(length time.Duration) time.Duration

	failures failures
	// Counts of operations in the window, and outside of it, by outcome.
	window, around ends
}

// never is both bounds of a window that is not open.
const never = workloads.Never

// New returns a recorder with the given number of shards (at least one). The Shard of a sample is
// taken modulo this number. With one shard per processor, processors do not share a shard. A shard
// that counts all kinds of operations takes about 10 MB.
func New(shards int) *Recorder {
	r := &Recorder{shards: make([]shard, max(1, shards))}
	r.each(func(s *shard) { s.hists = make(histograms, len(histNames)) })
	r.start.Store(int64(never))
	r.end.Store(int64(never))
	r.failures.by = make(map[result.ErrorCount]int64)
	return r
}

// Parts makes the recorder count the storage tier's requests also for each of its n parts, see
// [tiers.PartOf]. It is called before the first sample.
func (r *Recorder) Parts(n int) {
	r.each(func(s *shard) { s.parts = make([][tiers.NumOps]result.RootTraffic, n) })
}

// Open opens the window [start, deadline]. A deadline of workloads.Never leaves the end open until
// SetEnd. It is called once. Every earlier sample is dropped, except failures.
func (r *Recorder) Open(start, deadline time.Duration) {
	interval := TimelineInterval(deadline - start)
	r.each(func(s *shard) {
		s.timeline, s.timeless = timeline{origin: start, interval: interval}, r.Timeless
	})
	r.end.Store(int64(deadline))
	r.start.Store(int64(start))
}

// SetEnd moves the window's end to an earlier time (count reached, input ended, signal). A later
// time than the present end changes nothing.
func (r *Recorder) SetEnd(end time.Duration) {
	for old := r.end.Load(); int64(end) < old; old = r.end.Load() {
		r.end.CompareAndSwap(old, int64(end))
	}
}

// LimitRequests makes the window end when the n-th completed request ends, so exactly n requests
// count. full is called then. Failed requests do not count against n. LimitRequests is called
// before Open.
func (r *Recorder) LimitRequests(n int64, full func()) {
	r.full = full
	r.limit.Store(n)
}

// Close ends the counting: later samples are outside of the window, even if in virtual time they
// have the time of its end. Operations that the end cut off still count as cut off.
func (r *Recorder) Close() { r.closed.Store(true) }

// Window returns the window's bounds; both are workloads.Never before Open.
func (r *Recorder) Window() (start, end time.Duration) {
	return time.Duration(r.start.Load()), time.Duration(r.end.Load())
}

// inside reports whether a moment counts: it is between the bounds, both included, and the recorder
// is not closed.
func (r *Recorder) inside(at time.Duration) bool {
	return int64(at) >= r.start.Load() && int64(at) <= r.end.Load() && !r.closed.Load()
}

// shard locks and returns the shard of a worker. Negative numbers, of no particular worker, use the
// first shard.
func (r *Recorder) shard(worker int) *shard {
	s := &r.shards[max(0, worker)%len(r.shards)]
	s.mu.Lock()
	return s
}

// workerIndex is the index of a worker among the workers of its shard.
func (r *Recorder) workerIndex(n int) int { return max(0, n) / len(r.shards) }

// each calls f with each shard, locked.
func (r *Recorder) each(f func(*shard)) {
	for i := range r.shards {
		s := r.shard(i)
		f(s)
		s.mu.Unlock()
	}
}

// count calls f with the shard of a worker, locked, if the moment counts.
func (r *Recorder) count(at time.Duration, worker int, f func(*shard)) {
	if r.inside(at) {
		s := r.shard(worker)
		f(s)
		s.mu.Unlock()
	}
}

// Chunk counts a request that a tier has completed, or the flush of a write. Its bytes and its
// latency count if it completed inside the window. Its time in flight inside the window counts in
// any case, so that the mean number in flight is exact at both edges. For a piece (Chunk.Piece)
// only bytes count.
func (r *Recorder) Chunk(shard int, l tiers.Kind, ph tiers.Phase, c tiers.Chunk) {
	if start, end := r.Window(); c.Begun <= end && c.Completed >= start {
		paused := r.paused(c.Completed - c.Submitted)
		s := r.shard(shard)
		s.inFlight(l, c.Op, c.Part, inWindow(&c, start, end))
		if r.inside(c.Completed) {
			record := s.leaveOut(paused)
			s.bytes(l, &c)
			record()
			if n := s.n.traffic(l, c.Op); ph == tiers.Evict {
				n.DemotionBytes += c.Bytes + c.Memory
			} else {
				s.worker(r.workerIndex(shard))[l][c.Op] += c.Bytes + c.Memory
			}
		}
		s.mu.Unlock()
	}
}

// inWindow returns how long a request was in flight inside the window, in ns.
func inWindow(c *tiers.Chunk, start, end time.Duration) int64 {
	return int64(max(0, min(c.Ended, end)-max(c.Begun, start)))
}

// Block counts a request of the storage tier that is a whole operation, as Chunk, Operation and
// Request do together, and reports whether it counted. It records one latency, that of the request:
// there are hundreds of thousands of such operations per second, and each further histogram would
// cost time.
func (r *Recorder) Block(shard int, c tiers.Chunk) (counted bool) {
	start, end := r.Window()
	if c.Begun > end || c.Completed < start {
		return false
	}
	counted, last := r.take(c.Completed, true)
	paused := r.paused(c.Completed - c.Submitted)
	s := r.shard(shard)
	within := inWindow(&c, start, end)
	s.inFlight(tiers.Storage, c.Op, c.Part, within)
	s.n.Busy.StorageNS += within
	if counted {
		record := s.leaveOut(paused)
		s.bytes(tiers.Storage, &c)
		s.block(&c)
		record()
	}
	s.mu.Unlock()
	r.reached(last, c.Completed)
	return counted
}

// take reports whether a request that ended at that moment counts, and whether it is the last one
// that the limit allows. Failed requests do not count against the limit.
func (r *Recorder) take(at time.Duration, succeeded bool) (counts, last bool) {
	counts = r.inside(at)
	if limit := r.limit.Load(); counts && succeeded && limit > 0 {
		n := r.done.Add(1)
		counts = n <= limit
		last = n == limit
	}
	return counts, last
}

// reached ends the window at the last request that the limit allows.
func (r *Recorder) reached(last bool, at time.Duration) {
	if last {
		r.SetEnd(at)
		r.full()
	}
}

// Operation records the end of an operation: it has completed, or was cancelled (Partial), or was
// abandoned after a failure (Failed). The bytes that its worker has moved inside the window since
// the operation before count as completed, cut off or lost accordingly.
func (r *Recorder) Operation(o OpSample) {
	if start, _ := r.Window(); start == never {
		return
	}
	paused := r.paused(o.total())
	s := r.shard(o.Shard)
	defer s.mu.Unlock()
	defer s.leaveOut(paused)()
	u := s.worker(r.workerIndex(o.Shard))
	switch {
	case o.Failed:
		s.n.settle(u, lostBytes)
	case o.Partial:
		s.partial(o)
		s.busy(o, 1)
		s.n.settle(u, cutBytes)
	case r.inside(o.At):
		s.operation(o, u)
		s.busy(o, r.within(o))
		if r.Rounds && o.Level == tiers.Storage && o.Phase != tiers.Evict && o.Bytes > 0 {
			s.round(o)
		}
	default: // it completed too late to count
		s.busy(o, r.within(o))
		if o.Phase != tiers.Evict {
			s.n.settle(u, cutBytes)
		}
	}
}

// paused reports whether the process was paused in the last time of that length.
func (r *Recorder) paused(length time.Duration) bool { return r.Paused != nil && r.Paused(length) > 0 }

// within returns the share of an operation's time that is inside the window. For an operation that
// was cut off it is 1: the operation ended with the window, and undoing it took the time after
// that.
func (r *Recorder) within(o OpSample) float64 {
	took := o.total()
	if took <= 0 || o.Partial {
		return 1
	}
	start, end := r.Window()
	return max(0, float64(min(o.At, end)-max(o.At-took, start))/float64(took))
}

// Request records a finished request and reports whether it counted: it ended inside the window,
// and before the limit of completed requests was reached. The operations in the same call count if
// the request counts, so that both counts end with the same request.
func (r *Recorder) Request(q RequestSample, ops ...OpSample) bool {
	counts, last := r.take(q.At, !q.Failed)
	paused := r.paused(time.Duration(q.Time.EndToEnd))
	s := r.shard(q.Shard)
	for _, o := range ops {
		s.busy(o, r.within(o)) // the worker's time, also when the operation came too late
	}
	if !counts {
		s.mu.Unlock()
		return false
	}
	record := s.leaveOut(paused)
	s.request(q)
	for _, o := range ops {
		s.operation(o, s.worker(r.workerIndex(o.Shard)))
	}
	record()
	s.mu.Unlock()
	r.reached(last, q.At)
	return true
}

// Lookup records what one decision about one key found: Hit, Miss and the others. ForPrefill is the
// entry that the request itself wrote and reads again: this cannot miss and is no lookup, but the
// Python benchmark's keys count it. No result has lookups for ForReread.
func (r *Recorder) Lookup(at time.Duration, worker int, p workloads.Purpose,
	found result.LookupCount) {
	r.count(at, worker, func(s *shard) { s.n.Lookups[p].Add(found) })
}

// Compare records what another policy would have found for one request.
func (r *Recorder) Compare(at time.Duration, worker int, c result.Comparison) {
	r.count(at, worker, func(s *shard) { s.n.Compared.Add(c) })
}

// Blocks records a decision about blocks.
func (r *Recorder) Blocks(b BlockSample) {
	r.count(b.At, b.Shard, func(s *shard) { s.blocks(b) })
}

// LostBlocks subtracts hits that Blocks has counted: the sample has negative numbers.
func (r *Recorder) LostBlocks(b BlockSample) {
	r.count(b.At, b.Shard, func(s *shard) { s.hits(b) })
}

// Evict counts an entry that left the cache for good from tier l.
func (r *Recorder) Evict(at time.Duration, worker int, l tiers.Kind, bytes int64) {
	r.count(at, worker, func(s *shard) {
		addEntry(&s.n.Tiers[l].Evicted, bytes)
		s.timeline.at(at).n[bucketEvicted+int(l)] += bytes
	})
}

// Demote counts an entry that moved down from one tier to another. Chunk and Operation count its
// I/O.
func (r *Recorder) Demote(at time.Duration, worker int, from, to tiers.Kind, bytes int64) {
	r.count(at, worker, func(s *shard) {
		addEntry(&s.n.Tiers[from].DemotedOut, bytes)
		addEntry(&s.n.Tiers[to].DemotedIn, bytes)
		s.timeline.at(at).n[bucketDemoted+int(from)] += bytes
	})
}

// Delete records how long tier l took to remove an object.
func (r *Recorder) Delete(at time.Duration, worker int, l tiers.Kind, bytes int64,
	took time.Duration) {
	r.count(at, worker, func(s *shard) {
		addEntry(&s.n.Tiers[l].Deleted, bytes)
		s.hists.at(histLevels[l].delete).Record(int64(took))
		if l == tiers.Storage {
			s.n.Busy.RemovalNS += int64(took)
		}
	})
}

// Retry counts one repetition of an operation after a transient error. The bytes of the failed
// attempt are lost: the next attempt moves them again.
func (r *Recorder) Retry(at time.Duration, shard int) {
	if start, _ := r.Window(); start == never {
		return
	}
	s := r.shard(shard)
	defer s.mu.Unlock()
	s.n.settle(s.worker(r.workerIndex(shard)), lostBytes)
	if r.inside(at) {
		s.n.Requests.RetriedOperations++
	}
}

// Failure counts a failed operation and keeps the first ten, whether or not the window is open: a
// run never loses an error. Errno is symbolic, "EIO", or "mismatch" for verification; an empty one
// counts as "other".
func (r *Recorder) Failure(at time.Duration, e result.ErrorSample) {
	r.failures.add(e, r.ended(at))
}

// Succeeded counts operations that succeeded, whether or not the window is open: operations of
// requests, demotions (two each) and deletions. Failures are compared with them.
func (r *Recorder) Succeeded(at time.Duration, operations int64) {
	r.ended(at).good.Add(operations)
}

// ends counts how operations ended.
type ends struct{ good, failed atomic.Int64 }

// ended returns the counts of the window if at is in it, else the counts outside of it: fill,
// warm-up, and operations in flight at the window's end.
func (r *Recorder) ended(at time.Duration) *ends {
	if r.inside(at) {
		return &r.window
	}
	return &r.around
}

// Failed returns how many operations failed so far, and how many ended. If at is in the window, it
// counts the window, else the time outside. The two are separate, so that a long warm-up can
// neither hide the failures of a short window nor fail it.
func (r *Recorder) Failed(at time.Duration) (failed, all int64) {
	n := r.ended(at)
	failed = n.failed.Load()
	return failed, n.good.Load() + failed
}

// Gauge records queue length and tier fill at a moment of the window.
func (r *Recorder) Gauge(at time.Duration, g Gauge) {
	r.count(at, 0, func(s *shard) { s.timeline.at(at).gauge = &g })
}

// Counters returns a snapshot for the progress line. It locks every shard in turn for a few
// additions.
func (r *Recorder) Counters() Live {
	v := Live{Failures: r.failures.total.Load()}
	r.each(func(s *shard) {
		for l, t := range s.n.Tiers {
			for op, n := range [...]*result.TierTraffic{&t.Read, &t.Write} { // as tiers.Op
				v.Bytes[l][op] += n.Bytes
				v.IO[l][op].Requests += n.Requests
				v.IO[l][op].InFlight += time.Duration(n.InFlightNS)
			}
			v.Evicted[l] += t.Evicted.Entries
		}
		for _, p := range s.n.Prompt {
			v.PromptTokens += p.Tokens
			v.FoundTokens += p.Found
		}
		v.Requests += s.n.Requests.Completed
		v.Tokens += s.n.Requests.GeneratedTokens
	})
	return v
}

// TakeRound returns the p95 latency per 100 MiB of the storage tier's operations since the last
// call, and whether there were any.
func (r *Recorder) TakeRound(op tiers.Op) (p95 time.Duration, some bool) {
	all := result.NewHistogram(units.Nanoseconds)
	r.each(func(s *shard) {
		all.Merge(s.rounds[op])
		s.rounds[op] = nil
	})
	v, some := all.Percentile(0.95)
	return time.Duration(v), some
}

// P95 returns the p95 latency of a level's operations so far, of all sizes, in milliseconds; nil
// without operations.
func (r *Recorder) P95(l tiers.Kind, op tiers.Op) *float64 {
	all := result.NewHistogram(units.Nanoseconds)
	r.each(func(s *shard) { all.Merge(s.hists[histLevels[l].op[op].io]) })
	return all.PercentileMS(0.95)
}
