package sessions

import (
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// Session is the requests of one session and of all agents that it starts, ordered by time. It is plain
// data and does not change after it is built.
type Session struct {
	Number int64 // counted from 0, over all cycles
	Cycle  int   // of the input that it is from
	Steps  []Step
}

// Step is one request of a session.
type Step struct {
	// Row has no blocks: see Session.Blocks. Its Stamp is the time since the session's first one.
	formats.Row
	// After are the earlier steps that must complete before this one. The first step, and steps that no
	// step of the session has started, wait for none.
	After []int32
	// Wait is the pause between the last of these completions and the request: a user thinks, a tool
	// runs.
	Wait time.Duration

	// The first blocks are shared with an earlier step, which saves most of the memory of a session with
	// growing prompts.
	from, shared int32
	tail         []int64
}

// Blocks appends the ids of a step's blocks to dst.
func (s *Session) Blocks(dst []int64, step int) []int64 {
	at := &s.Steps[step]
	n := int(at.shared) + len(at.tail)
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	for n > 0 {
		if shared := int(at.shared); n > shared {
			copy(dst[from+shared:from+n], at.tail)
			n = shared
		}
		at = &s.Steps[at.from]
	}
	return dst
}

// Length returns the recorded time from a session's first request to its last completion.
func (s *Session) Length() (d time.Duration) {
	for i := range s.Steps {
		d = max(d, s.Steps[i].ended())
	}
	return d
}

// blocks returns the number of a step's blocks.
func (s *Step) blocks() int { return int(s.shared) + len(s.tail) }

// ended returns when a step completed.
func (s *Step) ended() time.Duration { return s.Stamp + s.Agent.Took }

// gap returns the mean time between two requests of a session.
func (s *Session) gap() time.Duration {
	if n := len(s.Steps); n > 1 {
		return s.Steps[n-1].Stamp / time.Duration(n-1)
	}
	return 0
}

// Builder makes a session from its rows.
//
// Dependencies are not recorded. A request waits for the previous request of the same agent. An agent's
// first request waits for the previous request of the agent that has started it. That agent's next request
// waits for all agents started in the meantime that are not Detached and had completed before it in the
// recording.
type Builder struct {
	session *Session
	first   time.Duration
	agents  map[int]*agent // agents of the session, by ID
	joins   []join
}

// join is a step that waits for an agent, unless the agent has later steps.
type join struct{ step, agent, last int }

// agent is the state of an agent while its session is built.
type agent struct {
	last    int     // its latest step
	ids     []int64 // the blocks of its latest step
	rows    int
	started []int // agents that it has started and not waited for yet
}

// Begin begins a session.
func (b *Builder) Begin(number int64, cycle int) {
	b.session = &Session{Number: number, Cycle: cycle}
	b.agents = make(map[int]*agent)
	b.joins = b.joins[:0]
}

// Add adds the next row; its blocks are copied.
func (b *Builder) Add(row formats.Row) {
	steps := &b.session.Steps
	n := len(*steps)
	if n == 0 {
		b.first = row.Stamp
	}
	step := Step{Row: row}
	step.Stamp = max(0, row.Stamp-b.first)
	if n > 0 { // a row out of order gets the time of the row before it
		step.Stamp = max(step.Stamp, (*steps)[n-1].Stamp)
	}
	who := b.agent(row.Agent.ID)
	share := who
	switch starter := b.agents[row.Agent.Starter]; {
	case who.rows > 0:
		step.After = append(step.After, int32(who.last))
	case row.Agent.ID != 0 && starter != nil && starter.rows > 0:
		step.After = append(step.After, int32(starter.last))
		share = starter
		if !row.Agent.Detached {
			starter.started = append(starter.started, row.Agent.ID)
		}
	}
	// Whether that was their last step is known only at the end.
	for _, id := range who.started {
		b.joins = append(b.joins, join{n, id, b.agents[id].last})
	}
	who.started = who.started[:0]
	b.share(&step, row.Blocks, share)
	who.last, who.rows = n, who.rows+1
	who.ids = append(who.ids[:0], row.Blocks...)
	*steps = append(*steps, step)
}

// agent returns the agent with that ID.
func (b *Builder) agent(id int) *agent {
	a := b.agents[id]
	if a == nil {
		a = &agent{}
		b.agents[id] = a
	}
	return a
}

// share stores only the blocks of a step that differ from the agent's latest step.
func (b *Builder) share(step *Step, ids []int64, with *agent) {
	shared := 0
	for shared < min(len(ids), len(with.ids)) && ids[shared] == with.ids[shared] {
		shared++
	}
	step.from, step.shared = int32(with.last), int32(shared)
	step.tail = slices.Clone(ids[shared:])
	step.Row.Blocks = nil
}

// End returns the session, nil for one without rows.
func (b *Builder) End() *Session {
	s := b.session
	if s == nil || len(s.Steps) == 0 {
		return nil
	}
	for _, j := range b.joins {
		if b.agents[j.agent].last == j.last {
			step := &s.Steps[j.step]
			step.After = append(step.After, int32(j.last))
		}
	}
	b.session, b.agents = nil, nil
	for i := range s.Steps {
		step := &s.Steps[i]
		answered := time.Duration(0)
		for _, k := range step.After {
			answered = max(answered, s.Steps[k].ended())
		}
		step.Wait = max(0, step.Stamp-answered)
	}
	return s
}

// Empty reports that no row was added since Begin.
func (b *Builder) Empty() bool { return b.session == nil || len(b.session.Steps) == 0 }

// Next returns the next session, nil after the last one.
type Next func() (*Session, error)

// row returns a step as a row, with its blocks in the given memory.
func (s *Session) row(i int, memory []int64) formats.Row {
	row := s.Steps[i].Row
	row.Blocks = s.Blocks(memory[:0], i)
	return row
}

// faster divides a time of a session by the speedup; 0 is as fast as possible.
func faster(d time.Duration, speedup float64) time.Duration {
	if speedup == 0 {
		return 0
	}
	return workloads.Nanoseconds(float64(d) / speedup)
}
