package traces

import (
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// row returns a request of an agent at a second, with an answer after half a second.
func row(at float64, agent, starter int, ids ...int64) formats.Row {
	return formats.Row{Stamp: workloads.Seconds(at), Context: 10 * len(ids), Generate: 3,
		Blocks: ids, BlockTokens: 10, Scope: "s",
		Agent: formats.Agent{Play: 1, ID: agent, Starter: starter, Took: time.Second / 2}}
}

// built returns a session of rows.
func built(number int64, rows ...formats.Row) *session {
	var b builder
	for _, r := range rows {
		b.add(r)
	}
	s := b.end()
	s.number = number
	return s
}

// sourceOf is a source of these sessions.
func sourceOf(list ...*session) func() (*session, error) {
	return func() (*session, error) {
		if len(list) == 0 {
			return nil, io.EOF
		}
		s := list[0]
		list = list[1:]
		return s, nil
	}
}

func TestDependenciesOfSteps(t *testing.T) {
	detached := row(3, 2, 0, 1, 9)
	detached.Agent.Detached = true
	s := built(0,
		row(10, 0, 0, 1, 2), // 0
		row(11, 1, 0, 7),    // 1: an agent after the first request
		row(12, 1, 0, 7, 8), // 2: the agent continues
		detached,            // 3: out of order, and no step waits for it
		row(13, 3, 1, 6),    // 4: an agent of the agent
		row(14, 4, 0, 5),    // 5: a second agent of the session, which continues after 6
		row(15, 0, 0, 1, 2), // 6: waits for the first agent, not for agents that still run
		row(16, 4, 0, 5, 4), // 7
		row(18, 0, 0, 1),    // 8
	)
	after := make([][]int32, len(s.steps))
	var waits []time.Duration
	for i, step := range s.steps {
		after[i] = step.after
		waits = append(waits, step.wait)
	}
	assert.Equal(t, [][]int32{nil, {0}, {1}, {0}, {2}, {0}, {0, 2}, {5}, {6}}, after)
	// Half a second after the latest of these requests.
	assert.Equal(t, []time.Duration{0, time.Second / 2, time.Second / 2, 3 * time.Second / 2,
		time.Second / 2, 7 * time.Second / 2, 5 * time.Second / 2, 3 * time.Second / 2,
		5 * time.Second / 2}, waits)
	assert.Equal(t, 8*time.Second+time.Second/2, s.length())
	assert.Equal(t, 2*time.Second, s.steps[3].Stamp, "what is out of order comes with the one before")
}

// Every step has the blocks of its row, also if it shares their memory with other steps.
func TestBlocksOfSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var b builder
	var want [][]int64
	last := map[int][]int64{}
	for i := range 500 {
		agent := rng.IntN(4)
		ids := slices.Clone(last[agent])
		if rng.IntN(2) == 0 {
			ids = ids[:rng.IntN(len(ids)+1)]
		}
		for range 1 + rng.IntN(9) {
			ids = append(ids, rng.Int64N(1000))
		}
		last[agent] = ids
		want = append(want, ids)
		b.add(row(float64(i), agent, 0, ids...))
	}
	s := b.end()
	for i := range s.steps {
		assert.Equal(t, want[i], s.steps[i].Blocks)
	}
	var grows agent
	first := grows.keep([]int64{1, 2, 3, 4, 5})
	assert.Same(t, &first[0], &grows.keep([]int64{1, 2, 3, 4, 5, 6})[0], "growing prompts share their memory")
	assert.Nil(t, (&builder{}).end())
}

// chats returns sessions of ten requests, a second apart.
func chats(n int) (list []*session) {
	for k := range n {
		var rows []formats.Row
		for i := range 10 {
			rows = append(rows, row(float64(i), 0, 0, int64(100*k), int64(100*k+i+1)))
		}
		list = append(list, built(int64(k), rows...))
	}
	return list
}

// open returns the requests of sessions, so many of which are live at a time.
func open(list []*session, live int, seed uint64) *openLoop {
	return &openLoop{stage{source: sourceOf(list...), limit: live, stream: users.NewStream(seed, -1)}}
}

func TestOpenLoop(t *testing.T) {
	const live = 4
	m := open(chats(20), live, 1)
	done, at, most := map[int64]int{}, time.Duration(-1), 0
	between := 0
	var last int64
	for {
		before := m.ended
		r, err := m.next()
		if err != nil {
			require.Equal(t, io.EOF, err)
			break
		}
		assert.GreaterOrEqual(t, r.Stamp, at)
		at = r.Stamp
		number := r.Blocks[0] / 100
		assert.Equal(t, 100*number+int64(done[number])+1, r.Blocks[1], "in order")
		done[number]++
		assert.Equal(t, done[number] == 10, m.ended > before)
		most = max(most, int(m.begun-m.ended))
		if number != last {
			between++
		}
		last = number
	}
	assert.Len(t, done, 20)
	assert.Equal(t, live, most)
	assert.Greater(t, between, 100, "sessions take turns")
	assert.Equal(t, []int64{live, 20, 20}, []int64{int64(m.most), m.begun, m.ended})
	// With one at a time, sessions follow each other.
	m = open(chats(3), 1, 1)
	for i := range 30 {
		r, err := m.next()
		require.NoError(t, err)
		assert.EqualValues(t, i/10, r.Blocks[0]/100)
	}
}

// The same seed gives the same times, and another seed gives others. Later files do not change them.
func TestOpenLoopIsDeterministic(t *testing.T) {
	stamps := func(seed uint64, n int) (list []time.Duration) {
		m := open(chats(n), 3, seed)
		for range 40 {
			r, err := m.next()
			require.NoError(t, err)
			list = append(list, r.Stamp)
		}
		return list
	}
	assert.Equal(t, stamps(1, 20), stamps(1, 30))
	assert.NotEqual(t, stamps(1, 20), stamps(2, 20))
}

func TestLiveSessionsWaitForTheirAnswers(t *testing.T) {
	// An agent is started, and the session waits for it.
	s := built(0, row(0, 0, 0, 1), row(1, 1, 0, 2), row(4, 0, 0, 1, 3))
	l := newLive(&input{cfg: Config{Live: 3, Speedup: 2, Seed: 1}}, sourceOf(s))
	_, st, begun := l.Take(0)
	require.Equal(t, workloads.Wait, st)
	take := func(now, wake time.Duration) *workloads.Request {
		t.Helper()
		if wake > now {
			_, st, w := l.Take(now)
			require.Equal(t, workloads.Wait, st)
			require.Equal(t, wake, w)
		}
		r, st, _ := l.Take(wake)
		require.Equal(t, workloads.Ready, st)
		return r
	}
	first := take(begun, begun)
	_, st, wake := l.Take(begun)
	assert.Equal(t, workloads.Wait, st, "the answer is not there")
	assert.Equal(t, workloads.Never, wake)
	l.Done(first, begun+10*time.Second)
	// Half a second of thinking, at twice the speed.
	second := take(begun+10*time.Second, begun+10*time.Second+time.Second/4)
	assert.Equal(t, begun+10*time.Second+time.Second/4, second.Arrival)
	load := l.Account(begun + 20*time.Second)[workloads.Responsive]
	assert.EqualValues(t, 2, load.Offered)
	assert.Zero(t, load.Queued)
	l.Done(second, begun+20*time.Second)
	load = l.Account(begun + 25*time.Second)[workloads.Responsive]
	assert.EqualValues(t, 3, load.Offered)
	assert.EqualValues(t, 1, load.Queued)
	assert.EqualValues(t, 40, load.OfferedTokens)
	third := take(begun+20*time.Second, begun+20*time.Second+5*time.Second/4)
	assert.Equal(t, 1, third.IdealBlocks)
	_, st, _ = l.Take(begun + 30*time.Second)
	assert.Equal(t, workloads.Wait, st)
	l.Done(third, begun+30*time.Second)
	_, st, _ = l.Take(begun + 30*time.Second)
	assert.Equal(t, workloads.Exhausted, st)
	assert.Equal(t, []int64{1, 1, 1, 3}, []int64{int64(l.most), l.begun, l.ended, l.rows})
	assert.NoError(t, l.Err())
}

// As fast as possible, all requests come once, sessions keep their order, and no more sessions are live
// than configured.
func TestLiveSessionsTakeTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	list := chats(9)
	l := newLive(&input{cfg: Config{Live: 4, Seed: 1}}, sourceOf(list...))
	var flight []*workloads.Request
	turns := map[int]int{}
	for now := time.Duration(0); ; now++ {
		r, st, _ := l.Take(now)
		if st == workloads.Exhausted {
			break
		}
		if st == workloads.Ready {
			turns[r.Conversation]++
			assert.Equal(t, r.Turn, turns[r.Conversation])
			flight = append(flight, r)
			assert.LessOrEqual(t, len(flight), 4)
		}
		if st == workloads.Wait || rng.IntN(2) == 0 {
			i := rng.IntN(len(flight))
			l.Done(flight[i], now)
			flight = slices.Delete(flight, i, i+1)
		}
	}
	assert.Len(t, turns, 9)
	assert.Equal(t, []int64{4, 9, 9, 90}, []int64{int64(l.most), l.begun, l.ended, l.rows})
}

func TestMaxRequestsOfLiveSessions(t *testing.T) {
	list := chats(2)
	l := newLive(&input{cfg: Config{Live: 2, MaxRequests: 1}}, sourceOf(list...))
	_, st, _ := l.Take(0)
	assert.Equal(t, workloads.Ready, st)
	_, st, _ = l.Take(0)
	assert.Equal(t, workloads.Exhausted, st)
	assert.EqualValues(t, 1, l.Account(0)[workloads.Responsive].Offered)
}
