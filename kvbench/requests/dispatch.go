package requests

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers/cache"
	"kvbench/tiers/clock"
	"kvbench/workloads"
)

// job is one worker's current request with what was decided about it. Its
// memory is reused from request to request.
type job struct {
	req     *workloads.Request
	plan    []workloads.Op
	intent  []int        // plan index -> index of its key's intent
	intents []cache.Want // distinct keys in order of first use
	lease   cache.Lease
	started time.Duration
	written bool // the source was told that the own entry is settled
}

// dispatcher hands requests to workers, most urgent first, and keeps the counts
// of what was started. Taking a request and deciding about its keys is one step
// under one lock, so decisions fall in the order of dispatch whatever the
// number of workers and cores (spec 5).
//
// The same lock makes the window's edges exact: a request completes, or the
// window opens, one after the other, so that of every request offered the counts
// know whether it was completed, failed, still in flight or still queued.
type dispatcher struct {
	clock clock.Clock
	// arrivals are told in the load's time, which begins when preparation has ended
	origin  time.Duration // the load's time zero on clock
	cache   *cache.Cache
	planner workloads.Planner
	rec     *record.Recorder
	tell    func(*workloads.Request, []workloads.Op)     // Config.OnDispatch
	tellHit func(*workloads.Request, record.BlockSample) // Config.OnBlocks
	over    context.Context                              // ends with the trial

	mu        sync.Mutex
	cond      clock.Cond
	src       workloads.Source
	closed    bool
	exhausted bool          // the source will give nothing more
	wake      time.Duration // load time at which an alarm wakes a worker
	drained   clock.Event   // exhausted, and nothing is in flight
	inflight  map[*job]struct{}
	counts    counts

	fail   func(err error, endedBy string)
	moment time.Duration // of the latest request
	still  int64         // requests that began at it

	deciding bool // a worker waits for the decision on its blocks: nobody else may take a request

	opened    bool                  // the window
	idleSince map[int]time.Duration // worker -> when it began to wait
	idle      time.Duration         // finished waits since idleFrom
	idleFrom  time.Duration

	pool pool
}

// counts counts requests per class since the load began. What happened in the window is a
// difference of two of them, so that nothing has to be reset while requests are in flight.
type counts struct {
	Started, Completed, Failed [workloads.NumClasses]int64
}

func newDispatcher(ctx context.Context, cfg *Config, e *kvbench.Env,
	src workloads.Source) *dispatcher {
	d := &dispatcher{
		clock: e.Clock, origin: e.Clock.Now(), cache: e.Cache, planner: cfg.Planner, src: src,
		rec:  e.Rec,
		tell: cfg.OnDispatch, tellHit: cfg.OnBlocks, over: ctx, fail: e.Fail,
		wake: workloads.Never, drained: e.Clock.NewEvent(),
		inflight: make(map[*job]struct{}), idleSince: make(map[int]time.Duration),
	}
	d.cond = d.clock.NewCond(&d.mu)
	return d
}

// now is the load's time.
func (d *dispatcher) now() time.Duration { return d.clock.Now() - d.origin }

// next blocks until there is a request for this worker; false means that the
// run is over, or that there are more workers than there should be. Nothing is handed out after
// the window's end, though the trial may notice that end a moment later.
func (d *dispatcher) next(worker int, j *job) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed && d.pool.wants(worker) && d.clock.Now() <= d.windowEnd() {
		if d.deciding {
			d.cond.Wait()
			continue
		}
		r, st, wake := d.src.Take(d.now())
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
			d.clock.At(d.origin+wake, d.alarm)
		}
		d.wait(worker)
	}
	d.pool.leave(d.clock.Now(), worker)
	return false
}

// begin plans r and decides about its keys. It says false when the run ended
// before that could be decided. Callers hold mu.
//
// The decision is taken here, at dispatch, and not when the bytes move: hits would else depend on
// how fast the storage is, and no two drives could be compared with the same load.
func (d *dispatcher) begin(worker int, j *job, r *workloads.Request) bool {
	j.req, j.written = r, false
	j.started = d.clock.Now()
	j.plan = d.planner.Plan(j.plan[:0], r)
	j.intent, j.intents = j.intent[:0], j.intents[:0]
	for _, op := range j.plan {
		at := -1
		if len(r.Blocks) == 0 { // blocks are distinct
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
	d.inflight[j] = struct{}{}
	d.counts.Started[r.Class]++
	j.lease.Prefix = len(r.Blocks) > 0
	if !d.decide(j) {
		return false
	}
	if j.lease.Prefix {
		d.countBlocks(worker, j)
	}
	d.watchTime(j.started)
	if d.tell != nil {
		d.tell(r, j.plan)
	}
	return true
}

// maxStill is how many requests may begin without time moving on. A load that
// neither thinks nor waits for storage would never reach its deadline.
const maxStill = 5000 << 12

// watchTime counts the requests of one moment, which are many in virtual time alone, and
// ends a load under which time stands still, or whose caller has given up: a worker that
// never waits hears of neither. Callers hold mu.
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
		d.fail(fmt.Errorf("%d requests began at one moment of virtual time: a load that neither "+
			"thinks nor waits for storage has no end here; give think times, -trace-speedup, "+
			"-max-requests or -simulate-device", d.still), result.EndedByError)
	}
}

// decide decides about the keys of a request, in the order in which requests are taken: while a
// decision waits for others to let go of what it needs, nobody takes another request. Only
// decisions about blocks wait. It says false when the run ended meanwhile. Callers hold mu.
func (d *dispatcher) decide(j *job) bool {
	if d.cache.Decide(&j.lease, j.intents) {
		return true
	}
	d.deciding = true
	decided := false
	for !decided && !d.closed {
		d.cond.Wait()
		decided = !d.closed && d.cache.Decide(&j.lease, j.intents)
	}
	d.deciding = false
	d.cond.Broadcast()
	return decided
}

// countBlocks counts what was decided about the blocks of a request.
func (d *dispatcher) countBlocks(worker int, j *job) {
	s := record.BlockSample{
		At: d.clock.Now(), Shard: worker, Blocks: len(j.intents), Ideal: j.req.IdealBlocks,
	}
	for i := range j.intents {
		s.Tokens += j.plan[i].Tokens
		switch j.lease.Outcome(i) {
		case cache.Unreachable:
			s.Unreachable++
			continue
		case cache.Miss:
			continue
		case cache.Pending:
			s.Pending++
		}
		s.Hits++
		s.HitTokens += j.plan[i].Tokens
		s.HitBytes += j.intents[i].Size
	}
	d.rec.Blocks(s)
	if d.tellHit != nil {
		d.tellHit(j.req, s)
	}
}

func (d *dispatcher) windowEnd() time.Duration {
	_, end := d.rec.Window()
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

// wait lets the worker wait and counts its idle time. Callers hold mu.
func (d *dispatcher) wait(worker int) {
	since := d.clock.Now()
	d.idleSince[worker] = since
	d.cond.Wait()
	if !d.closed { // close has counted it otherwise
		delete(d.idleSince, worker)
		d.idle += max(0, min(d.clock.Now(), d.windowEnd())-max(since, d.idleFrom))
	}
}

// open opens the window in one step: start makes samples count and returns the
// moment from which. It returns the account up to there.
func (d *dispatcher) open(start func() time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := start()
	d.opened = true
	d.idleFrom, d.idle = at, 0
	d.pool.reset(at)
	return d.accountAt(at)
}

// accountAt returns everything up to a moment of the clock. Callers hold mu.
//
// The source is asked last, and under the same lock: what it has offered and what was started
// belong to one moment.
func (d *dispatcher) accountAt(at time.Duration) account {
	a := account{at: at - d.origin, counts: d.counts}
	for j := range d.inflight {
		r := &a.running[j.req.Class]
		r.n++
		r.oldest = max(r.oldest, a.at-j.req.Arrival)
	}
	copy(a.offered[:], d.src.Account(a.at))
	return a
}

// idleUntil returns the idle time of all workers up to t, waits in progress included.
func (d *dispatcher) idleUntil(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum := d.idle
	for _, since := range d.idleSince {
		sum += max(0, t-max(since, d.idleFrom))
	}
	return sum
}

// alarm wakes a worker when the next arrival is due. One alarm serves all workers; one that was
// set for a later arrival than the next finds that it is early, and does nothing.
func (d *dispatcher) alarm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wake <= d.now() {
		d.wake = workloads.Never
		d.cond.Signal()
	}
}

// wrote tells the source that the request's own entry is settled, so that its
// successor may start.
//
// A turn may start when the one before it is written, not when it is answered: its history is in
// the cache then, and a user reads an answer while the next prompt is prefilled.
func (d *dispatcher) wrote(j *job) {
	if j.written {
		return
	}
	j.written = true
	d.mu.Lock()
	defer d.mu.Unlock()
	d.src.Written(j.req)
	d.cond.Signal()
}

// outcome is how a request ended.
type outcome uint8

const (
	completed outcome = iota
	failed            // at least one of its operations failed
	cut               // the run ended before it did
)

// counter reports a request that ended at the given moment to the Recorder and
// says whether that counted, which it does inside the window only.
type counter interface {
	count(at time.Duration, how outcome) (counted bool)
}

// done ends a request. What ends after the window counts as in flight at its
// end, and nothing is handed out any more.
func (d *dispatcher) done(j *job, how outcome, c counter) {
	d.wrote(j)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deciding {
		d.cond.Broadcast() // Signal may wake another than the one who decides
	}
	if how != cut && !c.count(d.clock.Now(), how) && d.opened {
		how, d.closed = cut, true
		d.cond.Broadcast()
	}
	switch how {
	case completed:
		d.counts.Completed[j.req.Class]++
	case failed:
		d.counts.Failed[j.req.Class]++
	}
	if how != cut { // what was cut is still in flight at the closing
		delete(d.inflight, j)
	}
	d.src.Done(j.req, d.now())
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

// close ends the handing out and returns the account at the given end of the window.
func (d *dispatcher) close(end time.Duration) account {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.cond.Broadcast()
	return d.accountAt(end)
}

// account returns the offered load up to the given moment of the clock and the
// counts, for the window's end and the progress line.
func (d *dispatcher) account(at time.Duration) ([]workloads.ClassLoad, counts) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.src.Account(at - d.origin), d.counts
}

// input is what a recorded source says of its file, nil if it is none.
func (d *dispatcher) input() *result.Input {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r, ok := d.src.(interface{ Report() workloads.TraceReport }); ok {
		return record.Input(r.Report())
	}
	return nil
}
