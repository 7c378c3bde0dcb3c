package traces

import (
	"cmp"
	"math"
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// NewSynthetic returns the Source of synthetic sessions of an assistant in closed loop. The number of
// sessions is unlimited. It uses these fields of the configuration: Profile.Sessions, which must be valid,
// Speedup, Live, MaxRequests and Seed. window is the longest prompt in tokens, 0 = users.Longest. A session
// whose next prompt and answer would not fit continues from its system prompt and a summary, as agents do.
//
// Nothing is read for it, so it has no report.
func NewSynthetic(cfg Config, window, blockTokens int) workloads.Source {
	return struct{ workloads.Source }{newLive(cfg, newSynthetic(cfg, window, blockTokens))}
}

// synthetic generates sessions: the n-th one is a function of (seed, n). Prompts grow: each contains all
// earlier prompts and answers. As in engines, a block depends on its content and on all tokens before it, so
// that sessions only share common prompts, and documents at the same place after them.
type synthetic struct {
	profile     users.Sessions
	seed        uint64
	window      int // tokens
	blockTokens int
	number      int64 // of the next session
}

func newSynthetic(cfg Config, window, blockTokens int) *synthetic {
	return &synthetic{profile: cfg.Profile.Sessions, seed: cfg.Seed,
		window: cmp.Or(window, users.Longest), blockTokens: blockTokens}
}

// next implements sessionSource.
func (s *synthetic) next() (*session, error) {
	w := script{synthetic: s, stream: users.NewStream(s.seed, int(s.number))}
	w.session()
	// Agents run concurrently: order the requests by time.
	slices.SortStableFunc(w.rows, func(a, b formats.Row) int { return int(a.Stamp - b.Stamp) })
	var b builder
	b.begin(s.number, 0)
	for _, row := range w.rows {
		b.add(row)
	}
	s.number++
	return b.end(), nil
}

// ahead implements sessionSource.
func (s *synthetic) ahead() {}

// script generates one session.
type script struct {
	*synthetic
	stream users.Stream
	draws  int64
	said   uint64 // number of texts that only this session has
	agents int
	rows   []formats.Row
}

func (w *script) draw() int64 { w.draws++; return w.draws }

// between draws from a range in which each doubling is equally likely.
func (w *script) between(r [2]int) int {
	return w.stream.LogBetween(users.DrawScript, w.draw(), r[0], r[1])
}

func (w *script) seconds(r [2]float64) time.Duration {
	low := max(r[0], 1e-3)
	ratio := max(1, r[1]/low)
	u := w.stream.Unit(users.DrawScript, w.draw())
	return workloads.Seconds(low * math.Pow(ratio, u))
}

func (w *script) chance(p float64) bool {
	return w.stream.Unit(users.DrawScript, w.draw()) < p
}

// Texts that sessions share are identified by a kind and a number.
const (
	systemText = iota + 1
	agentText
	documentText
	ownText
)

// text is the identity of a piece of text.
func text(kind int, n uint64) uint64 { return uint64(users.NewStream(n, kind)) }

// own returns a new text.
func (w *script) own() uint64 {
	w.said++
	return text(ownText, uint64(users.NewStream(uint64(w.stream), int(w.said))))
}

// common draws one of the common prompts: its text and its tokens, at most half of the window.
func (w *script) common(kind int, tokens []int) (uint64, int) {
	if len(tokens) == 0 {
		return 0, 0
	}
	i := w.stream.Between(users.DrawScript, w.draw(), 0, len(tokens)-1)
	return text(kind, uint64(i)), min(tokens[i], w.window/2)
}

// session generates all questions of a session.
func (w *script) session() {
	p := &w.profile
	begin := prompt{size: w.blockTokens}
	begin.add(w.common(systemText, p.SystemPrompts))
	at, talk, before := time.Duration(0), begin.fork(), begin
	for i := range max(1, w.between(p.Questions)) {
		if i > 0 {
			at += w.seconds(p.Think)
			if w.chance(p.Fork) {
				talk = before.fork()
			}
		}
		before = talk.fork()
		for range p.Retrieved {
			w.retrieve(&talk, begin)
		}
		w.say(&talk, begin, w.between(p.QuestionTokens))
		at = w.turn(&talk, begin, at, formats.Agent{}, w.between(p.ToolCalls), p.Agents)
	}
}

// turn generates a question, and another request with the result of each tool call. It returns the time of
// the last answer, if storage and server take no time.
func (w *script) turn(talk *prompt, begin prompt, at time.Duration, who formats.Agent, calls int,
	agents float64) time.Duration {
	p := &w.profile
	for ; ; calls-- {
		w.ask(talk, begin, at, who)
		if calls <= 0 {
			return at
		}
		if w.chance(agents) {
			at = w.together(talk, begin, at, who)
		}
		at += w.seconds(p.ToolSeconds)
		w.say(talk, begin, w.between(p.ToolTokens))
	}
}

// together starts agents concurrently. It returns the time of their last answer.
func (w *script) together(talk *prompt, begin prompt, at time.Duration,
	by formats.Agent) time.Duration {
	last := at
	for range max(1, w.between(w.profile.Together)) {
		last = max(last, w.agent(talk, begin, at, by))
	}
	return last
}

// agent starts an agent, whose answer becomes part of the prompt.
func (w *script) agent(talk *prompt, begin prompt, at time.Duration,
	by formats.Agent) time.Duration {
	p := &w.profile
	w.agents++
	own := prompt{size: w.blockTokens}
	own.add(w.common(agentText, p.AgentPrompts))
	first := own.fork()
	w.say(&own, first, w.between(p.QuestionTokens))
	at = w.turn(&own, first, at+time.Millisecond, formats.Agent{ID: w.agents, Starter: by.ID},
		w.between(p.AgentToolCalls), 0)
	w.say(talk, begin, w.between(p.AnswerTokens))
	return at
}

// ask generates one request, whose answer becomes part of the prompt.
func (w *script) ask(talk *prompt, begin prompt, at time.Duration, who formats.Agent) {
	answer := max(1, w.between(w.profile.AnswerTokens))
	w.fit(talk, begin, answer)
	who.Play = 1
	w.rows = append(w.rows, formats.Row{Stamp: at, Context: talk.tokens, Generate: answer,
		Blocks: talk.ids, BlockTokens: w.blockTokens, Scope: "s", Agent: who})
	talk.add(w.own(), answer)
}

// say adds a new text to the prompt.
func (w *script) say(talk *prompt, begin prompt, tokens int) {
	tokens = min(tokens, w.window/4)
	w.fit(talk, begin, tokens)
	talk.add(w.own(), max(1, tokens))
}

// retrieve adds a document to the prompt.
func (w *script) retrieve(talk *prompt, begin prompt) {
	p := &w.profile
	n := w.stream.LogBetween(users.DrawScript, w.draw(), 1, max(1, p.Documents))
	tokens := users.NewStream(w.seed, n).LogBetween(users.DrawDocumentTokens, int64(n),
		p.DocumentTokens[0], p.DocumentTokens[1])
	tokens = min(tokens, w.window/4)
	w.fit(talk, begin, tokens)
	talk.add(text(documentText, uint64(n)), max(1, tokens))
}

// fit shortens a prompt that would exceed the window to its beginning and a summary.
func (w *script) fit(talk *prompt, begin prompt, more int) {
	if talk.tokens+more <= w.window {
		return
	}
	*talk = begin.fork()
	room := w.window - begin.tokens - more
	if tokens := min(w.between(w.profile.SummaryTokens), room); tokens > 0 {
		talk.add(w.own(), tokens)
	}
}

// prompt is a text that grows, in blocks.
type prompt struct {
	size   int // tokens of a block
	tokens int
	ids    []int64 // of the whole blocks
	chain  uint64  // hash of all texts so far, with the ends of texts and blocks
	part   int     // tokens after the last whole block
}

// add appends so many tokens of a text.
func (p *prompt) add(text uint64, tokens int) {
	for at := 0; at < tokens; {
		n := min(tokens-at, p.size-p.part)
		at, p.part, p.tokens = at+n, p.part+n, p.tokens+n
		p.chain = uint64(users.NewStream(p.chain^text, at))
		if p.part == p.size {
			p.ids, p.part = append(p.ids, int64(p.chain>>1)), 0
		}
	}
}

// fork returns a copy that grows independently; requests refer to the blocks of the original.
func (p *prompt) fork() prompt {
	f := *p
	f.ids = p.ids[:len(p.ids):len(p.ids)]
	return f
}
