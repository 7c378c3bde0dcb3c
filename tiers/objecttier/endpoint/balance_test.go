package endpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newSet makes n endpoints and a clock that the test sets.
func newSet(t *testing.T, b Balance, n, rank int) (*Set, *time.Duration) {
	t.Helper()
	now := new(time.Duration)
	var urls []string
	for i := range n {
		urls = append(urls, fmt.Sprint("http://e", i))
	}
	s, err := NewSet(urls, b, rank, func() time.Duration { return *now })
	require.NoError(t, err)
	return s, now
}

// Each kind of request has its own turns, which begin at the rank's endpoint.
func TestRoundRobin(t *testing.T) {
	s, _ := newSet(t, RoundRobin, 4, 6)
	const put, get = 0, 2
	for _, want := range []int{2, 3, 0, 1, 2, 3} {
		for _, kind := range []uint8{put, get} {
			e := s.First(kind, "k")
			assert.Equal(t, want, e.Index)
			e.End(Answered)
		}
	}
}

func TestLeastInFlight(t *testing.T) {
	s, _ := newSet(t, LeastInFlight, 3, 0)
	a, b, c := s.First(0, ""), s.First(0, ""), s.First(0, "")
	assert.Equal(t, []int{0, 1, 2}, []int{a.Index, b.Index, c.Index})
	b.End(Answered)
	assert.Equal(t, 1, s.First(0, "").Index, "it has the fewest")
	a.End(Answered)
	assert.Equal(t, 0, s.First(0, "").Index)
	assert.Equal(t, 1, s.All()[0].Peak())
}

func TestPinsNeverMove(t *testing.T) {
	s, _ := newSet(t, PinRank, 4, 7)
	k, _ := newSet(t, PinKey, 4, 7)
	seen := map[int]bool{}
	for i := range 100 {
		e := s.First(0, fmt.Sprint(i))
		assert.Equal(t, 3, e.Index)
		e.End(Failed)
		again := s.Next(e, false)
		assert.Same(t, e, again, "what was written lies nowhere else")
		again.End(Failed)
		e = k.First(0, fmt.Sprint(i))
		assert.Same(t, e, k.First(0, fmt.Sprint(i)))
		assert.Same(t, e, k.Next(e, false))
		seen[e.Index] = true
	}
	assert.Len(t, seen, 4)
}

// After a failure the next attempt goes to the next endpoint. Three failures in a row begin a pause. The
// pause doubles with each later failure up to 30 s. Attempts from before the pause do not prolong it.
func TestAnEndpointThatFailsBacksOff(t *testing.T) {
	s, now := newSet(t, RoundRobin, 3, 0)
	bad := s.All()[0]
	// first returns the next request at the bad endpoint, nil if three requests avoid it.
	first := func() (found *Endpoint) {
		for range 3 {
			if e := s.First(0, ""); e == bad && found == nil {
				found = e
			} else {
				e.End(Answered)
			}
		}
		return found
	}
	old := first()
	require.NotNil(t, old)
	for range failuresToPause {
		e := first()
		require.NotNil(t, e)
		e.End(Failed)
		next := s.Next(e, false)
		assert.Equal(t, 1, next.Index)
		next.End(Answered)
	}
	old.End(Failed)
	for _, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		*now += pause*time.Second - 1
		assert.Nil(t, first(), "it backs off for %d s", pause)
		*now++
		e := first()
		require.NotNil(t, e)
		e.End(Failed)
	}
	*now += 30 * time.Second
	e := first()
	require.NotNil(t, e)
	e.End(Cancelled)
	first().End(Answered)
	e = first()
	e.End(Failed)
	assert.NotNil(t, first(), "an answer ends the row of failures")
}

func TestWhereAllBackOffTheFirstToEndIsUsed(t *testing.T) {
	s, now := newSet(t, LeastInFlight, 2, 0)
	down := func(e *Endpoint) {
		for range failuresToPause {
			s.mu.Lock()
			e.begin()
			s.mu.Unlock()
			e.End(Failed)
		}
	}
	assert.Zero(t, s.Failing())
	down(s.All()[1])
	*now += time.Second / 2
	down(s.All()[0])
	e := s.First(0, "")
	assert.Equal(t, 1, e.Index)
	*now += time.Second / 4
	assert.Equal(t, 3*time.Second/4, s.Failing())
	e.End(Answered)
	assert.Zero(t, s.Failing())
}

func TestNewSetRefuses(t *testing.T) {
	_, err := NewSet(nil, RoundRobin, 0, nil)
	assert.Error(t, err)
	_, err = NewSet([]string{"http://a"}, "weighted", 0, nil)
	assert.ErrorContains(t, err, "weighted")
}
