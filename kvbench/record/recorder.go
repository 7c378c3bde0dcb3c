package record

import (
	"reflect"
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
// Nothing counts before Open, and afterwards only what completes inside the window does, both ends
// included. Memory does not grow with the run: histograms are of fixed size and made when first
// used, the timeline has a fixed number of buckets.
type Recorder struct {
	// The window. It is read for each sample and written a few times in a trial; both bounds are
	// never before it opens.
	start, end atomic.Int64
	closed     atomic.Bool
	// Completed requests that end the window, 0 = none, and those counted against it: a number is
	// taken first, so that exactly as many count. full is called after the last of them was
	// counted.
	limit, done atomic.Int64
	full        func()

	shards []shard
	// Timeless: operations take no time, so that their latencies are not recorded. Rounds: the
	// storage tier's latencies are also kept for the autoscaler. Both are set before the first
	// sample.
	Timeless, Rounds bool

	failures failures
	// How operations ended in the window, and around it.
	window, around ends
}

// never is when a window opens and ends that is not open.
const never = workloads.Never

// New makes a recorder with the given number of shards (at least one). Sample.Shard is taken modulo
// it: as many as processors, so that no two of them meet in one. A shard that sees all kinds of
// operations takes some 10 MB.
func New(shards int) *Recorder {
	r := &Recorder{shards: make([]shard, max(1, shards))}
	r.start.Store(int64(never))
	r.end.Store(int64(never))
	r.failures.by = make(map[result.ErrorCount]int64)
	return r
}

// Parts lets the storage tier's requests be counted for each of its n parts besides, see
// [tiers.PartOf]. It is called before the first sample.
func (r *Recorder) Parts(n int) {
	r.each(func(s *shard) { s.parts = make([][tiers.NumOps]result.RootTraffic, n) })
}

// Open opens the window [start, deadline]. A deadline of workloads.Never leaves the end open until
// SetEnd. It is called once, before which every sample is dropped, failures excepted.
func (r *Recorder) Open(start, deadline time.Duration) {
	interval := TimelineInterval(deadline - start)
	r.each(func(s *shard) {
		s.timeline, s.timeless = timeline{origin: start, interval: interval}, r.Timeless
	})
	r.end.Store(int64(deadline))
	r.start.Store(int64(start))
}

// SetEnd moves the window's end forward, when it is known before the deadline (count reached, input
// ended, signal). An end later than the present one changes nothing.
func (r *Recorder) SetEnd(end time.Duration) {
	for old := r.end.Load(); int64(end) < old; old = r.end.Load() {
		r.end.CompareAndSwap(old, int64(end))
	}
}

// LimitRequests ends the window with the n-th completed request: exactly n count, and the end is
// the moment at which the last of them completed, in which full is called. It is called before
// Open; failed requests do not count.
func (r *Recorder) LimitRequests(n int64, full func()) {
	r.full = full
	r.limit.Store(n)
}

// Close ends the counting: what comes now has not ended inside the window, though in virtual time
// the moment may be the same. What was cut is still counted as that.
func (r *Recorder) Close() { r.closed.Store(true) }

// Window returns the window's bounds; both are workloads.Never before Open.
func (r *Recorder) Window() (start, end time.Duration) {
	return time.Duration(r.start.Load()), time.Duration(r.end.Load())
}

// inside says whether a moment counts: between the bounds, both included, while the count is open.
func (r *Recorder) inside(at time.Duration) bool {
	return int64(at) >= r.start.Load() && int64(at) <= r.end.Load() && !r.closed.Load()
}

// shard locks and returns a shard. Negative numbers, as of no particular worker, are the first.
func (r *Recorder) shard(n int) *shard {
	s := &r.shards[max(0, n)%len(r.shards)]
	s.mu.Lock()
	return s
}

// place is which of its shard's workers a number is. No two workers share one.
func (r *Recorder) place(n int) int { return max(0, n) / len(r.shards) }

// each calls f with each shard, locked.
func (r *Recorder) each(f func(*shard)) {
	for i := range r.shards {
		s := r.shard(i)
		f(s)
		s.mu.Unlock()
	}
}

// enter returns the shard for a sample of this moment, locked, or nil when the moment does not
// count.
func (r *Recorder) enter(at time.Duration, shard int) *shard {
	if !r.inside(at) {
		return nil
	}
	return r.shard(shard)
}

// Chunk counts a request that a tier has completed, or the flush of a write: its bytes and its
// latency if it was done inside the window, and in any case how long of the window it was in
// flight, so that the mean number in flight is exact at both edges. Pieces are bytes alone.
func (r *Recorder) Chunk(shard int, l tiers.Kind, ph tiers.Phase, c tiers.Chunk) {
	if start, end := r.Window(); c.Begun <= end && c.Done >= start {
		s := r.shard(shard)
		within := inWindow(c, start, end)
		s.n.traffic(l, c.Op).InFlightNS += within
		if p := s.part(l, c); p != nil {
			p.InFlightNS += within
		}
		if r.inside(c.Done) {
			s.bytes(l, c)
			if n := s.n.traffic(l, c.Op); ph == tiers.Evict {
				n.DemotionBytes += c.Bytes + c.Memory
			} else {
				s.of(r.place(shard))[l][c.Op] += c.Bytes + c.Memory
			}
		}
		s.mu.Unlock()
	}
}

// inWindow is how long of the window a request was in flight, in ns.
func inWindow(c tiers.Chunk, start, end time.Duration) int64 {
	return int64(max(0, min(c.Ended, end)-max(c.Begun, start)))
}

// Block counts a request of the storage tier that is all of its operation, as Chunk, Operation and
// Request do together, and says whether it counted. It has one latency, that of the request: such
// operations come by the hundred thousand per second, and each further histogram would be a part
// of what they cost.
func (r *Recorder) Block(shard int, c tiers.Chunk) (counted bool) {
	start, end := r.Window()
	if c.Begun > end || c.Done < start {
		return false
	}
	n, limit := int64(0), r.limit.Load()
	if counted = r.inside(c.Done); counted && limit > 0 {
		n = r.done.Add(1)
		counted = n <= limit
	}
	s := r.shard(shard)
	within := inWindow(c, start, end)
	s.n.traffic(tiers.Storage, c.Op).InFlightNS += within
	if p := s.part(tiers.Storage, c); p != nil {
		p.InFlightNS += within
	}
	s.n.Busy.StorageNS += within
	if counted {
		s.bytes(tiers.Storage, c)
		s.block(c)
	}
	s.mu.Unlock()
	if n > 0 && n == limit {
		r.SetEnd(c.Done)
		r.full()
	}
	return counted
}

// Operation records the end of an operation: it has completed, or was cancelled when Partial, or
// was given up when Failed. The bytes that its worker has moved inside the window since the last
// one are what becomes of it.
func (r *Recorder) Operation(o OpSample) {
	if start, _ := r.Window(); start == never {
		return
	}
	s := r.shard(o.Shard)
	defer s.mu.Unlock()
	u := s.of(r.place(o.Shard))
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
			s.hists.at(histRound + hist(o.Op)).Record(int64(per100MiB(o)))
		}
	default: // it completed too late to count
		s.busy(o, r.within(o))
		if o.Phase != tiers.Evict {
			s.n.settle(u, cutBytes)
		}
	}
}

// within is the share of an operation's time that lies in the window. Of one that was cut off it is
// all: it ended with the window, and what came then was undoing it.
func (r *Recorder) within(o OpSample) float64 {
	took := o.total()
	if took <= 0 || o.Partial {
		return 1
	}
	start, end := r.Window()
	return max(0, float64(min(o.At, end)-max(o.At-took, start))/float64(took))
}

// Request records a finished request and says whether it counted: whether it ended inside the
// window, and before the limit of completed ones was reached. Operations that are given with it
// count when it does, so that both counts end with the same one.
func (r *Recorder) Request(q RequestSample, ops ...OpSample) bool {
	n, limit := int64(0), r.limit.Load()
	counts := r.inside(q.At)
	if counts && limit > 0 && !q.Failed {
		n = r.done.Add(1)
		counts = n <= limit
	}
	s := r.shard(q.Shard)
	for _, o := range ops {
		s.busy(o, r.within(o)) // the worker's time, also when the operation came too late
	}
	if !counts {
		s.mu.Unlock()
		return false
	}
	s.request(q)
	for _, o := range ops {
		s.operation(o, s.of(r.place(o.Shard)))
	}
	s.mu.Unlock()
	if n > 0 && n == limit {
		r.SetEnd(q.At)
		r.full()
	}
	return true
}

// Lookup records what one decision about one key found: Hit, Miss and the others. ForPrefill stands
// for the entry that the request wrote itself and reads: no lookup, because it cannot miss, but the
// Python benchmark's keys count it. Those for ForReread are in no result.
func (r *Recorder) Lookup(at time.Duration, shard int, p workloads.Purpose,
	found result.LookupCount) {
	if s := r.enter(at, shard); s != nil {
		s.n.Lookups[p].Add(found)
		s.mu.Unlock()
	}
}

// Compare records what another policy would have found of what one request needed.
func (r *Recorder) Compare(at time.Duration, shard int, c result.Comparison) {
	if s := r.enter(at, shard); s != nil {
		s.n.Compared.Add(c)
		s.mu.Unlock()
	}
}

// Blocks records a decision about blocks.
func (r *Recorder) Blocks(b BlockSample) {
	if s := r.enter(b.At, b.Shard); s != nil {
		s.blocks(b)
		s.mu.Unlock()
	}
}

// LostBlocks takes hits back that Blocks has counted: the sample has negative numbers.
func (r *Recorder) LostBlocks(b BlockSample) {
	if s := r.enter(b.At, b.Shard); s != nil {
		s.hits(b)
		s.mu.Unlock()
	}
}

// Evict counts an entry that left the cache for good from tier l.
func (r *Recorder) Evict(at time.Duration, shard int, l tiers.Kind, bytes int64) {
	if s := r.enter(at, shard); s != nil {
		addEntry(&s.n.Tiers[l].Evicted, bytes)
		s.timeline.at(at).n[bucketEvicted+int(l)] += bytes
		s.mu.Unlock()
	}
}

// Demote counts an entry that moved down from one tier to another. The I/O of it comes by Chunk and
// Operation.
func (r *Recorder) Demote(at time.Duration, shard int, from, to tiers.Kind, bytes int64) {
	if s := r.enter(at, shard); s != nil {
		addEntry(&s.n.Tiers[from].DemotedOut, bytes)
		addEntry(&s.n.Tiers[to].DemotedIn, bytes)
		s.timeline.at(at).n[bucketDemoted+int(from)] += bytes
		s.mu.Unlock()
	}
}

// Delete records how long tier l took to remove an object.
func (r *Recorder) Delete(at time.Duration, shard int, l tiers.Kind, bytes int64,
	took time.Duration) {
	if s := r.enter(at, shard); s != nil {
		addEntry(&s.n.Tiers[l].Deleted, bytes)
		s.hists.at(ofLevel(l, histDelete)).Record(int64(took))
		if l == tiers.Storage {
			s.n.Busy.RemovalNS += int64(took)
		}
		s.mu.Unlock()
	}
}

// Retry counts one repetition of an operation after a transient error. What the attempt had moved
// is lost: the next one moves it again.
func (r *Recorder) Retry(at time.Duration, shard int) {
	if start, _ := r.Window(); start == never {
		return
	}
	s := r.shard(shard)
	defer s.mu.Unlock()
	s.n.settle(s.of(r.place(shard)), lostBytes)
	if r.inside(at) {
		s.n.Requests.RetriedOperations++
	}
}

// Failure counts an operation that failed at a moment and keeps the first ten, whether or not the
// window is open: a run never loses an error. Its Errno is symbolic, "EIO", or "mismatch" for
// verification; none counts as "other".
func (r *Recorder) Failure(at time.Duration, e result.ErrorSample) {
	r.failures.add(e, r.ended(at))
}

// Succeeded counts operations that came to a good end at a moment, whether or not the window is
// open: those of requests, demotions (two each) and deletions. Failures are compared with them.
func (r *Recorder) Succeeded(at time.Duration, operations int64) {
	r.ended(at).good.Add(operations)
}

// ends counts how operations ended.
type ends struct{ good, failed atomic.Int64 }

// ended are those of the window, or those of what lies around it: fill, warm-up, and what was in
// flight at its end.
func (r *Recorder) ended(at time.Duration) *ends {
	if r.inside(at) {
		return &r.window
	}
	return &r.around
}

// Failed returns how many operations failed of all that ended so far in the phase that a moment
// belongs to: the window, or what lies around it. Like is compared with like: a window of few
// operations cannot hide behind a long warm-up, nor be failed by it.
func (r *Recorder) Failed(at time.Duration) (failed, all int64) {
	n := r.ended(at)
	failed = n.failed.Load()
	return failed, n.good.Load() + failed
}

// Gauge notes queue and fill at a moment of the window.
func (r *Recorder) Gauge(at time.Duration, g Gauge) {
	if s := r.enter(at, 0); s != nil {
		s.timeline.at(at).gauge = &g
		s.mu.Unlock()
	}
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

// Traffic returns what a tier's two directions have counted so far, without what Build derives.
func (r *Recorder) Traffic(l tiers.Kind) (read, write result.TierTraffic) {
	r.each(func(s *shard) {
		t := s.n.Tiers[l]
		add(reflect.ValueOf(&read).Elem(), reflect.ValueOf(t.Read))
		add(reflect.ValueOf(&write).Elem(), reflect.ValueOf(t.Write))
	})
	return read, write
}

// Deleted returns how many entries a tier has deleted so far in the window.
func (r *Recorder) Deleted(l tiers.Kind) (entries int64) {
	r.each(func(s *shard) { entries += s.n.Tiers[l].Deleted.Entries })
	return entries
}

// TakeRound returns the p95 latency per 100 MiB of the storage tier's operations since the last
// call, and whether there were any.
func (r *Recorder) TakeRound(op tiers.Op) (p95 time.Duration, some bool) {
	all := result.NewHistogram(units.Nanoseconds)
	r.each(func(s *shard) {
		all.Merge(s.hists[histRound+hist(op)])
		s.hists[histRound+hist(op)] = nil
	})
	v, some := all.Percentile(0.95)
	return time.Duration(v), some
}

// P95 returns the p95 latency so far of a level's operations, in milliseconds whatever their size;
// nil when there were none.
func (r *Recorder) P95(l tiers.Kind, op tiers.Op) *float64 {
	all := result.NewHistogram(units.Nanoseconds)
	r.each(func(s *shard) { all.Merge(s.hists[ofOp(l, op, histIO)]) })
	return all.PercentileMS(0.95)
}
