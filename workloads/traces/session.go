package traces

import (
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// session is the requests of one session and of all agents that it starts, ordered by time. It is plain
// data and does not change after it is built.
type session struct {
	number int64 // counted from 0, over all cycles
	cycle  int   // of the input that it is from
	steps  []step
}

// step is one request of a session.
type step struct {
	// Row has no blocks: see session.blocks. Its Stamp is the time since the session's first one.
	formats.Row
	// after are the earlier steps that must complete before this one. The first step, and steps that no
	// step of the session has started, wait for none.
	after []int32
	// wait is the pause between the last of these completions and the request: a user thinks, a tool
	// runs.
	wait time.Duration

	// The first blocks are shared with an earlier step, which saves most of the memory of a session with
	// growing prompts.
	from, shared int32
	tail         []int64
}

// blocks appends the ids of a step's blocks to dst.
func (s *session) blocks(dst []int64, step int) []int64 {
	at := &s.steps[step]
	n := int(at.shared) + len(at.tail)
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	for n > 0 {
		if shared := int(at.shared); n > shared {
			copy(dst[from+shared:from+n], at.tail)
			n = shared
		}
		at = &s.steps[at.from]
	}
	return dst
}

// length returns the recorded time from a session's first request to its last completion.
func (s *session) length() (d time.Duration) {
	for i := range s.steps {
		d = max(d, s.steps[i].ended())
	}
	return d
}

// count returns the number of a step's blocks.
func (s *step) count() int { return int(s.shared) + len(s.tail) }

// ended returns when a step completed.
func (s *step) ended() time.Duration { return s.Stamp + s.Agent.Took }

// gap returns the mean time between two requests of a session.
func (s *session) gap() time.Duration {
	if n := len(s.steps); n > 1 {
		return s.steps[n-1].Stamp / time.Duration(n-1)
	}
	return 0
}

// builder makes a session from its rows.
//
// Dependencies are not recorded. A request waits for the previous request of the same agent. An agent's
// first request waits for the previous request of the agent that has started it. That agent's next request
// waits for all agents started in the meantime that are not Detached and had completed before it in the
// recording.
type builder struct {
	session *session
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

// begin begins a session.
func (b *builder) begin(number int64, cycle int) {
	b.session = &session{number: number, cycle: cycle}
	b.agents = make(map[int]*agent)
	b.joins = b.joins[:0]
}

// add adds the next row; its blocks are copied.
func (b *builder) add(row formats.Row) {
	steps := &b.session.steps
	n := len(*steps)
	if n == 0 {
		b.first = row.Stamp
	}
	step := step{Row: row}
	step.Stamp = max(0, row.Stamp-b.first)
	if n > 0 { // a row out of order gets the time of the row before it
		step.Stamp = max(step.Stamp, (*steps)[n-1].Stamp)
	}
	current := b.agent(row.Agent.ID)
	share := current
	switch starter := b.agents[row.Agent.Starter]; {
	case current.rows > 0:
		step.after = append(step.after, int32(current.last))
	case row.Agent.ID != 0 && starter != nil && starter.rows > 0:
		step.after = append(step.after, int32(starter.last))
		share = starter
		if !row.Agent.Detached {
			starter.started = append(starter.started, row.Agent.ID)
		}
	}
	// Whether a started agent has later steps is known only at the end.
	for _, id := range current.started {
		b.joins = append(b.joins, join{n, id, b.agents[id].last})
	}
	current.started = current.started[:0]
	b.share(&step, row.Blocks, share)
	current.last, current.rows = n, current.rows+1
	current.ids = append(current.ids[:0], row.Blocks...)
	*steps = append(*steps, step)
}

// agent returns the agent with that ID.
func (b *builder) agent(id int) *agent {
	a := b.agents[id]
	if a == nil {
		a = &agent{}
		b.agents[id] = a
	}
	return a
}

// share stores only the blocks of a step that differ from the agent's latest step.
func (b *builder) share(step *step, ids []int64, with *agent) {
	shared := 0
	for shared < min(len(ids), len(with.ids)) && ids[shared] == with.ids[shared] {
		shared++
	}
	step.from, step.shared = int32(with.last), int32(shared)
	step.tail = slices.Clone(ids[shared:])
	step.Row.Blocks = nil
}

// end returns the session, nil for one without rows.
func (b *builder) end() *session {
	s := b.session
	if s == nil || len(s.steps) == 0 {
		return nil
	}
	for _, j := range b.joins {
		if b.agents[j.agent].last == j.last {
			step := &s.steps[j.step]
			step.after = append(step.after, int32(j.last))
		}
	}
	b.session, b.agents = nil, nil
	for i := range s.steps {
		step := &s.steps[i]
		completed := time.Duration(0)
		for _, k := range step.after {
			completed = max(completed, s.steps[k].ended())
		}
		step.wait = max(0, step.Stamp-completed)
	}
	return s
}

// empty reports that no row was added since begin.
func (b *builder) empty() bool { return b.session == nil || len(b.session.steps) == 0 }

// sessionSource is where sessions come from: a sessionReader, or synthetic.
type sessionSource interface {
	// next returns the next session, nil after the last one.
	next() (*session, error)
	// ahead reads a part of the next session. It is called with each request: reading a whole session at
	// once would delay the waiting requests.
	ahead()
}

// played counts the sessions that were begun, and their replayed requests.
type played struct {
	live, most   int // live sessions, and the largest number of them
	begun, ended int64
	rows         int64 // of the first cycle
}

func (p *played) begin() {
	p.live++
	p.begun++
	p.most = max(p.most, p.live)
}

func (p *played) end() {
	p.live--
	p.ended++
}

func (p *played) row(of *session) {
	if of.cycle == 0 {
		p.rows++
	}
}

// row returns a step as a row, with its blocks in the given memory.
func (s *session) row(i int, memory []int64) formats.Row {
	row := s.steps[i].Row
	row.Blocks = s.blocks(memory[:0], i)
	return row
}

// faster divides a time of a session by the speedup; 0 is as fast as possible.
func faster(d time.Duration, speedup float64) time.Duration {
	if speedup == 0 {
		return 0
	}
	return workloads.Nanoseconds(float64(d) / speedup)
}
