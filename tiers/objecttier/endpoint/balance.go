package endpoint

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// Balance decides which endpoint a request goes to.
type Balance string

// The balances. Pins are for endpoints that do not show the same objects: what was written through
// one can be read through it alone, so pinned requests never fail over.
const (
	RoundRobin    Balance = "round-robin"     // one after the other, beginning with the rank's
	LeastInFlight Balance = "least-in-flight" // the one with the fewest requests in flight
	PinRank       Balance = "pin-rank"        // rank mod n
	PinKey        Balance = "pin-key"         // hash of the key mod n
)

// Balances are all of them.
var Balances = []Balance{RoundRobin, LeastInFlight, PinRank, PinKey}

// An endpoint that fails so often in a row backs off: it gets no requests for firstPause, which
// doubles with each further failure up to longestPause. Without it least-in-flight would prefer the
// host that fails fast.
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
	failing   time.Duration // since when every attempt has failed; negative: the last one did not
}

// Endpoint is one of a Set, which locks all but Index and URL.
type Endpoint struct {
	Index int
	URL   string

	set      *Set
	inFlight int           // attempts
	peak     int           // the largest inFlight
	failures int           // in a row
	until    time.Duration // when the pause ends
}

// NewSet returns the endpoints of a rank. Now is the run's clock. Ranks begin at different
// endpoints, because many that start together would go around together.
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

// All are the endpoints in their order.
func (s *Set) All() []*Endpoint { return s.endpoints }

// Pinned reports whether each request can go to one endpoint only.
func (s *Set) Pinned() bool { return s.balance == PinRank || s.balance == PinKey }

// Scattered reports whether objects lie with different endpoints, so that only all of them together
// list all objects.
func (s *Set) Scattered() bool { return s.balance == PinKey && len(s.endpoints) > 1 }

// Home is the index of the endpoint that a key is pinned to; 0 without pin-key.
func (s *Set) Home(key string) int {
	if s.balance != PinKey {
		return 0
	}
	h := fnv.New64a() // stable: a later run reads what lies there
	_, _ = h.Write([]byte(key))
	return int(h.Sum64() % uint64(len(s.endpoints)))
}

// First begins a request for a key: it returns the endpoint of its first attempt, which End ends.
// Each kind of request, a number of the caller's, has its own round: in one round for all, a load
// that alternates between reads and writes would read from one of two endpoints alone.
func (s *Set) First(kind uint8, key string) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choose(kind, key).begin()
}

// Next begins another attempt after one at the endpoint last: at the one after it, or at the same
// one where requests are pinned, or where stay is set because the endpoint did not fail.
func (s *Set) Next(last *Endpoint, stay bool) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := last
	if !stay && !s.Pinned() {
		e = s.open(last.Index+1, false)
	}
	return e.begin()
}

// choose returns the endpoint that the balance names. Callers hold mu.
func (s *Set) choose(kind uint8, key string) *Endpoint {
	n := len(s.endpoints)
	switch s.balance {
	case PinRank:
		return s.endpoints[s.rank%n]
	case PinKey:
		return s.endpoints[s.Home(key)]
	}
	// Least-in-flight moves on, too: else the first of equals would get all requests of a load with
	// one in flight.
	from, begun := s.next[kind]
	if !begun {
		from = s.rank
	}
	s.next[kind] = (from + 1) % n
	return s.open(from, s.balance == LeastInFlight)
}

// open returns the first endpoint from an index on that is not pausing, or of those the one with
// the fewest requests. Where all pause it returns the one whose pause ends first. Callers hold mu.
func (s *Set) open(from int, fewest bool) *Endpoint {
	now := s.now()
	best := s.endpoints[from%len(s.endpoints)]
	for i := range s.endpoints {
		e := s.endpoints[(from+i)%len(s.endpoints)]
		// An endpoint that does not back off has waited until now.
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

// Outcome is the end of an attempt, as far as it concerns the endpoint.
type Outcome uint8

// The outcomes.
const (
	Answered  Outcome = iota // also by an error that is not the endpoint's, as 404
	Failed                   // refused, reset, timed out, or 5xx
	Cancelled                // by this process: no failure of the endpoint
)

// End ends an attempt that First or Next began.
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
		if now < e.until { // an attempt from before the pause shows nothing new
			return
		}
		if e.failures++; e.failures >= failuresToPause {
			e.until = now + min(longestPause, firstPause<<min(e.failures-failuresToPause, 5))
		}
	}
}

// Failing is for how long every attempt has failed; 0 after one that did not.
func (s *Set) Failing() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing < 0 {
		return 0
	}
	return s.now() - s.failing
}

// ResetPeaks begins the largest numbers in flight anew.
func (s *Set) ResetPeaks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		e.peak = e.inFlight
	}
}

// Peak is the largest number of attempts in flight since ResetPeaks.
func (e *Endpoint) Peak() int {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return e.peak
}
