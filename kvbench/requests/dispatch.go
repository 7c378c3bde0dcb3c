package requests

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/workloads"
	"kvbench/workloads/compute"
)

// job is one worker's current request with the decisions about it. Its memory is reused from
// request to request.
type job struct {
	req     *workloads.Request
	plan    []workloads.Op
	intent  []int        // plan index -> index of its key's intent
	intents []cache.Want // distinct keys in order of first use
	prompt  prompt
	lease   cache.Lease
	usual   cache.Lease          // in the Env's Reference
	written bool                 // the source knows that the own entry is settled
	absent  bool                 // the own entry is not available: nothing to decode
	arrived time.Duration        // on the clock
	sample  record.RequestSample // what it took so far
	waited  time.Duration        // in the dispatcher, for something else than its lock
	taken   time.Duration        // on the clock: when its queue ended
	steps   []int                // plan indices in the order of their execution
}

// dispatcher hands requests to workers, most urgent first, and counts the started ones. A worker takes
// a request and decides about its keys in one step under one lock. So decisions are made in the order of
// dispatch, whatever the number of workers and cores.
//
// The same lock makes the counts exact at the window's edges, because no request completes while the window
// is being opened. So each offered request counts as either completed, failed, in flight or queued.
type dispatcher struct {
	*kvbench.Env
	cfg    *Config
	origin time.Duration   // zero of the load's time, in which arrivals are given, on the clock
	over   context.Context // ends with the trial

	mu   sync.Mutex
	cond clock.Cond

	asking atomic.Int64 // start of the source's current call, plus one; 0 = no call

	src       workloads.Source
	opened    bool // the window
	closed    bool
	exhausted bool          // the source will give nothing more
	wake      time.Duration // load time at which an alarm wakes a worker
	drained   clock.Event   // exhausted, and nothing is in flight
	inflight  map[*job]struct{}
	classes   [workloads.NumClasses]classCounts

	moment time.Duration // of the latest request
	still  int64         // requests that began at it

	deciding bool // a worker waits for the decision on its blocks: no other may take a request

	pool pool
	gpu  compute.Server
	windowed
	digest workloads.Digest
}

// windowed counts requests whose prompts exceed the model's context window, and keeps the longest.
type windowed struct {
	passed  int64
	longest int // tokens
}

// look counts a request of that many prompt tokens.
func (w *windowed) look(tokens, window int) {
	if window > 0 && tokens > window {
		w.passed++
		w.longest = max(w.longest, tokens)
	}
}

// classCounts count requests of a class since the load began. Counts of the window are differences
// of two accounts, so that nothing is reset while requests are in flight.
type classCounts struct {
	workloads.ClassLoad       // the source's offers
	started, failed, inFlight int64
	ages                      []time.Duration // of requests in flight, since their arrival
}

func newDispatcher(ctx context.Context, cfg *Config, e *kvbench.Env,
	src workloads.Source) *dispatcher {
	d := &dispatcher{
		Env: e, cfg: cfg, origin: e.Clock.Now(), over: ctx, src: src, wake: workloads.Never,
		drained: e.Clock.NewEvent(), inflight: make(map[*job]struct{}),
		pool: pool{alive: make(map[int]struct{})},
	}
	d.cond = d.Clock.NewCond(&d.mu)
	return d
}

// now is the load's time.
func (d *dispatcher) now() time.Duration { return d.Clock.Now() - d.origin }

// next blocks until there is a request for this worker; false means that the run is over, or that
// there are too many workers. No request is handed out after the window's end, though the trial may
// notice that end a moment later.
func (d *dispatcher) next(worker int, j *job) bool {
	j.waited = 0
	defer d.leave(d.enter(), &j.waited)
	for !d.closed && worker < d.pool.limit && d.Clock.Now() <= d.windowEnd() {
		if d.deciding {
			d.wait(j, deciding)
			continue
		}
		var (
			r    *workloads.Request
			st   workloads.State
			wake time.Duration
		)
		now := d.now()
		d.ask(now, func() { r, st, wake = d.src.Take(now) })
		if st == workloads.Ready {
			decided := d.begin(worker, j, r)
			d.cond.Signal() // there may be more than one
			return decided
		}
		if st == workloads.Exhausted {
			d.exhausted = true
			d.checkDrained()
		} else if wake < d.wake {
			d.wake = wake
			d.Clock.At(d.origin+wake, d.alarm)
		}
		d.wait(j, waiting)
	}
	d.pool.pass(d.measured())
	delete(d.pool.alive, worker)
	return false
}

// begin plans r and decides about its keys. It returns false when the run ended before the
// decision. Callers hold mu.
//
// The decision is taken at dispatch, and not when the bytes move: otherwise hits would depend on
// the storage's speed, and two drives could not be compared under the same load.
func (d *dispatcher) begin(worker int, j *job, r *workloads.Request) bool {
	now := d.Clock.Now()
	j.req, j.written, j.absent, j.taken = r, false, false, now
	j.sample = record.RequestSample{
		Shard: worker, Class: r.Class,
		GenerateTokens: r.GenerateTokens, ContextTokens: r.ContextTokens,
	}
	// The worker has read its clock before the source did: an arrival may lie a moment ahead.
	j.arrived = min(now, d.origin+r.Arrival)
	j.sample.Time.Queue = int64(now - j.arrived)
	j.plan = d.cfg.Planner.Plan(j.plan[:0], r)
	j.intent, j.intents = j.intent[:0], j.intents[:0]
	for _, op := range j.plan {
		at := -1
		if !j.blocks() { // they are distinct
			at = j.intentOf(op.Key)
		}
		if at < 0 {
			at = len(j.intents)
			j.intents = append(j.intents, cache.Want{Key: op.Key, Size: op.Bytes})
		}
		if op.Kind == workloads.WriteIfAbsent || op.Kind == workloads.ReadOrWrite {
			j.intents[at].Write = true
		}
		j.intent = append(j.intent, at)
	}
	d.look(j.prompt.ask(r, j.plan, j.intent), d.cfg.ContextWindow)
	d.inflight[j] = struct{}{}
	d.classes[r.Class].started++
	j.lease.Prefix = j.blocks()
	deciding := d.Clock.Now()
	if !d.decide(j) {
		return false
	}
	j.sample.Time.Room = int64(d.Clock.Now() - deciding) // for victims in use by other requests
	if j.lease.Prefix {
		d.countBlocks(worker, j)
	}
	d.compare(worker, j)
	d.watchTime(now)
	d.digest.Add(r, j.plan, func(i int) uint8 { return uint8(j.lease.Outcome(j.intent[i])) })
	if d.cfg.OnDispatch != nil {
		d.cfg.OnDispatch(r, j.plan)
	}
	return true
}

// maxStill is how many requests may begin without time moving on. A load that
// neither thinks nor waits for storage would never reach its deadline.
const maxStill = 5000 << 12

// watchTime counts the requests that begin at one moment. Only in virtual time are these many. It ends a
// load under which virtual time stands still, and a load whose trial has ended: a worker that never
// waits notices neither. Callers hold mu.
func (d *dispatcher) watchTime(now time.Duration) {
	if now != d.moment {
		d.moment, d.still = now, 0
	}
	if d.still++; d.still&0xfff != 0 {
		return
	}
	d.closed = d.closed || d.over.Err() != nil
	if d.still >= maxStill {
		d.closed = true
		d.Fail(fmt.Errorf("%d requests began at one moment of virtual time: a load that neither "+
			"thinks nor waits for storage has no end here; give think times, -trace-speedup, "+
			"-max-requests or -simulate-device", d.still), result.EndedByError)
	}
}

// decide decides about the keys of a request, in the order in which requests are taken: while a
// decision waits for entries that other requests hold, no other worker takes a request. Only
// decisions about blocks wait. It returns false when the run ended meanwhile. Callers hold mu.
func (d *dispatcher) decide(j *job) bool {
	decided := d.Cache.Decide(&j.lease, j.intents)
	for !decided && !d.closed {
		d.deciding = true
		d.wait(j, deciding)
		decided = !d.closed && d.Cache.Decide(&j.lease, j.intents)
	}
	if d.deciding {
		d.deciding = false
		d.cond.Broadcast()
	}
	return decided
}

// blocks reports whether the request is made of blocks, some of which are cached.
func (j *job) blocks() bool {
	return len(j.plan) > 0 && j.plan[0].Kind == workloads.ReadPrefixOrWrite
}

// countBlocks counts the decisions about the blocks of a request. Only traces have the hits of an
// unbounded cache.
func (d *dispatcher) countBlocks(worker int, j *job) {
	s := record.BlockSample{At: d.Clock.Now(), Shard: worker, Ideal: -1}
	if j.req.OfBlocks() {
		s.Ideal = j.req.IdealBlocks
	}
	s.Blocks = int64(len(j.intents))
	for i := range j.intents {
		s.Tokens += int64(j.plan[i].Tokens)
		switch j.lease.Outcome(i) {
		case cache.Unreachable:
			s.Unreachable++
		case cache.Pending:
			s.Pending++
			fallthrough
		case cache.Hit:
			s.Hits++
			s.HitTokens += int64(j.plan[i].Tokens)
			s.BytesSaved += j.intents[i].Size
		}
	}
	d.Rec.Blocks(s)
	if d.cfg.OnBlocks != nil {
		d.cfg.OnBlocks(j.req, s)
	}
}

// lostBlocks subtracts n hits from block at on: their reads failed.
func (d *dispatcher) lostBlocks(worker int, j *job, at, n int) {
	s := record.BlockSample{At: d.Clock.Now(), Shard: worker}
	for i := at; i < at+n; i++ {
		s.Hits--
		s.HitTokens -= int64(j.plan[i].Tokens)
		s.BytesSaved -= j.intents[i].Size
		if j.lease.Outcome(i) == cache.Pending {
			s.Pending--
		}
	}
	d.Rec.LostBlocks(s)
}

// compare looks up the request's keys in the reference: its blocks, or the earlier entries of its
// prompt. A turn may overtake the one before it, whose entry is not written yet. Such an entry does
// not count as looked up, whatever the policy.
func (d *dispatcher) compare(worker int, j *job) {
	if d.Reference == nil {
		return
	}
	var c result.Comparison
	asked := func(i int) bool {
		piece := j.prompt.of[i]
		return piece >= 0 && !(d.cfg.Overtaking && j.lease.Outcome(i) == cache.Pending &&
			j.prompt.pieces[piece].purpose == workloads.ForHistory)
	}
	for i := range j.intents {
		if asked(i) {
			c.Lookups++
			if o := j.lease.Outcome(i); o == cache.Hit || o == cache.Pending {
				c.Hits++
			}
		}
	}
	d.Reference.Decide(&j.usual, j.intents, j.lease.Prefix, func(i int) {
		if asked(i) {
			c.WaterfallHits++
		}
	})
	d.Rec.Compare(d.Clock.Now(), worker, c)
}

func (d *dispatcher) windowEnd() time.Duration {
	_, end := d.Rec.Window()
	return end
}

// intentOf finds the intent of a key, the latest first: only a request's own
// key comes more than once in a plan, and it comes last.
func (j *job) intentOf(key string) int {
	for k := len(j.intents) - 1; k >= 0; k-- {
		if j.intents[k].Key == key {
			return k
		}
	}
	return -1
}

// enter locks the dispatcher for a worker. leave unlocks it and counts the worker's time in it,
// including the wait for the lock and excluding other waits.
func (d *dispatcher) enter() (begun time.Duration) {
	begun = d.Clock.Now()
	d.mu.Lock()
	return begun
}

func (d *dispatcher) leave(begun time.Duration, waited *time.Duration) {
	d.pool.spent.dispatch += max(0, d.measured()-max(begun, d.pool.opened)-*waited)
	d.mu.Unlock()
}

// ask calls the source, which may read a file that does not answer. Callers hold mu, and keep it
// meanwhile: nothing is known of the load until the source answers.
func (d *dispatcher) ask(now time.Duration, question func()) {
	d.asking.Store(int64(now) + 1)
	question()
	d.asking.Store(0)
}

// silent is the duration of the source's current call, 0 without one.
func (d *dispatcher) silent() time.Duration {
	since := d.asking.Load()
	if since == 0 {
		return 0
	}
	return max(0, d.now()-time.Duration(since-1))
}

// wait waits on the dispatcher's condition and counts the time. Callers hold mu.
func (d *dispatcher) wait(j *job, what doing) {
	from := d.measured()
	d.pool.begin(what, from)
	d.cond.Wait()
	now := d.measured()
	d.pool.end(what, now)
	j.waited += max(0, now-max(from, d.pool.opened))
}

// think sleeps for a GPU's computing time. The worker counts as idle: more such workers would not
// let the storage do more.
func (d *dispatcher) think(ctx context.Context, t time.Duration) error {
	d.mu.Lock()
	d.pool.begin(thinking, d.measured())
	d.mu.Unlock()
	err := d.Clock.Sleep(ctx, t)
	d.mu.Lock()
	d.pool.end(thinking, d.measured())
	d.mu.Unlock()
	return err
}

// measured is the moment up to which workers' time counts: now, or the window's end.
func (d *dispatcher) measured() time.Duration { return min(d.Clock.Now(), d.windowEnd()) }

// staff sets the number of workers to n and returns the ids of those that have to be started. If change
// is not nil, staff calls it first, in the same step.
//
// The numbers of users and workers change together. Otherwise there would be more users than workers for
// a moment, and their backlog would be blamed on the storage.
func (d *dispatcher) staff(n int, change func(now time.Duration)) (start []int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if change != nil {
		change(d.now())
	}
	p := &d.pool
	p.pass(d.measured())
	p.limit = n
	for id := range n {
		if _, works := p.alive[id]; !works {
			p.alive[id] = struct{}{}
			start = append(start, id)
		}
	}
	d.cond.Broadcast() // some workers have to end, others may find a request
	return start
}

// alarm wakes a worker when the next arrival is due. One alarm serves all workers; an alarm that
// was set for a later arrival finds that it is early, and does nothing.
func (d *dispatcher) alarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wake <= d.now() {
		d.wake = workloads.Never
		d.cond.Signal()
	}
}

// wrote reports to the source that the request's own entry is settled, so that the next turn may
// start.
//
// The next turn may start when this turn's entry is written, before the answer is generated. The
// cache has the history of the next turn by then, and a user reads an answer while the next prompt is
// prefilled.
func (d *dispatcher) wrote(j *job) {
	if j.written {
		return
	}
	j.written = true
	defer d.leave(d.enter(), new(time.Duration))
	d.ask(d.now(), func() { d.src.Written(j.req) })
	d.cond.Signal()
}

// done ends a request; cut says that the run ended before it did. A request that ends after the
// window counts as in flight at its end, and no further one is handed out.
func (d *dispatcher) done(j *job, cut bool) {
	d.wrote(j)
	defer d.leave(d.enter(), new(time.Duration))
	if d.deciding {
		d.cond.Broadcast() // Signal may wake another than the one who decides
	}
	j.sample.At, j.sample.Prompt = d.Clock.Now(), j.prompt.tokens()
	j.sample.Time.EndToEnd = int64(j.sample.At - j.arrived)
	if !cut && !d.Rec.Request(j.sample) && d.opened {
		cut, d.closed = true, true
		d.cond.Broadcast()
	}
	if !cut { // what was cut is still in flight at the closing
		delete(d.inflight, j)
		if j.sample.Failed {
			d.classes[j.req.Class].failed++
		}
	}
	now := d.now()
	d.ask(now, func() { d.src.Done(j.req, now) })
	d.checkDrained()
	d.cond.Signal()
}

// checkDrained ends the load when no request will come and none runs. Callers
// hold mu.
func (d *dispatcher) checkDrained() {
	if d.exhausted && len(d.inflight) == 0 {
		d.drained.Fire()
	}
}
