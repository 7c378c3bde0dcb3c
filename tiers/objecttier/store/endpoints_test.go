package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/tiers/clock"
)

// setClock is a clock that the test sets.
type setClock struct {
	clock.Clock
	now time.Duration
}

func (c *setClock) Now() time.Duration { return c.now }

// newSet makes n endpoints and a clock that the test sets.
func newSet(t *testing.T, b Balance, n, rank int) (*endpoints, *time.Duration) {
	t.Helper()
	clk := &setClock{}
	cfg := Config{Balance: b, Rank: rank, Clock: clk}
	for i := range n {
		cfg.URLs = append(cfg.URLs, fmt.Sprint("http://e", i))
	}
	return newEndpoints(&cfg), &clk.now
}

// Each kind of request has its own turns, which begin at the rank's endpoint.
func TestRoundRobin(t *testing.T) {
	s, _ := newSet(t, RoundRobin, 4, 6)
	for _, want := range []int{2, 3, 0, 1, 2, 3} {
		for _, kind := range []Op{Put, Get} {
			e := s.begin(kind, "k", nil, false)
			assert.Equal(t, want, e.Index)
			e.end(answered)
		}
	}
}

func TestLeastInFlight(t *testing.T) {
	s, _ := newSet(t, LeastInFlight, 3, 0)
	a, b, c := s.begin(0, "", nil, false), s.begin(0, "", nil, false), s.begin(0, "", nil, false)
	assert.Equal(t, []int{0, 1, 2}, []int{a.Index, b.Index, c.Index})
	b.end(answered)
	assert.Equal(t, 1, s.begin(0, "", nil, false).Index, "it has the fewest")
	a.end(answered)
	assert.Equal(t, 0, s.begin(0, "", nil, false).Index)
	assert.Equal(t, 1, s.all[0].Peak())
}

func TestPinsNeverMove(t *testing.T) {
	s, _ := newSet(t, PinRank, 4, 7)
	k, _ := newSet(t, PinKey, 4, 7)
	seen := map[int]bool{}
	for i := range 100 {
		e := s.begin(0, fmt.Sprint(i), nil, false)
		assert.Equal(t, 3, e.Index)
		e.end(failed)
		again := s.begin(0, "", e, false)
		assert.Same(t, e, again, "what was written lies nowhere else")
		again.end(failed)
		e = k.begin(0, fmt.Sprint(i), nil, false)
		assert.Same(t, e, k.begin(0, fmt.Sprint(i), nil, false))
		assert.Same(t, e, k.begin(0, fmt.Sprint(i), e, false))
		seen[e.Index] = true
	}
	assert.Len(t, seen, 4)
}

// After a failure the next attempt goes to the next endpoint. Three failures in a row begin a pause. The
// pause doubles with each later failure up to 30 s. Attempts from before the pause do not prolong it.
func TestAnEndpointThatFailsBacksOff(t *testing.T) {
	s, now := newSet(t, RoundRobin, 3, 0)
	bad := s.all[0]
	// first returns the next request at the bad endpoint, nil if three requests avoid it.
	first := func() (found *Endpoint) {
		for range 3 {
			if e := s.begin(0, "", nil, false); e == bad && found == nil {
				found = e
			} else {
				e.end(answered)
			}
		}
		return found
	}
	old := first()
	require.NotNil(t, old)
	for range failuresToBackOff {
		e := first()
		require.NotNil(t, e)
		e.end(failed)
		next := s.begin(0, "", e, false)
		assert.Equal(t, 1, next.Index)
		next.end(answered)
	}
	old.end(failed)
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		*now += pause*time.Second - 1
		assert.Nil(t, first(), "it backs off for %d s", pause)
		*now++
		e := first()
		require.NotNil(t, e)
		e.end(failed)
	}
	*now += 30 * time.Second
	e := first()
	require.NotNil(t, e)
	e.end(cancelled)
	first().end(answered)
	e = first()
	e.end(failed)
	assert.NotNil(t, first(), "an answer ends the row of failures")
}

func TestWhereAllBackOffTheFirstToEndIsUsed(t *testing.T) {
	s, now := newSet(t, LeastInFlight, 2, 0)
	down := func(e *Endpoint) {
		for range failuresToBackOff {
			s.begin(0, "", e, true).end(failed)
		}
	}
	assert.Zero(t, s.down())
	down(s.all[1])
	*now += time.Second / 2
	down(s.all[0])
	e := s.begin(0, "", nil, false)
	assert.Equal(t, 1, e.Index)
	*now += time.Second / 4
	assert.Equal(t, 3*time.Second/4, s.down())
	e.end(answered)
	assert.Zero(t, s.down())
}
