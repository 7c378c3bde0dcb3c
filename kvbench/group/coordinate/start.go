package coordinate

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"time"
)

// pings is how many each rank gets before a phase. The fastest counts: the others have waited
// somewhere, on one way more than on the other.
const pings = 8

// Margin is how long after the last rank is ready a phase begins at the earliest: the message that
// says when has to arrive before that.
const (
	margin     = 50 * time.Millisecond
	roundTrips = 4 // of the slowest rank, if they take longer
)

// Offset is how far a rank's clocks are ahead of the leader's, in ns.
type Offset struct {
	Clock int64 // monotonic
	Wall  int64
	// Error bounds how far Clock may be off: half of the round trip, were all of it on one way.
	Error     int64
	RoundTrip int64
}

// pong is what came of one ping: when it was sent and when the answer came, by the leader's clocks,
// and what the rank's said in between.
type pong struct{ sent, came, at, wallSent, wallCame, wall int64 }

// offsetOf is that of the fastest answer. Ranks whose monotonic clock is the leader's have none.
func offsetOf(answers []pong, oneClock bool) Offset {
	if len(answers) == 0 {
		return Offset{}
	}
	p := slices.MinFunc(answers, func(a, b pong) int {
		return cmp.Compare(a.came-a.sent, b.came-b.sent)
	})
	o := Offset{RoundTrip: p.came - p.sent}
	if !oneClock {
		o.Clock, o.Error = p.at-(p.sent+p.came)/2, (p.came-p.sent+1)/2
		o.Wall = p.wall - (p.wallSent+p.wallCame)/2
	}
	return o
}

// beginAfter is how long after now a phase begins, by the slowest round trip of all ranks.
func beginAfter(offsets []Offset) time.Duration {
	after := margin
	for _, o := range offsets {
		after = max(after, roundTrips*time.Duration(o.RoundTrip))
	}
	return after
}

// opening is when a rank's window opened, by the leader's clock, and how far that may be off. What
// is off is the same for all ranks of one clock, which are numbered.
type opening struct {
	at, err int64
	clock   int
}

// skewOf is the time between the first and the last opening, and how far that may be off: the true
// one lies between the two extremes that the errors of all clocks admit.
func skewOf(list []opening) (skew, uncertainty int64) {
	var most, least int64
	for _, o := range list {
		for _, p := range list {
			apart, err := o.at-p.at, o.err+p.err
			if o.clock == p.clock {
				err = 0
			}
			skew, most, least = max(skew, apart), max(most, apart+err), max(least, apart-err)
		}
	}
	return skew, max(most-skew, skew-least)
}

// shareClocks gives ranks of one clock the best that is known of it: that of the fastest answer.
func shareClocks(ranks []*client, offsets []Offset) {
	best := slices.Clone(offsets)
	for i, c := range ranks {
		for j, o := range ranks {
			// Of a rank that has not answered nothing is known.
			if known := offsets[j].RoundTrip > 0; known && c.hello.OneClock(&o.hello) &&
				(best[i].RoundTrip == 0 || offsets[j].Error < best[i].Error) {
				best[i].Clock, best[i].Error = offsets[j].Clock, offsets[j].Error
			}
		}
	}
	copy(offsets, best)
}

// TooFarApart reports whether a skew is worth a warning: below one percent of the window the sum of
// rates is right to one percent, and what may be an error of measuring is no news.
func TooFarApart(skew, uncertainty, window int64) bool {
	return skew > max(window/100, 2*uncertainty)
}

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
