package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kvbench/kvbench/result"
)

// Step says where a rank is in a trial. The rank sends a Step with each call of a trial.
type Step struct {
	Trial int // the number of the trial in the run, from 1
	// Number is the number of the step: 1 when the rank enters the trial, then 2 and 3 when it is ready for
	// the first phase and has compared clocks, 4 and 5 for the next phase.
	Number int
	Terms  Terms  // set in step 1
	Clock  Offset // set in steps 3, 5 …
	Doc    []byte // the result; only in the call of Result

	// The following fields are set in the call of Done.
	Text      string          // the rank's error, or ""
	Published bool            // the rank has sent a result
	Late      []time.Duration // for each phase the time from its start to the opening of the window, or notOpened
}

const notOpened time.Duration = -1

// Offset compares a rank's clock with the coordinator's, in ns.
type Offset struct {
	Ahead     int64
	RoundTrip time.Duration // the error of Ahead is at most half of the round trip
}

// step is the progress of all ranks in their trials.
type step struct {
	trial   int               // number of the current or next trial, from 1
	since   time.Time         // the end of the trial before
	name    string            // set when all ranks have entered the trial
	agreed  time.Time         // when all ranks had entered the trial; zero before
	begun   int               // the number of the step before the last phase
	at      time.Time         // when the last phase begins
	clocks  map[string]Offset // the offsets in the last phase, by Hello.clock
	unready string            // why a rank will not reach the next step, or ""
	late    bool              // the context of Collect has ended
}

// part is what a rank has sent in the current trial.
type part struct {
	Step
	arrived bool // its result has arrived
	saved   bool // and LeaderConfig.Result has returned
	done    bool
	offsets []Offset // the offset of the rank's clock in each phase
}

// clock identifies the clock of a rank. All processes of a kernel read one clock.
func (h *Hello) clock() string { return cmp.Or(h.Boot, h.place()) }

// meet waits until all ranks have reached the step of s. It returns an error if the run was stopped, or if a
// rank has ended its trial before this step. It locks mu.
func (c *client) meet(s Step, stage string) error {
	l := c.leader
	missing := func(o *client) bool { return o.part.Number < s.Number }
	l.mu.Lock()
	if s.Trial == l.step.trial {
		c.part.Step, c.stage = s, stage
		if !slices.ContainsFunc(l.here(), missing) {
			l.notify() // not for each rank, because a thousand may wait
		}
	}
	l.mu.Unlock()
	why := ""
	err := l.await(c.ctx, func() bool {
		here := l.here()
		i := slices.IndexFunc(here, func(o *client) bool { return o.part.done && missing(o) })
		if i >= 0 && l.step.unready == "" { // the error of the first failed rank is the cause of later ones
			l.step.unready = fmt.Sprintf("%s was not ready: %s", here[i].hello.place(), here[i].part.Text)
		}
		switch {
		case l.stopped != "":
			why = l.stopped
		case !slices.Contains(here, c):
			why = c.hello.place() + " has gone"
		case s.Trial != l.step.trial:
			why = "the trial has ended"
		case i >= 0:
			why = l.step.unready
		}
		return why != "" || !slices.ContainsFunc(here, missing)
	})
	if err == nil && why != "" {
		err = errors.New(why)
	}
	return err
}

// Enter returns this rank's terms of the trial when all ranks have entered it.
func (c *client) Enter(s Step, terms *Terms) error {
	l := c.leader
	err := c.meet(s, "before "+s.Terms.Name)
	defer l.mu.Unlock()
	if err != nil {
		return err
	}
	here := l.here()
	first := here[0]
	if l.step.agreed.IsZero() {
		l.step.agreed, l.step.name = time.Now(), first.part.Terms.Name
	}
	// The capacity on a filesystem is the smallest that any rank proposes. All ranks use the nonce
	// of the lowest rank; any rank's nonce would do.
	*terms = s.Terms
	terms.Nonce, terms.Directories = first.part.Terms.Nonce, slices.Clone(terms.Directories)
	for _, o := range here {
		if name := o.part.Terms.Name; name != l.step.name {
			return fmt.Errorf("%s runs %s, but %s runs %s: all ranks must run the same benchmarks",
				first.hello.place(), l.step.name, o.hello.place(), name)
		}
		// A rank that failed proposes capacity 0. The other ranks get its error at the barrier.
		if o.part.Terms.Capacity > 0 {
			c.lower(terms, o)
		}
	}
	if c.stage = "while preparing " + l.step.name; s.Terms.Simulated {
		c.stage = "while simulating " + l.step.name
	}
	return nil
}

// Ready returns when all ranks are ready for the next phase.
func (c *client) Ready(s Step, _ *struct{}) error {
	err := c.meet(s, "at the start of "+s.Terms.Name)
	c.leader.mu.Unlock()
	return err
}

// Clock returns the coordinator's clock in ns since 1970.
func (c *client) Clock(_ int, now *int64) error {
	*now = time.Now().UnixNano()
	return nil
}

// After the comparison of all clocks, the coordinator waits for at least margin, and for at least
// roundTrips round trips of the slowest rank, until the phase begins. In this time the answer with the
// start time arrives at all ranks.
const (
	margin     = 50 * time.Millisecond
	roundTrips = 4
)

// Begin returns the time at which the next phase begins, by the rank's clock, when all ranks have compared
// their clocks.
func (c *client) Begin(s Step, at *int64) error {
	l := c.leader
	err := c.meet(s, c.stage)
	defer l.mu.Unlock()
	if err != nil {
		return err
	}
	if l.step.begun != s.Number {
		l.begin(s.Number)
	}
	offset := l.step.clocks[c.hello.clock()]
	c.part.offsets = append(c.part.offsets, offset)
	*at = l.step.at.UnixNano() + offset.Ahead
	c.stage = "in the window of " + l.step.name
	return nil
}

// begin sets the start time of the phase after a step. If several ranks have the same clock, the comparison
// with the shortest round trip counts for all of them. It is called with mu.
func (l *Leader) begin(number int) {
	after, clocks := margin, map[string]Offset{}
	for _, o := range l.here() {
		have, known := clocks[o.hello.clock()]
		if found := o.part.Clock; !known || found.RoundTrip < have.RoundTrip {
			clocks[o.hello.clock()] = found
		}
		after = max(after, roundTrips*o.part.Clock.RoundTrip)
	}
	clocks[l.Hello.Boot] = Offset{} // the coordinator's own
	l.step.begun, l.step.clocks, l.step.at = number, clocks, time.Now().Add(after)
}

// Result passes the result of a rank to LeaderConfig.Result at once, so that it is saved.
func (c *client) Result(s Step, _ *struct{}) error {
	l, ahead := c.leader, time.Duration(0)
	l.mu.Lock()
	if n := len(c.part.offsets); n > 0 {
		ahead = time.Duration(c.part.offsets[n-1].Ahead)
	}
	current := s.Trial == l.step.trial
	c.part.arrived = current
	l.mu.Unlock()
	if current {
		l.Result(c.hello.Rank, s.Doc, ahead)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c.part.saved = s.Trial == l.step.trial
	l.notify()
	return nil
}

// Done is the end of the trial for a rank. Its result may still be in flight.
func (c *client) Done(s Step, _ *struct{}) error {
	l := c.leader
	err := l.await(c.ctx, func() bool { return !s.Published || c.part.saved || s.Trial != l.step.trial })
	defer l.mu.Unlock()
	if err == nil && s.Trial == l.step.trial {
		s.Text = printable(s.Text)
		c.part.Step, c.part.done = s, true
		if s.Text == "" { // after an error the stage in which it occurred counts
			c.stage = "after " + l.step.name
		}
		// Wake Collect, and the ranks that wait at a later step.
		here := l.here()
		if l.step.late || !slices.ContainsFunc(here, func(o *client) bool { return !o.part.done }) ||
			slices.ContainsFunc(here, func(o *client) bool { return o.part.Number > s.Number }) {
			l.notify()
		}
	}
	return err
}

// Outcome returns the outcome of a trial when the trial has ended.
func (c *client) Outcome(trial int, text *string) error {
	l := c.leader
	err := l.await(c.ctx, func() bool { return l.step.trial > trial })
	defer l.mu.Unlock()
	*text = l.outcome
	return err
}

// Trial is a trial that has ended, before its outcome is sent.
type Trial struct {
	Text []string            // each rank's error, "" if it has none or is lost
	Lost []result.LostClient // all lost ranks of the run so far
	// Silent has the times of 4 s and longer in which nothing came from a rank, and which have ended since the
	// Collect before.
	Silent []result.Pause
	// Skew is the time between the first and the last opening of a window, in ns. Uncertainty is the
	// maximum error of Skew. In a trial with several phases Skew is the largest skew of a phase. Both are
	// nil unless at least two ranks remain and all of them have opened a window.
	Skew, Uncertainty *int64
}

// Collect waits until every remaining rank has ended the trial, and returns the errors of the ranks. After
// the end of ctx it waits only for the results of the ranks that have entered the trial. A rank that sends
// heartbeats will send its result, even over a slow network.
func (l *Leader) Collect(ctx context.Context) Trial {
	all := func(done func(p *part) bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(l.here(), func(c *client) bool { return !done(&c.part) })
		}
	}
	if l.await(ctx, all(func(p *part) bool { return p.done })) != nil {
		l.step.late = true
		l.mu.Unlock()
		// A rank that has not entered the trial has no result to wait for.
		_ = l.await(context.WithoutCancel(ctx), all(func(p *part) bool {
			return p.done || p.saved || p.Number == 0
		}))
	}
	defer l.mu.Unlock()
	t := Trial{Silent: l.silent}
	l.silent = nil
	for _, c := range l.clients {
		t.Text = append(t.Text, c.part.Text)
		if c.lost != nil {
			t.Lost = append(t.Lost, *c.lost)
		}
	}
	if here := l.here(); len(here) > 1 {
		t.compare(here)
	}
	return t
}

// compare sets the skew of the phase with the largest skew.
func (t *Trial) compare(ranks []*client) {
	for phase := range ranks[0].part.Late {
		var opened []time.Duration
		errs := map[string]time.Duration{} // of each clock
		for _, c := range ranks {
			if p := &c.part; phase < min(len(p.Late), len(p.offsets)) && p.Late[phase] != notOpened {
				opened = append(opened, p.Late[phase])
				errs[c.hello.clock()] = (p.offsets[phase].RoundTrip + 1) / 2
			}
		}
		if len(opened) < max(2, len(ranks)) {
			continue
		}
		apart, uncertainty := slices.Max(opened)-slices.Min(opened), time.Duration(0)
		if most := slices.Sorted(maps.Values(errs)); len(most) > 1 { // ranks with one clock have no error
			uncertainty = most[len(most)-1] + most[len(most)-2]
		}
		if t.Skew == nil || int64(apart) > *t.Skew {
			t.Skew, t.Uncertainty = new(int64(apart)), new(int64(uncertainty))
		}
	}
}

// Conclude sends all ranks the outcome of the trial, "" for success, and starts the next trial.
func (l *Leader) Conclude(outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step, l.outcome = step{trial: l.step.trial + 1, since: time.Now()}, outcome
	for _, c := range l.clients {
		c.part, c.stage = part{}, "between two trials"
	}
	l.notify()
}
