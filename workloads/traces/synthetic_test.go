package traces

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/workloads/users"
)

// agents returns a profile with all features of sessions.
func agents() users.Sessions {
	return users.Sessions{
		SystemPrompts: []int{1000, 3000}, Questions: [2]int{1, 6}, QuestionTokens: [2]int{20, 300},
		Think: [2]float64{10, 60}, AnswerTokens: [2]int{50, 500}, ToolCalls: [2]int{0, 9},
		ToolTokens: [2]int{100, 2000}, ToolSeconds: [2]float64{1, 5}, Agents: 0.2,
		Together: [2]int{1, 3}, AgentPrompts: []int{700}, AgentToolCalls: [2]int{1, 5}, Fork: 0.2,
		SummaryTokens: [2]int{100, 400}, Documents: 50, Retrieved: 2, DocumentTokens: [2]int{100, 400}}
}

func generate(p users.Sessions, seed uint64, window, block int) *synthetic {
	return newSynthetic(Config{Profile: users.Profile{Sessions: p}, Seed: seed}, window, block)
}

// Prompts grow by questions and answers and stay within the window. Sessions only share the blocks of
// common prompts. A block stands for its whole prefix, so the block before it is always the same.
func TestSessionsGrow(t *testing.T) {
	const window, block = 20000, 64
	p := agents()
	s := generate(p, 3, window, block)
	before := map[int64]int64{} // the block before, by block
	first := map[int64]bool{}   // blocks at the beginning of prompts
	last := map[[2]int64]int{}  // context by session and agent
	of := map[int64]int64{}     // the last session that had a block
	grown, shorter, inner, joined, shared := 0, 0, 0, 0, 0
	for n := range int64(60) {
		session, err := s.next()
		require.NoError(t, err)
		require.Equal(t, n, session.number)
		at := time.Duration(0)
		for i := range session.steps {
			step := &session.steps[i]
			require.GreaterOrEqual(t, step.Stamp, at)
			at = step.Stamp
			require.LessOrEqual(t, step.Context+step.Generate, window)
			require.LessOrEqual(t, step.Generate, 500)
			ids := session.steps[i].Blocks
			require.Len(t, ids, step.Context/block, "whole blocks alone")
			first[ids[0]] = true
			for k, id := range ids {
				if other, seen := of[id]; seen && other != n {
					shared++
				}
				of[id] = n
				if k > 0 {
					b, known := before[id]
					require.True(t, !known || b == ids[k-1], "the same block behind another")
					before[id] = ids[k-1]
				}
			}
			key := [2]int64{n, int64(step.Agent.ID)}
			if was, known := last[key]; known && step.Context > was {
				grown++
			} else if known {
				shorter++
			}
			last[key] = step.Context
			inner += min(1, step.Agent.ID)
			if i > 0 {
				require.NotEmpty(t, step.after, "nothing comes by itself")
			}
			if len(step.after) > 1 {
				joined++
			}
		}
	}
	assert.Len(t, first, 3, "one for each common prompt")
	assert.Greater(t, grown, 10*shorter, "forks and full windows are rare")
	assert.Positive(t, shorter)
	assert.Greater(t, inner, 40)
	assert.Positive(t, joined, "sessions wait for their agents")
	assert.Positive(t, shared, "common prompts are shared")
}

// Agents that are started together make their requests concurrently. Their parent's next request comes
// after the answers of all.
func TestAgentsRunConcurrently(t *testing.T) {
	s := generate(agents(), 3, 0, 64)
	concurrent, waited := 0, 0
	for range 100 {
		session, err := s.next()
		require.NoError(t, err)
		type span struct{ first, last time.Duration }
		of := map[int]span{}
		for i := range session.steps {
			step := &session.steps[i]
			if id := step.Agent.ID; id > 0 {
				if _, seen := of[id]; !seen {
					of[id] = span{first: step.Stamp}
				}
				of[id] = span{of[id].first, step.Stamp}
			} else if len(step.after) > 2 { // its own last request, and two agents
				waited++
			}
		}
		for id, a := range of {
			if b, is := of[id+1]; is && b.first <= a.last {
				concurrent++
			}
		}
	}
	assert.Positive(t, concurrent)
	assert.Positive(t, waited)
}

// The n-th session is a function of seed and n. Another seed has other texts after the same common
// prompts.
func TestSessionsAreDrawn(t *testing.T) {
	a, b, other := generate(agents(), 3, 0, 16), generate(agents(), 3, 0, 16), generate(agents(), 4, 0, 16)
	seen := map[int64]bool{}
	for range 20 {
		x, err := a.next()
		require.NoError(t, err)
		y, err := b.next()
		require.NoError(t, err)
		require.Equal(t, x, y)
		for i := range x.steps {
			for _, id := range x.steps[i].Blocks {
				seen[id] = true
			}
		}
	}
	prompts := 3000/16 + 1000/16 + 700/16
	common := map[int64]bool{}
	for range 20 {
		x, err := other.next()
		require.NoError(t, err)
		for i := range x.steps {
			for _, id := range x.steps[i].Blocks {
				if seen[id] {
					common[id] = true
				}
			}
		}
	}
	assert.LessOrEqual(t, len(common), prompts+2*50*400/16, "documents behind them at most")
	assert.GreaterOrEqual(t, len(common), prompts)
}

// If the window hardly holds a common prompt, prompts are cut to the window, and the session continues.
func TestSessionsInASmallWindow(t *testing.T) {
	p := agents()
	p.SystemPrompts = []int{17000}
	s := generate(p, 3, 4096, 16)
	for range 50 {
		session, err := s.next()
		require.NoError(t, err)
		for i := range session.steps {
			assert.LessOrEqual(t, session.steps[i].Context, 4096)
		}
	}
}
