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
	Trial        int     // number of the trial, which has its own order of conversations without times

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
// the users' shares. Take returns the most urgent request that has arrived, among up to 262,144 waiting
// ones. Rows that arrive when they are taken do not wait and keep their order. Block traces also keep
// their order, because their hits depend on it, and all their requests are of class Responsive.
//
// Check Err after Take has returned Exhausted. The caller must call Close.
type Trace struct {
	*Replay
	stream users.Stream
	blocks blockEntries // for a block trace

	ahead   *traceRow // the next row that has not arrived
	queue   queue     // requests that have arrived and were not taken
	offered [workloads.NumClasses]workloads.ClassLoad
	taken   [workloads.NumClasses]int64
	closed  bool
	now     time.Duration // latest time of a Take or an Account

	replayed int64 // taken rows of the first cycle
}

var (
	_ workloads.Source = (*Trace)(nil)
	_ io.Closer        = (*Trace)(nil)
)

// New returns a load of recorded requests. It reads the start of every file, so that it returns an
// error if the input has another format.
//
// Rows of one session are the turns of a conversation, within one cycle and at most Profile.MaxTurns.
// Trace keeps the 10,000 sessions used last. Requests of blocks have Blocks instead of their own entry.
func New(format formats.Format, cfg Config) (*Trace, error) {
	cfg.Profile = cfg.Profile.Only(cfg.PrefixCaching, cfg.PrefillOnly)
	in, err := openInput(format, cfg)
	if err != nil {
		return nil, err
	}
	t := &Trace{
		Replay: newReplay(in),
		stream: users.NewStream(cfg.Seed, -1),
		blocks: blockEntries{objectTokens: cfg.ObjectTokens},
	}
	t.queue.conversations, _ = simplelru.NewLRU[string, *conversation](
		max(maxConversations, cfg.Live), nil) // its only error is a size below 1
	for c := range t.queue.priority {
		if t.cfg.timed() {
			t.queue.priority[c] = cfg.Profile.QoS[c].Priority
		}
	}
	// Read up to Start here, before workers wait for requests: it may be millions of rows. The texts of the
	// first conversations without times are counted here, too.
	if (cfg.Start > 0 || format.Untimed) && t.peek() == nil && t.Err() != nil {
		return nil, t.Err()
	}
	return t, nil
}

// Take implements Source. It may read from a file.
func (t *Trace) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	t.read(now)
	switch next := t.peek(); {
	case len(t.queue.ready) > 0:
	case next == nil && t.queue.len() == 0:
		return nil, workloads.Exhausted, workloads.Never
	case next == nil || t.queue.full():
		return nil, workloads.Wait, workloads.Never
	default:
		return nil, workloads.Wait, next.arrival
	}
	r := t.queue.take()
	if !t.cfg.timed() {
		r.Arrival = t.now
		t.offer(r)
	}
	t.taken[r.Class]++
	row := r.Origin.(*arrived)
	if row.cycle == 0 {
		t.replayed++
	}
	if row.BlockTokens > 0 {
		t.blocks.add(r, &row.Row)
		row.Blocks = nil // so that they can be freed
	}
	return r, workloads.Ready, 0
}

// offer counts an arrived request.
func (t *Trace) offer(r *workloads.Request) {
	t.offered[r.Class].Offered++
	t.offered[r.Class].OfferedTokens += int64(r.Own.Tokens)
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

// read queues and offers the requests that have arrived by the time until. Rows without a time arrive
// when they are taken.
func (t *Trace) read(until time.Duration) {
	t.now = max(t.now, until)
	for row := t.peek(); row != nil && row.arrival <= t.now && !t.queue.full(); row = t.peek() {
		if !t.cfg.timed() && len(t.queue.ready) > 0 {
			return
		}
		r := t.request(*row)
		if t.cfg.timed() {
			t.offer(r)
		}
		t.ahead = nil
	}
}

// request queues the request of a row. The request of a row of blocks gets its entries when it is taken,
// which saves their memory.
func (t *Trace) request(row traceRow) *workloads.Request {
	at := &arrived{traceRow: row}
	at.Blocks = slices.Clone(row.Blocks) // the blocks are valid only until the next row is read
	r := &workloads.Request{
		User: -1, Seq: row.seq, Class: workloads.Responsive, Arrival: row.arrival,
		Conversation: int(row.seq), Turn: 1, SystemPrompt: -1,
		ContextTokens: row.Context, GenerateTokens: row.Generate, Origin: at,
	}
	if row.BlockTokens > 0 {
		r.Own.Tokens = t.blocks.tokens(&row.Row)
		t.queue.add(r, at, true)
		return r
	}
	r.Class = t.cfg.Profile.Class(t.stream.Unit(users.DrawClass, row.seq))
	r.Kind = t.cfg.Profile.Kind(row.Context)
	r.SystemPrompt, r.SystemPromptTokens = t.cfg.Profile.Prompt(t.stream, row.seq)
	r.Own.Tokens = users.OwnTokens(row.Context, r.SystemPromptTokens)
	r.Own.Key = workloads.RequestKey(strings.ToLower(t.format.Name), row.row, row.cycle)
	session := row.Session
	if row.Turn > 0 {
		session = strconv.FormatInt(row.conversation, 10)
		r.Own.Key = workloads.ConversationKey(row.conversation, row.cycle, row.Turn)
	}
	if session != "" && t.cfg.MultiTurn {
		t.queue.join(r, at, session, t.cfg.Profile.MaxTurns)
	}
	if t.cfg.ObjectTokens > 0 { // to an engine a conversation is one sequence of tokens
		r.SystemPrompt, r.SystemPromptTokens = t.cfg.Profile.Prompt(t.stream, int64(r.Conversation))
	}
	t.queue.add(r, at, t.cfg.Overtaking)
	return r
}

// Written implements Source: the next turn of the conversation may start, in the order of the rows.
func (t *Trace) Written(r *workloads.Request) {
	if !t.closed {
		t.queue.written(r)
	}
}

// Done implements Source. A trace does not wait for completions.
func (t *Trace) Done(*workloads.Request, time.Duration) {}

// Report returns the counts of the rows that were taken, and of the skipped and unusable rows before
// them. Rows that were read ahead may add unusable ones.
func (t *Trace) Report() workloads.TraceReport {
	report := t.Replay.Report()
	report.Tokenizer = t.format.Tokenizer
	report.Rows = report.Malformed + report.Failed + report.Skipped + t.replayed
	for _, queued := range t.queue.all {
		if len(queued) > 0 {
			report.Cycles = min(report.Cycles, queued[0].Origin.(*arrived).cycle)
		}
	}
	return report
}

// Close closes the files. After it Take returns Exhausted.
func (t *Trace) Close() error {
	t.close()
	t.queue, t.ahead, t.closed = queue{}, nil, true
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
		load := &loads[c]
		load.Queued, load.Oldest = load.Offered-t.taken[c], workloads.Never
		if queued := t.queue.all[c]; len(queued) > 0 {
			load.Oldest = queued[0].Arrival
		}
	}
	return loads
}
