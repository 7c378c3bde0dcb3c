package store

import (
	"cmp"
	"hash/fnv"
	"sync"
	"time"

	"kvbench/tiers/clock"
)

// Balance decides the endpoint of a request.
type Balance string

// The balances. Pins are for endpoints that do not show the same objects. An object can then be read
// only through the endpoint that wrote it, so pinned requests never go to another endpoint.
const (
	RoundRobin    Balance = "round-robin"     // in turn, beginning with endpoint rank mod n
	LeastInFlight Balance = "least-in-flight" // the endpoint with the fewest requests in flight
	PinRank       Balance = "pin-rank"        // rank mod n
	PinKey        Balance = "pin-key"         // hash of the key mod n
)

// Pinned reports whether each request can go to one endpoint only.
func (b Balance) Pinned() bool { return b == PinRank || b == PinKey }

// An endpoint that fails this often in a row gets no requests for firstBackOff. The time doubles with each
// further failure up to longestBackOff. Without it least-in-flight would prefer an endpoint that fails fast.
const (
	failuresToBackOff = 3
	firstBackOff      = time.Second
	longestBackOff    = 30 * time.Second
)

// endpoints chooses the endpoint of each attempt, and counts the attempts. It is safe for concurrent use.
type endpoints struct {
	balance Balance
	rank    int
	clock   clock.Clock
	all     []*Endpoint

	mu      sync.Mutex
	next    [NumOps]int   // the next endpoint of each kind of request
	failing time.Duration // since when every attempt has failed; negative: the last one succeeded
}

// Endpoint is one address of the store. The lock of its endpoints guards all fields except Index and
// URL.
type Endpoint struct {
	Index int
	URL   string

	set      *endpoints
	inFlight int           // attempts
	peak     int           // the largest inFlight
	failures int           // in a row
	until    time.Duration // when the endpoint gets requests again
}

// newEndpoints returns the endpoints of a configuration. Ranks begin at different endpoints, because
// ranks that start together would otherwise use the same endpoint at a time.
func newEndpoints(cfg *Config) *endpoints {
	s := &endpoints{balance: cfg.Balance, rank: cfg.Rank, clock: cfg.Clock, failing: -1}
	for i, url := range cfg.URLs {
		s.all = append(s.all, &Endpoint{Index: i, URL: url, set: s})
	}
	for op := range s.next {
		s.next[op] = cfg.Rank
	}
	return s
}

// scattered reports whether endpoints have different objects, so that a list of all objects needs a
// request to each endpoint.
func (s *endpoints) scattered() bool { return s.balance == PinKey && len(s.all) > 1 }

// home returns the index of the endpoint to which a key is pinned; 0 without pin-key.
func (s *endpoints) home(key string) int {
	if s.balance != PinKey {
		return 0
	}
	h := fnv.New64a() // stable, because a later run reads the objects
	_, _ = h.Write([]byte(key))
	return int(h.Sum64() % uint64(len(s.all)))
}

// begin begins an attempt and returns its endpoint; Endpoint.end ends it. last is the endpoint of the
// attempt before, nil for the first attempt of a request. With stay it is used again.
func (s *endpoints) begin(op Op, key string, last *Endpoint, stay bool) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := last
	switch {
	case stay:
	case s.balance == PinRank:
		e = s.all[s.rank%len(s.all)]
	case s.balance == PinKey:
		e = s.all[s.home(key)]
	case last != nil:
		e = s.open(last.Index+1, false)
	default:
		// Least-in-flight takes turns, too. Otherwise, with one request in flight, the first endpoint
		// would get all requests. Each kind of request has its own turns: in common turns a load that
		// alternates between reads and writes would read from only one of two endpoints.
		e = s.open(s.next[op], s.balance == LeastInFlight)
		s.next[op]++
	}
	e.inFlight++
	e.peak = max(e.peak, e.inFlight)
	return e
}

// open returns the first endpoint that gets requests, from an index on. With fewest it returns the one
// with the fewest attempts in flight. If no endpoint gets requests, it returns the first that will.
// Callers hold mu.
func (s *endpoints) open(from int, fewest bool) *Endpoint {
	now := s.clock.Now()
	best := s.all[from%len(s.all)]
	for i := range s.all {
		e := s.all[(from+i)%len(s.all)]
		wait := cmp.Compare(max(now, e.until), max(now, best.until))
		if wait < 0 || wait == 0 && fewest && e.until <= now && e.inFlight < best.inFlight {
			best = e
		}
	}
	return best
}

// outcome is the result of an attempt for its endpoint.
type outcome uint8

const (
	answered  outcome = iota // also with an error that the endpoint did not cause, such as 404
	failed                   // refused, reset, timed out, or 5xx
	cancelled                // by this process
)

// end ends an attempt.
func (e *Endpoint) end(o outcome) {
	s := e.set
	s.mu.Lock()
	defer s.mu.Unlock()
	e.inFlight--
	switch o {
	case answered:
		e.failures, e.until, s.failing = 0, 0, -1
	case failed:
		now := s.clock.Now()
		if s.failing < 0 {
			s.failing = now
		}
		if now < e.until { // the attempt began before the endpoint backed off and does not count
			return
		}
		if e.failures++; e.failures >= failuresToBackOff {
			e.until = now + min(longestBackOff, firstBackOff<<min(e.failures-failuresToBackOff, 5))
		}
	}
}

// down returns for how long every attempt has failed; 0 if the last attempt did not fail.
func (s *endpoints) down() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing < 0 {
		return 0
	}
	return s.clock.Now() - s.failing
}

// Endpoints returns the endpoints in their order.
func (c *Client) Endpoints() []*Endpoint { return c.endpoints.all }

// ResetPeaks resets the endpoints' largest numbers of attempts in flight.
func (c *Client) ResetPeaks() {
	c.endpoints.mu.Lock()
	defer c.endpoints.mu.Unlock()
	for _, e := range c.endpoints.all {
		e.peak = e.inFlight
	}
}

// Peak returns the largest number of attempts in flight since ResetPeaks.
func (e *Endpoint) Peak() int {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return e.peak
}
