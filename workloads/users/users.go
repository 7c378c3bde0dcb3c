package users

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kvbench/workloads"
)

// Config describes a load of synthetic users.
type Config struct {
	Profile Profile // must be valid
	Users   []User
	Seed    uint64 // the run's seed plus the rank

	// ClosedLoop: a user thinks after its request has completed. Otherwise users do not wait for
	// completions. A Rate replaces think times and is always open-loop.
	ClosedLoop bool
	// Overtaking lets a turn start before the entry of the previous turn is written.
	Overtaking bool
	// Window is the model's context window in tokens, 0 = none. A prompt, which is the history and the
	// turn's context, never exceeds the window, because engines refuse such prompts. A conversation
	// whose next turn would not fit ends. A context longer than the window is cut. Generated tokens do
	// not count, because no entry has them.
	Window int
	// KeepPrompt: all turns of a conversation begin with the common prompt of the first turn. To the
	// cache the turns are then one sequence of tokens.
	KeepPrompt bool
	// MultiTurn off makes every request a conversation of its own.
	MultiTurn bool
	// PrefixCaching off: no request starts with a common prompt.
	PrefixCaching bool

	PrefillOnly, DecodeOnly bool

	// Corpus has the documents of which turns and queries retrieve chunks, nil for none.
	Corpus *Corpus

	Rate         float64 // requests per second of all users together, 0 = think times decide
	ConstantRate bool    // evenly spaced instead of Poisson arrivals
	// MaxRequests is the number of arrivals (closed-loop: requests) after which the load ends, 0 =
	// never.
	MaxRequests int64
}

// Users is the Source of synthetic users. A user's requests start in the order of their arrival. A
// later request never overtakes an earlier one, but several may be in flight.
//
// A request is a pure function of (seed, user, n). So a cursor represents all future requests of a
// user. Taking a request costs O(log users), and a waiting request takes 8 bytes.
type Users struct {
	cfg Config

	cursors []*cursor            // cursor of each user, by slot
	future  Heap[userItem]       // the next arrivals of users
	ready   Heap[userItem]       // users whose next request has arrived, by priority
	left    int64                // remaining arrivals; closed-loop: requests to schedule
	queries []*workloads.Request // go before all turns

	now      time.Duration // latest time of a Take or an Account
	requests int64         // taken requests of all classes
	taken    [workloads.NumClasses]int64
	offered  [workloads.NumClasses]workloads.ClassLoad
}

var _ workloads.Scalable = (*Users)(nil)

// cursor is the position of a user in its stream of requests.
type cursor struct {
	slot   int // index among the cursors
	user   User
	stream Stream

	seq                int64           // of the next request
	arrived            []time.Duration // arrivals of the next requests
	conversation, turn int
	begun              int64 // seq of the first request of the conversation
	// history has the entries of the previous turns. Requests share its elements, so it is only
	// appended to.
	history []workloads.Entry
	kept    int // tokens of history and of the kept common prompt
	// busy: the next request waits for the entry of the previous request, or in closed loop for its
	// completion.
	busy   bool
	silent bool // inactive until SetUsers activates it again
}

// userItem is a user with the time of an arrival. The item contains the sort keys: with 10,000 users,
// reading them from the cursor at each comparison would miss the CPU cache.
type userItem struct {
	priority int // in the ready heap; 0 in the future heap
	at       time.Duration
	tie      int64 // slot of the user, so that the order depends only on the seed
	cursor   *cursor
}

// Before orders by priority (highest first), then time, then tie.
func (a userItem) Before(b userItem) bool {
	switch {
	case a.priority != b.priority:
		return a.priority > b.priority
	case a.at != b.at:
		return a.at < b.at
	}
	return a.tie < b.tie
}

// New returns the load, with its time at the origin.
func New(cfg Config) *Users {
	cfg.ClosedLoop = cfg.ClosedLoop && cfg.Rate <= 0
	// A decode-only request writes no entry, so the next request need not wait for one.
	cfg.Overtaking = cfg.Overtaking || cfg.DecodeOnly
	cfg.Profile = cfg.Profile.Only(cfg.PrefixCaching, cfg.PrefillOnly)
	s := &Users{cfg: cfg, left: cmp.Or(cfg.MaxRequests, math.MaxInt64)}
	for _, u := range cfg.Users {
		s.add(u)
	}
	var first []userItem // computed after all users exist, because they share the rate
	for _, c := range s.cursors {
		first = append(first, userItem{at: s.arrivalAfter(c, -1, 0), cursor: c})
	}
	slices.SortStableFunc(first, func(a, b userItem) int { return cmp.Compare(a.at, b.at) })
	for _, it := range first {
		s.schedule(it.cursor, it.at) // in closed loop the earliest users get the MaxRequests
	}
	return s
}

// Population returns the users, each with the largest context that its requests can have.
func (s *Users) Population() []User {
	list := slices.Clone(s.cfg.Users)
	for i := range list {
		if u := &list[i]; s.cfg.DecodeOnly {
			u.Context = workloads.PopulationTokens
		} else if s.cfg.Window > 0 {
			u.Context = min(u.Context, s.cfg.Window)
		}
	}
	return list
}

// add appends a user.
func (s *Users) add(u User) *cursor {
	c := &cursor{slot: len(s.cursors), user: u, stream: NewStream(s.cfg.Seed, u.ID),
		conversation: 1, turn: 1}
	s.cursors = append(s.cursors, c)
	return c
}

// minOpenLoopGap is the smallest gap in open loop. It limits a template without think time to 1000
// requests/s per user.
const minOpenLoopGap = time.Millisecond

// arrivalAfter returns the arrival of request seq+1 of a user. at is the arrival of request seq, or in
// closed loop its completion. A seq of -1 stands for the origin.
func (s *Users) arrivalAfter(c *cursor, seq int64, at time.Duration) time.Duration {
	n := seq + 1
	users := float64(len(s.cursors))
	switch {
	case s.cfg.Rate > 0 && s.cfg.ConstantRate:
		// User i takes every users-th slot of an evenly spaced sequence, which begins at the origin.
		place := workloads.Nanoseconds((float64(c.slot) + float64(n)*users) * 1e9 / s.cfg.Rate)
		if n == 0 {
			return place
		}
		return max(at+1, place)
	case s.cfg.Rate > 0:
		// The sum of independent Poisson streams of rate Rate/users is a Poisson stream of rate Rate.
		gap := c.stream.Exponential(DrawGap, n, users/s.cfg.Rate)
		return at + max(1, workloads.Seconds(gap))
	}
	gap := workloads.Seconds(float64(c.user.Think * c.stream.Uniform(DrawGap, n, 0.8, 1.2)))
	if !s.cfg.ClosedLoop {
		gap = max(gap, minOpenLoopGap)
	}
	return at + gap
}

// SetUsers implements Scalable. It must not be called with Rate or MaxRequests, which divide one load
// among all users. Users beyond the configured ones are drawn from the seed, as in a larger Population.
func (s *Users) SetUsers(n int, now time.Duration) {
	s.advance(now)
	if have := len(s.cursors); n > have {
		for _, u := range Population(s.cfg.Profile, s.cfg.Seed, n, false)[have:] {
			s.add(u).silent = true
		}
	}
	for i, c := range s.cursors {
		switch {
		case i >= n && !c.silent:
			s.silence(c)
		case i < n && c.silent:
			s.wakeUp(c)
		}
	}
	dropSilent(&s.future)
	dropSilent(&s.ready)
	s.dropQueries(n)
}

// dropSilent removes inactive users from a heap.
func dropSilent(h *Heap[userItem]) {
	old := *h
	*h = old[:0] // Push overwrites only items that were read
	for _, it := range old {
		if !it.cursor.silent {
			h.Push(it)
		}
	}
}

// silence makes a user inactive and drops its waiting requests.
func (s *Users) silence(c *cursor) {
	c.silent = true
	for i := range c.arrived {
		s.offer(c, c.seq+int64(i), -1)
	}
	c.arrived = nil
}

// wakeUp makes a user active. If in closed loop its last request is still in flight, the user continues
// after that request.
func (s *Users) wakeUp(c *cursor) {
	c.silent = false
	if !s.cfg.ClosedLoop || !c.busy {
		s.schedule(c, s.arrivalAfter(c, c.seq-1, s.now))
	}
}

// Heap is a binary min-heap: its first item comes before all others. container/heap would allocate for
// each item.
type Heap[T interface{ Before(T) bool }] []T

// Push adds an item.
func (h *Heap[T]) Push(it T) {
	*h = append(*h, it)
	items, i := *h, len(*h)-1
	for parent := (i - 1) / 2; i > 0 && it.Before(items[parent]); parent = (i - 1) / 2 {
		items[i] = items[parent]
		i = parent
	}
	items[i] = it
}

// Pop removes and returns the first item. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	items, n := *h, len(*h)-1
	first, last := items[0], items[n]
	clear(items[n:]) // so that the item can be freed
	*h = items[:n]
	if n > 0 {
		h.Replace(last)
	}
	return first
}

// Replace replaces the first item.
func (h Heap[T]) Replace(it T) {
	i := 0
	for child := 1; child < len(h); child = 2*i + 1 {
		if child+1 < len(h) && h[child+1].Before(h[child]) {
			child++
		}
		if !h[child].Before(it) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = it
}
