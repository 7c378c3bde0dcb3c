package traces

import (
	"cmp"
	"io"
	"time"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// stage holds the live sessions.
type stage struct {
	source func() (*session, error) // the next session; io.EOF after the last one
	stream users.Stream
	limit  int // live sessions
	due    users.Heap[due]
	err    error // error that ended the sessions, io.EOF after the last one

	begun, ended int64 // sessions
	most         int   // the largest number of live ones
}

// begin takes the next session from source and counts it as live. It returns nil after the last
// session.
func (s *stage) begin() *session {
	if s.err != nil {
		return nil
	}
	next, err := s.source()
	if s.err = err; err != nil {
		return nil
	}
	s.begun++
	s.most = max(s.most, int(s.begun-s.ended))
	return next
}

// within returns the start time of one of the first sessions: random, within the mean gap of the
// session.
func (s *stage) within(first *session) time.Duration {
	return workloads.Nanoseconds(s.stream.Unit(users.DrawSession, first.number) * float64(first.gap()))
}

// pause returns the time between the end of a session and the start of the next one.
func (s *stage) pause(ended *session) time.Duration {
	mean := max(ended.gap(), time.Millisecond)
	return workloads.Seconds(s.stream.Exponential(users.DrawPause, ended.number, mean.Seconds()))
}

// due is a step of a live session with the time at which it is ready.
type due struct {
	at   time.Duration
	live *liveSession
	step int
}

// Before orders by time. Equal times go by session and step.
func (d due) Before(e due) bool {
	return cmp.Or(cmp.Compare(d.at, e.at), cmp.Compare(d.live.number, e.live.number),
		cmp.Compare(d.step, e.step)) < 0
}

// openLoop returns the requests of the live sessions in the order of their recorded times. The order
// depends only on the recorded times, the number of live sessions and the seed.
//
// Each of the first sessions begins at a random time within the mean gap between its requests. So all
// are live soon, and the times of N sessions are Poisson arrivals. After the end of a session the next
// one begins after an exponential pause, whose mean is the mean gap of the ended session.
type openLoop struct{ stage }

// next implements rowSource. The row's Stamp counts from the start of the replay.
func (o *openLoop) next() (row traceRow, err error) {
	for o.begun < int64(o.limit) && o.err == nil {
		if s := o.begin(); s != nil {
			o.due.Push(due{at: o.within(s), live: &liveSession{session: s}})
		}
	}
	if len(o.due) == 0 || early(o.err) != nil {
		return row, o.err
	}
	d := o.due[0]
	row = traceRow{Row: d.live.steps[d.step].Row, cycle: d.live.cycle}
	begun := d.at - row.Stamp
	row.Stamp = d.at
	if d.step++; d.step < len(d.live.steps) {
		d.at = begun + d.live.steps[d.step].Stamp
		o.due.Replace(d)
		return row, nil
	}
	o.ended++
	if s := o.begin(); s != nil {
		o.due.Replace(due{at: begun + d.live.length() + o.pause(d.live.session), live: &liveSession{session: s}})
	} else {
		o.due.Pop()
	}
	return row, nil
}

// Live is the Source of sessions of agents in closed loop. A request arrives when all steps that it
// waits for have completed and its pause is over. So slow storage gets fewer requests, as in a real
// service, and the interleaving of sessions depends on the speed of the storage. After the end of a
// session the next one begins after a pause as in openLoop. All requests are of class Responsive. Trace
// is the Source that replays sessions at their recorded times.
//
// Check Err after Take has returned Exhausted. The caller must call Close.
type Live struct {
	*input
	stage
	sessions *sessionReader // reads recorded sessions, nil for synthetic sessions
	blocks   blockEntries
	taken    workloads.ClassLoad
	now      time.Duration
	rows     int64 // taken rows of the first cycle
	seq      int64
}

var (
	_ workloads.Source = (*Live)(nil)
	_ io.Closer        = (*Live)(nil)
)

// NewSessions returns the Source of recorded sessions in closed loop. It reads the start of every file
// and the first sessions. It uses these fields of the configuration: Paths, Speedup, Cycles, Live,
// MaxRequests, Seed, ObjectTokens and AllowMalformed. A closed loop has no Start and no Rate.
func NewSessions(format formats.Format, cfg Config) (*Live, error) {
	in, err := openInput(format, cfg)
	if err != nil {
		return nil, err
	}
	sessions := &sessionReader{reader: &reader{input: in}}
	l := newLive(in, sessions.next)
	l.sessions = sessions
	if err := l.Err(); err != nil {
		sessions.reader.close()
		return nil, err
	}
	return l, nil
}

// newLive returns a Source whose first sessions begin at random times, as in openLoop, divided by the
// speedup.
func newLive(in *input, source func() (*session, error)) *Live {
	l := &Live{input: in, blocks: blockEntries{objectTokens: in.cfg.ObjectTokens},
		stage: stage{source: source, stream: users.NewStream(in.cfg.Seed, -1)}}
	for range max(1, in.cfg.Live) {
		if s := l.begin(); s != nil {
			l.start(s, l.within(s))
		}
	}
	return l
}

// liveSession is a session that has begun. Only a closed loop uses the fields left, pending and
// waiting.
type liveSession struct {
	*session
	left    int       // steps that have not completed
	pending []int32   // by step: the number of steps that it waits for
	waiting [][]int32 // by step: the steps that wait for it
}

// start begins a session after the recorded time after, divided by the speedup.
func (l *Live) start(s *session, after time.Duration) {
	n := len(s.steps)
	live := &liveSession{session: s, left: n, pending: make([]int32, n), waiting: make([][]int32, n)}
	begun := l.now + l.cfg.faster(after)
	for i := range s.steps {
		step := &s.steps[i]
		live.pending[i] = int32(len(step.after))
		for _, k := range step.after {
			live.waiting[k] = append(live.waiting[k], int32(i))
		}
		if len(step.after) == 0 {
			l.due.Push(due{begun + l.cfg.faster(step.Stamp), live, i})
		}
	}
}

// Take implements workloads.Source.
func (l *Live) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	l.now = max(l.now, now)
	switch limit := l.cfg.MaxRequests; {
	case limit > 0 && l.seq >= limit, l.begun == l.ended:
		return nil, workloads.Exhausted, workloads.Never
	case len(l.due) == 0:
		return nil, workloads.Wait, workloads.Never
	case l.due[0].at > l.now:
		return nil, workloads.Wait, l.due[0].at
	}
	d := l.due.Pop()
	row := &d.live.steps[d.step].Row
	r := &workloads.Request{
		User: -1, Seq: l.seq, Class: workloads.Responsive, Arrival: d.at,
		Conversation: int(d.live.number) + 1, Turn: d.step + 1, SystemPrompt: -1,
		ContextTokens: row.Context, GenerateTokens: row.Generate,
		Own:    workloads.Entry{Tokens: l.blocks.tokens(row)},
		Origin: &d,
	}
	l.blocks.add(r, row)
	l.seq++
	if d.live.cycle == 0 {
		l.rows++
	}
	l.taken.Offered++
	l.taken.OfferedTokens += int64(r.Own.Tokens)
	return r, workloads.Ready, 0
}

// Written implements workloads.Source. No step waits for a written entry.
func (l *Live) Written(*workloads.Request) {}

// Done implements workloads.Source. It starts the pauses of the steps that now wait for no other step.
func (l *Live) Done(r *workloads.Request, now time.Duration) {
	d, mine := r.Origin.(*due)
	if !mine {
		return
	}
	l.now = max(l.now, now)
	s := d.live
	for _, k := range s.waiting[d.step] {
		if s.pending[k]--; s.pending[k] == 0 {
			l.due.Push(due{l.now + l.cfg.faster(s.steps[k].wait), s, int(k)})
		}
	}
	if s.left--; s.left == 0 {
		l.ended++
		if next := l.begin(); next != nil {
			l.start(next, l.pause(s.session))
		}
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
		row := &d.live.steps[d.step].Row
		load.Offered++
		load.OfferedTokens += int64(l.blocks.tokens(row))
		load.Queued++
		load.Oldest = min(load.Oldest, d.at)
	}
	return loads
}

// Err returns the error that ended the sessions early.
func (l *Live) Err() error { return early(l.err) }

// Report returns the counts of the rows of recorded sessions that were read and replayed so far. It
// counts each row once, without rows that were read ahead.
func (l *Live) Report() workloads.TraceReport {
	report := l.sessions.reader.report()
	report.Rows = report.Malformed + report.Failed + l.rows
	l.sessions.report(&report, &l.stage)
	return report
}

// Close closes the files.
func (l *Live) Close() error {
	l.sessions.reader.close()
	return nil
}
