package requests

import (
	"bytes"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbench/kvbench"
	"kvbench/tiers/tiertest"
	"kvbench/workloads"
	"kvbench/workloads/iotrace"
	"kvbench/workloads/users"
)

// # What the distributions give
//
// A user has a fixed context c, generation g and think time t. Its gaps are
// t × U(0.8, 1.2), so in a window of length w it makes, by the renewal theorem
// with mean µ = t and variance σ² = (0.4 t)²/12,
//
//	N(w) = w/t - 1/2 + σ²/(2µ²) = w/t - 1/2 + 0.4²/24
//
// requests. The context of a request is x = U{c/4 … c}; with probability 0.2 it
// begins with a system prompt of 5, 9 or 6 tokens, which are read (one
// operation) and not written. It writes one entry of x - prompt tokens. With
// x < 10000 it probes that entry and reads it again ceil(y/32) times, where
// y = U{g/4 … g}. x and y are independent, so that
//
//	reads of the own entry = P(x < 10000) × (1 + E[ceil(y/32)])
//
// and their tokens the same with E[(x - prompt) 1(x < 10000)] for P. The n-th
// request of a user reads its history, one entry for each turn before its own.
// The turn is a Markov chain from 1: with probability 0.2, or after turn 50, it
// falls to 1, else it grows by one; its distribution after n steps gives the mean
// history H(n), and the window's sum of it. Earlier turns are drawn as the
// present one, so a history read has E[x - prompt] tokens.
//
// For the 200 users of option 1 these are sums over them. How users are drawn from the templates is
// tested in package users.

// mix is what is expected of, or counted in, one load.
type mix struct {
	requests, prefillOnly, rereads, histories, prompts float64
	writtenTokens, readTokens                          float64
	conversations                                      float64
}

func (m mix) reads() float64 {
	return m.prompts + m.histories + (m.requests - m.prefillOnly) + m.rereads
}

func (m *mix) add(o mix) {
	m.requests += o.requests
	m.prefillOnly += o.prefillOnly
	m.rereads += o.rereads
	m.histories += o.histories
	m.prompts += o.prompts
	m.conversations += o.conversations
	m.writtenTokens += o.writtenTokens
	m.readTokens += o.readTokens
}

// chain sums up the turn's distribution: histories[n] and conversations[n] are the expected history
// reads and first turns among the first n requests.
type chain struct{ histories, conversations []float64 }

func newChain(p users.Profile, steps int) chain {
	c := chain{make([]float64, steps+1), make([]float64, steps+1)}
	turn := make([]float64, p.MaxTurns+1)
	turn[1] = 1
	for n := 1; n <= steps; n++ {
		mean := 0.0
		next := make([]float64, len(turn))
		for k := 1; k < len(turn); k++ {
			mean += float64(k-1) * turn[k]
			if k == p.MaxTurns {
				next[1] += turn[k]
				continue
			}
			next[1] += p.NewConversation * turn[k]
			next[k+1] += (1 - p.NewConversation) * turn[k]
		}
		c.histories[n] = c.histories[n-1] + mean
		c.conversations[n] = c.conversations[n-1] + turn[1]
		turn = next
	}
	return c
}

func interpolate(list []float64, at float64) float64 {
	low := int(at)
	return list[low] + (at-float64(low))*(list[low+1]-list[low])
}

// contextOf returns P(x < limit), E[x] and E[x 1(x < limit)] for x = U{c/4 … c}.
func contextOf(c, limit int) (below, mean, meanBelow float64) {
	low := max(1, c/4)
	n := float64(c - low + 1)
	top := min(c, limit-1)
	if top >= low {
		k := float64(top - low + 1)
		below, meanBelow = k/n, k/n*float64(low+top)/2
	}
	return below, float64(low+c) / 2, meanBelow
}

// batches returns E[ceil(y/batch)] for y = U{g/4 … g}.
func batches(g, batch int) float64 {
	low, sum := max(1, g/4), 0
	for y := low; y <= g; y++ {
		sum += (y + batch - 1) / batch
	}
	return float64(sum) / float64(g-low+1)
}

// expect is the mix of one user.
func expect(p users.Profile, ch chain, c int, meanBatches, think float64,
	window time.Duration) mix {
	n := window.Seconds()/think - 0.5 + 0.4*0.4/24
	below, mean, meanBelow := contextOf(c, p.PrefillOnlyTokens)
	prompt := 0.0
	for _, k := range p.SystemPromptTokens {
		prompt += float64(k) / float64(len(p.SystemPromptTokens))
	}
	share := p.SystemPromptShare
	own, ownBelow := mean-share*prompt, meanBelow-share*prompt*below
	h := interpolate(ch.histories, n)
	return mix{
		requests: n, prefillOnly: n * (1 - below), rereads: n * below * meanBatches, histories: h,
		prompts: n * share, writtenTokens: n * own,
		readTokens:    n*share*prompt + h*own + n*ownBelow*(1+meanBatches),
		conversations: interpolate(ch.conversations, n),
	}
}

// rowCounter counts the rows of an I/O trace.
type rowCounter struct {
	rest                  []byte
	header                bool
	reads, writes         float64
	readBytes, writeBytes float64
}

func (c *rowCounter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	text := c.rest
	for {
		line, after, ok := bytes.Cut(text, []byte{'\n'})
		if !ok {
			break
		}
		text = after
		if !c.header {
			c.header = true
			continue
		}
		f := bytes.SplitN(line, []byte{','}, 4)
		n, err := strconv.ParseFloat(string(f[2]), 64)
		if err != nil {
			return 0, err
		}
		if f[1][0] == 'R' {
			c.reads++
			c.readBytes += n
		} else {
			c.writes++
			c.writeBytes += n
		}
	}
	c.rest = append(c.rest[:0], text...)
	return len(p), nil
}

// countMix simulates a configuration and counts requests and rows.
func countMix(t *testing.T, cfg runConfig) (mix, *rowCounter) {
	t.Helper()
	var m mix
	cfg.OnDispatch = func(r *workloads.Request, plan []workloads.Op) {
		m.requests++
		if r.Kind == workloads.PrefillOnly {
			m.prefillOnly++
		}
		if r.Turn == 1 {
			m.conversations++
		}
		m.histories += float64(len(r.History))
		for _, op := range plan {
			switch op.Purpose {
			case workloads.ForReread:
				m.rereads += float64(op.Times)
			case workloads.ForPrefix:
				m.prompts++
			}
		}
	}
	rows := &rowCounter{}
	w := iotrace.NewWriter(rows)
	_, err := simulateLoad(t.Context(), cfg, kvbench.SimConfig{Trace: w})
	require.NoError(t, err)
	require.NoError(t, w.Close(true))
	return m, rows
}

func within(t *testing.T, name string, want, got, tolerance float64) {
	t.Helper()
	t.Logf("%-28s analytic %14.4f, counted %14.4f, off by %+.2f %%", name, want, got,
		100*(got/want-1))
	assert.LessOrEqual(t, math.Abs(got/want-1), tolerance, name)
}

func compareMix(t *testing.T, want, got mix, rows *rowCounter, bytesPerToken float64) {
	t.Helper()
	const two = 0.02
	within(t, "requests", want.requests, got.requests, two)
	within(t, "reads per write", want.reads()/want.requests, rows.reads/rows.writes, two)
	within(t, "bytes per read", want.readTokens*bytesPerToken/want.reads(),
		rows.readBytes/rows.reads, two)
	within(t, "bytes per write", want.writtenTokens*bytesPerToken/want.requests,
		rows.writeBytes/rows.writes, two)
	within(t, "read bytes per write byte", want.readTokens/want.writtenTokens,
		rows.readBytes/rows.writeBytes, two)
	within(t, "share of prefill-only", want.prefillOnly/want.requests, got.prefillOnly/got.requests,
		two)
	within(t, "re-reads per request", want.rereads/want.requests, got.rereads/got.requests, two)
	within(t, "history reads per request", want.histories/want.requests, got.histories/got.requests,
		two)
	within(t, "turns per conversation", want.requests/want.conversations,
		got.requests/got.conversations, two)
	assert.Equal(t, got.requests+float64(len(users.Default().SystemPromptTokens)), rows.writes,
		"each request and each system prompt once")
}

// The 200 users of option 1, each as it was drawn.
func TestMixOfOptionOneIsWhatItsUsersAsk(t *testing.T) {
	tiertest.OneThread(t)
	const window = 60 * time.Second
	p := users.Default()
	ch := newChain(p, 4000)
	var want mix
	for _, u := range users.Population(p, 42, 200, false) {
		want.add(expect(p, ch, u.Context, batches(u.Generate, p.DecodeBatch), u.Think, window))
	}
	cfg := optionOne(t, window)
	got, rows := countMix(t, cfg)
	compareMix(t, want, got, rows, float64(cfg.Planner.Sizer.BytesPerToken))
}
