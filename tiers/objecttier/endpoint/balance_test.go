package endpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// set has so many endpoints and a clock that the test moves.
func set(t *testing.T, b Balance, n, rank int) (*Set, *time.Duration) {
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

func TestRoundRobinBeginsAtTheRankAndMovesPerRequest(t *testing.T) {
	s, _ := set(t, RoundRobin, 4, 6)
	var got []int
	for range 6 {
		e := s.First(0, "k")
		got = append(got, e.Index)
		e.End(Answered)
	}
	assert.Equal(t, []int{2, 3, 0, 1, 2, 3}, got)
	assert.EqualValues(t, 2, s.All()[2].Stats().Requests)
}

// A load that reads what it has just written asks every endpoint for both.
func TestEachKindOfRequestGoesAround(t *testing.T) {
	s, _ := set(t, RoundRobin, 2, 1)
	const put, get = 0, 2
	for _, want := range []int{1, 0, 1} { // the rank's first
		for _, kind := range []uint8{put, get} {
			e := s.First(kind, "k")
			assert.Equal(t, want, e.Index)
			e.End(Answered)
		}
	}
}

func TestLeastInFlightIsThatAndFairAmongEquals(t *testing.T) {
	s, _ := set(t, LeastInFlight, 3, 0)
	a, b, c := s.First(0, ""), s.First(0, ""), s.First(0, "")
	assert.Equal(t, []int{0, 1, 2}, []int{a.Index, b.Index, c.Index})
	b.End(Answered)
	assert.Equal(t, 1, s.First(0, "").Index, "it has the fewest")
	a.End(Answered)
	assert.Equal(t, 0, s.First(0, "").Index)
	assert.Equal(t, 1, s.All()[0].Stats().MaxInFlight)
}

func TestPinsNeverMove(t *testing.T) {
	s, _ := set(t, PinRank, 4, 7)
	k, _ := set(t, PinKey, 4, 7)
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

func TestAFailureGoesToTheNextAndThreeRest(t *testing.T) {
	s, now := set(t, RoundRobin, 3, 0)
	bad := s.All()[0]
	fail := func() {
		t.Helper()
		e := s.First(0, "")
		for e != bad {
			e.End(Answered)
			e = s.First(0, "")
		}
		e.End(Failed)
		next := s.Next(e, false)
		assert.Equal(t, 1, next.Index)
		next.End(Answered)
	}
	fail()
	fail()
	assert.Zero(t, bad.Stats().Rests)
	fail()
	assert.EqualValues(t, 1, bad.Stats().Rests)
	for range 10 {
		e := s.First(0, "")
		assert.NotSame(t, bad, e, "it rests")
		e.End(Answered)
	}
	// Its rest doubles with each request that tries it in vain, up to 30 s, and no second one tries
	// beside that.
	for _, rest := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		*now += rest*time.Second - 1
		e := s.First(0, "")
		assert.NotSame(t, bad, e)
		e.End(Answered)
		*now++
		try := s.First(0, "")
		require.Same(t, bad, try)
		e = s.First(0, "")
		assert.NotSame(t, bad, e)
		e.End(Answered)
		try.End(Failed)
	}
	*now += 30 * time.Second
	try := s.First(0, "")
	require.Same(t, bad, try)
	try.End(Cancelled)
	try = s.First(0, "")
	require.Same(t, bad, try, "a cancelled one has not tried")
	try.End(Answered)
	st := bad.Stats()
	assert.EqualValues(t, 8, st.Rests)
	assert.Equal(t, (1+2+4+8+16+30+30+30)*time.Second, st.Rested)
	seen := map[int]int{}
	for range 9 {
		e := s.First(0, "")
		seen[e.Index]++
		e.End(Answered)
	}
	assert.Equal(t, map[int]int{0: 3, 1: 3, 2: 3}, seen, "it has its share again")
}

func TestWhereAllRestTheShortestRestIsUsed(t *testing.T) {
	s, now := set(t, LeastInFlight, 2, 0)
	a, b := s.All()[0], s.All()[1]
	down := func(e *Endpoint) {
		for range failuresToRest {
			s.mu.Lock()
			e.begin()
			s.mu.Unlock()
			e.End(Failed)
		}
	}
	assert.Zero(t, s.Failing())
	down(b)
	*now += time.Second / 2
	down(a)
	e := s.First(0, "")
	assert.Same(t, b, e, "its rest ends first")
	*now += time.Second / 4
	assert.Equal(t, 3*time.Second/4, s.Failing())
	e.End(Answered)
	assert.Zero(t, s.Failing())
}

// Attempts that began before a rest and fail in it do not make it longer: with 64 in flight a host
// that dies would rest for half a minute at once.
func TestOneDeathIsOneRest(t *testing.T) {
	s, _ := set(t, RoundRobin, 2, 0)
	var under []*Endpoint
	for range 64 {
		if e := s.First(0, ""); e.Index == 0 {
			under = append(under, e)
		}
	}
	for _, e := range under {
		e.End(Failed)
	}
	st := s.All()[0].Stats()
	assert.EqualValues(t, 1, st.Rests)
	assert.EqualValues(t, 32, st.Failed)
}

func TestSetsWantABalance(t *testing.T) {
	_, err := NewSet(nil, RoundRobin, 0, nil)
	assert.Error(t, err)
	_, err = NewSet([]string{"http://a"}, "weighted", 0, nil)
	assert.ErrorContains(t, err, "weighted")
}
