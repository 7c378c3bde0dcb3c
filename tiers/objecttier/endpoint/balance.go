package endpoint

import (
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"
)

// Balance says which endpoint a request goes to.
type Balance string

// The balances. Pins are for endpoints that do not show the same objects: what was written through
// one can be read through it alone, so that they never fail over.
const (
	RoundRobin    Balance = "round-robin"     // one after the other, the rank's first
	LeastInFlight Balance = "least-in-flight" // the one with the fewest requests under way
	PinRank       Balance = "pin-rank"        // rank mod n
	PinKey        Balance = "pin-key"         // hash of the key mod n
)

// Balances are all of them, for those who list them.
var Balances = []Balance{RoundRobin, LeastInFlight, PinRank, PinKey}

// Pinned says whether an object lies behind one endpoint alone.
func (b Balance) Pinned() bool { return b == PinRank || b == PinKey }

// How an endpoint rests that fails: after so many failures in a row, for so long, doubling up to so
// long. Without it least-in-flight would prefer the host that fails fast.
const (
	failuresToRest = 3
	firstRest      = time.Second
	longestRest    = 30 * time.Second
)

// Set is the endpoints of a run.
type Set struct {
	balance Balance
	rank    int
	now     func() time.Duration

	mu        sync.Mutex
	next      map[uint8]int // of each kind's round
	endpoints []*Endpoint
	failing   time.Duration // since when each attempt has failed; below 0: the last one did not
}

// Endpoint is one of a Set. The fields that others see do not change; the rest is the Set's, under
// its lock, which every request takes twice: what it does there is a scan of a few numbers.
type Endpoint struct {
	Index int
	URL   string

	set      *Set
	stats    Stats
	inFlight int           // attempts under way
	failures int           // in a row
	rest     time.Duration // how long the last one was
	until    time.Duration // when the rest is over; 0: it does not rest
	since    time.Duration // when it began
	trying   bool          // the rest is over, and one request tries
}

// Stats is what an endpoint has carried so far.
type Stats struct {
	Requests    int64 // whose first attempt went here
	Attempts    int64
	Failed      int64 // attempts that failed by the endpoint or on the way to it
	Retries     int64 // attempts after a first one, here or elsewhere
	MaxInFlight int
	Rests       int64
	Rested      time.Duration
}

// NewSet returns the endpoints of a rank, all awake. Now is the run's clock. Ranks begin at
// different endpoints, because many that start together would else go around together.
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

// All are the endpoints in their order, for those who have to ask each of them: the proof at the
// start, and who reports.
func (s *Set) All() []*Endpoint { return s.endpoints }

// Pinned says whether each request has one endpoint that it can go to.
func (s *Set) Pinned() bool { return s.balance.Pinned() }

// Scattered says whether objects lie with different endpoints, so that only all of them together
// know all objects.
func (s *Set) Scattered() bool { return s.balance == PinKey && len(s.endpoints) > 1 }

// Home is the index of the endpoint that a key is pinned to, 0 where it is to none.
func (s *Set) Home(key string) int {
	if s.balance != PinKey {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // it cannot fail
	return int(h.Sum64() % uint64(len(s.endpoints)))
}

// First begins a request for a key: it returns the endpoint of its first attempt, which End ends.
// Requests of each kind, whatever number the caller gives it, go around for themselves: in one
// round for all, a load that alternates between reads and writes would ask one of two endpoints
// for all that it reads, and the other for all that it writes.
func (s *Set) First(kind uint8, key string) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.choose(kind, key)
	e.stats.Requests++
	e.begin()
	return e
}

// Next begins another attempt of a request, which failed at last: at the endpoint after it, unless
// requests are pinned, or stay because it was not the endpoint that failed.
func (s *Set) Next(last *Endpoint, stay bool) *Endpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := last
	if !stay && !s.balance.Pinned() {
		e = s.awake(last.Index+1, func(a, b *Endpoint) bool { return false })
	}
	e.stats.Retries++
	e.begin()
	return e
}

// choose is the endpoint that the balance says. Callers hold mu.
func (s *Set) choose(kind uint8, key string) *Endpoint {
	n := len(s.endpoints)
	switch s.balance {
	case PinRank:
		return s.endpoints[s.rank%n]
	case PinKey: // of this build and of any other: who reads a kept store finds what lies there
		return s.endpoints[s.Home(key)]
	}
	// Also those with the fewest begin at another one each time: of equals the first would get all
	// requests of a load that has one under way at a time.
	from, begun := s.next[kind]
	if !begun {
		from = s.rank
	}
	s.next[kind] = (from + 1) % n
	fewer := func(a, b *Endpoint) bool { return false }
	if s.balance == LeastInFlight {
		fewer = func(a, b *Endpoint) bool { return a.inFlight < b.inFlight }
	}
	return s.awake(from, fewer)
}

// awake is the best endpoint that does not rest, the first one from an index on among equals. Where
// all rest it is the one whose rest is over soonest: a run that has nobody left to ask finds out
// soonest that somebody is back. Callers hold mu.
func (s *Set) awake(from int, better func(a, b *Endpoint) bool) *Endpoint {
	now := s.now()
	var best, soonest *Endpoint
	for i := range s.endpoints {
		e := s.endpoints[(from+i)%len(s.endpoints)]
		if e.until > 0 && (now < e.until || e.trying) {
			if soonest == nil || e.until < soonest.until {
				soonest = e
			}
			continue
		}
		if e.until > 0 { // its rest is over: this request tries it, whoever has fewer
			return e
		}
		if best == nil || better(e, best) {
			best = e
		}
	}
	if best == nil {
		return soonest
	}
	return best
}

// begin counts an attempt. Callers hold mu.
func (e *Endpoint) begin() {
	e.stats.Attempts++
	e.inFlight++
	e.stats.MaxInFlight = max(e.stats.MaxInFlight, e.inFlight)
	e.trying = e.until > 0
}

// Outcome is how an attempt ended, as far as it says something of the endpoint.
type Outcome uint8

// The outcomes. What was cancelled says nothing.
const (
	Answered  Outcome = iota // also by an error that is not its own, as 404 is
	Failed                   // refused, reset, timed out, or 5xx
	Cancelled                // by this process
)

// End ends an attempt that First or Next began.
func (e *Endpoint) End(o Outcome) {
	s := e.set
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	e.inFlight--
	switch o {
	case Answered: // one that began before the rest counts, too: the endpoint is back
		if e.until > 0 {
			e.stats.Rested += min(now, e.until) - e.since
		}
		e.failures, e.rest, e.until, e.trying = 0, 0, 0, false
		s.failing = -1
	case Cancelled:
		e.trying = false
	case Failed: // 503 of a store that has too much to do included: it is left alone, too
		e.stats.Failed++
		if s.failing < 0 {
			s.failing = now
		}
		e.failures++
		// One that began before the rest and fails in it says nothing new.
		if e.until > 0 && !e.trying || e.failures < failuresToRest {
			return
		}
		if e.until > 0 {
			e.stats.Rested += min(now, e.until) - e.since
		}
		e.rest = min(max(firstRest, 2*e.rest), longestRest)
		e.since, e.until, e.trying = now, now+e.rest, false
		e.stats.Rests++
	}
}

// Failing is for how long no endpoint has answered although some were asked; 0 while they do.
func (s *Set) Failing() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing < 0 {
		return 0
	}
	return s.now() - s.failing
}

// ResetPeaks begins the largest numbers in flight anew, from those that are.
func (s *Set) ResetPeaks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		e.stats.MaxInFlight = e.inFlight
	}
}

// Stats is what the endpoint has carried so far.
func (e *Endpoint) Stats() Stats {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	st := e.stats
	if e.until > 0 {
		st.Rested += min(e.set.now(), e.until) - e.since
	}
	return st
}
