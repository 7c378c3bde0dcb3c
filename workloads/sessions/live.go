package sessions

import (
	"cmp"
	"container/heap"
	"errors"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/profile"
)

// Config describes a load of live sessions.
type Config struct {
	Next Next
	// Ahead reads a part of the next session ahead; may be nil. It is called with each taken request:
	// reading a whole session at once would delay the waiting requests.
	Ahead   func()
	Live    int     // sessions at a time, at least 1
	Speedup float64 // divides all pauses; 0 = no pauses
	Stream  profile.Stream
	// MaxRequests ends the load after N requests, 0 = never.
	MaxRequests  int64
	ObjectTokens int // see Blocks
}

// Live is the Source of sessions in closed loop: a request comes when all steps that it waits for have
// completed, and its pause is over. So slow storage gets fewer requests, as in a real service, and the
// interleaving of sessions depends on its speed. When a session has ended the next one begins, after a
// pause as in Merge. All requests are of class Responsive.
//
// Check Err after Take has returned Exhausted.
type Live struct {
	cfg    Config
	blocks Blocks
	due    agenda[due] // requests that wait for their time, or to be taken
	live   int         // live sessions
	taken  workloads.ClassLoad
	now    time.Duration
	seq    int64
	err    error
	report workloads.TraceReport
	ended  int64
	memory []int64
	over   bool // no more sessions
}

var _ workloads.Source = (*Live)(nil)

// NewLive begins the first sessions at random times, as Merge does, divided by the speedup.
func NewLive(cfg Config) (*Live, error) {
	if cfg.Next == nil || cfg.Live < 1 {
		return nil, errors.New("live sessions: want where they come from, and at least one")
	}
	l := &Live{cfg: cfg, blocks: Blocks{ObjectTokens: cfg.ObjectTokens}}
	for range cfg.Live {
		l.begin(func(s *Session) time.Duration { return within(s, cfg.Stream) })
	}
	return l, l.err
}

// talk is a live session.
type talk struct {
	session *Session
	left    int       // steps that have not completed
	pending []int32   // by step: the number of steps that it waits for
	waiting [][]int32 // by step: the steps that wait for it
}

// due is a step that is ready at a time.
type due struct {
	at   time.Duration
	talk *talk
	step int
}

// Before orders by time. Equal times go by session and step.
func (d due) Before(e due) bool {
	return cmp.Or(cmp.Compare(d.at, e.at),
		cmp.Compare(d.talk.session.Number, e.talk.session.Number), cmp.Compare(d.step, e.step)) < 0
}

// begin begins the next session.
func (l *Live) begin(at func(*Session) time.Duration) {
	if l.over || l.err != nil {
		return
	}
	s, err := l.cfg.Next()
	if err != nil || s == nil {
		l.err, l.over = err, true
		return
	}
	n := len(s.Steps)
	t := &talk{session: s, left: n, pending: make([]int32, n), waiting: make([][]int32, n)}
	begun := l.now + faster(at(s), l.cfg.Speedup)
	for i := range s.Steps {
		step := &s.Steps[i]
		t.pending[i] = int32(len(step.After))
		for _, k := range step.After {
			t.waiting[k] = append(t.waiting[k], int32(i))
		}
		if len(step.After) == 0 {
			heap.Push(&l.due, due{begun + faster(step.Stamp, l.cfg.Speedup), t, i})
		}
	}
	l.live++
	l.report.Sessions++
	l.report.Live = max(l.report.Live, l.live)
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
	if l.cfg.Ahead != nil {
		l.cfg.Ahead()
	}
	row := d.talk.session.row(d.step, l.memory)
	l.memory = row.Blocks
	r := &workloads.Request{
		User: -1, Seq: l.seq, Class: workloads.Responsive, Arrival: d.at,
		Conversation: int(d.talk.session.Number) + 1, Turn: d.step + 1, SystemPrompt: -1,
		ContextTokens: row.Context, GenerateTokens: row.Generate,
		Own:    workloads.Entry{Tokens: l.blocks.Tokens(&row, len(row.Blocks))},
		Origin: &d,
	}
	l.blocks.Add(r, &row)
	l.seq++
	if d.talk.session.Cycle == 0 {
		l.report.Rows++
	}
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
	t := d.talk
	for _, k := range t.waiting[d.step] {
		if t.pending[k]--; t.pending[k] == 0 {
			wait := faster(t.session.Steps[k].Wait, l.cfg.Speedup)
			heap.Push(&l.due, due{l.now + wait, t, int(k)})
		}
	}
	if t.left--; t.left == 0 {
		l.live--
		l.ended++
		l.begin(func(*Session) time.Duration { return pause(t.session, l.cfg.Stream) })
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
		step := &d.talk.session.Steps[d.step]
		load.Offered++
		load.OfferedTokens += int64(l.blocks.Tokens(&step.Row, step.blocks()))
		load.Queued++
		load.Oldest = min(load.Oldest, d.at)
	}
	return loads
}

// Err returns what ended the sessions early.
func (l *Live) Err() error { return l.err }

// Report returns how many sessions there were, and the rows of the first cycle.
func (l *Live) Report() workloads.TraceReport { return l.report }

// Ended returns how many sessions have ended.
func (l *Live) Ended() int64 { return l.ended }
