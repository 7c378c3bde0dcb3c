package users

import (
	"math"
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// Config describes a load of synthetic users.
type Config struct {
	Profile profile.Profile // must be valid
	Users   []User
	Seed    uint64 // the run's seed plus the rank

	// ClosedLoop lets a user think only after its answer is complete. Otherwise users do not wait
	// for answers. A Rate replaces thinking and is always open-loop: a rate that waited for answers
	// would be none.
	ClosedLoop bool
	// Overtaking lets a turn start before the entry of its predecessor is written.
	Overtaking bool
	// MultiTurn off makes every request a conversation of its own.
	MultiTurn bool
	// PrefixCaching off: no request starts with a common prompt.
	PrefixCaching bool

	PrefillOnly, DecodeOnly bool
	// Population entries of PopulationTokens each were written before a decode-only load; its
	// requests read random ones of them. 0 means ten per user and 2048 tokens.
	Population, PopulationTokens int

	Rate         float64 // requests per second of all users together, 0 = think times decide
	ConstantRate bool    // evenly spaced instead of Poisson arrivals
	// MaxRequests ends the load after the first N arrivals (closed-loop: after N requests), 0 =
	// never.
	MaxRequests int64
}

// Users is the Source of synthetic users. A user's requests start in the order of their arrival; a
// later one never passes an earlier one of the same user, but several may be in flight.
//
// A request is a pure function of (seed, user, n), so that everything a user has still to ask is
// one cursor. Taking a request costs O(log users), and memory does not depend on how far behind the
// storage is.
type Users struct {
	cfg        Config
	shape      profile.Shape
	closedLoop bool
	ordered    bool

	cursors []*cursor                      // by slot
	future  slotHeap                       // users whose next request has not arrived
	ready   [workloads.NumClasses]slotHeap // users whose next request has, by class
	counted *arrivals                      // open-loop
	tickets int64                          // closed-loop: requests that may still be scheduled

	now         time.Duration // latest time that Take saw
	accounted   time.Duration // latest time that Account reached
	taken       [workloads.NumClasses]int64
	takenTokens [workloads.NumClasses]int64
}

var _ workloads.Scalable = (*Users)(nil)

// cursor is one user's place in its stream of requests.
type cursor struct {
	slot   int32 // its place among the cursors
	user   User
	stream profile.Stream

	seq                int64 // of the next request
	arrival            time.Duration
	conversation, turn int
	history            []workloads.Entry // of the turns before it; elements are shared with requests and only appended to
	state              cursorState
	silent             bool // does not ask until SetUsers wants it again
}

type cursorState uint8

const (
	queued   cursorState = iota // in the heap future or in a heap ready
	blocked                     // waits for Written of its predecessor
	inFlight                    // closed-loop: waits for Done
	retired                     // beyond MaxRequests
)

// New returns the load at its origin.
func New(cfg Config) *Users {
	if cfg.Population < 1 {
		cfg.Population = max(1, 10*len(cfg.Users))
	}
	if cfg.PopulationTokens < 1 {
		cfg.PopulationTokens = 2048
	}
	s := &Users{
		cfg:        cfg,
		shape:      profile.NewShape(cfg.Profile, cfg.PrefixCaching, cfg.PrefillOnly, cfg.DecodeOnly),
		closedLoop: cfg.ClosedLoop && cfg.Rate <= 0,
		cursors:    make([]*cursor, len(cfg.Users)),
		tickets:    math.MaxInt64,
	}
	// A decode-only request writes nothing that a successor could wait for.
	s.ordered = !cfg.Overtaking && !cfg.DecodeOnly
	firsts := make([]slotItem, len(cfg.Users))
	for i, u := range cfg.Users {
		c := &cursor{slot: int32(i), user: u, stream: profile.NewStream(cfg.Seed, u.ID), conversation: 1, turn: 1}
		s.cursors[i] = c
		c.arrival = s.arrivalAfter(int32(i), -1, 0)
		firsts[i] = slotItem{at: c.arrival, slot: int32(i)}
	}
	limit := int64(math.MaxInt64)
	if cfg.MaxRequests > 0 {
		limit = cfg.MaxRequests
	}
	if s.closedLoop {
		s.tickets = limit
		slices.SortFunc(firsts, func(a, b slotItem) int { // the earliest users get the tickets
			if a.before(b) {
				return -1
			}
			return 1
		})
	} else {
		s.counted = newArrivals(limit, firsts)
	}
	for _, it := range firsts {
		s.schedule(it)
	}
	return s
}

// MaxContextTokens returns the most tokens that an entry of this load can have. Users are drawn
// inside the ranges of their templates, so this is at most Profile.MaxContextTokens.
func (s *Users) MaxContextTokens() int {
	if s.cfg.DecodeOnly {
		return s.cfg.PopulationTokens
	}
	largest := 0
	for i := range s.cursors {
		largest = max(largest, s.cursors[i].user.Context)
	}
	return largest
}

// minOpenLoopGap keeps a template without think time from asking infinitely often: such a user, who
// does not wait for answers either, makes 1000 requests per second.
const minOpenLoopGap = time.Millisecond

// arrivalAfter returns the arrival of request seq+1 of a user, given that of request seq; seq -1
// lies at the origin. In closed-loop at is the time when request seq was done.
func (s *Users) arrivalAfter(slot int32, seq int64, at time.Duration) time.Duration {
	c := s.cursors[slot]
	n := seq + 1
	users := float64(len(s.cursors))
	switch {
	case s.cfg.Rate > 0 && s.cfg.ConstantRate:
		// User i takes every users-th place of one evenly spaced row. The first one may take the
		// origin itself.
		place := workloads.Nanoseconds((float64(slot) + float64(n)*users) * 1e9 / s.cfg.Rate)
		if n == 0 {
			return place
		}
		return max(at+1, place)
	case s.cfg.Rate > 0:
		// The superposition of independent Poisson streams of rate/users is one of the whole rate.
		return at + max(1, workloads.Seconds(c.stream.Exponential(profile.DrawGap, n, users/s.cfg.Rate)))
	}
	gap := workloads.Seconds(float64(c.user.Think * c.stream.Uniform(profile.DrawGap, n, 0.8, 1.2)))
	if !s.closedLoop {
		gap = max(gap, minOpenLoopGap)
	}
	return at + gap
}
