package benchmarks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/group"
	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// clients holds what one rank's process knows of all ranks of a run. Every rank runs the same
// benchmarks in the same order, because all have the same arguments. A trial that failed for one rank
// has failed for all ranks, so all continue with the same trial. Rank 0 is the coordinator: only rank 0
// has a coordinator, prints, and writes the results of all ranks, each as soon as it arrives. A nil *clients
// is a run with one rank.
//
// Only the goroutine that runs the benchmarks calls the methods, except keep and lastShown: the
// coordinator's connections call these two.
type clients struct {
	*group.Meeting
	s        *session
	member   *group.Member
	leader   *group.Leader
	gathered group.Gathering

	shown   atomic.Pointer[[]byte] // JSON of progress, for the coordinator's live line
	at      atomic.Pointer[string] // the name of the trial that this rank has entered
	missing []string               // directories that did not exist before the run

	// mu is held while a result is parsed: each takes some MiB, and there may be a thousand.
	mu     sync.Mutex
	trial  *collection
	saved  bool                    // a merged result was written
	writes chan struct{}           // holds a token while a call accesses the results directory
	hung   context.Context         // ends when such a call does not return after the end of the run
	hang   context.CancelCauseFunc // ends hung
}

// collection holds the results of a trial at the coordinator, until all ranks have finished the trial.
type collection struct {
	// save writes a result and returns its path. whose is rank_<N> or all_ranks.
	save    func(whose string, r *result.Result) (path string, err error)
	results []*result.Result      // in order of arrival
	paths   map[int]string        // path of each written result, by rank
	failed  []error               // errors of reading or writing a result
	pauses  func() []result.Pause // of this process since the trial began
}

// gather starts the other ranks, or connects to them, and returns when all ranks are connected. It does
// nothing if there are no ranks to connect. Afterwards all ranks but the coordinator print into a file.
func (s *session) gather() error {
	v, meeting := s.points[0], s.meeting.Load()
	if meeting == nil && !v.Starts() {
		return nil
	}
	c := &clients{s: s, Meeting: meeting, writes: make(chan struct{}, 1)}
	c.hung, c.hang = context.WithCancelCause(context.Background())
	for _, dir := range sharedDirs(s.points) {
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
	// A signal to the coordinator ends all ranks. The terminal sends its signals to all ranks itself.
	if c.leader != nil {
		context.AfterFunc(s.ctx, func() { c.leader.Stop(whyEnded(s.ctx).Error()) })
	}
	// Every rank gets the same error, and each rank ends by itself.
	if err := c.share(s.points, s.feasible); err != nil {
		c.leave()
		return err
	}
	if c.coordinates() {
		return nil
	}
	s.tty = nil // only the coordinator has a live line
	log, err := c.adopt()
	if log != nil {
		// The Go runtime prints a crash on the old descriptors, where the launcher shows it. Keep
		// references to their files: an unreferenced file is closed, an entry's file may get its
		// number, and the crash would be printed into that entry.
		s.printed = [2]*os.File{os.Stdout, os.Stderr}
		os.Stdout, os.Stderr = log, log
	}
	return err
}

// meetAll connects all ranks and returns when all are connected. Call it before the run creates
// anything else.
func (c *clients) meetAll() (err error) {
	v, starts := c.s.points[0], c.Meeting == nil
	ctx, stop := context.WithTimeout(c.s.ctx, v.RendezvousTimeout)
	defer stop()
	if starts {
		c.Meeting = &group.Meeting{Address: "127.0.0.1:0", Job: rand.Text(), Launcher: "kvbench",
			Ranks: v.Ranks}
	}
	h := hello(c.Meeting, c.s.points, sharedDirs(c.s.points))
	if c.Rank == 0 {
		h.Stamp = c.s.inputs.Stamp
		cfg := group.LeaderConfig{Hello: h, Continue: v.RankFailure == "continue", Timeout: v.RankTimeout,
			Result: c.keep}
		if v.SharedDir != "auto" {
			cfg.Shared = new(v.SharedDir == "true")
		}
		if c.leader, err = group.Lead(c.Address, cfg); err != nil {
			return err
		}
	}
	if starts {
		c.Address = c.leader.Address()
		if err := c.start(); err != nil {
			return err
		}
	}
	c.member, err = group.Dial(ctx, c.Address, c.Started || c.leader != nil, h,
		group.MemberConfig{Timeout: v.RankTimeout, Live: c.lastShown, Stop: func(why error) {
			c.s.cancel(kvbench.Interrupted{Why: endedByOther{why}})
		}})
	if err != nil {
		return err
	}
	if c.leader == nil {
		ctx = c.s.ctx // only the coordinator's clock decides which rank is late
	}
	c.gathered, err = c.member.Gathered(ctx)
	if c.leader != nil && errors.Is(err, context.DeadlineExceeded) {
		err = cmp.Or(c.leader.Missing(v.RendezvousTimeout), err)
	}
	return err
}

// start starts the other ranks on this host.
func (c *clients) start() error {
	dir := c.s.points[0].ResultsDir
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("making the results directory: %w", err)
	}
	for rank := 1; rank < c.Ranks && c.leader.Stopped() == ""; rank++ {
		// The log of a rank helps to find an error.
		log, err := os.Create(logPath(dir, rank))
		if err != nil {
			return fmt.Errorf("making the log of rank %d: %w", rank, err)
		}
		m := *c.Meeting
		m.Rank, m.Started, m.Base, m.Stamp = rank, true, c.s.inputs.Base, c.s.inputs.Stamp
		err = c.leader.Start(m, log)
		_ = log.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// endedByOther is the reason for which another rank, or the coordinator, has ended the run.
type endedByOther struct{ error }

func (e endedByOther) Unwrap() error { return e.error }

// ofOthers reports whether another rank, or the coordinator, ended the run.
func ofOthers(ctx context.Context) bool {
	var by endedByOther
	return errors.As(context.Cause(ctx), &by)
}

// whyEnded returns the reason for which the run was ended here.
func whyEnded(ctx context.Context) error {
	if i := (kvbench.Interrupted{}); errors.As(context.Cause(ctx), &i) {
		return i.Why
	}
	return context.Cause(ctx)
}

// coordinates reports whether this process's exit code and output count for all ranks. It is true for
// rank 0 and for a run with one rank.
func (c *clients) coordinates() bool { return c == nil || c.leader != nil }

// othersHere returns the other ranks on the coordinator's host. It returns none on a rank that does not
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

// leave reports to the coordinator that this rank has ended. The coordinator waits for this message of all
// ranks. A rank that a signal ended early sends that reason, and the coordinator counts it as lost.
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
	if c.leader != nil { // it kills the ranks that it has started and that do not end
		ctx, stop := kvbench.After(c.s.ctx, inPatience)
		defer stop()
		ctx, stop = context.WithTimeout(ctx, c.s.points[0].RankTimeout)
		defer stop()
		if c.hung.Err() != nil { // the logs of the ranks are there, too
			stop()
		}
		for _, p := range c.leader.Close(ctx) {
			fmt.Fprintln(os.Stderr, "kvbench:", p.Why())
		}
	}
	// The ranks create these directories together, and no rank removes them. Rmdir removes only empty
	// ones.
	within(patience, func() {
		for _, dir := range c.missing {
			_ = syscall.Rmdir(dir)
		}
	})
}

// enter starts a trial together with the other ranks, and sets in cfg what all ranks agree on. Call it
// also with the failure of preparing cfg, because the other ranks wait for this rank.
func (c *clients) enter(t *trial, cfg *kvbench.Config, failure error,
	save func(whose string, r *result.Result) (path string, err error)) error {
	if c == nil {
		return failure
	}
	name := fmt.Sprintf("trial %d of %s", t.number, t.name)
	c.at.Store(&name)
	c.mu.Lock()
	if c.leader != nil {
		c.trial = &collection{save: save, paths: map[int]string{}, pauses: kvbench.WatchPauses(c.Rank)}
	}
	c.mu.Unlock()
	st := &cfg.Storage
	terms := group.Terms{Name: name, Simulated: t.v.Simulated(), Nonce: st.Nonce[:], Capacity: st.StorageBytes}
	for _, r := range st.Roots {
		terms.Directories = append(terms.Directories, group.Capacity{Bytes: r.Room, Floor: r.Floor})
	}
	agreed, err := c.member.Enter(c.s.ctx, terms)
	if failure != nil || err != nil {
		return errors.Join(failure, err)
	}
	// All ranks use one nonce. Content depends on the nonce and on the rank, so no two ranks write the
	// same bytes.
	copy(st.Nonce[:], agreed.Nonce)
	for i, r := range agreed.Directories {
		st.Roots[i].Room, st.Roots[i].Floor = r.Bytes, r.Floor
	}
	st.StorageBytes, cfg.Group = agreed.Capacity, c.member
	return nil
}

// publish sends a rank's result to the coordinator. It calls keep instead if there is only one rank, or
// if the coordinator is gone.
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

// keep writes the result of a rank when it arrives at the coordinator.
func (c *clients) keep(rank int, doc []byte, ahead time.Duration) {
	c.mu.Lock()
	t := c.trial
	r, err := result.Parse(doc)
	if err == nil && t != nil {
		r.ClockOffsetNS = new(int64(ahead))
		t.results = append(t.results, r)
	}
	c.mu.Unlock()
	if t == nil {
		return
	}
	path := ""
	if err == nil {
		path, err = onResults(c, func() (string, error) { return t.save("rank_"+strconv.Itoa(rank), r) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.paths[rank] = path
	if err != nil {
		t.failed = append(t.failed, fmt.Errorf("the result of rank %d: %w", rank, err))
	}
}

// onResults runs work, which accesses the results directory, one call at a time. After a signal a call that makes
// no progress for a second hangs: then this call and all others return an error.
func onResults[T any](c *clients, work func() (T, error)) (answer T, err error) {
	select {
	case c.writes <- struct{}{}:
	case <-c.hung.Done():
		return answer, context.Cause(c.hung)
	}
	a, v := &access{}, c.s.points[0]
	a.limit.Store(int64(v.IOTimeout))
	defer context.AfterFunc(c.s.ctx, func() { a.limit.Store(int64(time.Second)) })()
	answer, err = await(c.hung, a, func(string, time.Duration) {}, work)
	if errors.Is(err, kvbench.ErrUnanswered) {
		err = fmt.Errorf("%w: %s, and the run stopped waiting for it", kvbench.ErrUnanswered, v.ResultsDir)
		c.hang(err)
		return answer, err
	}
	<-c.writes
	return answer, err
}

// conclude sends the outcome of a trial for this rank, and returns the outcome for all ranks. At the
// coordinator it holds the merged result, at another rank the rank's own result.
func (c *clients) conclude(own outcome) outcome {
	if c == nil {
		return own
	}
	text := ""
	if own.err != nil {
		text = own.err.Error()
	}
	// This rank's files are gone now: the next trial of all ranks starts with the free space that they
	// left.
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
	// The outcome of all ranks counts. If this rank failed, keep its own error for its log.
	text, err := c.member.Outcome(patient)
	if text != "" {
		err = errors.New(text)
	}
	if own.err == nil {
		own.err = err
	}
	return own
}

// progress is a rank's snapshot, with the name of its trial. A slow rank may still be in an earlier
// trial.
type progress struct {
	Trial string
	kvbench.Snapshot
}

// show returns the progress function of a trial. At the coordinator that function passes the sum over
// all ranks to show (the live line) and the snapshot of each rank to observe. At another rank it stores
// the snapshot for the coordinator.
func (c *clients) show(rank int, show func(kvbench.Snapshot),
	observe func(rank int, now kvbench.Snapshot)) func(kvbench.Snapshot) {
	if !c.coordinates() {
		return func(now kvbench.Snapshot) {
			text, _ := json.Marshal(progress{*c.at.Load(), now})
			c.shown.Store(&text)
		}
	}
	return func(now kvbench.Snapshot) {
		observe(rank, now)
		if c != nil {
			for other, text := range c.leader.Live() {
				var p progress
				if other != rank && json.Unmarshal(text, &p) == nil && p.Trial == *c.at.Load() {
					observe(other, p.Snapshot)
					add(&now, p.Snapshot)
				}
			}
		}
		show(now)
	}
}

// add adds the snapshot of another rank if both ranks are in the same stage. Numbers of different
// stages have different meanings.
func add(now *kvbench.Snapshot, other kvbench.Snapshot) {
	if other.Stage != now.Stage {
		return
	}
	now.Live.Add(other.Live)
	now.Queued, now.InFlight = now.Queued+other.Queued, now.InFlight+other.InFlight
	now.Done, now.DoneTotal = now.Done+other.Done, now.DoneTotal+other.DoneTotal
	now.Stuck, now.StuckFor = now.Stuck+other.Stuck, max(now.StuckFor, other.StuckFor)
	now.Silent = min(now.Silent, other.Silent)
}

func (c *clients) lastShown() []byte {
	return units.OrZero(c.shown.Load())
}
