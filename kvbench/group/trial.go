package group

import (
	"context"
	"fmt"
	"slices"
	"time"

	"kvbench/kvbench/result"
)

// step is the progress of the ranks in their trials.
type step struct {
	trial     int       // number of the current or next trial, from 1
	name      string    // set when all ranks have entered the trial
	agreed    time.Time // when all had entered; zero before
	comparing bool      // all ranks are ready for a phase; the leader compares clocks
	skew      *skew     // the largest skew of earlier phases
	unready   string    // why a rank will not come to the barrier, "" for none
}

// part is what a rank has sent in the current trial.
type part struct {
	terms  *Terms
	waits  bool  // at a barrier
	opened int64 // by the rank's clock, 0 = not yet
	sent   bool  // its result has arrived
	saved  bool  // and LeaderConfig.Result has returned
	done   bool
	text   string // its error with done, "" for none
	offset offset
}

// receive handles a message of a rank.
func (l *Leader) receive(c *client, m *message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m.Kind {
	case kindHeartbeat:
		c.live = m.Doc
		return
	case kindPong:
		select {
		case c.pongs <- m:
		default: // more answers than pings
		}
		return
	case kindLeave:
		// A rank that leaves early, without a stop of the run, counts as lost.
		if m.Text != "" && l.stopped == "" {
			l.lose(c, "was ended: "+printableLines(m.Text))
		}
		c.left = true
	}
	defer l.notify()
	// A trial may end because a rank was lost. Its messages may arrive after the next trial began.
	if m.Kind != kindLeave && m.Trial != l.step.trial {
		return
	}
	p := &c.part
	switch m.Kind {
	case kindEnter:
		if m.Terms != nil {
			*p, c.stage = part{terms: m.Terms}, "before "+m.Terms.Name
		}
	case kindReady:
		p.waits, c.stage = true, "at the start of "+l.step.name
	case kindOpened:
		p.opened = m.At
	case kindResult:
		if p.sent = true; p.done || l.Result == nil {
			break
		}
		// Pass the result on at once, so that it is saved. That takes long, so unlock.
		l.mu.Unlock()
		l.Result(c.hello.Rank, m.Doc)
		l.mu.Lock()
		c.part.saved = m.Trial == l.step.trial
	case kindDone:
		p.done, p.text = true, m.Text
	}
	l.progress()
}

// progress does the steps of the trial for which all ranks are ready. It is called with mu.
func (l *Leader) progress() {
	// Count again each time: ranks may be lost, and counting a thousand takes a microsecond.
	entered, waiting, here := 0, 0, l.here()
	var failed *client
	for _, c := range here {
		if c.part.terms == nil {
			continue
		}
		entered++
		if c.part.done {
			failed = c
		} else if c.part.waits {
			waiting++
		}
	}
	if len(here) == 0 { // the last rank has gone
		return
	}
	if l.step.agreed.IsZero() && entered == len(here) {
		l.agree(here)
	}
	switch {
	case waiting == 0 || l.step.comparing:
	case failed != nil:
		// A failed rank never comes to the barrier, so the waiting ranks get an error. The error of
		// the first failed rank is the cause of later ones.
		if l.step.unready == "" {
			l.step.unready = fmt.Sprintf("%s was not ready: %s", failed.hello.place(),
				failed.part.text)
		}
		for _, c := range here {
			if c.part.waits {
				c.part.waits = false
				c.link.send(&message{Kind: kindBegin, Trial: l.step.trial, Text: l.step.unready})
			}
		}
	case waiting == len(here):
		l.step.comparing = true
		go l.begin(l.step.trial)
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

// smallest lowers the terms of rank c to the proposals of rank o for the filesystems that both use.
func smallest(terms *Terms, c, o *client) {
	// Without filesystems both ranks use one bucket of an object store.
	shared := len(c.sharing)+len(o.sharing) == 0
	for i, s := range c.sharing {
		for j, other := range o.sharing {
			if s.Filesystem != other.Filesystem {
				continue
			}
			shared = true
			if i < len(terms.Directories) && j < len(o.part.terms.Directories) {
				own, found := &terms.Directories[i], o.part.terms.Directories[j]
				own.Bytes = min(own.Bytes, found.Bytes)
				own.Floor = min(own.Floor, found.Floor)
			}
		}
	}
	if shared {
		terms.Capacity = min(terms.Capacity, o.part.terms.Capacity)
	}
}

// begin measures the clock offsets of all ranks and sends each rank the time to begin.
func (l *Leader) begin(trial int) {
	l.mu.Lock()
	all := slices.DeleteFunc(l.here(), func(c *client) bool { return !c.part.waits })
	l.mu.Unlock()
	answers := l.pingAll(all)
	found := offsets(&l.Hello, all, answers)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step.trial != trial {
		return // the trial has ended
	}
	l.step.comparing = false
	l.step.skew = larger(l.skew(), l.step.skew)
	// All ranks begin at the same time, each by its own clock. The time is several round trips
	// ahead, so the message arrives before it.
	at := l.Clock.Now() + int64(beginAfter(answers))
	for i, c := range all {
		c.part.offset, c.part.waits, c.part.opened = found[i], false, 0
		c.stage = "in the window of " + l.step.name
		c.link.send(&message{Kind: kindBegin, Trial: trial, At: at + found[i].clock})
	}
	l.notify()
}

// larger returns the larger of two skews. nil is unknown.
func larger(a, b *skew) *skew {
	if a == nil || b != nil && b.apart > a.apart {
		return b
	}
	return a
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
	t := Trial{}
	for _, c := range l.clients {
		t.Text = append(t.Text, c.part.text)
		if c.lost != nil {
			t.Lost = append(t.Lost, *c.lost)
		}
	}
	if s := larger(l.skew(), l.step.skew); s != nil {
		t.Skew, t.Uncertainty = &s.apart, &s.uncertainty
	}
	return t
}

// WallOffset returns how far a rank's wall clock is ahead of the leader's, in ns, measured before
// the rank's last phase.
func (l *Leader) WallOffset(rank int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[rank]; c != nil {
		return c.part.offset.wall
	}
	return 0
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

// stage returns what a rank is doing. After an error it returns the stage in which the error
// occurred. It is called with mu.
func (l *Leader) stage(c *client) string {
	name := l.step.name
	if name == "" && c.part.terms != nil {
		name = c.part.terms.Name
	}
	switch {
	case c.part.text != "":
	case c.part.done:
		return "after " + name
	case c.part.sent:
		return "while cleaning up after " + name
	}
	return c.stage
}
