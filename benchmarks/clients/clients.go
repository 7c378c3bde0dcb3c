package clients

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/params"
	"kvbench/kvbench/result"
)

// Clients are the ranks of a run, as the process of one of them sees them. Rank 0's coordinates: it
// alone has a leader. The nil Clients is a client without others.
type Clients struct {
	Config
	*Meeting
	member   *coordinate.Member
	leader   *coordinate.Leader
	listener net.Listener // of the leader
	gathered coordinate.Gathering

	// The lock is held for moments: rank 0's beat takes it, which the coordinator waits for but
	// some seconds. Results are parsed and written outside of it, and one at a time: each takes
	// some MiB, and there may be a thousand.
	mu     sync.Mutex
	shown  []byte // what the coordinator's live line shows of this rank
	trial  *trial
	where  string // the trial that this rank has come to
	saved  bool   // there is a result
	saving sync.Mutex

	started []*coordinate.Process
	missing []string // directories of files that were not there before the run
}

// Config is what a run knows of its clients.
type Config struct {
	// Context is the run's. Cancel ends it when another rank, or the coordinator, has ended the
	// run: its cause is then a kvbench.Interrupted that Ended recognises.
	Context context.Context
	Cancel  context.CancelCauseFunc
	Plans   []*params.Values // what this rank is going to run
	Meeting *Meeting         // nil where this process starts the others
	Dirs    []string         // in which this rank is going to work
	Base    string           // the directory in which the command was typed
	Stamp   string           // of the default results directory

	ResultsDir string // of the coordinator, set by Gather
}

// Trial is one that all ranks are about to run.
type Trial struct {
	Name   string
	Number int
	// Save writes the result of a rank, rank_3, or that of all_ranks, and returns where.
	Save func(whose string, r *result.Result) (path string, err error)
}

func (t Trial) String() string { return fmt.Sprintf("trial %d of %s", t.Number, t.Name) }

// trial is a trial, as the coordinator keeps it until all ranks have done it. Clients.saving is
// held by every reader and writer.
type trial struct {
	Trial
	results []*result.Result // that have come, in any order
	paths   map[int]string   // where they were written, by rank
	failed  []error          // to write one
}

// outcomePatience is how long an interrupted run waits for its ranks to clean up, and for those
// that have not come to the trial. It waits for results as long as their ranks send beats.
const outcomePatience = 2 * time.Second

// Gather starts the other ranks, or meets them, and returns when all are there. Nothing else of the
// run was made before.
func Gather(cfg Config) (*Clients, error) {
	v := cfg.Plans[0]
	c := &Clients{Config: cfg, Meeting: cfg.Meeting}
	c.ResultsDir = v.ResultsDir
	for _, dir := range cfg.Dirs {
		c.missing = append(c.missing, missing(dir)...)
	}
	ctx, stop := context.WithTimeout(c.Context, v.RendezvousTimeout)
	defer stop()
	err := c.listen(v)
	if err == nil {
		c.member, err = coordinate.Dial(ctx, c.Address, c.Once || c.leader != nil,
			hello(c.Meeting, cfg.Plans, cfg.Dirs), coordinate.MemberConfig{
				Clock: coordinate.System{}, Live: c.lastShown,
				Stop: func(why error) { c.Cancel(kvbench.Interrupted{Why: ended{why}}) }})
	}
	if err == nil && c.leader != nil {
		err = c.leader.Gather(ctx)
	}
	if err == nil {
		// The coordinator's clock alone decides which rank is late.
		c.gathered, err = c.member.Gathered(c.Context)
	}
	if c.leader == nil {
		return c, err
	}
	if err != nil {
		c.leader.Stop(err.Error())
		if c.member != nil {
			c.member.Leave("")
		}
		c.close()
		if cfg.Meeting == nil {
			err = fmt.Errorf("%w (logs of the ranks: %s)", err,
				filepath.Join(c.ResultsDir, "rank_*.log"))
		}
		return c, err
	}
	// A signal to this process is one to all: those of a terminal reach the others by themselves.
	context.AfterFunc(c.Context, func() { c.leader.Stop(Why(c.Context).Error()) })
	return c, nil
}

// listen makes rank 0 coordinate, and starts the other ranks unless something else does.
func (c *Clients) listen(v *params.Values) (err error) {
	starts := c.Meeting == nil
	switch {
	case starts:
		c.Meeting, c.listener, err = newRun(v.Ranks)
	case c.Rank == 0:
		c.listener, err = coordinate.Listen(c.Address)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	h := hello(c.Meeting, c.Plans, c.Dirs)
	h.Stamp = c.Stamp
	cfg := coordinate.LeaderConfig{Hello: h, Clock: coordinate.System{},
		Continue: v.RankFailure == "continue", Result: c.keep}
	if v.SharedDir != "auto" {
		cfg.Shared = new(v.SharedDir == "true")
	}
	c.leader = coordinate.NewLeader(cfg)
	go c.leader.Serve(c.listener)
	if starts {
		return c.start()
	}
	return nil
}

// ended is why another rank, or the coordinator, has ended the run.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }

// Ended reports whether a run was ended by another rank, or by the coordinator.
func Ended(ctx context.Context) bool {
	var by ended
	return errors.As(context.Cause(ctx), &by)
}

// Why is what ended a run here.
func Why(ctx context.Context) error {
	if i := (kvbench.Interrupted{}); errors.As(context.Cause(ctx), &i) {
		return i.Why
	}
	return context.Cause(ctx)
}

// Coordinates reports whether this process's exit code and output are those of all ranks, which is
// so of rank 0 and of a client without others.
func (c *Clients) Coordinates() bool { return c == nil || c.leader != nil }

// OthersHere are the other ranks on the coordinator's host; none for a rank that does not
// coordinate.
func (c *Clients) OthersHere() (ranks []int) {
	if c == nil || c.leader == nil {
		return nil
	}
	own := c.leader.Hello
	for _, h := range c.leader.Members() {
		if h.OneHost(&own) && h.Rank != c.Rank {
			ranks = append(ranks, h.Rank)
		}
	}
	return ranks
}

// Leave says that this rank has come to its end; the coordinator waits for all of them. A rank that
// a signal has ended before its time gives that reason: it is lost to the others.
func (c *Clients) Leave() {
	if c == nil {
		return
	}
	why := ""
	if c.Context.Err() != nil && c.leader == nil && !Ended(c.Context) {
		why = Why(c.Context).Error()
	}
	if c.member != nil {
		c.member.Leave(why)
	}
	c.close()
}

// Enter comes to a trial together with the others, and takes over what all agree about. It comes
// also with a failure instead of a configuration: the others must not wait.
func (c *Clients) Enter(t Trial, cfg *kvbench.Config, failure error) error {
	c.mu.Lock()
	c.where = t.String()
	if c.leader != nil {
		c.trial = &trial{Trial: t, paths: map[int]string{}}
	}
	c.mu.Unlock()
	st := &cfg.Storage
	roots := st.Roots
	if len(roots) == 0 {
		roots = []kvbench.Root{{Room: st.StorageBytes, Floor: st.FreeFloor}}
	}
	terms := wire.Terms{Name: t.String(), Nonce: hex.EncodeToString(st.Nonce[:]),
		Capacity: st.StorageBytes}
	for _, r := range roots {
		terms.Rooms = append(terms.Rooms, wire.Room{Bytes: r.Room, Floor: r.Floor})
	}
	agreed, err := c.member.Enter(c.Context, terms)
	if failure != nil || err != nil {
		return errors.Join(failure, err)
	}
	// The nonce is one for all: content depends on it and on the rank, so that no two ranks write
	// the same.
	nonce, err := hex.DecodeString(agreed.Nonce)
	if err != nil || len(nonce) != len(st.Nonce) {
		return fmt.Errorf("the ranks agreed about a nonce that is none: %q", agreed.Nonce)
	}
	if len(agreed.Rooms) != len(roots) {
		return fmt.Errorf("the ranks agreed about the room of %d directories, and this one has %d",
			len(agreed.Rooms), len(roots))
	}
	copy(st.Nonce[:], nonce)
	for i, r := range agreed.Rooms {
		roots[i].Room, roots[i].Floor = r.Bytes, r.Floor
	}
	if len(st.Roots) == 0 {
		st.FreeFloor = roots[0].Floor
	}
	st.StorageBytes, cfg.Group = agreed.Capacity, c.member
	return nil
}

// Publish sends a rank's result to the coordinator; where that is gone the rank keeps it itself.
func (c *Clients) Publish(r *result.Result, keep func() error) error {
	doc, err := r.Encode()
	if err != nil {
		return err
	}
	if c.member.Publish(doc) != nil {
		return keep()
	}
	return nil
}

// keep writes a rank's result, as soon as it has come.
func (c *Clients) keep(rank, _ int, doc []byte) {
	c.saving.Lock()
	defer c.saving.Unlock()
	c.mu.Lock()
	t := c.trial
	c.mu.Unlock()
	if t == nil {
		return
	}
	r, err := result.Parse(doc)
	if err == nil && r.Rank != rank {
		err = fmt.Errorf("it is of rank %d", r.Rank)
	}
	if err == nil {
		r.ClockOffsetNS = new(c.leader.WallOffset(rank))
		t.results = append(t.results, r)
		t.paths[rank], err = t.Save(fmt.Sprintf("rank_%d", rank), r)
	}
	if err != nil {
		t.failed = append(t.failed, fmt.Errorf("the result of rank %d: %w", rank, err))
	}
}

// Conclude sends how the trial went for this rank, and returns how it went for all: at the
// coordinator with the result of all, elsewhere with the rank's own.
func (c *Clients) Conclude(own *result.Result, ownPath string, failure error) (*result.Result,
	string, error) {
	text := ""
	if failure != nil {
		text = failure.Error()
	}
	// When its files are gone: the next trial of all ranks begins with what the filesystem then has
	// free.
	c.member.Done(text)
	patient, stop := Lasting(c.Context, outcomePatience)
	defer stop()
	// The outcome of all counts; a rank that failed has its own reason in its log.
	if c.leader == nil {
		outcome, err := c.member.Outcome(patient)
		if outcome != "" {
			err = errors.New(outcome)
		}
		if failure != nil {
			err = failure
		}
		return own, ownPath, err
	}
	collected := c.leader.Collect(patient)
	res, path, err := c.merged(collected)
	text = ""
	if err != nil {
		text = err.Error()
	}
	c.leader.Conclude(text)
	return res, path, err
}

// Lasting is a context that ends some time after another one has.
func Lasting(ctx context.Context, after time.Duration) (context.Context, func()) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(after, func() { end(context.Cause(ctx)) })
	})
	return longer, func() { stop(); end(nil) }
}

// shown is what a rank does, and in which trial: a rank that is behind is at another one.
type shown struct {
	Trial string
	kvbench.Snapshot
}

// Show returns the progress function of a trial. The coordinator's live line shows what all ranks do, and
// observe gets what each does. Another rank sends what it does to the coordinator.
func (c *Clients) Show(rank int, show func(kvbench.Snapshot),
	observe func(rank int, now kvbench.Snapshot)) func(kvbench.Snapshot) {
	if c != nil && c.leader == nil {
		return func(now kvbench.Snapshot) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.shown, _ = json.Marshal(shown{c.where, now})
		}
	}
	return func(now kvbench.Snapshot) {
		observe(rank, now)
		c.others(rank, func(rank int, other kvbench.Snapshot) {
			observe(rank, other)
			add(&now, other)
		})
		show(now)
	}
}

// others calls f with what the ranks but one show of the current trial.
func (c *Clients) others(but int, f func(rank int, now kvbench.Snapshot)) {
	if c == nil {
		return
	}
	c.mu.Lock()
	where := c.where
	c.mu.Unlock()
	for rank, text := range c.leader.Live() {
		var other shown
		if rank != but && json.Unmarshal(text, &other) == nil && other.Trial == where {
			f(rank, other.Snapshot)
		}
	}
}

// add adds what another rank does, if it is in the same stage: numbers of another one mean
// something else.
func add(now *kvbench.Snapshot, other kvbench.Snapshot) {
	if other.Stage != now.Stage {
		return
	}
	now.Live.Add(other.Live)
	now.Queued, now.InFlight = now.Queued+other.Queued, now.InFlight+other.InFlight
	now.Done, now.Of = now.Done+other.Done, now.Of+other.Of
	now.Stuck, now.StuckFor = now.Stuck+other.Stuck, max(now.StuckFor, other.StuckFor)
}

func (c *Clients) lastShown() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}
