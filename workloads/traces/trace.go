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
	"kvbench/workloads/profile"
	"kvbench/workloads/sessions"
)

// Config describes a load that repeats recorded requests.
type Config struct {
	Paths []string // files, in order; .gz and .zst are decompressed
	// Speedup 1 keeps the recorded times, 2 halves them; 0 = as fast as possible: the next row
	// arrives when it is taken.
	Speedup float64
	Cycles  int // how often the input is replayed, 0 = without end
	// Start passes over what was recorded in this time from the first request on: the replay begins
	// there, with what the trace has next at its distance. Every cycle begins there. Input without
	// times has no Start.
	Start time.Duration

	Rate         float64 // requests per second instead of the recorded times, 0 = none
	ConstantRate bool    // evenly spaced instead of Poisson arrivals
	MaxRequests  int64   // ends the load after N requests, 0 = never
	Seed         uint64  // the run's seed plus the rank

	// Live is how many sessions of agents, or conversations without times, run side by side, at
	// least 1; 0 means 1, one after the other. A block trace that has other requests than sessions,
	// too, is played file after file.
	Live int

	// MaxConversations ends the input after that many in each cycle, 0 = all.
	MaxConversations int64

	Profile       profile.Profile // must be valid
	PrefixCaching bool
	PrefillOnly   bool
	// MultiTurn lets rows of one session read the entries of those before; off, sessions are
	// ignored.
	MultiTurn bool
	// Overtaking lets a turn start before the entry of its predecessor is written.
	Overtaking bool
	// ObjectTokens is that of an engine's objects, 0 = none. Block traces are cut into them: a
	// whole block gives several, or several blocks one. Other traces keep the common prompt of a
	// conversation, whose turns are one sequence of tokens then.
	ObjectTokens int
	// AllowMalformed accepts files with any number of malformed rows, and none that is usable.
	AllowMalformed bool

	apart []string // of each of Paths, once a file was opened; see formats.Apart
}

// Trace is the Source of recorded requests. The class of a request is drawn by the number of its
// row, with the shares that users have: of those that have arrived the most urgent is served first,
// among up to 65,536 that wait. Rows that arrive when they are taken do not wait, and are served in
// order. So are block traces, whose hits are a function of that order; all of theirs are of class
// Responsive.
//
// A second reader of the same files counts what has arrived, so that memory is constant.
//
// Err must be looked at once Take says Exhausted. Close must be called at the end.
type Trace struct {
	cfg    Config
	format formats.Format
	shape  profile.Shape
	stream profile.Stream
	main   *rowStream

	blocks   sessions.Blocks                  // of a block trace
	sessions *simplelru.LRU[string, *session] // live conversations by their ids
	cycle    int                              // of the rows in sessions
	queue    queue                            // requests that were read and not taken

	now       time.Duration // latest time that Take saw
	accounted time.Duration // latest time that Account reached
	taken     [workloads.NumClasses]workloads.ClassLoad

	shadow  *rowStream // counts what has arrived; the first Account opens its file
	offered [workloads.NumClasses]workloads.ClassLoad
}

var (
	_ workloads.Source = (*Trace)(nil)
	_ io.Closer        = (*Trace)(nil)
)

// New returns a load of recorded requests. It reads the start of every file, so that an input of
// another format is an error now and not in the middle of a run.
//
// Rows of one session are the turns of a conversation, within one cycle and at most
// Profile.MaxTurns; the 10,000 sessions used last are kept. Requests of blocks have Blocks instead
// of an entry of their own.
func New(format formats.Format, cfg Config) (*Trace, error) {
	files, err := check(format, &cfg)
	if err != nil {
		return nil, err
	}
	t := &Trace{
		cfg: cfg, format: format,
		shape: profile.Shape{Profile: cfg.Profile, PrefixCaching: cfg.PrefixCaching,
			PrefillOnly: cfg.PrefillOnly},
		stream:   profile.NewStream(cfg.Seed, -1),
		sessions: newSessions(cfg.Live),
		blocks:   sessions.Blocks{ObjectTokens: cfg.ObjectTokens},
	}
	t.main = newStream(format, &t.cfg, files)
	t.shadow = newStream(format, &t.cfg, files)
	t.queue.order(cfg.Profile, t.main.times.timed())
	// Reading up to the start may be millions of rows: here, where no worker waits for a request
	// yet.
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

// read queues the rows that have arrived by a time, and returns the next one, nil at the end of
// the input. It reads no further than it has to where order alone decides, which spares the memory
// of blocks.
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
		t.blocks.Add(r, &row.Row)
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
	return t.cfg.Profile.Class(t.stream.Unit(profile.DrawClass, row.seq))
}

// Done implements Source; a trace does not wait for answers.
func (t *Trace) Done(*workloads.Request, time.Duration) {}

// Err returns what ended the input early: a file that cannot be read, or too many malformed rows.
// It is nil at its end.
func (t *Trace) Err() error { return t.main.err }

// Report returns what was read so far.
func (t *Trace) Report() workloads.TraceReport {
	report := t.main.report()
	report.Tokenizer = t.format.Tokenizer
	return report
}

// Rows counts the rows of one cycle of the whole input by reading it again from its start, so that
// the replayed share can be reported. It stops, and says false, after most rows and where the
// input is bounded by conversations. It may be called while the load goes on.
func (t *Trace) Rows(most int64) (rows int64, all bool) {
	return countRows(t.format, &t.cfg, most)
}

// Close closes the files. Afterwards Take says Exhausted.
func (t *Trace) Close() error {
	t.queue.close()
	t.main.stop()
	t.shadow.stop()
	return nil
}

// maxAccountRows bounds the rows that one Account reads ahead, some tens of milliseconds. A replay
// that offers more per call is counted with delay: what is not reached yet is missing from Offered
// and Queued until a later call.
const maxAccountRows = 200_000

// Account implements Source. Rows without a time of their own (Speedup 0) are offered when they are
// taken, so that none ever waits.
func (t *Trace) Account(until time.Duration) []workloads.ClassLoad {
	loads := slices.Clone(t.taken[:])
	for c := range loads {
		loads[c].Oldest = workloads.Never
	}
	if !t.main.times.timed() {
		return loads
	}
	t.accounted = max(t.accounted, t.now, until)
	// The shadow reader follows, and counts the rows that it passes.
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
		if offered.Offered > load.Offered { // else it is behind
			load.Queued = offered.Offered - load.Offered
			load.Offered, load.OfferedTokens = offered.Offered, offered.OfferedTokens
		}
		// Of a class that none of the queued is of, those that wait come after the next row.
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

// writes returns the tokens that a row's request offers to write: of a block trace those of its
// blocks, the last of which may be a part. It makes no request, because the shadow reader passes
// many rows for each that is taken.
func (t *Trace) writes(row *traceRow) int {
	if row.BlockTokens > 0 {
		return t.blocks.Tokens(&row.Row, len(row.Blocks))
	}
	_, prefix := t.shape.Prompt(t.stream, row.seq)
	return profile.OwnTokens(row.Context, prefix)
}
