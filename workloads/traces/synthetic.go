package traces

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// NewSynthetic returns the Source of synthetic sessions of an assistant in closed loop. The number of
// sessions is unlimited. It uses these fields of the configuration: Profile.Sessions, which must be
// valid, Speedup, Live, MaxRequests and Seed. window is the longest prompt in tokens, 0 =
// users.Longest. If the next prompt and answer of a session would not fit into the window, the session
// continues from its system prompt and a summary, as agents do.
//
// The Source reads no files, so it has no report.
func NewSynthetic(cfg Config, window, blockTokens int) workloads.Source {
	return generated{newLive(&input{cfg: cfg}, newSynthetic(cfg, window, blockTokens).next),
		newSynthetic(cfg, window, blockTokens), cfg.Live}
}

// generated is the Source of synthetic sessions.
type generated struct {
	workloads.Source
	first *synthetic // generates the same sessions
	live  int
}

// Survey is input.Survey for the requests of the sessions that are live first.
func (g generated) Survey(_ int64, do func(row *formats.Row, conversation string)) (rows int64, err error) {
	for n := range g.live {
		session, _ := g.first.next() // never fails
		for i := range session.steps {
			do(&session.steps[i].Row, strconv.Itoa(n))
			rows++
		}
	}
	return rows, io.EOF
}

// synthetic generates sessions: the n-th one is a function of (seed, n). Prompts grow: each prompt
// contains all earlier prompts and answers. As in engines, a block depends on its content and on all
// tokens before it. So sessions share only common prompts, and documents that directly follow equal
// tokens.
type synthetic struct {
	profile     users.Sessions
	seed        uint64
	window      int // tokens
	blockTokens int
	number      int64 // number of the next session
}

func newSynthetic(cfg Config, window, blockTokens int) *synthetic {
	return &synthetic{profile: cfg.Profile.Sessions, seed: cfg.Seed,
		window: cmp.Or(window, users.Longest), blockTokens: blockTokens}
}

// next generates the next session.
func (s *synthetic) next() (*session, error) {
	w := script{synthetic: s, stream: users.NewStream(s.seed, int(s.number))}
	w.session()
	// Agents run concurrently: order the requests by time.
	slices.SortStableFunc(w.rows, func(a, b formats.Row) int { return int(a.Stamp - b.Stamp) })
	var b builder
	for _, row := range w.rows {
		b.add(row)
	}
	session := b.end()
	session.number = s.number
	s.number++
	return session, nil
}

// script generates one session.
type script struct {
	*synthetic
	stream users.Stream
	draws  int64
	texts  uint64 // number of texts that only this session has, so far
	agents int
	rows   []formats.Row
}

func (w *script) draw() int64 { w.draws++; return w.draws }

// between returns a draw from a range. Each doubling is equally likely.
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

// The kinds of texts. A kind and a number identify a text that sessions share.
const (
	systemText = iota + 1
	agentText
	documentText
	ownText
)

// text returns the identity of a text.
func text(kind int, n uint64) uint64 { return uint64(users.NewStream(n, kind)) }

// newText returns the identity of a new text of this session.
func (w *script) newText() uint64 {
	w.texts++
	return text(ownText, uint64(users.NewStream(uint64(w.stream), int(w.texts))))
}

// session generates all requests of a session.
func (w *script) session() {
	begin := w.prompt(systemText, w.profile.SystemPrompts)
	at, p, before := time.Duration(0), begin.fork(), begin.fork()
	for i := range max(1, w.between(w.profile.Questions)) {
		if i > 0 {
			at += w.seconds(w.profile.Think)
			if w.chance(w.profile.Fork) {
				p = before.fork()
			}
		}
		before = p.fork()
		for range w.profile.Retrieved {
			w.retrieve(p)
		}
		w.addText(p, w.between(w.profile.QuestionTokens))
		at = w.turn(p, at, formats.Agent{}, w.between(w.profile.ToolCalls), w.profile.Agents)
	}
}

// turn generates the request of a question, and another request with the result of each tool call. A
// tool call may start agents, which run concurrently. turn returns the time of the last request, if
// storage and server take no time.
func (w *script) turn(p *prompt, at time.Duration, by formats.Agent, calls int,
	agents float64) time.Duration {
	for ; ; calls-- {
		w.request(p, at, by)
		if calls <= 0 {
			return at
		}
		if w.chance(agents) {
			last := at
			for range max(1, w.between(w.profile.Together)) {
				last = max(last, w.agent(p, at, by))
			}
			at = last
		}
		at += w.seconds(w.profile.ToolSeconds)
		w.addText(p, w.between(w.profile.ToolTokens))
	}
}

// agent generates the requests of an agent, and adds its answer to the prompt p. It returns the time of
// the answer.
func (w *script) agent(p *prompt, at time.Duration, by formats.Agent) time.Duration {
	w.agents++
	own := w.prompt(agentText, w.profile.AgentPrompts).fork()
	w.addText(own, w.between(w.profile.QuestionTokens))
	at = w.turn(own, at+time.Millisecond, formats.Agent{ID: w.agents, Starter: by.ID},
		w.between(w.profile.AgentToolCalls), 0)
	w.addText(p, w.between(w.profile.AnswerTokens))
	return at
}

// request generates one request and adds its answer to the prompt.
func (w *script) request(p *prompt, at time.Duration, by formats.Agent) {
	answer := max(1, w.between(w.profile.AnswerTokens))
	w.fit(p, answer)
	by.Play = 1
	w.rows = append(w.rows, formats.Row{Stamp: at, Context: p.tokens, Generate: answer,
		Blocks: p.ids, BlockTokens: w.blockTokens, Scope: "s", Agent: by})
	p.add(w.newText(), answer)
}

// addText adds a new text to the prompt.
func (w *script) addText(p *prompt, tokens int) {
	tokens = min(tokens, w.window/4)
	w.fit(p, tokens)
	p.add(w.newText(), max(1, tokens))
}

// retrieve adds a document to the prompt.
func (w *script) retrieve(p *prompt) {
	n := w.stream.LogBetween(users.DrawScript, w.draw(), 1, max(1, w.profile.Documents))
	tokens := users.NewStream(w.seed, n).LogBetween(users.DrawDocumentTokens, int64(n),
		w.profile.DocumentTokens[0], w.profile.DocumentTokens[1])
	tokens = min(tokens, w.window/4)
	w.fit(p, tokens)
	p.add(text(documentText, uint64(n)), max(1, tokens))
}

// fit shortens a prompt to its common prompt and a summary, if so many more tokens would exceed the
// window.
func (w *script) fit(p *prompt, more int) {
	if p.tokens+more <= w.window {
		return
	}
	begin := p.begin
	*p = *begin.fork()
	capacity := w.window - begin.tokens - more
	if tokens := min(w.between(w.profile.SummaryTokens), capacity); tokens > 0 {
		p.add(w.newText(), tokens)
	}
}

// prompt is a growing text, divided into blocks.
type prompt struct {
	begin  *prompt // the common prompt at its start; nil for a common prompt
	size   int     // tokens of a block
	tokens int
	ids    []int64 // ids of the whole blocks
	chain  uint64  // hash of all texts so far, and of where texts and blocks end
	part   int     // tokens after the last whole block
}

// prompt returns one of the common prompts, drawn at random, cut to half of the window.
func (w *script) prompt(kind int, tokens []int) *prompt {
	p := &prompt{size: w.blockTokens}
	if len(tokens) > 0 {
		i := w.stream.Between(users.DrawScript, w.draw(), 0, len(tokens)-1)
		p.add(text(kind, uint64(i)), min(tokens[i], w.window/2))
	}
	return p
}

// add appends the first tokens of a text.
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

// fork returns a copy that grows independently. Requests keep using the blocks of the original.
func (p *prompt) fork() *prompt {
	f := *p
	f.ids = p.ids[:len(p.ids):len(p.ids)]
	if f.begin == nil {
		f.begin = p
	}
	return &f
}
