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
	trial     int       // from 1: the one in progress, or the next
	name      string    // once all have entered it
	agreed    time.Time // zero before that
	comparing bool      // all are ready for a phase, and the leader compares their clocks
	skew      *skew     // the largest one of earlier phases
	unready   string    // names the rank that will not come to the barrier, "" while all may
}

// part is a rank's messages of the trial in progress.
type part struct {
	terms  *Terms
	waits  bool  // at a barrier
	opened int64 // by its clock, 0 = not yet
	sent   bool  // its result has come
	saved  bool  // and was passed on
	done   bool
	text   string // its error at the end
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
		// Too early, and not because all have been stopped: it is lost to the others.
		if m.Text != "" && l.stopped == "" {
			l.lose(c, "was ended: "+printableLines(m.Text))
		}
		c.left = true
	}
	defer l.notify()
	// A message of a trial that ended because a rank was lost may come after the next one began.
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
		// It must be safe as soon as possible, and takes its time.
		l.mu.Unlock()
		l.Result(c.hello.Rank, m.Doc)
		l.mu.Lock()
		c.part.saved = m.Trial == l.step.trial
	case kindDone:
		p.done, p.text = true, m.Text
	}
	l.progress()
}

// progress takes the steps for which all ranks have come, with mu.
func (l *Leader) progress() {
	// Counted anew each time: with ranks that come and go a stored count could be wrong, and a
	// thousand are counted in a microsecond.
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
	if len(here) == 0 { // the last one has gone
		return
	}
	if l.step.agreed.IsZero() && entered == len(here) {
		l.agree(here)
	}
	switch {
	case waiting == 0 || l.step.comparing:
	case failed != nil:
		// It can never come to the barrier; those at it must not wait for it. The first one is the
		// cause: the others are not ready because of it.
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

// agree sends all ranks the terms of the trial, or an error, with mu.
func (l *Leader) agree(here []*client) {
	first, problem := here[0], ""
	l.step.agreed, l.step.name = time.Now(), first.part.terms.Name
	for _, c := range here {
		if c.part.terms.Name != l.step.name {
			problem = fmt.Sprintf("%s came to %s, %s to %s: what they were asked to run differs",
				first.hello.place(), l.step.name, c.hello.place(), c.part.terms.Name)
		}
	}
	// The capacity of a filesystem is the least that any rank has found; any rank's nonce would do,
	// as long as it is one.
	for _, c := range here {
		terms := *c.part.terms
		terms.Nonce, terms.Directories = first.part.terms.Nonce, slices.Clone(terms.Directories)
		for _, o := range here {
			// A rank that has failed has no capacity: the others get its error at the barrier.
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

// smallest limits a rank's terms to another rank's for the same filesystems.
func smallest(terms *Terms, c, o *client) {
	// On objects there is no filesystem, but one bucket.
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

// begin compares clocks with all ranks and sends each when to begin.
func (l *Leader) begin(trial int) {
	l.mu.Lock()
	all := slices.DeleteFunc(l.here(), func(c *client) bool { return !c.part.waits })
	l.mu.Unlock()
	answers := l.pingAll(all)
	found := offsets(&l.Hello, all, answers)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step.trial != trial {
		return // it is over
	}
	l.step.comparing = false
	l.step.skew = larger(l.skew(), l.step.skew)
	// All begin at one moment, each by its own clock. The message takes no longer than the slowest
	// round trip, several of which lie ahead.
	at := l.Clock.Now() + int64(beginAfter(answers))
	for i, c := range all {
		c.part.offset, c.part.waits, c.part.opened = found[i], false, 0
		c.stage = "in the window of " + l.step.name
		c.link.send(&message{Kind: kindBegin, Trial: trial, At: at + found[i].clock})
	}
	l.notify()
}

// larger returns the larger one of two skews, of which either may be unknown.
func larger(a, b *skew) *skew {
	if a == nil || b != nil && b.apart > a.apart {
		return b
	}
	return a
}

// Trial is a trial that has ended, before its outcome is sent.
type Trial struct {
	Text []string            // each rank's error, "" where it went well or is lost
	Lost []result.LostClient // all that are, of this trial or before
	// Skew is the time between the first and the last opening of a window, and how far that may be
	// off, in ns; nil unless all remaining ranks have opened one, and there are several. Of a trial
	// in which they begin more than once it is the largest.
	Skew, Uncertainty *int64
}

// Collect waits until every remaining rank has done the trial, as long as ctx lasts, and returns
// the outcome. For results it waits longer: a rank that has entered the trial and sends heartbeats
// will send one, however slow its host or the network is.
func (l *Leader) Collect(ctx context.Context) Trial {
	all := func(done func(p *part) bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(l.here(), func(c *client) bool { return !done(&c.part) })
		}
	}
	if l.await(ctx, all(func(p *part) bool { return p.done })) != nil {
		// A rank that has not come to the trial may hang somewhere, and has no result.
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

// WallOffset is the offset of a rank's wall clock from the leader's in ns, as of the last phase
// that it has begun.
func (l *Leader) WallOffset(rank int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[rank]; c != nil {
		return c.part.offset.wall
	}
	return 0
}

// Conclude sends all ranks the outcome of the trial, "" for success, and goes on to the next.
func (l *Leader) Conclude(outcome string) {
	// The next trial begins here for the leader, and for the ranks with the message.
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

// stage is what a rank does, with mu. An error that ended its trial came before the messages of its
// end.
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
