package objects

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers/objecttier"
	"kvbench/tiers/objecttier/endpoint"
	"kvbench/tiers/objecttier/store"
)

// Describe tells how a store is used, for Objects.Store: from is who named its endpoints, a flag or
// a variable, and lookup whether it is asked before it is read. Of the key only its ends are told.
func Describe(c objecttier.Config, balance endpoint.Balance, from, lookup string,
) result.ObjectStore {
	s := result.ObjectStore{EndpointsFrom: from, Balance: string(balance),
		Addressing: string(store.Path), Region: c.Store.Region, Names: string(c.Names.Format),
		Lookup: lookup, Payload: string(c.Store.Payload), MultipartAbove: c.MultipartAbove,
		PartBytes: c.PartSize, RangeBytes: c.RangeSize, ObjectBytes: c.Split, Requests: c.Requests,
		Key: c.Store.Key()}
	if c.Store.Virtual() {
		s.Addressing = string(store.Virtual)
	}
	return s
}

// edge is what was counted elsewhere when the window opened, or closed: what belongs to the window
// is the difference.
type edge struct {
	known bool
	tier  objecttier.Stats
	peaks []int // of requests in flight, by endpoint
}

// read reads it. The kernel is asked about each connection, a few µs for all.
func read(t *objecttier.Tier) edge {
	e := edge{known: true, tier: t.Stats()}
	for _, at := range t.Endpoints() {
		e.peaks = append(e.peaks, at.Stats().MaxInFlight)
	}
	return e
}

// OpenWindow is called when the window opens, CloseWindow when it closes: what ends later does not
// count, though in virtual time the moment may be the same. Both are called once, in this order, if
// at all.
func (r *Recorder) OpenWindow(t *objecttier.Tier) {
	t.ResetPeaks()
	r.edges[0] = read(t)
}

// CloseWindow ends the counting.
func (r *Recorder) CloseWindow(t *objecttier.Tier) {
	r.over.Store(true)
	r.edges[1] = read(t)
}

// Fill puts the sections about the store into a result. How it is used, Objects.Store, is the
// caller's to tell. It returns the distributions, which the result's histograms have to have.
func (r *Recorder) Fill(res *result.Result, t *objecttier.Tier) result.Histograms {
	hists := result.Histograms{}
	o := &result.Objects{Operations: map[string]result.ObjectOperation{},
		Outside: map[string]result.ObjectCounts{}, Status: map[string]int64{},
		Retries: map[string]int64{}}
	var inside, outside [numKinds]result.ObjectCounts
	endpoints := make([]result.Endpoint, len(t.Endpoints()))
	merge := func(name string, h *result.Histogram) {
		if h == nil {
			return
		}
		if hists[name] == nil {
			hists[name] = result.NewHistogram(units.Nanoseconds)
		}
		hists[name].Merge(h)
	}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for place := range numKinds {
			inside[place].Add(s.inside[place])
			outside[place].Add(s.outside[place])
			merge("object_"+kind(place), s.times[place])
		}
		merge("object_get_first_byte", s.firstByte)
		for status, n := range s.status {
			o.Status[strconv.Itoa(status)] += n
		}
		for cause, n := range s.retries {
			o.Retries[cause] += n
		}
		o.BackoffNS += int64(s.backoff)
		for k, e := range s.endpoints {
			endpoints[k].Add(e)
		}
		s.mu.Unlock()
	}
	for place := range numKinds {
		if inside[place] != (result.ObjectCounts{}) {
			o.Operations[kind(place)] = result.ObjectOperation{ObjectCounts: inside[place]}
		}
		if outside[place] != (result.ObjectCounts{}) {
			o.Outside[kind(place)] = outside[place]
		}
	}
	was, is := r.edges[0], r.edges[1]
	now := read(t)
	if !was.known { // the window never opened: there is nothing in it
		was = now
	}
	if !is.known {
		is = now
	}
	for k, at := range t.Endpoints() {
		e := &endpoints[k]
		e.URL = at.URL
		e.MaxInFlight = int64(is.peaks[k])
	}
	o.Lost = is.tier.Lost - was.tier.Lost
	o.WastedBytes = is.tier.WastedBytes - was.tier.WastedBytes
	slices.Sort(now.tier.Servers)
	o.Server, o.ProofNS = strings.Join(now.tier.Servers, ", "), int64(now.tier.Proof)
	res.Objects, res.Endpoints, res.Network = o, endpoints, &result.Network{}
	if n := is.tier.Network.Since(was.tier.Network); n.Known {
		*res.Network = result.Network{ReceivedBytes: &n.Received, AckedBytes: &n.Acked,
			Retransmits: &n.Resent}
		if n.MinRTT > 0 {
			res.Network.MinRTTNS = new(int64(n.MinRTT / time.Nanosecond))
		}
	}
	return hists
}
