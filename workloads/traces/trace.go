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
// A second reader of the same files counts arrivals, so that memory is constant.
//
// Check Err after Take has returned Exhausted. Close must be called at the end.
type Trace struct {
	*input
	shape  users.Shape
	stream users.Stream
	main   *rowStream

	blocks        blockEntries                          // of a block trace
	conversations *simplelru.LRU[string, *conversation] // live ones by their ids
	cycle         int                                   // of the rows in conversations
	queue         queue                                 // requests that were read and not taken

	now       time.Duration // latest time of a Take
	accounted time.Duration // latest time of an Account
	taken     [workloads.NumClasses]workloads.ClassLoad

	shadow  *rowStream // counts arrivals; the first Account opens its file
	offered [workloads.NumClasses]workloads.ClassLoad
}

var (
	_ workloads.Source = (*Trace)(nil)
	_ io.Closer        = (*Trace)(nil)
)

// New returns a load of recorded requests. It reads the start of every file, so that an input of
// another format is an error now and not in the middle of a run.
//
// Rows of one session are the turns of a conversation, within one cycle and at most Profile.MaxTurns; the
// 10,000 sessions used last are kept. Requests of blocks have Blocks instead of their own entry.
func New(format formats.Format, cfg Config) (*Trace, error) {
	in := &input{cfg: cfg, format: format}
	files, err := in.check()
	if err != nil {
		return nil, err
	}
	t := &Trace{
		input: in,
		shape: users.Shape{Profile: cfg.Profile, PrefixCaching: cfg.PrefixCaching,
			PrefillOnly: cfg.PrefillOnly},
		stream:        users.NewStream(cfg.Seed, -1),
		conversations: newConversations(cfg.Live),
		blocks:        blockEntries{objectTokens: cfg.ObjectTokens},
		main:          newStream(files),
		shadow:        newStream(files),
	}
	t.queue.order(cfg.Profile, t.main.times.timed())
	// Read up to the start here, before workers wait for requests: it may be millions of rows.
	if cfg.Start > 0 {
		if t.main.peek() == nil && t.main.err != nil {
			return nil, t.main.err
		}
		if t.main.times.timed() {
			t.shadow.peek()
		}
	}
	return t, nil
}

// Take implements Source. It may read a block of the input.
func (t *Trace) Take(now time.Duration) (*workloads.Request, workloads.State, time.Duration) {
	t.now = max(t.now, now)
	next := t.read(t.now)
	r, arrives := t.queue.take(t.now)
	switch {
	case r == nil && next == nil && t.queue.waiting() == 0:
		return nil, workloads.Exhausted, workloads.Never
	case r == nil:
		if next != nil && t.queue.waiting() < maxWaiting {
			arrives = min(arrives, next.arrival)
		}
		return nil, workloads.Wait, arrives
	}
	if !t.main.times.timed() {
		r.Arrival = t.now
	}
	t.taken[r.Class].Offered++
	t.taken[r.Class].OfferedTokens += int64(r.Own.Tokens)
	return r, workloads.Ready, 0
}

// read queues the rows that have arrived by a time, and returns the next one, nil at the end of the input.
// If rows keep their order it reads only one ahead, which saves the memory of blocks.
func (t *Trace) read(until time.Duration) *traceRow {
	for {
		row := t.main.peek()
		if row == nil || t.queue.waiting() >= maxWaiting {
			return row
		}
		if timed := t.main.times.timed(); timed && row.arrival > until ||
			(!timed || row.BlockTokens > 0) && t.queue.ready() {
			return row
		}
		r := t.request(row)
		t.main.drop()
		t.queue.add(r, t.cfg.Overtaking)
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
func (t *Trace) Err() error { return t.main.err }

// Report counts the rows read so far.
func (t *Trace) Report() workloads.TraceReport {
	report := t.main.report()
	report.Tokenizer = t.format.Tokenizer
	return report
}

// Close closes the files. After it Take returns Exhausted.
func (t *Trace) Close() error {
	t.queue.close()
	t.main.stop()
	t.shadow.stop()
	return nil
}

// maxAccountRows limits the rows that one Account reads ahead, to some tens of milliseconds. Rows beyond it
// are missing from Offered and Queued until a later call.
const maxAccountRows = 200_000

// Account implements Source. Rows without arrivals (Speedup 0) are offered when they are taken, and never
// wait.
func (t *Trace) Account(until time.Duration) []workloads.ClassLoad {
	loads := slices.Clone(t.taken[:])
	for c := range loads {
		loads[c].Oldest = workloads.Never
	}
	if !t.main.times.timed() {
		return loads
	}
	t.accounted = max(t.accounted, t.now, until)
	// The shadow reader follows and counts the rows.
	for range maxAccountRows {
		row := t.shadow.peek()
		if row == nil || row.arrival > t.accounted {
			break
		}
		offered := &t.offered[t.class(row)]
		offered.Offered++
		offered.OfferedTokens += int64(t.writes(row))
		t.shadow.drop()
	}
	next := t.read(t.accounted)
	for c := range loads {
		load, offered := &loads[c], t.offered[c]
		if offered.Offered > load.Offered { // else the shadow reader is behind
			load.Queued = offered.Offered - load.Offered
			load.Offered, load.OfferedTokens = offered.Offered, offered.OfferedTokens
		}
		// Without a queued request of a class, its waiting requests come after the next row.
		load.Oldest = t.queue.oldest(workloads.Class(c))
		if load.Oldest > t.accounted {
			load.Oldest = workloads.Never
		}
		if load.Oldest == workloads.Never && load.Queued > 0 && next != nil {
			load.Oldest = next.arrival
		}
	}
	return loads
}

// writes returns the tokens that a row's request offers to write; for a block trace the tokens of its
// blocks, of which the last may be partial. It makes no request, because the shadow reader reads many rows
// for each taken one.
func (t *Trace) writes(row *traceRow) int {
	if row.BlockTokens > 0 {
		return t.blocks.tokens(&row.Row, len(row.Blocks))
	}
	_, prefix := t.shape.Prompt(t.stream, row.seq)
	return users.OwnTokens(row.Context, prefix)
}
