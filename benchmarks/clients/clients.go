package clients

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/group/agent"
	"kvbench/kvbench/group/coordinate"
	"kvbench/kvbench/group/wire"
	"kvbench/kvbench/result"
)

// Clients are the ranks of a run that were started together, as the process of one of them sees
// them. Rank 0's coordinates, or a process without a load: it alone has a leader. The nil Clients
// is a client that is alone.
type Clients struct {
	Config
	member   *coordinate.Member
	leader   *coordinate.Leader
	listener net.Listener   // of ranks that the coordinator has not started, nil without
	stamp    string         // of the run, as its coordinator says
	sharing  []wire.Sharing // of the filesystems of this rank's directories
	local    int            // ranks on this host

	// The lock is for moments: rank 0's beat asks for it, which the coordinator waits for but some
	// seconds. Results are parsed and written outside of it, and one at a time, because one takes
	// some MiB while it is: there may be a thousand at once.
	mu     sync.Mutex
	shown  []byte // what the coordinator's live line is to show of this rank
	trial  *underway
	where  string // the trial that this rank has come to
	saved  bool   // there is a result at least
	saving sync.Mutex

	started []*agent.Process // ranks here, and the shells that lead to others
	missing []string         // directories of files that were not there before the run
}

// Config is what a run knows of its clients.
type Config struct {
	// Context is the run's. Cancel ends it when another rank, or the coordinator, has ended the
	// run: its cause is then a kvbench.Interrupted that Ended knows.
	Context context.Context
	Cancel  context.CancelCauseFunc
	Hello   wire.Hello // of this rank
	// Orders and Coordinator are those of a rank that was started, nil for others.
	Orders      *agent.Orders
	Coordinator net.Conn

	// Dirs are the directories in which this rank is going to work.
	Dirs []string

	// Meeting is how ranks come together that nobody of them has started, nil for others.
	Meeting *Meeting
	Timeout time.Duration // within which all have to be there

	// Of the one that starts others: where, and how it reaches other hosts.
	Hosts []Host
	Shell agent.Shell

	// Of the one that coordinates: whether the loss of one ends the run, what those that it starts
	// are told, and where logs and results go.
	Continue   bool
	Others     agent.Orders
	ResultsDir string
}

// Trial is one that all ranks are about to run.
type Trial struct {
	Name   string
	Number int
	// Save writes the result of a rank, rank_3, or that of all_ranks, and returns where.
	Save func(whose string, r *result.Result) (path string, err error)
}

func (t Trial) String() string { return fmt.Sprintf("trial %d of %s", t.Number, t.Name) }

// underway is a trial, as the coordinator keeps it until all ranks have done it. Clients.saving is
// held by whoever reads or changes it.
type underway struct {
	Trial
	results []*result.Result // that have come, in any order
	paths   map[int]string   // where they were written, by rank
	failed  []error          // to write one
	stop    func()           // ends what shows it, and waits for that; nil for nothing
}

// outcomePatience is how long an interrupted run waits for its ranks to clean up, and for those
// that have not come to the trial; results are waited for as long as their ranks are heard of.
const outcomePatience = 2 * time.Second

// Gather starts the other ranks, or meets the coordinator, and returns when all are there. Nothing
// else of the run was made before.
func Gather(cfg Config) (*Clients, error) {
	c := &Clients{Config: cfg}
	for _, dir := range cfg.Dirs {
		c.missing = append(c.missing, missing(dir)...)
	}
	m := coordinate.MemberConfig{Clock: coordinate.System{}, Live: c.lastShown,
		Prober: marksIn(c.Dirs, &c.Hello),
		Stop:   func(why error) { c.Cancel(kvbench.Interrupted{Why: ended{why}}) }}
	// However this ends: a mark must not stay.
	if m.Prober != nil {
		defer m.Prober.Remove()
	}
	ctx, stop := context.WithTimeout(c.Context, c.Timeout)
	defer stop()
	// Rank 0 coordinates, so that no process is needed beside the ranks.
	var err error
	switch {
	case c.Orders != nil:
		c.member, err = coordinate.Join(ctx, c.Coordinator, c.Hello, m)
	case c.Meeting != nil && c.Hello.Rank > 0:
		err = c.dial(ctx, m)
	default:
		if err = c.coordinate(ctx, m); err != nil && c.listener != nil {
			_ = c.listener.Close()
		}
		return c, err
	}
	if err != nil {
		return c, err
	}
	// How long that may take the coordinator knows, which beats meanwhile: two clocks that began at
	// different times would disagree about who is late.
	who, err := c.member.Gathered(c.Context)
	c.stamp, c.sharing, c.local = who.Stamp, c.member.Sharing(), c.member.Local()
	return c, err
}

// Decline tells the coordinator that this rank cannot take part, and why: its host lacks something
// that the coordinator's has. Nobody waits for it.
func Decline(conn net.Conn, h wire.Hello, why error) {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	h.Refused = why.Error()
	_, _ = coordinate.Join(ctx, conn, h, coordinate.MemberConfig{Clock: coordinate.System{}})
}

// coordinate starts the other ranks, or waits for them, and joins them as rank 0.
func (c *Clients) coordinate(ctx context.Context, m coordinate.MemberConfig) error {
	c.leader = coordinate.NewLeader(coordinate.LeaderConfig{Hello: c.Hello, Clock: m.Clock,
		Continue: c.Continue, Result: c.keep})
	logs, err := "", error(nil)
	if c.Meeting == nil {
		logs = " (logs of the ranks: " + filepath.Join(c.ResultsDir, "rank_*.log") + ")"
		err = c.start()
	} else if c.listener, err = c.Meeting.Place.Listen(); err == nil {
		go c.listen(c.listener)
	}
	if err != nil {
		return err
	}
	// Rank 0 speaks with the coordinator as all others do, through sockets of this process: what it
	// says has room there while the coordinator is at something else. Where the first host is
	// another one, rank 0 comes from there.
	if c.Meeting != nil || c.Hosts[0].Here {
		ours, theirs, failed := agent.Pair()
		if failed != nil {
			return fmt.Errorf("connecting rank 0: %w", failed)
		}
		go c.leader.Accept(ours, nil)
		c.member, err = coordinate.Join(ctx, theirs, c.Hello, m)
		if why := c.leader.Stopped(); err != nil && why != "" {
			err = errors.New(why) // which is why it was refused
		}
	}
	if err == nil {
		err = c.leader.Gather(ctx)
	}
	if err == nil {
		// It has as long again: the last rank may have come in the last moment.
		ctx, stop := context.WithTimeout(c.Context, c.Timeout)
		defer stop()
		err = c.leader.Begin(ctx)
	}
	if err != nil {
		c.leader.Stop(err.Error())
		if c.member != nil {
			c.member.Leave("")
		}
		said := c.said()
		c.close()
		return fmt.Errorf("%w%s%s", err, said, logs)
	}
	if f, is := c.listener.(interface{ Forget() }); is {
		f.Forget() // nobody looks for this rank any more
	}
	// Of a coordinator without a load nothing follows from it.
	c.sharing, c.local = c.leader.Sharing()[0], c.leader.Local()
	// A signal to this process is one to all: those of a terminal reach the others by themselves.
	context.AfterFunc(c.Context, func() { c.leader.Stop(c.why()) })
	return nil
}

// said is what the shells have said last that have not brought their ranks, which may be why: one
// that waits for a password, or for a host that is down, says so and goes on waiting, so that the
// error of its end does not come before that of the time.
func (c *Clients) said() (all string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.started {
		if _, ended := p.Ended(0); ended {
			continue // the error has it
		}
		if said := p.Said(); said != "" {
			all += "\n  " + said
		}
	}
	return all
}

// start starts the other ranks.
func (c *Clients) start() error {
	if err := os.MkdirAll(c.ResultsDir, 0o777); err != nil {
		return fmt.Errorf("making the results directory: %w", err)
	}
	// Side by side, and none is awaited here: a host that is slow to answer, or a program whose
	// filesystem is, holds up neither the others nor the end of the wait for all.
	for i, h := range c.Hosts {
		if !h.Here {
			go c.reach(h)
			continue
		}
		first := h.First
		if i == 0 {
			// This process is a rank only where the first host is this one: elsewhere in the list
			// its host's ranks are children like any.
			first++
		}
		go func() {
			for rank := first; rank < h.First+h.Ranks; rank++ {
				if !c.starts(rank, h, agent.Start) {
					return
				}
			}
		}()
	}
	return nil
}

// ended is why a run ends that another rank, or the coordinator, has ended.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }

// Ended tells whether a run was ended by another rank, or by the coordinator.
func Ended(ctx context.Context) bool {
	var by ended
	return errors.As(context.Cause(ctx), &by)
}

// why is what ended the run here. Who is sent it adds that it was interrupted.
func (c *Clients) why() string {
	cause := context.Cause(c.Context)
	if i := (kvbench.Interrupted{}); errors.As(cause, &i) {
		cause = i.Why
	}
	return cause.Error()
}

// Coordinates tells whether this process does: its exit code and what it prints are those of all
// ranks. So it is of a client that is alone.
func (c *Clients) Coordinates() bool { return c == nil || c.leader != nil }

// OthersHere are the other ranks on the coordinator's host; none for a rank that does not
// coordinate.
func (c *Clients) OthersHere() (ranks []int) {
	if c == nil || c.leader == nil {
		return nil
	}
	for _, h := range c.leader.Members() {
		if h.OneHost(&c.Hello) && h.PID != c.Hello.PID {
			ranks = append(ranks, h.Rank)
		}
	}
	return ranks
}

// Leave says that this rank has come to its end; the coordinator waits for all of them. One that
// was ended by itself, before its time, says so: it is lost to the others.
func (c *Clients) Leave() {
	if c == nil {
		return
	}
	why := ""
	if c.Context.Err() != nil && c.leader == nil && !Ended(c.Context) {
		why = c.why()
	}
	if c.member != nil {
		c.member.Leave(why)
	}
	c.close()
}

// close ends what a coordinator has with other ranks, when they have left, or soon. A second call
// does nothing.
func (c *Clients) close() {
	if c.leader != nil {
		ctx, stop := context.WithTimeout(context.Background(), outcomePatience)
		defer stop()
		c.leader.Close(ctx)
	}
	if c.listener != nil {
		_ = c.listener.Close()
	}
	// They end by themselves now. What does not is stopped, or waits for a host that is gone.
	c.mu.Lock()
	defer c.mu.Unlock()
	late := time.Now().Add(outcomePatience)
	for _, p := range c.started {
		if _, ended := p.Ended(time.Until(late)); !ended {
			p.Kill()
		}
	}
	// The ranks made them together, and each has left them to the others. One that is not empty
	// stays by itself.
	for _, dir := range c.missing {
		_ = syscall.Rmdir(dir)
	}
}

// Enter comes to a trial together with the others, and takes over what all agree about. Without a
// configuration, because of failure, it comes all the same: the others must not wait.
func (c *Clients) Enter(t Trial, cfg *kvbench.Config, failure error) error {
	c.comeTo(t, nil)
	st := &cfg.Storage
	terms := wire.Terms{Name: t.String(),
		Nonce: hex.EncodeToString(st.Nonce[:]), Capacity: st.StorageBytes}
	if len(st.Roots) == 0 {
		terms.Rooms = []wire.Room{{Bytes: st.StorageBytes, Floor: st.FreeFloor}}
	}
	for _, r := range st.Roots {
		terms.Rooms = append(terms.Rooms, wire.Room{Bytes: r.Room, Floor: r.Floor})
	}
	agreed, err := c.member.Enter(c.Context, terms)
	if failure != nil || err != nil {
		return errors.Join(failure, err)
	}
	// All have the same parameters, and so the same idea of which tiers there are. The nonce is one
	// for all: with it content depends on the rank, so that no two ranks write the same.
	nonce, err := hex.DecodeString(agreed.Nonce)
	if err != nil || len(nonce) != len(st.Nonce) {
		return fmt.Errorf("the ranks agreed about a nonce that is none: %q", agreed.Nonce)
	}
	copy(st.Nonce[:], nonce)
	if len(agreed.Rooms) != len(terms.Rooms) {
		return fmt.Errorf("the ranks agreed about the room of %d directories, and this one has %d",
			len(agreed.Rooms), len(terms.Rooms))
	}
	st.StorageBytes = agreed.Capacity
	if len(st.Roots) == 0 {
		st.FreeFloor = agreed.Rooms[0].Floor
	}
	for i := range st.Roots {
		st.Roots[i].Room, st.Roots[i].Floor = agreed.Rooms[i].Bytes, agreed.Rooms[i].Floor
	}
	cfg.Group = c.member
	return nil
}

// comeTo is this process's beginning of a trial. Stop ends what shows it; nil for nothing.
func (c *Clients) comeTo(t Trial, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.where = t.String()
	if c.leader != nil {
		c.trial = &underway{Trial: t, paths: map[int]string{}, stop: stop}
	}
}

// Publish hands a rank's result to the coordinator; where that is gone the rank keeps it itself.
func (c *Clients) Publish(r *result.Result, keep func() error) error {
	// As a file, which the coordinator writes: what its readers see is what a single client writes.
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
		err = fmt.Errorf("it says that it is of rank %d", r.Rank)
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

// Conclude says how the trial went for this rank, and returns how it went for all: at the
// coordinator with the result of all, elsewhere with the rank's own.
func (c *Clients) Conclude(own *result.Result, ownPath string, failure error) (*result.Result,
	string, error) {
	text := ""
	if failure != nil {
		text = failure.Error()
	}
	// After its result on the same way, and when its files are gone: the next trial of all ranks
	// begins with what the filesystem then has free.
	if c.member != nil {
		c.member.Done(text)
	}
	patient, stop := lasting(c.Context, outcomePatience)
	defer stop()
	// What became of all counts; who failed says its own reason, because that is in its log.
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
	// Rank 0 is one of those that have done the trial by now; the leader waits for the others.
	collected := c.leader.Collect(patient)
	res, path, err := c.merged(collected)
	text = ""
	if err != nil {
		text = err.Error()
	}
	c.leader.Conclude(text)
	return res, path, err
}

// lasting is a context that ends some time after another one has.
func lasting(ctx context.Context, after time.Duration) (context.Context, func()) {
	longer, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(after, func() { end(context.Cause(ctx)) })
	})
	return longer, func() { stop(); end(nil) }
}

// shown is what a rank does, and in which trial: what one that is behind does is of another.
type shown struct {
	Trial string
	kvbench.Snapshot
}

// Show lets the coordinator's live line show what this rank does, and that of rank 0 what all do.
// There, observe gets what each does. Either may be nil.
func (c *Clients) Show(show func(kvbench.Snapshot), observe func(rank int, now kvbench.Snapshot),
) func(kvbench.Snapshot) {
	if c.leader == nil {
		return func(now kvbench.Snapshot) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.shown, _ = json.Marshal(shown{c.where, now})
		}
	}
	if show == nil && observe == nil {
		return nil
	}
	c.mu.Lock()
	where := c.where // this trial, which it has entered
	c.mu.Unlock()
	return func(now kvbench.Snapshot) {
		if observe != nil {
			observe(c.member.Rank(), now)
		}
		c.others(c.member.Rank(), where, func(rank int, other kvbench.Snapshot) {
			if observe != nil {
				observe(rank, other)
			}
			add(&now, other)
		})
		if show != nil {
			show(now)
		}
	}
}

// others tells what the ranks but one show of a trial.
func (c *Clients) others(but int, where string, f func(rank int, now kvbench.Snapshot)) {
	for rank, text := range c.leader.Live() {
		var other shown
		if rank != but && json.Unmarshal(text, &other) == nil && other.Trial == where {
			f(rank, other.Snapshot)
		}
	}
}

// add adds what another rank does. Of another stage it means something else; that one is ahead or
// behind is seen by rates that fall.
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
