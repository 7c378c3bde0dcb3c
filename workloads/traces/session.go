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

// session holds the requests of one session and of all agents that it starts, ordered by time. It is
// plain data and does not change after it is built.
type session struct {
	number int64 // number of the session from 0, over all cycles
	cycle  int   // cycle of the input
	steps  []step
}

// step is one request of a session.
type step struct {
	// The Stamp of Row is the time since the session's first request. Steps whose prompts grow share the
	// memory of their blocks.
	formats.Row
	// after are the earlier steps that must complete before this step. It is empty for the first step,
	// and for a step that no step of the session has started.
	after []int32
	// wait is the pause between the last of these completions and the request: the user thinks, or a
	// tool runs.
	wait time.Duration
}

// length returns the recorded time from a session's first request to its last completion.
func (s *session) length() (d time.Duration) {
	for i := range s.steps {
		d = max(d, s.steps[i].ended())
	}
	return d
}

// ended returns the time at which a step completed, since the session's first request.
func (s *step) ended() time.Duration { return s.Stamp + s.Agent.Took }

// gap returns the mean time between two requests of a session.
func (s *session) gap() time.Duration {
	if n := len(s.steps); n > 1 {
		return s.steps[n-1].Stamp / time.Duration(n-1)
	}
	return 0
}

// builder builds a session from its rows. The zero builder has no rows.
//
// Recordings do not contain the dependencies. builder assumes them: a request waits for the previous
// request of the same agent. An agent's first request waits for the previous request of the agent that
// started it. The starting agent's next request waits for all agents started in the meantime that are
// not Detached and had completed before it in the recording.
type builder struct {
	steps  []step
	first  time.Duration
	agents map[int]*agent // agents of the session, by ID
	joins  []join
}

// join is a step that waits for the last step of an agent, unless the agent has steps after it.
type join struct{ step, agent, last int }

// agent is the state of an agent while its session is built.
type agent struct {
	last    int     // its latest step
	ids     []int64 // the blocks of its latest step, with capacity for more
	rows    int
	started []int // agents that it has started and not yet waited for
}

// add adds the next row. It copies the blocks.
func (b *builder) add(row formats.Row) {
	n := len(b.steps)
	step := step{Row: row}
	if n == 0 {
		b.first, b.agents = row.Stamp, make(map[int]*agent)
	}
	if step.Stamp -= b.first; n > 0 { // a row out of order gets the time of the previous row
		step.Stamp = max(step.Stamp, b.steps[n-1].Stamp)
	}
	current := b.agents[row.Agent.ID]
	if current == nil {
		current = &agent{}
		b.agents[row.Agent.ID] = current
	}
	switch starter := b.agents[row.Agent.Starter]; {
	case current.rows > 0:
		step.after = append(step.after, int32(current.last))
	case row.Agent.ID != 0 && starter != nil && starter.rows > 0:
		step.after = append(step.after, int32(starter.last))
		if !row.Agent.Detached {
			starter.started = append(starter.started, row.Agent.ID)
		}
	}
	// Only end knows whether a started agent has later steps.
	for _, id := range current.started {
		b.joins = append(b.joins, join{n, id, b.agents[id].last})
	}
	current.started = current.started[:0]
	step.Blocks = current.keep(row.Blocks)
	current.last, current.rows = n, current.rows+1
	b.steps = append(b.steps, step)
}

// keep returns a copy of the blocks of the agent's next step. If the blocks of the latest step are the
// first ones, as in growing prompts, the copy shares their memory.
func (a *agent) keep(ids []int64) []int64 {
	n := len(a.ids)
	if len(ids) < n || !slices.Equal(ids[:n], a.ids) {
		a.ids, n = nil, 0
	}
	a.ids = append(a.ids, ids[n:]...)
	return slices.Clip(a.ids)
}

// end returns the session, nil if there are no rows. The builder is empty afterwards.
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
	begun  int64    // number of sessions so far, over all cycles
	each   int64    // number of sessions per cycle, 0 until it is known
	ahead  traceRow // the first row of the next session
	err    error    // error that ended the rows
}

// next returns the next session. It returns io.EOF after the last one.
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

// read reads the next row. In a later cycle the blocks get another scope: otherwise a session would
// find the blocks of the earlier cycle.
func (s *sessionReader) read() {
	s.ahead, s.err = s.reader.next()
	if row := &s.ahead; row.cycle > 0 && !row.Common {
		row.Scope += "~" + strconv.Itoa(row.cycle+1)
	}
}

// report sets the sessions of a report, from the counts of a stage.
func (s *sessionReader) report(r *workloads.TraceReport, live *stage) {
	r.Sessions, r.Live, r.Cycles = live.begun, live.most, 0
	if s.each > 0 {
		r.Cycles = int(live.ended / s.each)
	}
}
