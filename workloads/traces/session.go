package traces

import (
	"errors"
	"io"
	"slices"
	"strconv"
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

// builder makes a session from its rows. The zero builder has none.
//
// Dependencies are not recorded. A request waits for the previous request of the same agent. An agent's
// first request waits for the previous request of the agent that has started it. That agent's next request
// waits for all agents started in the meantime that are not Detached and had completed before it in the
// recording.
type builder struct {
	steps  []step
	first  time.Duration
	agents map[int]*agent // agents of the session, by ID
	joins  []join
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

// add adds the next row; its blocks are copied.
func (b *builder) add(row formats.Row) {
	n := len(b.steps)
	step := step{Row: row}
	if n == 0 {
		b.first, b.agents = row.Stamp, make(map[int]*agent)
	}
	if step.Stamp -= b.first; n > 0 { // a row out of order gets the time of the row before it
		step.Stamp = max(step.Stamp, b.steps[n-1].Stamp)
	}
	current := b.agents[row.Agent.ID]
	if current == nil {
		current = &agent{}
		b.agents[row.Agent.ID] = current
	}
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
	b.steps = append(b.steps, step)
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

// end returns the session and begins another one; nil for a session without rows.
func (b *builder) end() *session {
	steps := b.steps
	for _, j := range b.joins {
		if b.agents[j.agent].last == j.last {
			steps[j.step].after = append(steps[j.step].after, int32(j.last))
		}
	}
	for i := range steps {
		completed := time.Duration(0)
		for _, k := range steps[i].after {
			completed = max(completed, steps[k].ended())
		}
		steps[i].wait = max(0, steps[i].Stamp-completed)
	}
	*b = builder{}
	if len(steps) == 0 {
		return nil
	}
	return &session{steps: steps}
}

// sessionReader reads whole sessions of agents from all files and cycles, in order.
type sessionReader struct {
	reader *reader
	begun  int64    // sessions, over all cycles
	each   int64    // sessions of a cycle, 0 until it is known
	ahead  traceRow // the first row of the next session
	err    error    // that ended the rows
}

// next returns the next session; io.EOF after the last one.
func (s *sessionReader) next() (*session, error) {
	if s.err == nil && s.ahead.part == 0 { // at the beginning
		s.read()
	}
	if s.err != nil {
		return nil, s.err
	}
	first := s.ahead
	var b builder
	for s.err == nil && s.ahead.part == first.part && s.ahead.Agent.Play == first.Agent.Play {
		b.add(s.ahead.Row)
		s.read()
	}
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		return nil, s.err
	}
	session := b.end()
	session.number, session.cycle = s.begun, first.cycle
	s.begun++
	if s.each == 0 && (s.err != nil || s.ahead.cycle > 0) {
		s.each = s.begun
	}
	return session, nil
}

// read reads the next row. In a later cycle a session gets its own blocks, because it would find the blocks of
// the earlier cycle otherwise.
func (s *sessionReader) read() {
	s.ahead, s.err = s.reader.next()
	if row := &s.ahead; row.cycle > 0 && !row.Common {
		row.Scope += "~" + strconv.Itoa(row.cycle+1)
	}
}

// report adds the sessions of a stage to a report.
func (s *sessionReader) report(r *workloads.TraceReport, live *stage) {
	r.Sessions, r.Live, r.Cycles = live.begun, live.most, 0
	if s.each > 0 {
		r.Cycles = int(live.ended / s.each)
	}
}
