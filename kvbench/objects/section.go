package objects

import (
	"maps"
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

// Describe describes how a store is used, for Objects.Store: from is the flag or variable that
// names its endpoints, and lookup whether a HEAD comes before reads.
func Describe(c objecttier.Config, balance endpoint.Balance, from, lookup string,
) result.ObjectStore {
	s := result.ObjectStore{EndpointsFrom: from, Balance: string(balance),
		Addressing: string(store.Path), Region: c.Store.Region, Names: string(c.Names.Format),
		Lookup: lookup, Payload: string(c.Store.Payload), MultipartAbove: c.MultipartAbove,
		PartBytes: c.PartSize, RangeBytes: c.RangeSize, Requests: c.Requests,
		Key: c.Store.Key()}
	if c.Store.Virtual() {
		s.Addressing = string(store.Virtual)
	}
	return s
}

// edge is the counts of the tier when the window opened, or closed: the difference is the window's.
type edge struct {
	tier  objecttier.Stats
	peaks []int // of requests in flight, by endpoint
}

// read reads it, with a system call of a few µs for each connection.
func read(t *objecttier.Tier) edge {
	e := edge{tier: t.Stats()}
	for _, at := range t.Endpoints() {
		e.peaks = append(e.peaks, at.Peak())
	}
	return e
}

// OpenWindow is called when the window opens, CloseWindow when it closes: what ends later does not
// count, though in virtual time the moment may be the same. Both are called once, in this order, if
// at all.
func (r *Recorder) OpenWindow(t *objecttier.Tier) {
	t.ResetPeaks()
	r.edges = append(r.edges, read(t))
}

// CloseWindow ends the counting.
func (r *Recorder) CloseWindow(t *objecttier.Tier) {
	r.over.Store(true)
	r.edges = append(r.edges, read(t))
}

// Fill fills the sections about the store in a result, but for Objects.Store. It returns the
// distributions, which the result's histograms need.
func (r *Recorder) Fill(res *result.Result, t *objecttier.Tier) result.Histograms {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := &result.Objects{Operations: map[string]result.ObjectOperation{},
		Outside: map[string]result.ObjectCounts{}, Status: map[string]int64{},
		Retries: maps.Clone(r.retries), BackoffNS: int64(r.backoff)}
	for status, n := range r.status {
		o.Status[strconv.Itoa(status)] = n
	}
	hists := result.Histograms{}
	for k := range numKinds {
		if c := r.inside[k]; c != (result.ObjectCounts{}) {
			o.Operations[k.String()] = result.ObjectOperation{ObjectCounts: c}
		}
		if c := r.outside[k]; c != (result.ObjectCounts{}) {
			o.Outside[k.String()] = c
		}
	}
	for k, h := range r.times {
		if h != nil {
			name := "object_get_first_byte"
			if kind(k) != firstByte {
				name = "object_" + kind(k).String()
			}
			hists[name] = result.NewHistogram(units.Nanoseconds)
			hists[name].Merge(h)
		}
	}
	endpoints := slices.Clone(r.endpoints)
	now := read(t)
	edges := slices.Concat(r.edges, []edge{now, now}) // a window that never opened has nothing in it
	was, is := edges[0], edges[1]
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
