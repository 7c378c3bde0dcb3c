package record

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/store"
)

// Objects counts the requests to an object store. It counts the requests that ended inside the
// window apart from the other requests. Both together match the store's own access log:
//
//	                       counted in
//	lists at the start     outside
//	check of the store     neither
//	fill, warm-up          outside
//	load                   the window, if it ended in it
//	drain                  outside; requests that the window's end cut off are cancelled ones
//	deletion at the end    neither: the result has been written by then
//
// A request counts when it ends, and an attempt counts when the attempt ends. If an attempt fails
// in the window and the next attempt succeeds after it, the window has an attempt, but no request.
//
// Objects is safe for concurrent use. One mutex is enough: a request is two events, which hold the
// mutex for 0.5 µs.
type Objects struct {
	Store result.ObjectStore // how the store is used

	rec   *Recorder
	now   func() time.Duration
	edges []objecttier.Stats // at the start and at the end of the window

	mu        sync.Mutex
	total     result.Objects // without what Fill adds
	hists     result.Histograms
	endpoints []result.Endpoint // by index; without addresses
}

var _ store.Observer = (*Objects)(nil)

// NewObjects returns the counts of requests to a store with this number of endpoints, in the window
// of rec. now reads the run's clock.
func NewObjects(rec *Recorder, endpoints int, now func() time.Duration) *Objects {
	return &Objects{rec: rec, now: now, hists: result.Histograms{}, total: result.Objects{
		Operations: map[string]result.ObjectOperation{}, Outside: map[string]result.ObjectCounts{},
		Status: map[string]int64{}, Retries: map[string]int64{}},
		endpoints: make([]result.Endpoint, endpoints)}
}

// DescribeStore returns the configuration of a store. from is the flag or variable that names its
// endpoints. lookup says whether a HEAD comes before reads.
func DescribeStore(c objecttier.Config, from, lookup string) result.ObjectStore {
	s := result.ObjectStore{EndpointsFrom: from, Balance: string(c.Store.Balance),
		Addressing: string(store.Path), Region: c.Store.Region, Names: string(c.Names.Format),
		Lookup: lookup, Payload: string(c.Store.Payload), MultipartAbove: c.MultipartAbove,
		PartBytes: c.PartSize, RangeBytes: c.RangeSize, Requests: c.Requests,
		Key: c.Store.Key()}
	if c.Store.Virtual() {
		s.Addressing = string(store.Virtual)
	}
	return s
}

// count changes the counts of a kind of request, of the window if at is in it, else of the time
// outside. It reports whether at is in the window. Callers hold mu.
func (r *Objects) count(kind string, at time.Duration, change func(*result.ObjectCounts)) (
	inside bool) {
	if inside = r.rec.inside(at); inside {
		n := r.total.Operations[kind]
		change(&n.ObjectCounts)
		r.total.Operations[kind] = n
	} else {
		n := r.total.Outside[kind]
		change(&n)
		r.total.Outside[kind] = n
	}
	return inside
}

// took adds a time to a histogram. Callers hold mu.
func (r *Objects) took(kind string, d time.Duration) {
	if r.rec.paused(d) {
		return
	}
	name := "object_" + kind
	if r.hists[name] == nil {
		r.hists[name] = result.NewHistogram(units.Nanoseconds)
	}
	r.hists[name].Record(int64(d))
}

// Attempt counts an attempt, at its end. If net/http sent it twice, because the store had closed
// the connection, it counts twice: the store may have seen both.
func (r *Objects) Attempt(a store.Attempt) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	tries := max(1, int64(a.Sent))
	if !r.count(a.Op.String(), at, func(c *result.ObjectCounts) {
		c.Attempts += tries
		c.Bytes += a.Bytes
		if a.Sent == 0 {
			c.Unsent++
		}
	}) {
		return
	}
	if a.Status > 0 {
		r.total.Status[strconv.Itoa(a.Status)]++
	}
	if a.Retried {
		r.total.Retries[a.Cause]++
	}
	e := &r.endpoints[a.Endpoint]
	e.Attempts += tries
	e.Retries += tries
	if a.First {
		e.Requests++
		e.Retries-- // if net/http sent it again, that is a second attempt
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

// Request counts a request, at its end. A failed or cancelled request adds no latency.
func (r *Objects) Request(q store.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kind := q.Op.String()
	good := q.Err == nil || q.Op == store.Head && errors.Is(q.Err, store.ErrNoKey)
	_, failed := errors.AsType[*store.Error](q.Err) // else this program ended it
	cancelled := !good && (q.Cancelled || !failed)
	inside := r.count(kind, q.Ended, func(c *result.ObjectCounts) {
		c.Requests++
		switch {
		case cancelled:
			c.Cancelled++
		case !good:
			c.Failed++
		}
	})
	if inside {
		r.total.BackoffNS += int64(q.Backoff)
	} else if start, end := r.rec.Window(); q.Ended < start {
		r.total.EarlierBackoffNS += int64(q.Backoff)
	} else if cancelled && start <= q.Begun && q.Begun <= end {
		// The end of the window cut off the request, which ends a little later. A request that is
		// cut off in plain I/O after the window began after the window.
		n := r.total.Operations[kind]
		n.Cancelled++
		r.total.Operations[kind] = n
	}
	if !inside || !good {
		return
	}
	r.took(kind, q.Ended-q.Begun)
	if q.Op == store.Get || q.Op == store.GetRange {
		r.took("get_first_byte", q.FirstByte-q.Begun)
	}
}

// Connected counts a connection.
func (r *Objects) Connected(_ string, d time.Duration, err error) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	inside := r.count("connect", at, func(c *result.ObjectCounts) {
		c.Requests++
		c.Attempts++
		if err != nil {
			c.Failed++
		}
	})
	if inside && err == nil {
		r.took("connect", d)
	}
}

// OpenWindow reads the tier's counts at the start of the window, with a system call of a few µs for
// each connection. It is called at most once, before CloseWindow.
func (r *Objects) OpenWindow(t *objecttier.Tier) {
	t.ResetPeaks()
	r.edges = append(r.edges, t.Stats())
}

// CloseWindow reads the tier's counts at the end of the window. It is called at most once.
func (r *Objects) CloseWindow(t *objecttier.Tier) {
	stats := t.Stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.edges = append(r.edges, stats)
	readPeaks(t, r.endpoints)
}

// readPeaks sets the maximum numbers of requests in flight.
func readPeaks(t *objecttier.Tier, endpoints []result.Endpoint) {
	for k, at := range t.Endpoints() {
		endpoints[k].URL, endpoints[k].MaxInFlight = at.URL, int64(at.Peak())
	}
}

// Fill fills the sections about the store in a result. It returns the distributions, which the
// result's histograms need.
func (r *Objects) Fill(res *result.Result, t *objecttier.Tier) result.Histograms {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.total
	o.Store = r.Store
	o.Operations, o.Outside = maps.Clone(o.Operations), maps.Clone(o.Outside)
	o.Status, o.Retries = maps.Clone(o.Status), maps.Clone(o.Retries)
	hists := result.Histograms{}
	for name, h := range r.hists {
		hists[name] = result.NewHistogram(units.Nanoseconds)
		hists[name].Merge(h)
	}
	endpoints := slices.Clone(r.endpoints)
	if len(r.edges) < 2 { // the window is open, or never opened
		readPeaks(t, endpoints)
	}
	now := t.Stats()
	// If the window never opened, both edges are now, so its counts are 0.
	edges := slices.Concat(r.edges, []objecttier.Stats{now, now})
	was, is := edges[0], edges[1]
	o.Lost, o.WastedBytes = is.Lost-was.Lost, is.WastedBytes-was.WastedBytes
	o.Server, o.ProofNS = strings.Join(now.Servers, ", "), int64(now.Proof)
	res.Objects, res.Endpoints, res.Network = &o, endpoints, &result.Network{}
	if n := is.Network.Since(was.Network); n.Known {
		*res.Network = result.Network{ReceivedBytes: &n.Received, AckedBytes: &n.Acked,
			Retransmits: &n.Resent}
		if n.MinRTT > 0 {
			res.Network.MinRTTNS = new(int64(n.MinRTT / time.Nanosecond))
		}
	}
	return hists
}
