package coordinate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"kvbench/kvbench/group/wire"
)

// step is the progress of the ranks in their trials.
type step struct {
	trial  int       // from 1: the one in progress, or the next
	name   string    // once it was entered
	agreed time.Time // zero before it was
	// comparing: all are ready for a phase, and the leader compares their clocks.
	comparing bool
	// apart is the largest spread of the openings of earlier phases.
	apart *apart
	// unready names the rank that will not come to the barrier, "" while all may.
	unready string
}

// part is a rank's messages of the trial in progress.
type part struct {
	terms  *wire.Terms
	waits  bool   // at the barrier of phase
	phase  string // that it is prepared for, or in
	opened int64  // by its clock, 0 = not yet
	saved  bool   // its result has come, and was passed on
	done   bool
	text   string // its error at the end
	offset Offset
}

// receive handles a message of a rank.
func (l *Leader) receive(c *client, m *wire.Message) {
	switch m.Kind {
	case wire.Heartbeat:
		l.mu.Lock()
		c.live = m.Doc
		l.mu.Unlock()
		return
	case wire.Pong:
		select {
		case c.pongs <- m:
		default: // more answers than pings
		}
		return
	case wire.Result:
		// First of all: it must be safe as soon as possible.
		l.mu.Lock()
		current := m.Trial == l.step.trial && !c.part.done
		c.comes(m.Kind)
		l.mu.Unlock()
		if current && l.Result != nil {
			l.Result(c.hello.Rank, m.Trial, m.Doc)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if current && m.Trial == l.step.trial {
			c.part.saved = true
			l.notify()
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.notify()
	if m.Kind == wire.Leave {
		// Too early, and not because all have been stopped: it is lost to the others.
		if m.Text != "" && l.stopped == "" {
			l.lose(c, "was ended: "+wire.Printable(m.Text))
		}
		c.left = true
		l.progress()
		return
	}
	// A message of a trial that ended because a rank was lost may come after the next one began.
	if m.Trial != l.step.trial {
		return
	}
	c.comes(m.Kind)
	switch m.Kind {
	case wire.Enter:
		c.part = part{terms: m.Terms}
	case wire.Ready:
		c.part.waits, c.part.phase = true, m.Text
	case wire.Opened:
		c.part.opened = m.At
	case wire.Done:
		c.part.done, c.part.text = true, m.Text
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
		l.agree()
	}
	switch {
	case waiting == 0 || l.step.comparing:
	case failed != nil:
		// It can never come to the barrier; those at it must not wait for it. The first one is the
		// cause: the others are not ready because of it.
		if l.step.unready == "" {
			l.step.unready = fmt.Sprintf("%s was not ready: %s", failed.hello.Place(),
				failed.part.text)
		}
		for _, c := range here {
			if c.part.waits {
				c.part.waits = false
				c.link.send(&wire.Message{Kind: wire.Begin, Trial: l.step.trial,
					Text: l.step.unready})
			}
		}
	case waiting == len(here):
		l.step.comparing = true
		go l.begin(l.step.trial)
	}
}

// agree sends all ranks the terms of the trial, or an error.
func (l *Leader) agree() {
	l.step.agreed = time.Now()
	here, problem := l.here(), ""
	first := here[0]
	l.step.name = first.part.terms.Name
	for _, c := range here {
		if c.part.terms.Name != l.step.name {
			problem = fmt.Sprintf("%s came to %s, %s to %s: what they were asked to run differs",
				first.hello.Place(), l.step.name, c.hello.Place(), c.part.terms.Name)
		}
	}
	// The capacity of a filesystem is the least that any rank has found; any rank's nonce would do,
	// as long as it is one.
	for _, c := range here {
		terms := *c.part.terms
		terms.Nonce, terms.Rooms = first.part.terms.Nonce, slices.Clone(terms.Rooms)
		for _, o := range here {
			// A rank that has failed has no capacity: the others get its error at the barrier.
			if o.part.terms.Capacity > 0 {
				smallest(&terms, c, o)
			}
		}
		m := &wire.Message{Kind: wire.Agreed, Trial: l.step.trial, Terms: &terms}
		if problem != "" {
			m.Terms, m.Text = nil, problem
		}
		c.at = wire.Agreed
		c.link.send(m)
	}
}

// smallest limits a rank's terms to another rank's for the same filesystems.
func smallest(terms *wire.Terms, c, o *client) {
	// On objects there is no filesystem, but one bucket.
	shared := len(c.sharing)+len(o.sharing) == 0
	for i, s := range c.sharing {
		for j, other := range o.sharing {
			if s.Filesystem != other.Filesystem {
				continue
			}
			shared = true
			if i < len(terms.Rooms) && j < len(o.part.terms.Rooms) {
				room, found := &terms.Rooms[i], o.part.terms.Rooms[j]
				room.Bytes = min(room.Bytes, found.Bytes)
				room.Floor = min(room.Floor, found.Floor)
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
	// Concurrently: one after the other a thousand ranks would wait for a second and more.
	offsets := make([]Offset, len(all))
	var each sync.WaitGroup
	for i, c := range all {
		each.Go(func() { offsets[i] = l.compare(c) })
	}
	each.Wait()
	shareClocks(all, offsets)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.step.trial != trial {
		return // it is over
	}
	l.step.comparing = false
	// All begin at one moment, each by its own clock. The message takes no longer than the slowest
	// round trip, several of which lie ahead.
	at := l.Clock.Now() + int64(beginAfter(offsets))
	// Of several phases the largest skew is reported.
	l.step.apart = l.openings().most(l.step.apart)
	for i, c := range all {
		c.part.offset, c.part.waits, c.part.opened = offsets[i], false, 0
		c.at = wire.Begin
		c.link.send(&wire.Message{Kind: wire.Begin, Trial: trial, At: at + offsets[i].Clock})
	}
	l.notify()
}

// compare measures a rank's clocks. It does not wait long for an answer: lost ranks are detected
// elsewhere.
func (l *Leader) compare(c *client) Offset {
	var answers []pong
	for seq := range pings {
		p, ok := l.ping(c, seq+1)
		if !ok {
			break
		}
		answers = append(answers, p)
	}
	return offsetOf(answers, l.Hello.OneClock(&c.hello))
}

// ping requests the clocks once.
func (l *Leader) ping(c *client, seq int) (pong, bool) {
	p := pong{sent: l.Clock.Now(), wallSent: l.Clock.Wall()}
	c.link.send(&wire.Message{Kind: wire.Ping, Seq: seq})
	for late := time.After(Silence); ; {
		select {
		case m := <-c.pongs:
			if m.Seq == seq {
				p.came, p.wallCame = l.Clock.Now(), l.Clock.Wall()
				p.at, p.wall = m.At, m.Wall
				return p, true
			}
		case <-c.link.gone: // it has left, or is lost
			return p, false
		case <-late:
			return p, false
		}
	}
}

// Trial is a trial that has ended, before its outcome is sent.
type Trial struct {
	Text []string // each rank's error, "" where it went well or is lost
	Lost []Lost   // all that are, of this trial or before
	// Skew is the time between the first and the last opening of a window, and how far that may be
	// off, in ns; nil unless all that are there have opened one, and there are several. Of a trial
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
	if a := l.openings().most(l.step.apart); a != nil {
		t.Skew, t.Uncertainty = &a.skew, &a.uncertainty
	}
	return t
}

// apart is the spread of openings, and its uncertainty, in ns.
type apart struct{ skew, uncertainty int64 }

// most is the larger one of two, of which either may be unknown.
func (a *apart) most(b *apart) *apart {
	if a == nil || b != nil && b.skew > a.skew {
		return b
	}
	return a
}

// openings returns the spread of the last phase, with mu: nil unless all remaining ranks have
// opened a window.
func (l *Leader) openings() *apart {
	var opened []opening
	for i, c := range l.clients {
		switch {
		case c == nil || c.lost != nil:
		case c.part.opened == 0:
			return nil
		default:
			o := c.part.offset
			clock := slices.IndexFunc(l.clients[:i], func(other *client) bool {
				return other != nil && other.hello.OneClock(&c.hello)
			})
			if clock < 0 {
				clock = i
			}
			opened = append(opened, opening{c.part.opened - o.Clock, o.Error, clock})
		}
	}
	if len(opened) < 2 {
		return nil
	}
	skew, uncertainty := skewOf(opened)
	return &apart{skew, uncertainty}
}

// WallOffset is the offset of a rank's wall clock from the leader's in ns, as of the last phase
// that it has begun.
func (l *Leader) WallOffset(rank int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.clients[rank]; c != nil {
		return c.part.offset.Wall
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
		c.part, c.at = part{}, wire.Outcome
		c.link.send(&wire.Message{Kind: wire.Outcome, Trial: trial, Text: outcome})
	}
	l.notify()
}

// comes records the last message of a rank, and the last before its trial ended, with mu.
func (c *client) comes(kind wire.Kind) {
	if c.at != wire.Result && c.at != wire.Done {
		c.ended = c.at
	}
	c.at = kind
}

// stage is a rank's stage, with mu.
func (l *Leader) stage(c *client) string {
	name := l.step.name
	if name == "" && c.part.terms != nil {
		name = c.part.terms.Name
	}
	// The stage is that of its last message. An error that ended its trial came before the message
	// about it.
	at := c.at
	if c.part.text != "" {
		at = c.ended
	}
	switch at {
	case wire.Enter:
		return "before " + name
	case wire.Agreed:
		return "while preparing " + name
	case wire.Ready:
		return "at the start of " + name
	case wire.Begin, wire.Opened:
		return "in the window of " + name
	case wire.Result:
		return "while cleaning up after " + name
	case wire.Done:
		return "after " + name
	case wire.Outcome:
		return "between two trials"
	}
	return "before the first trial"
}
