package objects

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers/objecttier/store"
	"kvbench/workloads"
)

// kind is a kind of request: a store.Op, or connections.
type kind int

const (
	connect   = kind(store.NumOps)
	numKinds  = connect + 1
	firstByte = numKinds // behind the latencies of the kinds
)

// String is the key of results.
func (k kind) String() string {
	if k == connect {
		return "connect"
	}
	return store.Op(k).String()
}

// Recorder counts the events of a store's client. It is safe for concurrent use: one lock is
// enough, because a request, which is two events, holds it for 0.2 µs.
type Recorder struct {
	now    func() time.Duration
	window func() (start, end time.Duration)
	over   atomic.Bool
	edges  []edge // of the window: where it opened, and where it closed

	mu              sync.Mutex
	inside, outside [numKinds]result.ObjectCounts
	times           [firstByte + 1]*result.Histogram // in the window; 300 KB each, made when used
	status          map[int]int64
	retries         map[string]int64
	backoff         time.Duration
	endpoints       []result.Endpoint // by their index; without addresses
}

var _ store.Observer = (*Recorder)(nil)

// New makes a recorder for a store with so many endpoints. Now is the run's clock; window returns
// the bounds of the trial's window so far, workloads.Never before it opens.
func New(endpoints int, now func() time.Duration, window func() (start, end time.Duration),
) *Recorder {
	return &Recorder{now: now, window: window, status: map[int]int64{},
		retries: map[string]int64{}, endpoints: make([]result.Endpoint, endpoints)}
}

// counts returns the counts of a kind of request at a moment, and whether that is in the window,
// both bounds included, as in a record.Recorder. Callers hold mu.
func (r *Recorder) counts(k kind, at time.Duration) (c *result.ObjectCounts, inside bool) {
	start, end := r.window()
	if start != workloads.Never && start <= at && at <= end && !r.over.Load() {
		return &r.inside[k], true
	}
	return &r.outside[k], false
}

// took adds a time to a histogram. Callers hold mu.
func (r *Recorder) took(k kind, d time.Duration) {
	if r.times[k] == nil {
		r.times[k] = result.NewHistogram(units.Nanoseconds)
	}
	r.times[k].Record(int64(d))
}

// Attempt counts an attempt, at its end. What net/http sent twice, because the store had closed the
// connection, counts twice: the store may have seen both.
func (r *Recorder) Attempt(a store.Attempt) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	c, inside := r.counts(kind(a.Op), at)
	tries := max(1, int64(a.Sent))
	c.Attempts += tries
	if a.Sent == 0 {
		c.Unsent++
	}
	c.Bytes += a.Bytes
	if !inside {
		return
	}
	if a.Status > 0 {
		r.status[a.Status]++
	}
	if a.Retried {
		r.retries[a.Cause]++
	}
	e := &r.endpoints[a.Endpoint]
	e.Attempts += tries
	e.Retries += tries
	if a.First {
		e.Requests++
		e.Retries-- // what net/http sent again is a second attempt
	}
	missing := a.Op == store.Head && a.Status == http.StatusNotFound // an answer
	if a.Cause != "" && a.Cause != store.CausedByCaller && !a.Cancelled && !missing {
		e.Failed++
	}
	switch a.Op {
	case store.Get, store.GetRange:
		e.BytesRead += a.Bytes
	case store.Put, store.PutPart:
		e.BytesWritten += a.Bytes
	}
}

// Request counts a request, at its end. A request that failed or was cut off adds no latency, which
// would be that of a time limit.
func (r *Recorder) Request(q store.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, inside := r.counts(kind(q.Op), q.Ended)
	c.Requests++
	good := q.Err == nil || q.Op == store.Head && errors.Is(q.Err, store.ErrNoKey)
	_, failed := errors.AsType[*store.Error](q.Err) // else this program ended it
	switch {
	case good:
	case q.Cancelled || !failed:
		c.Cancelled++
		// The window's end has cut it off, which shows a moment later. What plain I/O behind the
		// window cuts off has begun there.
		if start, end := r.window(); !inside && start <= q.Begun && q.Begun <= end {
			r.inside[q.Op].Cancelled++
		}
	default:
		c.Failed++
	}
	if !inside {
		return
	}
	r.backoff += q.Backoff
	if !good {
		return
	}
	r.took(kind(q.Op), q.Ended-q.Begun)
	if q.Op == store.Get || q.Op == store.GetRange {
		r.took(firstByte, q.FirstByte-q.Begun)
	}
}

// Connected counts a connection.
func (r *Recorder) Connected(_ string, d time.Duration, err error) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	c, inside := r.counts(connect, at)
	c.Requests++
	c.Attempts++
	switch {
	case err != nil:
		c.Failed++
	case inside:
		r.took(connect, d)
	}
}
