package objects

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers/objecttier/store"
	"kvbench/workloads"
)

// connect is the place of connections behind the kinds of requests.
const (
	connect  = int(store.NumOps)
	numKinds = connect + 1
)

// kind is the key of a place in a result.
func kind(place int) string {
	if place == connect {
		return "connect"
	}
	return store.Op(place).String()
}

// Recorder counts what a client of a store tells. It is a store.Observer, and safe for concurrent
// use. Requests of many connections hardly ever meet: each takes one of a few shards that is
// free.
type Recorder struct {
	now    func() time.Duration
	window func() (start, end time.Duration)
	over   atomic.Bool
	shards []shard
	edges  [2]edge // of the window: where it opened, and where it closed
}

var _ store.Observer = (*Recorder)(nil)

// shard is a part of the counts, with a mutex for a few additions. A request, told in two calls,
// takes 70 ns, 0.3 µs where all cores do nothing else (BenchmarkRequest): 0.2 to 1 % of one core at
// 30,000 requests a second.
type shard struct {
	mu              sync.Mutex
	inside, outside [numKinds]result.ObjectCounts
	times           [numKinds]*result.Histogram // made when the first value comes: 300 KB each
	firstByte       *result.Histogram
	status          map[int]int64
	retries         map[string]int64
	backoff         time.Duration
	endpoints       []result.Endpoint // by their index; without addresses
	_               [64]byte          // neighbours do not share a line of the cache
}

// New makes a recorder for a store with so many endpoints. Now is the run's clock, window returns
// the bounds of the trial's window so far, workloads.Never before it opens.
func New(endpoints int, now func() time.Duration, window func() (start, end time.Duration),
) *Recorder {
	r := &Recorder{now: now, window: window, shards: make([]shard, min(8, runtime.GOMAXPROCS(0)))}
	for i := range r.shards {
		s := &r.shards[i]
		s.status, s.retries = map[int]int64{}, map[string]int64{}
		s.endpoints = make([]result.Endpoint, endpoints)
	}
	return r
}

// inside says whether a moment counts, both bounds included, as a record.Recorder does.
func (r *Recorder) inside(at time.Duration) bool {
	start, end := r.window()
	return start != workloads.Never && start <= at && at <= end && !r.over.Load()
}

// shard returns one that is free, locked; of so many that are not, any.
func (r *Recorder) shard() *shard {
	n := uint32(len(r.shards))
	first := rand.Uint32N(n)
	for i := range n {
		if s := &r.shards[(first+i)%n]; s.mu.TryLock() {
			return s
		}
	}
	s := &r.shards[first]
	s.mu.Lock()
	return s
}

// counts are those of a kind of request at a moment.
func (s *shard) counts(place int, inside bool) *result.ObjectCounts {
	if inside {
		return &s.inside[place]
	}
	return &s.outside[place]
}

// took adds a time to a histogram, which it makes if need be.
func took(h **result.Histogram, d time.Duration) {
	if *h == nil {
		*h = result.NewHistogram(units.Nanoseconds)
	}
	(*h).Record(int64(d))
}

// Attempt counts a try at one endpoint, at the moment of its end. What the transport sent twice,
// because a connection had been closed meanwhile, the store may have seen twice: it counts so.
func (r *Recorder) Attempt(a store.Attempt) {
	inside := r.inside(r.now())
	s := r.shard()
	defer s.mu.Unlock()
	tries, unsent := int64(a.Sent), int64(0)
	if a.Sent == 0 {
		tries, unsent = 1, 1
	}
	c := s.counts(int(a.Op), inside)
	c.Attempts += tries
	c.Unsent += unsent
	c.Bytes += a.Bytes
	if !inside {
		return
	}
	if a.Status > 0 {
		s.status[a.Status]++
	}
	if a.Retried {
		s.retries[a.Cause]++
	}
	e := &s.endpoints[a.Endpoint]
	e.Attempts += tries
	if a.First {
		e.Requests++
		tries-- // what the transport sent again is a second attempt, too
	}
	e.Retries += tries
	switch {
	case a.Cause == "", a.Cancelled, a.Cause == store.CausedByCaller:
	case a.Op == store.Head && a.Status == http.StatusNotFound:
	default:
		e.Failed++
	}
	switch a.Op {
	case store.Get, store.GetRange:
		e.BytesRead += a.Bytes
	case store.Put, store.PutPart:
		e.BytesWritten += a.Bytes
	}
}

// Request counts a request, at the moment of its end. One that failed or was cut off adds no
// latency: how long it took until somebody gave up says nothing of the store.
func (r *Recorder) Request(q store.Request) {
	inside := r.inside(q.Ended)
	s := r.shard()
	defer s.mu.Unlock()
	c := s.counts(int(q.Op), inside)
	c.Requests++
	// Who asks whether something is there has been answered by a no, too.
	good := q.Err == nil || q.Op == store.Head && errors.Is(q.Err, store.ErrNoKey)
	_, failed := errors.AsType[*store.Error](q.Err) // else it was this program's own end
	switch {
	case good:
	case q.Cancelled || !failed:
		c.Cancelled++
		// The window's end has cut it off, which it tells a moment later. What plain I/O behind the
		// window gives up has begun there.
		if start, end := r.window(); !inside && start <= q.Begun && q.Begun <= end {
			s.inside[q.Op].Cancelled++
		}
	default:
		c.Failed++
	}
	if !inside {
		return
	}
	s.backoff += q.Backoff
	if !good {
		return
	}
	took(&s.times[q.Op], q.Ended-q.Begun)
	if q.Op == store.Get || q.Op == store.GetRange {
		took(&s.firstByte, q.FirstByte-q.Begun)
	}
}

// Connected counts a connection that was made, or was not.
func (r *Recorder) Connected(_ string, d time.Duration, err error) {
	inside := r.inside(r.now())
	s := r.shard()
	defer s.mu.Unlock()
	c := s.counts(connect, inside)
	c.Requests++
	c.Attempts++
	switch {
	case err != nil:
		c.Failed++
	case inside:
		took(&s.times[connect], d)
	}
}
