package traces

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"kvbench/workloads"
	"kvbench/workloads/formats"
	"kvbench/workloads/users"
)

// Config describes a load that repeats recorded requests.
type Config struct {
	Paths []string // files, in order; .gz and .zst are decompressed
	// Speedup 1 keeps the recorded times, 2 halves them; 0 = as fast as possible: the next row
	// arrives when it is taken.
	Speedup float64
	Cycles  int // how often the input is replayed, 0 = without end
	// Start skips the requests recorded in this time from the first request on. Every cycle begins
	// there, and the next request keeps its distance from Start. Input without times has no Start.
	Start time.Duration

	Rate         float64 // requests per second instead of the recorded times, 0 = none
	ConstantRate bool    // evenly spaced instead of Poisson arrivals
	MaxRequests  int64   // ends the load after N requests, 0 = never
	Seed         uint64  // the run's seed plus the rank

	// Live is how many sessions of agents, or conversations without times, run concurrently; 0 means
	// 1, one after the other. A block trace that also has requests outside sessions is replayed file by
	// file.
	Live int

	// MaxConversations ends the input after that many in each cycle, 0 = all.
	MaxConversations int64

	Profile       users.Profile // must be valid
	PrefixCaching bool
	PrefillOnly   bool
	// MultiTurn: rows of one session read the entries of earlier rows. Without it sessions are ignored.
	MultiTurn bool
	// Overtaking lets a turn start before the entry of its predecessor is written.
	Overtaking bool
	// ObjectTokens is the number of tokens in an engine's object, 0 = no objects. Block traces are cut
	// into objects: several per block, or one for several blocks. Other traces keep the common prompt of
	// a conversation, whose turns are one sequence of tokens then.
	ObjectTokens int
	// AllowMalformed accepts files with any number of malformed rows, also without a usable row.
	AllowMalformed bool
}

// Trace is the Source of recorded requests. The number of a row draws the class of its request, with the
// users' shares. The most urgent request that has arrived is taken first, among up to 65,536 waiting ones.
// Rows that arrive when they are taken do not wait and keep their order. Block traces also keep their
// order, because their hits depend on it; all their requests are of class Responsive.
//
// Check Err after Take has returned Exhausted. Close must be called at the end.
type Trace struct {
	*replay
	shape  users.Shape
	stream users.Stream

	blocks        blockEntries                          // of a block trace
	conversations *simplelru.LRU[string, *conversation] // live ones by their ids
	cycle         int                                   // of the rows in conversations

	// A row is ahead until it arrives. It is offered then, and waits in arrived until its request is made
	// and queued.
	ahead      *traceRow
	arrived    []traceRow
	arrivedIDs int   // blocks of arrived
	queue      queue // requests that were not taken
	offered    [workloads.NumClasses]workloads.ClassLoad
	taken      [workloads.NumClasses]int64
	now        time.Duration // latest time of a Take or an Account
}

var (
	_ workloads.Source = (*Trace)(nil)
	_ io.Closer        = (*Trace)(nil)
)

// maxArrived and maxArrivedIDs limit the backlog before the queue, to some 100 MB. Rows beyond it arrive late.
const (
	maxArrived    = 1 << 18
	maxArrivedIDs = 1 << 23
)

// New returns a load of recorded requests. It reads the start of every file, so that an input of
// another format is an error now and not in the middle of a run.
//
// Rows of one session are the turns of a conversation, within one cycle and at most Profile.MaxTurns; the
// 10,000 sessions used last are kept. Requests of blocks have Blocks instead of their own entry.
func New(format formats.Format, cfg Config) (*Trace, error) {
	in, err := openInput(format, cfg)
	if err != nil {
		return nil, err
	}
	t := &Trace{
		replay: newReplay(in),
		shape: users.Shape{Profile: cfg.Profile, PrefixCaching: cfg.PrefixCaching,
			PrefillOnly: cfg.PrefillOnly},
		stream:        users.NewStream(cfg.Seed, -1),
		conversations: newConversations(cfg.Live),
		blocks:        blockEntries{objectTokens: cfg.ObjectTokens},
	}
	for c := range t.queue.priority {
		if t.times.timed() {
			t.queue.priority[c] = cfg.Profile.QoS[c].Priority
		}
	}
	// Read up to the start here, before workers wait for requests: it may be millions of rows.
	if cfg.Start > 0 && t.peek() == nil && t.Err() != nil {
		return nil, t.Err()
	}
	return t, nil
}

// Take implements Source. It may read a block of the input.
func (t *Trace) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	t.read(now)
	r := t.queue.take()
	switch next := t.peek(); {
	case r != nil:
	case next == nil && len(t.arrived) == 0 && t.queue.waiting() == 0:
		return nil, workloads.Exhausted, workloads.Never
	case next == nil || t.queue.waiting() >= maxWaiting:
		return nil, workloads.Wait, workloads.Never
	default:
		return nil, workloads.Wait, next.arrival
	}
	if !t.times.timed() {
		r.Arrival = t.now
		t.offer(r.Class, r.Own.Tokens)
	}
	t.taken[r.Class]++
	return r, workloads.Ready, 0
}

// offer counts a request that arrives.
func (t *Trace) offer(class workloads.Class, tokens int) {
	t.offered[class].Offered++
	t.offered[class].OfferedTokens += int64(tokens)
}

// peek returns the next row that has not arrived, nil at the end of the input.
func (t *Trace) peek() *traceRow {
	if t.ahead == nil {
		if row, err := t.next(); err == nil {
			t.ahead = &row
		}
	}
	return t.ahead
}

// read offers the rows that have arrived by a time, and queues their requests. If the order of rows is kept it
// queues one at a time, which saves the memory of blocks. Rows without a time arrive when they are queued.
func (t *Trace) read(until time.Duration) {
	t.now = max(t.now, until)
	for {
		ready := len(t.queue.ready) > 0
		if len(t.arrived) > 0 && t.queue.waiting() < maxWaiting &&
			!(ready && (t.arrived[0].BlockTokens > 0 || !t.times.timed())) {
			row := &t.arrived[0]
			t.queue.add(t.request(row), t.cfg.Overtaking)
			t.arrivedIDs -= len(row.Blocks)
			*row = traceRow{} // so that its blocks can be freed
			t.arrived = t.arrived[1:]
			continue
		}
		row := t.peek()
		if row == nil || row.arrival > t.now || len(t.arrived) == maxArrived || t.arrivedIDs > maxArrivedIDs ||
			!t.times.timed() && (ready || len(t.arrived) > 0) {
			return
		}
		if t.times.timed() {
			t.offer(t.class(row), t.writes(row))
		}
		row.Blocks = slices.Clone(row.Blocks) // which were valid until the next row is read
		t.arrivedIDs += len(row.Blocks)
		t.arrived, t.ahead = append(t.arrived, *row), nil
	}
}

// request makes the request of a row.
func (t *Trace) request(row *traceRow) *workloads.Request {
	r := &workloads.Request{
		User: -1, Seq: row.seq, Class: t.class(row), Arrival: row.arrival,
		Conversation: int(row.seq), Turn: 1, SystemPrompt: -1,
		ContextTokens: row.Context, GenerateTokens: row.Generate,
		Own: workloads.Entry{Tokens: t.writes(row)},
	}
	if row.BlockTokens > 0 {
		t.blocks.add(r, &row.Row)
		return r
	}
	r.Kind = t.shape.Kind(row.Context)
	r.SystemPrompt, r.SystemPromptTokens = t.shape.Prompt(t.stream, row.seq)
	r.Own.Key = workloads.RequestKey(strings.ToLower(t.format.Name), row.row, row.cycle)
	session := row.Session
	if row.Turn > 0 {
		session = strconv.FormatInt(row.conversation, 10)
		r.Own.Key = workloads.ConversationKey(row.conversation, row.cycle, row.Turn)
	}
	if session != "" && t.cfg.MultiTurn {
		t.join(r, session, row.cycle)
	}
	if t.cfg.ObjectTokens > 0 { // a conversation is one sequence of tokens to an engine
		r.SystemPrompt, r.SystemPromptTokens = t.shape.Prompt(t.stream, int64(r.Conversation))
	}
	return r
}

// class draws the class of a row.
func (t *Trace) class(row *traceRow) workloads.Class {
	if row.BlockTokens > 0 {
		return workloads.Responsive
	}
	return t.cfg.Profile.Class(t.stream.Unit(users.DrawClass, row.seq))
}

// Done implements Source. A trace does not wait for completions.
func (t *Trace) Done(*workloads.Request, time.Duration) {}

// Err returns the error that ended the input early: a file that cannot be read, or too many malformed
// rows. It is nil at the end of the input.
func (t *Trace) Err() error { return t.failure() }

// Report counts the rows read so far up to the next one whose request is made: a backlog was read ahead.
func (t *Trace) Report() workloads.TraceReport {
	report := t.report()
	report.Tokenizer = t.format.Tokenizer
	if len(t.arrived) == 0 {
		return report
	}
	report.Cycles = t.arrived[0].cycle
	for i := range t.arrived[1:] {
		if t.arrived[1+i].cycle == 0 {
			report.Rows--
		}
	}
	if t.ahead != nil && t.ahead.cycle == 0 {
		report.Rows--
	}
	return report
}

// Close closes the files. After it Take returns Exhausted.
func (t *Trace) Close() error {
	t.close()
	t.queue, t.ahead, t.arrived = queue{closed: true}, nil, nil
	return nil
}

// Account implements Source. Rows without arrivals (Speedup 0) are offered when they are taken, and never
// wait.
func (t *Trace) Account(until time.Duration) []workloads.ClassLoad {
	if t.times.timed() {
		t.read(until)
	}
	loads := slices.Clone(t.offered[:])
	for c := range loads {
		load, class := &loads[c], workloads.Class(c)
		load.Queued, load.Oldest = load.Offered-t.taken[c], workloads.Never
		if load.Queued == 0 {
			continue
		}
		ofClass := func(row traceRow) bool { return t.class(&row) == class }
		if queued := t.queue.all[c]; len(queued) > 0 {
			load.Oldest = queued[0].Arrival
		} else if i := slices.IndexFunc(t.arrived, ofClass); i >= 0 {
			load.Oldest = t.arrived[i].arrival
		}
	}
	return loads
}

// writes returns the tokens that a row's request offers to write; for a block trace the tokens of its
// blocks, of which the last may be partial.
func (t *Trace) writes(row *traceRow) int {
	if row.BlockTokens > 0 {
		return t.blocks.tokens(&row.Row, len(row.Blocks))
	}
	_, prefix := t.shape.Prompt(t.stream, row.seq)
	return users.OwnTokens(row.Context, prefix)
}
