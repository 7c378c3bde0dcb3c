package sessions

import (
	"slices"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
)

// Session is the requests of one session and of all agents that it starts, in the order of their
// times. It is plain data and does not change once it is built.
type Session struct {
	Number int64 // counted from 0, over all cycles
	Cycle  int   // of the input that it is from
	Steps  []Step
}

// Step is one request of a session.
type Step struct {
	// Row has no blocks: see Session.Blocks. Its Stamp is the time since the session's first one.
	formats.Row
	// After are the steps whose answers it waits for, all of them before it; the first step, and
	// what no step of the session has asked for, waits for none.
	After []int32
	// Wait is from the last of these answers to the request: a user thinks, a tool runs.
	Wait time.Duration

	// The first blocks are those of an earlier step, which spares most of the memory of a session
	// whose prompts grow.
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

// Length is the time from a session's first request to its last answer, as recorded.
func (s *Session) Length() (d time.Duration) {
	for i := range s.Steps {
		d = max(d, s.Steps[i].ended())
	}
	return d
}

// blocks is how many a step has.
func (s *Step) blocks() int { return int(s.shared) + len(s.tail) }

// ended is when a step was answered.
func (s *Step) ended() time.Duration { return s.Stamp + s.Agent.Took }

// gap is the mean time between two requests of a session.
func (s *Session) gap() time.Duration {
	if n := len(s.Steps); n > 1 {
		return s.Steps[n-1].Stamp / time.Duration(n-1)
	}
	return 0
}

// Builder makes one session of its rows.
//
// Who waits for whom is not recorded: a request waits for the one before it of the same agent. What
// an agent asks first waits for the request before it of who has started it. That one's next
// request waits for all agents started meanwhile that are not Detached, and were answered before it
// in the recording: what came after it cannot have been waited for.
type Builder struct {
	session *Session
	first   time.Duration
	agents  map[int]*agent // of the session, by ID
	joins   []join
}

// join is a step that waits for an agent if that has asked for nothing since.
type join struct{ step, agent, last int }

// agent is one that asks, while its session is built.
type agent struct {
	last    int     // its latest step
	ids     []int64 // the blocks of that
	rows    int
	started []int // agents that it has started and not waited for
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
	if n > 0 { // what is out of order comes with the one before
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
	// Whether that was their last answer shows at the end.
	for _, id := range who.started {
		b.joins = append(b.joins, join{n, id, b.agents[id].last})
	}
	who.started = who.started[:0]
	b.share(&step, row.Blocks, share)
	who.last, who.rows = n, who.rows+1
	who.ids = append(who.ids[:0], row.Blocks...)
	*steps = append(*steps, step)
}

// agent returns who has that ID.
func (b *Builder) agent(id int) *agent {
	a := b.agents[id]
	if a == nil {
		a = &agent{}
		b.agents[id] = a
	}
	return a
}

// share keeps of a step's blocks what the latest step of an agent has not.
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

// Empty says that nothing was added since Begin.
func (b *Builder) Empty() bool { return b.session == nil || len(b.session.Steps) == 0 }

// Next is where sessions come from: nil behind the last one.
type Next func() (*Session, error)

// row returns a step as a row, with its blocks in the given memory.
func (s *Session) row(i int, memory []int64) formats.Row {
	row := s.Steps[i].Row
	row.Blocks = s.Blocks(memory[:0], i)
	return row
}

// faster is a time of a session at a pace: 0 is as fast as possible.
func faster(d time.Duration, speedup float64) time.Duration {
	if speedup == 0 {
		return 0
	}
	return workloads.Nanoseconds(float64(d) / speedup)
}
