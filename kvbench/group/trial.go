package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"kvbench/kvbench/result"
)

// step is the progress of the ranks in a trial.
type step struct {
	trial   int       // number of the current or next trial, from 1
	name    string    // set when all ranks have entered the trial
	agreed  time.Time // when all had entered; zero before
	pinging bool      // all ranks are ready for a phase; the leader compares clocks
	unready string    // why a rank will not come to the barrier, "" for none

	skew, uncertainty *int64 // see Trial
}

// part is what a rank has sent in the current trial.
type part struct {
	terms  *Terms
	waits  bool // at a barrier
	pongs  int  // answered pings of this phase
	offset offset
	opened *int64 // ns from the start of this phase to the opening of its window
	saved  bool   // its result has arrived, and LeaderConfig.Result has returned
	done   bool
	text   string // its error with done, "" for none
}

// offset compares a rank's clock with the leader's, by the ping with the shortest round trip. A slower ping
// waited somewhere, perhaps in one direction only. The maximum error of ahead is half of the round trip.
type offset struct{ ahead, roundTrip time.Duration }

// pings is the number of pings per rank before a phase.
const pings = 8

// clock identifies the clock of a rank. All processes of a kernel read one clock.
func (c *client) clock() string {
	if c.hello.Boot == "" {
		return c.hello.place()
	}
	return c.hello.Boot
}

func (c *client) ping(trial int) {
	c.link.send(&message{Kind: kindPing, Trial: trial, At: time.Now().UnixNano()})
}

// receive handles a message of a rank.
func (l *Leader) receive(c *client, m *message) {
	came := time.Now().UnixNano()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.notify()
	p := &c.part
	switch {
	case m.Kind == kindHeartbeat:
		c.live = m.Doc
		return
	case m.Kind == kindLeave:
		// A rank that leaves early, without a stop of the run, counts as lost.
		if m.Text != "" && l.stopped == "" {
			l.lose(c, "was ended: "+printable(m.Text))
		}
		c.left = true
		_ = c.link.conn.Close()
	case m.Trial != l.step.trial:
		return // the trial has ended without this rank
	case m.Kind == kindEnter && m.Terms != nil:
		*p, c.stage = part{terms: m.Terms}, "before "+m.Terms.Name
	case m.Kind == kindReady:
		p.waits, c.stage = true, "at the start of "+l.step.name
	case m.Kind == kindPong:
		roundTrip := time.Duration(came - m.At)
		if p.pongs++; p.pongs == 1 || roundTrip < p.offset.roundTrip {
			p.offset = offset{time.Duration(m.Clock - (m.At+came)/2), roundTrip}
		}
		if p.pongs < pings {
			c.ping(m.Trial)
			return
		}
	case m.Kind == kindOpened:
		p.opened = &m.At
	case m.Kind == kindResult:
		// Pass the result on at once, so that it is saved. That takes long, so unlock.
		if ahead := p.offset.ahead; l.Result != nil && !p.done {
			l.mu.Unlock()
			l.Result(c.hello.Rank, m.Doc, ahead)
			l.mu.Lock()
		}
		p.saved = m.Trial == l.step.trial
	case m.Kind == kindDone:
		p.done, p.text = true, printable(m.Text)
		if m.Text == "" { // after an error the stage in which it occurred counts
			c.stage = "after " + l.step.name
		}
	}
	l.progress()
}

// progress does the steps of the trial for which all ranks are ready. It is called with mu.
func (l *Leader) progress() {
	here := l.here()
	all := func(has func(p *part) bool) bool { // not if the last rank has gone
		return len(here) > 0 && !slices.ContainsFunc(here, func(c *client) bool { return !has(&c.part) })
	}
	if l.step.agreed.IsZero() && all(func(p *part) bool { return p.terms != nil }) {
		l.agree(here)
	}
	if all(func(p *part) bool { return p.opened != nil }) {
		l.compare(here)
	}
	failed := slices.IndexFunc(here, func(c *client) bool { return c.part.done })
	switch {
	case failed >= 0:
		// A rank that has ended its trial never comes to the barrier, so the waiting ranks get an error. The
		// error of the first failed rank is the cause of later ones.
		if l.step.unready == "" {
			l.step.unready = fmt.Sprintf("%s was not ready: %s", here[failed].hello.place(),
				here[failed].part.text)
		}
		for _, c := range here {
			if c.part.waits {
				c.part.waits = false
				c.link.send(&message{Kind: kindBegin, Trial: l.step.trial, Text: l.step.unready})
			}
		}
	case !all(func(p *part) bool { return p.waits }):
	case !l.step.pinging:
		l.step.pinging = true
		for _, c := range here {
			c.part.pongs = 0
			c.ping(l.step.trial)
		}
	case all(func(p *part) bool { return p.pongs >= pings }):
		l.begin(here)
	}
}

// agree sends all ranks the terms of the trial, or an error. It is called with mu.
func (l *Leader) agree(here []*client) {
	first, problem := here[0], ""
	l.step.agreed, l.step.name = time.Now(), first.part.terms.Name
	for _, c := range here {
		if c.part.terms.Name != l.step.name {
			problem = fmt.Sprintf("%s came to %s, %s to %s: what they were asked to run differs",
				first.hello.place(), l.step.name, c.hello.place(), c.part.terms.Name)
		}
	}
	// The capacity on a filesystem is the smallest that any rank proposes. All ranks use the nonce
	// of the lowest rank; any rank's nonce would do.
	for _, c := range here {
		terms := *c.part.terms
		terms.Nonce, terms.Directories = first.part.terms.Nonce, slices.Clone(terms.Directories)
		for _, o := range here {
			// A rank that failed proposes capacity 0. The other ranks get its error at the barrier.
			if o.part.terms.Capacity > 0 {
				smallest(&terms, c, o)
			}
		}
		m := &message{Kind: kindAgreed, Trial: l.step.trial, Terms: &terms}
		if problem != "" {
			m.Terms, m.Text = nil, problem
		}
		c.stage = "while preparing " + l.step.name
		c.link.send(m)
	}
}

// A phase begins at least margin, and at least roundTrips round trips of the slowest rank, after
// the last rank is ready. The message with the start time must arrive before.
const (
	margin     = 50 * time.Millisecond
	roundTrips = 4
)

// begin sends each rank the time to begin, by the rank's clock. For ranks with one clock the shortest round
// trip of all these ranks counts. It is called with mu.
func (l *Leader) begin(here []*client) {
	l.step.pinging = false
	after, clocks := margin, map[string]offset{}
	for _, c := range here {
		o, known := clocks[c.clock()]
		if !known || c.part.offset.roundTrip < o.roundTrip {
			clocks[c.clock()] = c.part.offset
		}
		after = max(after, roundTrips*c.part.offset.roundTrip)
	}
	clocks[l.Hello.Boot] = offset{} // the leader's own
	at := time.Now().Add(after).UnixNano()
	for _, c := range here {
		c.part = part{terms: c.part.terms, offset: clocks[c.clock()]}
		c.stage = "in the window of " + l.step.name
		c.link.send(&message{Kind: kindBegin, Trial: l.step.trial, At: at + int64(c.part.offset.ahead)})
	}
}

// compare notes the time between the first and the last opening of a window, if it is the largest of the
// trial. It is called with mu.
func (l *Leader) compare(here []*client) {
	var opened []int64
	errs := map[string]int64{} // by clock
	for _, c := range here {
		opened = append(opened, *c.part.opened)
		errs[c.clock()] = int64(c.part.offset.roundTrip+1) / 2
		c.part.opened = nil
	}
	apart, uncertainty := slices.Max(opened)-slices.Min(opened), int64(0)
	if most := slices.Sorted(maps.Values(errs)); len(most) > 1 { // ranks with one clock have no error
		uncertainty = most[len(most)-1] + most[len(most)-2]
	}
	if len(here) > 1 && (l.step.skew == nil || apart > *l.step.skew) {
		l.step.skew, l.step.uncertainty = &apart, &uncertainty
	}
}

// Trial is a trial that has ended, before its outcome is sent.
type Trial struct {
	Text []string            // each rank's error, "" if it has none or is lost
	Lost []result.LostClient // all lost ranks of the run so far
	// Skew is the time between the first and the last opening of a window in ns, Uncertainty its
	// maximum error. In a trial with several phases it is the largest skew. Both are nil unless at
	// least two ranks remain and all have opened a window.
	Skew, Uncertainty *int64
}

// Collect waits until every remaining rank is done with the trial, and returns its errors. After
// ctx ends, it waits only for the results of the ranks that entered the trial. A rank that sends
// heartbeats will send its result, even over a slow network.
func (l *Leader) Collect(ctx context.Context) Trial {
	all := func(done func(p *part) bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(l.here(), func(c *client) bool { return !done(&c.part) })
		}
	}
	if l.await(ctx, all(func(p *part) bool { return p.done })) != nil {
		// A rank that has not entered the trial has no result to wait for.
		_ = l.await(context.WithoutCancel(ctx), all(func(p *part) bool {
			return p.done || p.saved || p.terms == nil
		}))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := Trial{Skew: l.step.skew, Uncertainty: l.step.uncertainty}
	for _, c := range l.clients {
		t.Text = append(t.Text, c.part.text)
		if c.lost != nil {
			t.Lost = append(t.Lost, *c.lost)
		}
	}
	return t
}

// Conclude sends all ranks the outcome of the trial, "" for success, and starts the next trial.
func (l *Leader) Conclude(outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	trial := l.step.trial
	l.step = step{trial: trial + 1}
	for _, c := range l.here() {
		c.part, c.stage = part{}, "between two trials"
		c.link.send(&message{Kind: kindOutcome, Trial: trial, Text: outcome})
	}
	l.notify()
}
