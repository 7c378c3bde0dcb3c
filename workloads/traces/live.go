package traces

import (
	"cmp"
	"container/heap"
	"fmt"
	"io"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// Live is the Source of sessions of agents in closed loop: a request comes when all steps that it waits for
// have completed, and its pause is over. So slow storage gets fewer requests, as in a real service, and the
// interleaving of sessions depends on its speed. When a session has ended the next one begins, after a
// pause as in openLoop. All requests are of class Responsive. Trace replays sessions at their recorded times.
//
// Check Err after Take has returned Exhausted. It must be closed.
type Live struct {
	played
	*input
	source sessionSource
	reader *sessionReader // the source of recorded sessions, else nil
	stream users.Stream
	blocks blockEntries
	due    agenda[due] // requests that wait for their time, or to be taken
	taken  workloads.ClassLoad
	now    time.Duration
	seq    int64
	err    error
	memory []int64
	over   bool // no more sessions
}

var (
	_ workloads.Source = (*Live)(nil)
	_ io.Closer        = (*Live)(nil)
)

// NewSessions reads the start of every file and the first sessions. It uses these fields of the
// configuration: Paths, Speedup, Cycles, Live, MaxRequests, Seed, ObjectTokens and AllowMalformed. A
// closed loop has no Start and no Rate.
func NewSessions(format formats.Format, cfg Config) (*Live, error) {
	in := &input{cfg: cfg, format: format}
	files, err := in.check()
	if err == nil && !files.sessional {
		err = fmt.Errorf("the %s trace has other requests than sessions of agents: what "+
			"those wait for is not recorded", format.Name)
	}
	if err != nil {
		return nil, err
	}
	reader := &sessionReader{cycles: cycles{timeline: files}}
	l := newLive(in, reader)
	l.reader = reader
	if l.err != nil {
		reader.closeFile()
		return nil, l.err
	}
	return l, nil
}

// newLive begins the first sessions at random times, as openLoop does, divided by the speedup.
func newLive(in *input, source sessionSource) *Live {
	l := &Live{input: in, source: source, stream: users.NewStream(in.cfg.Seed, -1),
		blocks: blockEntries{objectTokens: in.cfg.ObjectTokens}}
	for range max(1, in.cfg.Live) {
		l.begin(func(s *session) time.Duration { return within(s, l.stream) })
	}
	return l
}

// liveSession is a session that has begun.
type liveSession struct {
	*session
	left    int       // steps that have not completed
	pending []int32   // by step: the number of steps that it waits for
	waiting [][]int32 // by step: the steps that wait for it
}

// due is a step that is ready at a time.
type due struct {
	at   time.Duration
	of   *liveSession
	step int
}

// Before orders by time. Equal times go by session and step.
func (d due) Before(e due) bool {
	return cmp.Or(cmp.Compare(d.at, e.at), cmp.Compare(d.of.number, e.of.number),
		cmp.Compare(d.step, e.step)) < 0
}

// begin begins the next session.
func (l *Live) begin(at func(*session) time.Duration) {
	if l.over || l.err != nil {
		return
	}
	s, err := l.source.next()
	if err != nil || s == nil {
		l.err, l.over = err, true
		return
	}
	n := len(s.steps)
	live := &liveSession{session: s, left: n, pending: make([]int32, n), waiting: make([][]int32, n)}
	begun := l.now + faster(at(s), l.cfg.Speedup)
	for i := range s.steps {
		step := &s.steps[i]
		live.pending[i] = int32(len(step.after))
		for _, k := range step.after {
			live.waiting[k] = append(live.waiting[k], int32(i))
		}
		if len(step.after) == 0 {
			heap.Push(&l.due, due{begun + faster(step.Stamp, l.cfg.Speedup), live, i})
		}
	}
	l.played.begin()
}

// Take implements workloads.Source.
func (l *Live) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	l.now = max(l.now, now)
	switch limit := l.cfg.MaxRequests; {
	case limit > 0 && l.seq >= limit, l.live == 0:
		return nil, workloads.Exhausted, workloads.Never
	case len(l.due) == 0:
		return nil, workloads.Wait, workloads.Never
	case l.due[0].at > l.now:
		return nil, workloads.Wait, l.due[0].at
	}
	d := heap.Pop(&l.due).(due)
	l.source.ahead()
	row := d.of.session.row(d.step, l.memory)
	l.memory = row.Blocks
	r := &workloads.Request{
		User: -1, Seq: l.seq, Class: workloads.Responsive, Arrival: d.at,
		Conversation: int(d.of.number) + 1, Turn: d.step + 1, SystemPrompt: -1,
		ContextTokens: row.Context, GenerateTokens: row.Generate,
		Own:    workloads.Entry{Tokens: l.blocks.tokens(&row, len(row.Blocks))},
		Origin: &d,
	}
	l.blocks.add(r, &row)
	l.seq++
	l.played.row(d.of.session)
	l.taken.Offered++
	l.taken.OfferedTokens += int64(r.Own.Tokens)
	return r, workloads.Ready, 0
}

// Written implements workloads.Source; no step waits for it.
func (l *Live) Written(*workloads.Request) {}

// Done implements workloads.Source. The pauses of steps that wait only for this one begin now.
func (l *Live) Done(r *workloads.Request, now time.Duration) {
	d, mine := r.Origin.(*due)
	if !mine {
		return
	}
	l.now = max(l.now, now)
	s := d.of
	for _, k := range s.waiting[d.step] {
		if s.pending[k]--; s.pending[k] == 0 {
			heap.Push(&l.due, due{l.now + faster(s.steps[k].wait, l.cfg.Speedup), s, int(k)})
		}
	}
	if s.left--; s.left == 0 {
		l.end()
		l.begin(func(*session) time.Duration { return pause(s.session, l.stream) })
	}
}

// Account implements workloads.Source. A request counts as offered when its session reaches it.
func (l *Live) Account(until time.Duration) []workloads.ClassLoad {
	until = max(until, l.now)
	loads := make([]workloads.ClassLoad, workloads.NumClasses)
	for c := range loads {
		loads[c].Oldest = workloads.Never
	}
	load := &loads[workloads.Responsive]
	load.Offered, load.OfferedTokens = l.taken.Offered, l.taken.OfferedTokens
	if limit := l.cfg.MaxRequests; limit > 0 && l.seq >= limit {
		return loads
	}
	for _, d := range l.due {
		if d.at > until {
			continue
		}
		step := &d.of.steps[d.step]
		load.Offered++
		load.OfferedTokens += int64(l.blocks.tokens(&step.Row, step.count()))
		load.Queued++
		load.Oldest = min(load.Oldest, d.at)
	}
	return loads
}

// Err returns what ended the sessions early.
func (l *Live) Err() error { return l.err }

// Report counts the rows of recorded sessions that were read and replayed so far.
func (l *Live) Report() workloads.TraceReport { return l.reader.report(l.played) }

// Close closes the files.
func (l *Live) Close() error {
	l.reader.closeFile()
	return nil
}
