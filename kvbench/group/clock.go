package group

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// Clock reads the clocks that ranks compare. Tests have an implementation in virtual time.
type Clock interface {
	// Now returns a monotonic time in ns.
	Now() int64
	// Wall returns the wall clock in ns since 1970.
	Wall() int64
	// Until waits until the monotonic time at. If ctx ends first, it returns the cause of ctx.
	Until(ctx context.Context, at int64) error
}

// System is the Clock of this machine.
type System struct{}

var _ Clock = System{}

// Now implements Clock. On Linux it reads CLOCK_MONOTONIC, which all processes of a time namespace
// share.
func (System) Now() int64 { return monotonic() }

// Wall implements Clock.
func (System) Wall() int64 { return time.Now().UnixNano() }

// spin is how long before the given time Until stops sleeping and spins. On an idle machine a timer
// fires up to a millisecond late.
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

// pings is the number of pings per rank before a phase. The ping with the shortest round trip
// counts. A slower ping waited somewhere, perhaps in one direction only.
const pings = 8

// pong has the clock readings of a ping in ns: the leader's clocks when it sent the ping and when
// the answer came, and the rank's clocks in between.
type pong struct{ sent, came, at, wallSent, wallCame, wall int64 }

func (p *pong) roundTrip() int64 { return p.came - p.sent }

// ping reads a rank's clocks several times, and returns the reading with the shortest round trip,
// nil without an answer. It waits at most Silence for an answer.
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
			case <-c.link.gone: // the rank has left or is lost
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

// pingAll pings all ranks concurrently, because a thousand ranks one after the other take more than
// a second.
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
	// uncertainty is the maximum error of clock: half of the round trip.
	uncertainty int64
}

// offsets returns the clock offset of each rank. For ranks with the same clock it uses the shortest
// round trip of all these ranks. The offset is zero for a rank with the leader's clock and for a
// rank without an answer.
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

// A phase begins at least margin, and at least roundTrips round trips of the slowest rank, after
// the last rank is ready. The message with the start time must arrive before.
const (
	margin     = 50 * time.Millisecond
	roundTrips = 4 // of the slowest rank
)

// beginAfter returns how long after now a phase begins.
func beginAfter(answers []*pong) time.Duration {
	after := margin
	for _, p := range answers {
		if p != nil {
			after = max(after, roundTrips*time.Duration(p.roundTrip()))
		}
	}
	return after
}

// opening is when a rank's window opened, by the leader's clock in ns, and the maximum error in ns.
type opening struct {
	hello           *Hello
	at, uncertainty int64
}

// skew is the time between the first and the last opening of a window, and its maximum error, in
// ns.
type skew struct{ apart, uncertainty int64 }

// skewOf returns the skew of the openings. The uncertainty is the largest error that the
// uncertainties of the clock offsets allow. Between ranks with the same clock there is no error.
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

// skew returns the skew of the last phase, nil unless at least two ranks remain and all have opened
// a window. It is called with mu.
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

// TooFarApart reports whether a skew needs a warning: if it is above 1 % of the window, so that the
// sum of rates may be off by more than 1 %, and above twice its uncertainty. All are in ns.
func TooFarApart(skew, uncertainty, window int64) bool {
	return skew > max(window/100, 2*uncertainty)
}
