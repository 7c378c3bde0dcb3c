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
	"kvbench/tiers"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/workloads"
	"kvbench/workloads/compute"
)

// job is one worker's current request with the cache's decisions. The next request reuses its memory.
type job struct {
	req     *workloads.Request
	plan    []workloads.Op
	intent  []int        // plan index -> index in intents of the operation's key
	intents []cache.Want // distinct keys in order of first use
	prompt  prompt
	lease   cache.Lease
	usual   cache.Lease          // in the Env's Reference
	written bool                 // the source knows that the request's own entry is written or failed
	absent  bool                 // the request's own entry is missing: nothing to decode
	arrived time.Duration        // on the clock
	sample  record.RequestSample // the times so far
	waited  time.Duration        // in the dispatcher, without the wait for the lock
	taken   time.Duration        // on the clock: end of the time in the queue
	steps   []int                // plan indices in the order of execution
}

// dispatcher gives requests to workers, most urgent first, and counts the started requests. A worker
// takes a request and decides about its keys in one step under one lock. So decisions are made in the
// order of dispatch, whatever the number of workers and cores.
//
// The same lock makes the counts exact at the window's edges, because no request completes while the window
// is being opened. So each offered request counts as either completed, failed, in flight or queued.
type dispatcher struct {
	*kvbench.Env
	cfg    *Config
	origin time.Duration   // load time 0, on the clock; arrivals are in load time
	over   context.Context // ends with the trial

	mu   sync.Mutex
	cond clock.Cond

	asking atomic.Int64 // start of the source's current call, plus one; 0 = no call

	src       workloads.Source
	opened    bool          // the window has opened
	closed    bool          // no more requests are dispatched
	exhausted bool          // the source has no more requests
	wake      time.Duration // load time at which an alarm wakes a worker
	drained   clock.Event   // exhausted, and nothing is in flight
	inflight  map[*job]struct{}
	classes   [workloads.NumClasses]classCounts

	moment time.Duration // start of the latest request
	still  int64         // requests that started at moment

	// deciding: a worker waits for the decision about its blocks, for capacity of the tier lacking. No other
	// worker takes a request.
	deciding bool
	lacking  tiers.Kind

	pool pool
	gpu  compute.Server
	windowed
	digest workloads.Digest
}

// windowed counts requests whose prompts exceed the model's context window.
type windowed struct {
	passed  int64
	longest int // tokens of the longest such prompt
}

// classCounts has the counts of a class since the start of the load. The counts of the window are the
// difference of two accounts, so that no count is reset while requests are in flight.
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

// now returns the load time.
func (d *dispatcher) now() time.Duration { return d.Clock.Now() - d.origin }

// next waits for a request for this worker. It returns false if the run is over, or if the pool's limit
// ends this worker. It dispatches no request after the window's end, also if the trial has not yet
// called close.
func (d *dispatcher) next(worker int, j *job) bool {
	j.waited = 0
	defer d.leave(d.enter(), &j.waited)
	for !d.closed && worker < d.pool.limit && d.Clock.Now() <= d.windowEnd() {
		if d.deciding {
			d.wait(j, deciding+doing(d.lacking))
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

// begin plans r and decides about its keys. It returns false if the run ended before the decision.
// Callers hold mu.
//
// The cache decides at dispatch, not when the bytes move. Otherwise the hits would depend on the speed
// of the storage, and the load of two drives would differ.
func (d *dispatcher) begin(worker int, j *job, r *workloads.Request) bool {
	now := d.Clock.Now()
	j.req, j.written, j.absent, j.taken = r, false, false, now
	j.sample = record.RequestSample{
		Shard: worker, Class: r.Class,
		GenerateTokens: r.GenerateTokens, ContextTokens: r.ContextTokens,
	}
	// now may be a moment before the arrival, because the source has its own reading of the clock.
	j.arrived = min(now, d.origin+r.Arrival)
	j.sample.Time.Queue = int64(now - j.arrived)
	j.plan = d.cfg.Planner.Plan(j.plan[:0], r)
	j.intent, j.intents = j.intent[:0], j.intents[:0]
	for _, op := range j.plan {
		at := -1
		if !j.blocks() { // the keys of blocks are distinct
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
	tokens := j.prompt.ask(r, j.plan, j.intent)
	if window := d.cfg.ContextWindow; window > 0 && tokens > window {
		d.passed++
		d.longest = max(d.longest, tokens)
	}
	d.inflight[j] = struct{}{}
	d.classes[r.Class].started++
	j.lease.Prefix = j.blocks()
	deciding := d.Clock.Now()
	if !d.decide(j) {
		return false
	}
	j.sample.Time.Room = int64(d.Clock.Now() - deciding) // the wait for victims that other requests use
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

// maxStill is the maximum number of requests that start at one moment. A load without think time and
// without storage time would never reach its deadline.
const maxStill = 5000 << 12

// watchTime counts the requests that start at one moment. Only in virtual time are these many. It ends a
// load in which virtual time stands still. It also ends a load whose trial has ended, because a worker
// that never waits does not notice the end. Callers hold mu.
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

// decide decides about the keys of a request, in the order of dispatch. A decision about blocks may wait
// for entries that other requests hold. Meanwhile no other worker takes a request. decide returns false
// if the run ended before the decision. Callers hold mu.
func (d *dispatcher) decide(j *job) bool {
	decided := d.Cache.Decide(&j.lease, j.intents)
	for !decided && !d.closed {
		d.deciding, d.lacking = true, d.Cache.Lacking()
		d.wait(j, deciding+doing(d.lacking))
		decided = !d.closed && d.Cache.Decide(&j.lease, j.intents)
	}
	if d.deciding {
		d.deciding = false
		d.cond.Broadcast()
	}
	return decided
}

// blocks reports whether the plan reads or writes a prefix of blocks.
func (j *job) blocks() bool {
	return len(j.plan) > 0 && j.plan[0].Kind == workloads.ReadPrefixOrWrite
}

// countBlocks records the decisions about the blocks of a request. Ideal, the hits of an unbounded
// cache, is -1 unless the request is from a trace of blocks.
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

// lostBlocks subtracts n hits from block at on, because their reads failed.
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

// compare looks up the parts of the request's prompt in the reference. If turns may overtake, the entry
// of the turn before may not be written yet. Such an entry does not count as a lookup.
func (d *dispatcher) compare(worker int, j *job) {
	if d.Reference == nil {
		return
	}
	var c result.Comparison
	asked := func(i int) bool {
		piece := j.prompt.pieceOf[i]
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

// intentOf returns the index of a key in intents, -1 if there is none. It searches from the end, because
// only the request's own key repeats in a plan, and that key is the last.
func (j *job) intentOf(key string) int {
	for k := len(j.intents) - 1; k >= 0; k-- {
		if j.intents[k].Key == key {
			return k
		}
	}
	return -1
}

// enter locks the dispatcher for a worker. leave unlocks it and counts the time since enter, including
// the wait for the lock and without *waited.
func (d *dispatcher) enter() (begun time.Duration) {
	begun = d.Clock.Now()
	d.mu.Lock()
	return begun
}

func (d *dispatcher) leave(begun time.Duration, waited *time.Duration) {
	d.pool.spent.dispatch += max(0, d.measured()-max(begun, d.pool.opened)-*waited)
	d.mu.Unlock()
}

// ask calls question, which calls the source. The source may read a file, and the read may hang. Callers
// hold mu.
func (d *dispatcher) ask(now time.Duration, question func()) {
	d.asking.Store(int64(now) + 1)
	question()
	d.asking.Store(0)
}

// silent returns the duration of the source's current call, 0 without a call.
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
	d.pool.add(1, what, from)
	d.cond.Wait()
	now := d.measured()
	d.pool.add(-1, what, now)
	j.waited += max(0, now-max(from, d.pool.opened))
}

// think sleeps for the computing time of a GPU. The worker counts as thinking, not as busy with storage.
func (d *dispatcher) think(ctx context.Context, t time.Duration) error {
	count := func(workers int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.pool.add(workers, thinking, d.measured())
	}
	count(1)
	defer count(-1)
	return d.Clock.Sleep(ctx, t)
}

// measured returns now, or the end of the window if that is earlier. Workers' time counts up to it.
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
	p.most = max(p.most, len(p.alive))
	d.cond.Broadcast() // surplus workers have to end, other workers may get a request
	return start
}

// alarm wakes a worker when the next arrival is due. One alarm serves all workers. If the time of wake
// has not come, alarm does nothing.
func (d *dispatcher) alarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wake <= d.now() {
		d.wake = workloads.Never
		d.cond.Signal()
	}
}

// wrote reports to the source that the request's own entry is written, or that its write failed. Then
// the next turn may start, before this turn's answer is generated: the cache has the history of the next
// turn.
func (d *dispatcher) wrote(j *job) {
	if j.written {
		return
	}
	j.written = true
	defer d.leave(d.enter(), new(time.Duration))
	d.ask(d.now(), func() { d.src.Written(j.req) })
	d.cond.Signal()
}

// done ends a request. cut means that the run ended before the request. A request that ends after the
// window counts as in flight at the end of the window, and no further request is dispatched.
func (d *dispatcher) done(j *job, cut bool) {
	d.wrote(j)
	defer d.leave(d.enter(), new(time.Duration))
	if d.deciding {
		d.cond.Broadcast() // Signal might not wake the worker that decides
	}
	j.sample.At, j.sample.Prompt = d.Clock.Now(), j.prompt.tokens()
	j.sample.Time.EndToEnd = int64(j.sample.At - j.arrived)
	if !cut && !d.Rec.Request(j.sample) && d.opened {
		cut, d.closed = true, true
		d.cond.Broadcast()
	}
	if !cut { // a request that was cut is in flight at the end of the window
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

// checkDrained fires drained if the source is exhausted and no request is in flight. Callers hold mu.
func (d *dispatcher) checkDrained() {
	if d.exhausted && len(d.inflight) == 0 {
		d.drained.Fire()
	}
}
