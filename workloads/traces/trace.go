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

// Config describes a load of recorded requests.
type Config struct {
	Paths []string // files, in order; .gz and .zst are decompressed
	// Speedup divides the recorded times: 1 keeps them, 2 halves them. 0 = as fast as possible: the
	// next row arrives when it is taken.
	Speedup float64
	Cycles  int // number of replays of the input, 0 = without end
	// Start skips the requests that were recorded within this time after the first request. Every cycle
	// begins there, and the next request keeps its distance from Start. Input without times has no
	// Start.
	Start time.Duration

	Rate         float64 // requests per second instead of the recorded times, 0 = none
	ConstantRate bool    // evenly spaced instead of Poisson arrivals
	MaxRequests  int64   // number of requests after which the load ends, 0 = never
	Seed         uint64  // the run's seed plus the rank

	// Live is the number of sessions of agents, or of conversations without times, that run
	// concurrently. 0 means 1: one after the other. A block trace that also has requests outside
	// sessions is replayed file by file.
	Live int

	// MaxConversations ends each cycle after so many conversations, 0 = all.
	MaxConversations int64

	Profile       users.Profile // must be valid
	PrefixCaching bool
	PrefillOnly   bool
	// MultiTurn: rows of one session read the entries of earlier rows. Without MultiTurn sessions are
	// ignored.
	MultiTurn bool
	// Overtaking lets a turn start before the entry of its predecessor is written.
	Overtaking bool
	// ObjectTokens is the number of tokens in an engine's object, 0 = no objects. Block traces are cut
	// into objects: several objects per block, or one object of several blocks. In other traces all
	// turns of a conversation begin with the same common prompt, because the turns are then one
	// sequence of tokens.
	ObjectTokens int
	// AllowMalformed accepts files with any number of malformed rows, even if no row is usable.
	AllowMalformed bool
}

// Trace is the Source of recorded requests. The number of a row draws the class of its request, with
// the users' shares. Take returns the most urgent request that has arrived, among up to 65,536 waiting
// ones. Rows that arrive when they are taken do not wait and keep their order. Block traces also keep
// their order, because their hits depend on it, and all their requests are of class Responsive.
//
// Check Err after Take has returned Exhausted. The caller must call Close.
type Trace struct {
	*replay
	shape  users.Shape
	stream users.Stream

	blocks        blockEntries                          // for a block trace
	conversations *simplelru.LRU[string, *conversation] // live conversations by ID
	cycle         int                                   // cycle of the rows in conversations

	// ahead is the next row that has not arrived. A row that arrives is offered, and waits in arrived
	// until its request is made and queued.
	ahead      *traceRow
	arrived    []traceRow
	arrivedIDs int   // number of blocks of the rows in arrived
	queue      queue // requests that were made and not taken
	offered    [workloads.NumClasses]workloads.ClassLoad
	taken      [workloads.NumClasses]int64
	now        time.Duration // latest time of a Take or an Account
}

var (
	_ workloads.Source = (*Trace)(nil)
	_ io.Closer        = (*Trace)(nil)
)

// maxArrived and maxArrivedIDs limit the rows in arrived, to some 100 MB. Further rows arrive late.
const (
	maxArrived    = 1 << 18
	maxArrivedIDs = 1 << 23
)

// New returns a load of recorded requests. It reads the start of every file, so that it returns an
// error if the input has another format.
//
// Rows of one session are the turns of a conversation, within one cycle and at most Profile.MaxTurns.
// Trace keeps the 10,000 sessions used last. Requests of blocks have Blocks instead of their own entry.
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
		if t.cfg.timed() {
			t.queue.priority[c] = cfg.Profile.QoS[c].Priority
		}
	}
	// Read up to Start here, before workers wait for requests: it may be millions of rows.
	if cfg.Start > 0 && t.peek() == nil && t.Err() != nil {
		return nil, t.Err()
	}
	return t, nil
}

// Take implements Source. It may read from a file.
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
	if !t.cfg.timed() {
		r.Arrival = t.now
		t.offer(r.Class, r.Own.Tokens)
	}
	t.taken[r.Class]++
	return r, workloads.Ready, 0
}

// offer counts an arrived request.
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

// read offers the rows that have arrived by the time until, and queues their requests. If the rows keep
// their order, it queues one request at a time, which saves the memory of blocks. Rows without a time
// arrive when they are queued.
func (t *Trace) read(until time.Duration) {
	t.now = max(t.now, until)
	for {
		ready := len(t.queue.ready) > 0
		if len(t.arrived) > 0 && t.queue.waiting() < maxWaiting &&
			!(ready && (t.arrived[0].BlockTokens > 0 || !t.cfg.timed())) {
			row := &t.arrived[0]
			t.queue.add(t.request(row), t.cfg.Overtaking)
			t.arrivedIDs -= len(row.Blocks)
			*row = traceRow{} // so that its blocks can be freed
			t.arrived = t.arrived[1:]
			continue
		}
		row := t.peek()
		if row == nil || row.arrival > t.now || len(t.arrived) == maxArrived || t.arrivedIDs > maxArrivedIDs ||
			!t.cfg.timed() && (ready || len(t.arrived) > 0) {
			return
		}
		if t.cfg.timed() {
			t.offer(t.class(row), t.writes(row))
		}
		row.Blocks = slices.Clone(row.Blocks) // the blocks are valid only until the next row is read
		t.arrivedIDs += len(row.Blocks)
		t.arrived, t.ahead = append(t.arrived, *row), nil
	}
}

// request returns the request of a row.
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
	if t.cfg.ObjectTokens > 0 { // to an engine a conversation is one sequence of tokens
		r.SystemPrompt, r.SystemPromptTokens = t.shape.Prompt(t.stream, int64(r.Conversation))
	}
	return r
}

// class returns the class of a row, drawn by its number.
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

// Report returns the counts of the rows so far, up to the next row whose request is made. It leaves out
// rows that were read ahead.
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

// Account implements Source. Rows without arrivals (Speedup 0) are offered when they are taken, and
// never wait.
func (t *Trace) Account(until time.Duration) []workloads.ClassLoad {
	if t.cfg.timed() {
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

// writes returns the tokens that a row's request offers to write. For a block trace these are the
// tokens of its blocks, the last of which may be partial.
func (t *Trace) writes(row *traceRow) int {
	if row.BlockTokens > 0 {
		return t.blocks.tokens(&row.Row, len(row.Blocks))
	}
	_, prefix := t.shape.Prompt(t.stream, row.seq)
	return users.OwnTokens(row.Context, prefix)
}
