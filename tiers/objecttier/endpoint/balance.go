package endpoint

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"
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

// Balances lists all balances.
var Balances = []Balance{RoundRobin, LeastInFlight, PinRank, PinKey}

// An endpoint that fails this often in a row gets no requests for firstPause. The pause doubles with
// each further failure up to longestPause. Without pauses least-in-flight would prefer an endpoint that
// fails fast.
const (
	failuresToPause = 3
	firstPause      = time.Second
	longestPause    = 30 * time.Second
)

// Set is the endpoints of a run. It is safe for concurrent use.
type Set struct {
	balance Balance
	rank    int
	now     func() time.Duration

	mu        sync.Mutex
	next      map[uint8]int // the next endpoint of each kind of request
	endpoints []*Endpoint
	failing   time.Duration // since when every attempt has failed; negative: the last one succeeded
}

// Endpoint is one endpoint of a Set. The Set's lock guards all fields except Index and URL.
type Endpoint struct {
	Index int
	URL   string

	set      *Set
	inFlight int           // attempts
	peak     int           // the largest inFlight
	failures int           // in a row
	until    time.Duration // when the pause ends
}

// NewSet returns the endpoints of a rank. now is the run's clock. Ranks begin at different endpoints,
// because ranks that start together would otherwise use the same endpoint at a time.
func NewSet(urls []string, b Balance, rank int, now func() time.Duration) (*Set, error) {
	if len(urls) == 0 || !slices.Contains(Balances, b) {
		return nil, fmt.Errorf("balance %d endpoints by %q: there must be at least one, and a "+
			"balance of %v", len(urls), b, Balances)
	}
	s := &Set{balance: b, rank: rank, now: now, next: map[uint8]int{}, failing: -1}
	for i, url := range urls {
		s.endpoints = append(s.endpoints, &Endpoint{Index: i, URL: url, set: s})
	}
	return s, nil
}

// All returns the endpoints in their order.
func (s *Set) All() []*Endpoint { return s.endpoints }

// Pinned reports whether each request can go to one endpoint only.
func (s *Set) Pinned() bool { return s.balance == PinRank || s.balance == PinKey }

// Scattered reports whether endpoints have different objects, so that a list of all objects needs a
// request to each endpoint.
func (s *Set) Scattered() bool { return s.balance == PinKey && len(s.endpoints) > 1 }

// Home returns the index of the endpoint to which a key is pinned; 0 without pin-key.
func (s *Set) Home(key string) int {
	if s.balance != PinKey {
		return 0
	}
	h := fnv.New64a() // stable, because a later run reads the objects
	_, _ = h.Write([]byte(key))
	return int(h.Sum64() % uint64(len(s.endpoints)))
}

// First begins a request for a key, and returns the endpoint of its first attempt. End ends the
// attempt. kind is the caller's number for a kind of request. Each kind has its own turns: in common
// turns a load that alternates between reads and writes would read from only one of two endpoints.
func (s *Set) First(kind uint8, key string) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choose(kind, key).begin()
}

// Next begins another attempt after an attempt at the endpoint last. It uses the next endpoint. It uses
// the same endpoint if requests are pinned, or if the caller sets stay because the endpoint did not
// fail.
func (s *Set) Next(last *Endpoint, stay bool) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := last
	if !stay && !s.Pinned() {
		e = s.open(last.Index+1, false)
	}
	return e.begin()
}

// choose returns an endpoint by the balance. Callers hold mu.
func (s *Set) choose(kind uint8, key string) *Endpoint {
	n := len(s.endpoints)
	switch s.balance {
	case PinRank:
		return s.endpoints[s.rank%n]
	case PinKey:
		return s.endpoints[s.Home(key)]
	}
	// Least-in-flight takes turns, too. Otherwise, with one request in flight, the first endpoint
	// would get all requests.
	from, begun := s.next[kind]
	if !begun {
		from = s.rank
	}
	s.next[kind] = (from + 1) % n
	return s.open(from, s.balance == LeastInFlight)
}

// open returns the first endpoint without a pause from an index on. With fewest it returns the endpoint
// with the fewest requests among those without a pause. If all endpoints pause, it returns the one whose
// pause ends first. Callers hold mu.
func (s *Set) open(from int, fewest bool) *Endpoint {
	now := s.now()
	best := s.endpoints[from%len(s.endpoints)]
	for i := range s.endpoints {
		e := s.endpoints[(from+i)%len(s.endpoints)]
		// Without a pause both sides of the comparison are now.
		wait := cmp.Compare(max(now, e.until), max(now, best.until))
		if wait < 0 || wait == 0 && fewest && e.until <= now && e.inFlight < best.inFlight {
			best = e
		}
	}
	return best
}

// begin counts an attempt. Callers hold mu.
func (e *Endpoint) begin() *Endpoint {
	e.inFlight++
	e.peak = max(e.peak, e.inFlight)
	return e
}

// Outcome is the result of an attempt for the endpoint.
type Outcome uint8

// The outcomes.
const (
	Answered  Outcome = iota // also with an error that the endpoint did not cause, such as 404
	Failed                   // refused, reset, timed out, or 5xx
	Cancelled                // by this process
)

// End ends an attempt of First or Next.
func (e *Endpoint) End(o Outcome) {
	s := e.set
	s.mu.Lock()
	defer s.mu.Unlock()
	e.inFlight--
	switch o {
	case Answered:
		e.failures, e.until, s.failing = 0, 0, -1
	case Failed:
		now := s.now()
		if s.failing < 0 {
			s.failing = now
		}
		if now < e.until { // the attempt began before the pause and does not count
			return
		}
		if e.failures++; e.failures >= failuresToPause {
			e.until = now + min(longestPause, firstPause<<min(e.failures-failuresToPause, 5))
		}
	}
}

// Failing returns for how long every attempt has failed; 0 if the last attempt did not fail.
func (s *Set) Failing() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing < 0 {
		return 0
	}
	return s.now() - s.failing
}

// ResetPeaks resets the largest numbers of attempts in flight.
func (s *Set) ResetPeaks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		e.peak = e.inFlight
	}
}

// Peak returns the largest number of attempts in flight since ResetPeaks.
func (e *Endpoint) Peak() int {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return e.peak
}
