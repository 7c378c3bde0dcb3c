package group

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Clock is a clock whose readings are sent to others. Tests have one in virtual time, where
// CLOCK_MONOTONIC goes on in real time.
type Clock interface {
	// Now is a monotonic time in ns.
	Now() int64
	// Wall is the time of day in ns since 1970.
	Wall() int64
	// Until returns when the monotonic time has come, or ctx has ended, with its cause.
	Until(ctx context.Context, at int64) error
}

// System is the machine's clock.
type System struct{}

var _ Clock = System{}

// Now implements Clock: on Linux by CLOCK_MONOTONIC, which all processes of a time namespace share.
func (System) Now() int64 { return monotonic() }

// Wall implements Clock.
func (System) Wall() int64 { return time.Now().UnixNano() }

// spin is how long before the moment a rank stops to sleep: a timer comes up to a millisecond late
// on an idle machine, whose cores sleep, too.
const spin = time.Millisecond

// Until implements Clock.
func (c System) Until(ctx context.Context, at int64) error {
	if d := time.Duration(at-c.Now()) - spin; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	for c.Now() < at && ctx.Err() == nil {
		runtime.Gosched()
	}
	return context.Cause(ctx)
}

// pings is how many each rank gets before a phase. The fastest counts: the others have waited
// somewhere, on one way more than on the other.
const pings = 8

// pong is one ping and its answer: the leader's clocks before and after it, and the rank's between.
type pong struct{ sent, came, at, wallSent, wallCame, wall int64 }

func (p *pong) roundTrip() int64 { return p.came - p.sent }

// ping requests a rank's clocks several times, and returns the fastest answer, nil for none. It does
// not wait long: lost ranks are detected elsewhere.
func (l *Leader) ping(c *client) (fastest *pong) {
	for seq := range pings {
		p := &pong{sent: l.Clock.Now(), wallSent: l.Clock.Wall()}
		c.link.send(&message{Kind: kindPing, Seq: seq + 1})
		for late := time.After(Silence); p.came == 0; {
			select {
			case m := <-c.pongs:
				if m.Seq == seq+1 {
					p.came, p.wallCame = l.Clock.Now(), l.Clock.Wall()
					p.at, p.wall = m.At, m.Wall
				}
			case <-c.link.gone: // it has left, or is lost
				return fastest
			case <-late:
				return fastest
			}
		}
		if fastest == nil || p.roundTrip() < fastest.roundTrip() {
			fastest = p
		}
	}
	return fastest
}

// pingAll requests the clocks of ranks concurrently: one after the other a thousand ranks would wait
// for a second and more.
func (l *Leader) pingAll(ranks []*client) []*pong {
	fastest := make([]*pong, len(ranks))
	var all sync.WaitGroup
	for i, c := range ranks {
		all.Go(func() { fastest[i] = l.ping(c) })
	}
	all.Wait()
	return fastest
}

// offset is how far a rank's clocks are ahead of the leader's, in ns.
type offset struct {
	clock, wall int64
	// uncertainty bounds how far clock may be off: half of the round trip, were all of it on one way.
	uncertainty int64
}

// offsets are those of ranks by their answers. Ranks of one clock have the offset by the fastest answer
// of any of them; ranks with the leader's clock, and those of which no answer came, have none.
func offsets(leader *Hello, ranks []*client, answers []*pong) []offset {
	list := make([]offset, len(ranks))
	for i, c := range ranks {
		best := answers[i]
		for k, o := range ranks {
			if p := answers[k]; p != nil && c.hello.oneClock(&o.hello) &&
				(best == nil || p.roundTrip() < best.roundTrip()) {
				best = p
			}
		}
		if best != nil && !leader.oneClock(&c.hello) {
			list[i] = offset{best.at - (best.sent+best.came)/2,
				best.wall - (best.wallSent+best.wallCame)/2, (best.roundTrip() + 1) / 2}
		}
	}
	return list
}

// How long after the last rank is ready a phase begins at the earliest: the message that says when has
// to arrive before that.
const (
	margin     = 50 * time.Millisecond
	roundTrips = 4 // of the slowest rank, if they take longer
)

// beginAfter is how long after now a phase begins.
func beginAfter(answers []*pong) time.Duration {
	after := margin
	for _, p := range answers {
		if p != nil {
			after = max(after, roundTrips*time.Duration(p.roundTrip()))
		}
	}
	return after
}

// opening is when a rank's window opened, by the leader's clock, and how far that may be off, in ns.
type opening struct {
	hello           *Hello
	at, uncertainty int64
}

// skew is the time between the first and the last opening of a window, and how far that may be off,
// in ns.
type skew struct{ apart, uncertainty int64 }

// skewOf bounds the skew: the true one lies between the two extremes that the uncertainties of all
// clocks admit. What is uncertain is the same for all ranks of one clock.
func skewOf(list []opening) (s skew) {
	var most, least int64
	for i, o := range list {
		for _, p := range list[:i] {
			apart, uncertainty := max(o.at-p.at, p.at-o.at), o.uncertainty+p.uncertainty
			if o.hello.oneClock(p.hello) {
				uncertainty = 0
			}
			s.apart = max(s.apart, apart)
			most, least = max(most, apart+uncertainty), max(least, apart-uncertainty)
		}
	}
	s.uncertainty = max(most-s.apart, s.apart-least)
	return s
}

// skew returns the skew of the last phase, with mu: nil unless all remaining ranks, several, have
// opened a window.
func (l *Leader) skew() *skew {
	var opened []opening
	for _, c := range l.clients {
		if c == nil || c.lost != nil {
			continue
		}
		if c.part.opened == 0 {
			return nil
		}
		o := c.part.offset
		opened = append(opened, opening{&c.hello, c.part.opened - o.clock, o.uncertainty})
	}
	if len(opened) < 2 {
		return nil
	}
	return new(skewOf(opened))
}

// TooFarApart reports whether a skew is worth a warning: below one percent of the window the sum of
// rates is right to one percent, and what may be an error of measuring is no news.
func TooFarApart(skew, uncertainty, window int64) bool {
	return skew > max(window/100, 2*uncertainty)
}
