package benchmarks

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/group"
	"kvbench/kvbench/result"
)

// clients are the ranks of a run, as the process of one of them sees them. Every rank runs the same
// benchmarks in the same order, since all have the same arguments; a trial that failed for one of them
// has failed for all, so that they go on alike. Rank 0 coordinates: it alone has a leader, prints, and
// writes all results, each as soon as it has come. The nil clients is a run with one rank.
//
// Methods are for the goroutine that runs the benchmarks, but for keep and lastShown, which the
// coordinator's connections call.
type clients struct {
	*group.Meeting
	s        *session
	member   *group.Member
	leader   *group.Leader
	listener net.Listener // of the leader
	gathered group.Gathering

	// The lock is held for moments: rank 0's heartbeat takes it, which the coordinator waits for but
	// some seconds. Results are parsed and written outside of it, and one at a time: each takes
	// some MiB, and there may be a thousand.
	mu     sync.Mutex
	shown  []byte // what the coordinator's live line shows of this rank
	trial  *collection
	at     string // the trial that this rank has come to
	saved  bool   // there is a result of all ranks
	saving sync.Mutex

	started []*group.Process
	missing []string // directories of files that were not there before the run
}

// collection is the results of a trial, as the coordinator keeps them until all ranks have done it.
// clients.saving is held by every reader and writer.
type collection struct {
	// save writes the result of a rank, rank_3, or that of all_ranks, and returns where.
	save    func(whose string, r *result.Result) (path string, err error)
	results []*result.Result // that have come, in any order
	paths   map[int]string   // where they were written, by rank
	failed  []error          // to write one
}

// gather starts the other ranks, or meets them, where there are several that know of each other, and
// returns when all are connected. All but the coordinator print into a file from here on.
func (s *session) gather() error {
	v, meeting := s.points[0], s.meeting.Load()
	if meeting == nil && !v.Starts() {
		return nil
	}
	c := &clients{s: s, Meeting: meeting}
	for _, dir := range c.dirs() {
		c.missing = append(c.missing, missing(dir)...)
	}
	if err := c.meetAll(); err != nil {
		if c.leader == nil {
			return err
		}
		c.leader.Stop(err.Error())
		c.leave()
		if meeting == nil {
			err = fmt.Errorf("%w (logs of the ranks: %s)", err,
				filepath.Join(v.ResultsDir, "rank_*.log"))
		}
		return err
	}
	s.clients = c
	// A signal to this process is one to all: those of a terminal reach the others by themselves.
	if c.leader != nil {
		context.AfterFunc(s.ctx, func() { c.leader.Stop(whyEnded(s.ctx).Error()) })
	}
	// All ranks find the same, and each comes to its end.
	if err := c.share(s.points, s.feasible); err != nil {
		c.leave()
		return err
	}
	if c.coordinates() {
		return nil
	}
	s.tty = nil // the coordinator's
	log, err := c.adopt()
	if log != nil {
		// A crash is still printed on the old descriptors, where the launcher shows it. A file without
		// a reference would be closed, and an entry's file get its number, and the crash's text.
		s.printed = [2]*os.File{os.Stdout, os.Stderr}
		os.Stdout, os.Stderr = log, log
	}
	return err
}

// meetAll returns when all ranks are connected. Nothing else of the run was made before.
func (c *clients) meetAll() (err error) {
	v, starts := c.s.points[0], c.Meeting == nil
	ctx, stop := context.WithTimeout(c.s.ctx, v.RendezvousTimeout)
	defer stop()
	if starts {
		c.Meeting = &group.Meeting{Address: "127.0.0.1:0", Job: rand.Text(), Launcher: "kvbench",
			Ranks: v.Ranks}
	}
	if c.Rank == 0 {
		if c.listener, err = group.Listen(c.Address); err != nil {
			return err
		}
	}
	if starts {
		c.Address = c.listener.Addr().String()
	}
	h := hello(c.Meeting, c.s.points, c.dirs())
	if c.Rank == 0 {
		c.lead(h)
	}
	if starts {
		if err := c.start(); err != nil {
			return err
		}
	}
	c.member, err = group.Dial(ctx, c.Address, c.Started || c.leader != nil, h,
		group.MemberConfig{Clock: group.System{}, Live: c.lastShown, Stop: func(why error) {
			c.s.cancel(kvbench.Interrupted{Why: endedByOther{why}})
		}})
	if err == nil && c.leader != nil {
		err = c.leader.Gather(ctx)
	}
	if err == nil {
		// The coordinator's clock alone decides which rank is late.
		c.gathered, err = c.member.Gathered(c.s.ctx)
	}
	return err
}

// lead makes this process coordinate.
func (c *clients) lead(h group.Hello) {
	v := c.s.points[0]
	h.Stamp = c.s.inputs.Stamp
	cfg := group.LeaderConfig{Hello: h, Clock: group.System{},
		Continue: v.RankFailure == "continue", Result: c.keep}
	if v.SharedDir != "auto" {
		cfg.Shared = new(v.SharedDir == "true")
	}
	c.leader = group.NewLeader(cfg)
	go c.leader.Serve(c.listener)
}

// start starts the other ranks on this host.
func (c *clients) start() error {
	dir := c.s.points[0].ResultsDir
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("making the results directory: %w", err)
	}
	for rank := 1; rank < c.Ranks && c.leader.Stopped() == ""; rank++ {
		// What a rank prints is of use when something goes wrong.
		log, err := os.Create(logPath(dir, rank))
		if err != nil {
			return fmt.Errorf("making the log of rank %d: %w", rank, err)
		}
		m := *c.Meeting
		m.Rank, m.Started, m.Base, m.Stamp = rank, true, c.s.inputs.Base, c.s.inputs.Stamp
		p, err := group.StartRank(m, log)
		_ = log.Close()
		if err != nil {
			return err
		}
		c.started = append(c.started, p)
		c.leader.Started(p)
	}
	return nil
}

// endedByOther is why another rank, or the coordinator, has ended the run.
type endedByOther struct{ error }

func (e endedByOther) Unwrap() error { return e.error }

// ofOthers reports whether a run was ended by another rank, or by the coordinator.
func ofOthers(ctx context.Context) bool {
	var by endedByOther
	return errors.As(context.Cause(ctx), &by)
}

// whyEnded is what ended a run here.
func whyEnded(ctx context.Context) error {
	if i := (kvbench.Interrupted{}); errors.As(context.Cause(ctx), &i) {
		return i.Why
	}
	return context.Cause(ctx)
}

// coordinates reports whether this process's exit code and output are those of all ranks, which is
// so of rank 0 and of a run with one rank.
func (c *clients) coordinates() bool { return c == nil || c.leader != nil }

// othersHere are the other ranks on the coordinator's host; none for a rank that does not
// coordinate.
func (c *clients) othersHere() (ranks []int) {
	if c == nil || c.leader == nil {
		return nil
	}
	for _, h := range c.leader.Members() {
		if h.OneHost(&c.leader.Hello) && h.Rank != c.Rank {
			ranks = append(ranks, h.Rank)
		}
	}
	return ranks
}

// leave reports that this rank has come to its end; the coordinator waits for all of them. A rank that
// a signal has ended before its time gives that reason: it is lost to the others.
func (c *clients) leave() {
	if c == nil {
		return
	}
	why := ""
	if c.s.ctx.Err() != nil && c.leader == nil && !ofOthers(c.s.ctx) {
		why = whyEnded(c.s.ctx).Error()
	}
	if c.member != nil {
		c.member.Leave(why)
	}
	c.close()
}

// close ends what a coordinator has with other ranks, when they have left, or soon. A second call
// does nothing.
func (c *clients) close() {
	late := time.Now().Add(patience)
	if c.leader != nil {
		ctx, stop := context.WithDeadline(context.Background(), late)
		defer stop()
		c.leader.Close(ctx)
	}
	if c.listener != nil {
		_ = c.listener.Close()
	}
	for _, p := range c.started {
		if _, ended := p.Ended(time.Until(late)); !ended {
			p.Kill()
		}
	}
	// The ranks made these together, and each has left them to the others. Others than empty ones
	// stay.
	for _, dir := range c.missing {
		_ = syscall.Rmdir(dir)
	}
}

// enter comes to a trial together with the others, and takes over what all agree about. It comes
// also with a failure instead of a configuration: the others must not wait.
func (c *clients) enter(t *trial, cfg *kvbench.Config, failure error,
	save func(whose string, r *result.Result) (path string, err error)) error {
	if c == nil {
		return failure
	}
	c.mu.Lock()
	c.at = fmt.Sprintf("trial %d of %s", t.number, t.name)
	if c.leader != nil {
		c.trial = &collection{save: save, paths: map[int]string{}}
	}
	c.mu.Unlock()
	st := &cfg.Storage
	roots := st.Roots
	if len(roots) == 0 {
		roots = []kvbench.Root{{Room: st.StorageBytes, Floor: st.FreeFloor}}
	}
	terms := group.Terms{Name: c.at, Nonce: hex.EncodeToString(st.Nonce[:]),
		Capacity: st.StorageBytes}
	for _, r := range roots {
		terms.Directories = append(terms.Directories, group.Capacity{Bytes: r.Room, Floor: r.Floor})
	}
	agreed, err := c.member.Enter(c.s.ctx, terms)
	if failure != nil || err != nil {
		return errors.Join(failure, err)
	}
	// The nonce is one for all: content depends on it and on the rank, so that no two ranks write
	// the same.
	nonce, err := hex.DecodeString(agreed.Nonce)
	if err != nil || len(nonce) != len(st.Nonce) {
		return fmt.Errorf("the ranks agreed about a nonce that is none: %q", agreed.Nonce)
	}
	if n := len(agreed.Directories); n != len(roots) {
		return fmt.Errorf("the ranks agreed about the capacity of %d directories, and this one has %d",
			n, len(roots))
	}
	copy(st.Nonce[:], nonce)
	for i, r := range agreed.Directories {
		roots[i].Room, roots[i].Floor = r.Bytes, r.Floor
	}
	if len(st.Roots) == 0 {
		st.FreeFloor = roots[0].Floor
	}
	st.StorageBytes, cfg.Group = agreed.Capacity, c.member
	return nil
}

// publish sends a rank's result to the coordinator. A run with one rank keeps it itself, and so does a
// rank whose coordinator is gone.
func (c *clients) publish(r *result.Result, keep func() error) error {
	if c == nil {
		return keep()
	}
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
func (c *clients) keep(rank int, doc []byte) {
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
		t.paths[rank], err = t.save("rank_"+strconv.Itoa(rank), r)
	}
	if err != nil {
		t.failed = append(t.failed, fmt.Errorf("the result of rank %d: %w", rank, err))
	}
}

// conclude sends how the trial went for this rank, and returns how it went for all: at the
// coordinator with the result of all, elsewhere with the rank's own.
func (c *clients) conclude(own outcome) outcome {
	if c == nil {
		return own
	}
	text := ""
	if own.err != nil {
		text = own.err.Error()
	}
	// When its files are gone: the next trial of all ranks begins with what the filesystem then has
	// free.
	c.member.Done(text)
	patient, stop := kvbench.After(c.s.ctx, inPatience)
	defer stop()
	if c.leader != nil {
		all := c.merged(c.leader.Collect(patient))
		text = ""
		if all.err != nil {
			text = all.err.Error()
		}
		c.leader.Conclude(text)
		return all
	}
	// The outcome of all counts; a rank that failed has its own reason in its log.
	text, err := c.member.Outcome(patient)
	if text != "" {
		err = errors.New(text)
	}
	if own.err == nil {
		own.err = err
	}
	return own
}

// progress is what a rank does, and in which trial: a rank that is behind is at another one.
type progress struct {
	Trial string
	kvbench.Snapshot
}

// show returns the progress function of a trial. The coordinator's live line shows what all ranks do,
// and observe gets what each does. Another rank sends what it does to the coordinator.
func (c *clients) show(rank int, show func(kvbench.Snapshot),
	observe func(rank int, now kvbench.Snapshot)) func(kvbench.Snapshot) {
	if !c.coordinates() {
		return func(now kvbench.Snapshot) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.shown, _ = json.Marshal(progress{c.at, now})
		}
	}
	return func(now kvbench.Snapshot) {
		observe(rank, now)
		if c != nil {
			c.mu.Lock()
			at := c.at
			c.mu.Unlock()
			for other, text := range c.leader.Live() {
				var p progress
				if other != rank && json.Unmarshal(text, &p) == nil && p.Trial == at {
					observe(other, p.Snapshot)
					add(&now, p.Snapshot)
				}
			}
		}
		show(now)
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

func (c *clients) lastShown() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown
}
