package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/kvbench/result/python"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
	"kvbench/workloads/compute"
	"kvbench/workloads/formats"
	"kvbench/workloads/model"
	"kvbench/workloads/users"
)

// Config describes a load of requests.
type Config struct {
	// Source makes the requests; it is called once, after preparation.
	Source  func() (workloads.Source, error)
	Input   string // the path that it reads while it runs, "" = none
	Planner workloads.Planner
	Workers int
	// EndedBy names the reason when a finite source is exhausted and all its requests are
	// completed: EndedByMaxRequests or EndedByInput; "" = the source has no end.
	EndedBy string

	// Phase is the window, which ends with Limit, too, and with a source that ends.
	kvbench.Phase

	Users     int        // at the start, where there are any
	Autoscale *Autoscale // nil = the users stay as they are

	TokenTime time.Duration // simulated generation, per token
	// Cost is the time of computing what a prompt does not find, on one server that all requests
	// share. With it every request first loads what is cached, then computes, and then writes. The
	// zero Cost is free, and operations keep the order of their plan.
	Cost       compute.Cost
	Overtaking bool // turns may overtake their predecessors

	// ContextWindow is the model's in tokens, 0 = none. Longer prompts are counted, not changed.
	ContextWindow int

	Population   Population
	Corpus       *users.Corpus // documents that are written before the window, nil = none
	Precondition Precondition
	// ValidationTrace is the path of a recorded run to compare with, "" = none.
	ValidationTrace string

	// OnDispatch is called with every request and its plan when a worker gets it, in the order of
	// dispatch; the requests of one user keep their order. It runs under the dispatcher's lock: it
	// must be quick, must not call back, and must not keep the plan, which is reused.
	OnDispatch func(r *workloads.Request, plan []workloads.Op)
	// OnBlocks is called with the decisions about the blocks of each request, under the same
	// conditions.
	OnBlocks func(r *workloads.Request, s record.BlockSample)
}

// Population is the entries that decode-only writes before the window: pop/<n> of Tokens tokens
// each.
type Population struct{ Entries, Tokens int }

// Precondition is the load that brings a drive to its steady state before the
// window (spec 11). Bytes 0 = none. Simulations have none.
type Precondition struct {
	Bytes   int64
	Threads int
	Tokens  int // per entry, 0 = 2048
}

// Load is a load of requests: a source's requests, planned, decided by the cache in the order of
// dispatch, and executed by workers.
type Load struct {
	cfg Config
	env *kvbench.Env

	src      workloads.Source
	dispatch *dispatcher
	started  atomic.Pointer[dispatcher] // dispatch, once there is one, for other goroutines
	scaler   *scaler                    // nil without autoscaling
	looker   tiers.Looker               // see Env.Looker
	askAll   bool

	recording    *result.Recording // to compare with
	precondition *result.Precondition
	// When the window opened, and at its end.
	before, after account
	closed        atomic.Bool // after is valid
}

var _ kvbench.Counted = (*Load)(nil)

// New makes a load for one trial.
func New(cfg Config) (*Load, error) {
	var errs []error
	if cfg.Source == nil {
		errs = append(errs, errors.New("source: none given"))
	}
	if cfg.Workers < 1 {
		errs = append(errs, fmt.Errorf("workers: %d, need at least 1", cfg.Workers))
	}
	if cfg.Window < 0 || (cfg.Window == 0 && cfg.Limit == 0 && cfg.EndedBy == "") {
		errs = append(errs, fmt.Errorf("window: %v, need a positive window, a number of "+
			"requests, or a source that ends", cfg.Window))
	}
	return &Load{cfg: cfg}, errors.Join(errs...)
}

// Phase implements Workload.
func (l *Load) Phase() kvbench.Phase { return l.cfg.Phase }

// Prepare implements Workload. The order matters: a recorded run that cannot be read costs nothing
// yet; preconditioning leaves its entries as the first victims; and the source comes last, because
// its time begins with the load.
func (l *Load) Prepare(ctx context.Context, e *kvbench.Env) error {
	l.env = e
	l.looker, l.askAll = e.Looker()
	for _, step := range []func(context.Context) error{
		l.readValidation, l.preconditionDrive, l.populate, l.ingest, e.Rest,
	} {
		stepping, stop := context.WithCancel(ctx) // ends the showing of its progress, too
		err := step(stepping)
		if stop(); err != nil {
			return err
		}
	}
	src, err := l.cfg.Source()
	if err != nil {
		return err // src may be a nil pointer in a non-nil interface
	}
	l.src = src
	l.dispatch = newDispatcher(ctx, &l.cfg, e, src)
	l.started.Store(l.dispatch)
	if l.cfg.Autoscale != nil {
		l.scaler, err = newScaler(l)
	}
	return err
}

// readValidation reads the recorded run first.
func (l *Load) readValidation(context.Context) error {
	if l.cfg.ValidationTrace == "" {
		return nil
	}
	v, err := formats.ReadValidation(l.cfg.ValidationTrace)
	hits, moved := units.Ratio(v.Hits, v.Lookups), units.Ratio(v.ReadBytes, v.WriteBytes)
	l.recording = &result.Recording{
		Trace: v.Path, Requests: v.Requests, Malformed: v.Malformed,
		HitRate: result.Check{Recorded: hits}, ReadWriteRatio: result.Check{Recorded: moved},
		Stats: python.RecordedStats{
			Requests: v.Requests, CacheHitRate: units.OrZero(hits),
			ReadWriteRatio: float64(v.ReadBytes) / float64(max(v.WriteBytes, 1)),
			ContextMean:    units.OrZero(units.Ratio(v.ContextTokens, v.Requests)),
			GenerationMean: units.OrZero(units.Ratio(v.GeneratedTokens, v.Requests)),
		},
	}
	return err
}

// Run implements Workload: it ends when all requests of a finite source are completed, or when a
// trace turns out to be broken.
func (l *Load) Run(ctx context.Context, e *kvbench.Env) error {
	l.startWorkers(ctx, l.cfg.Workers, nil)
	if err := l.dispatch.drained.Wait(ctx); err != nil {
		return err
	}
	if s, ok := l.src.(interface{ Err() error }); ok && s.Err() != nil {
		return s.Err()
	}
	e.End(cmp.Or(l.cfg.EndedBy, result.EndedByInput))
	return nil
}

// OpenWindow implements kvbench.Counted.
func (l *Load) OpenWindow(ctx context.Context, open func() time.Duration) {
	l.before = l.dispatch.open(open)
	if l.scaler != nil {
		l.scaler.start(ctx)
	}
}

// CloseWindow implements kvbench.Counted.
//
// Requests in flight at the end count as such, whatever becomes of them while the load drains.
func (l *Load) CloseWindow(end time.Duration, opened bool) {
	if l.scaler != nil {
		l.scaler.auto.stop()
	}
	l.after = l.dispatch.close(end)
	if !opened {
		l.after.spent = spent{}
	}
	l.closed.Store(true)
}

// Gauge implements kvbench.Counted.
func (l *Load) Gauge(now time.Duration) (g record.Gauge) {
	for _, n := range l.dispatch.account(now).classes {
		g.Queued += n.Queued
		g.InFlight += n.inFlight
	}
	return g
}

// Waits implements kvbench.Counted.
func (l *Load) Waits() (path string, since time.Duration) {
	d := l.started.Load()
	if d == nil {
		return "", 0
	}
	return l.cfg.input(), d.silent()
}

// input names what the source reads.
func (c *Config) input() string { return cmp.Or(c.Input, "the source of requests") }

// Report implements Workload.
func (l *Load) Report(in *record.Info) {
	in.Workload.Workers, in.Recording, in.Precondition = l.cfg.Workers, l.recording,
		l.precondition
	if l.dispatch == nil {
		return // it failed before
	}
	if !l.closed.Load() && l.dispatch.silent() > 0 {
		in.Warnings = append(in.Warnings, fmt.Sprintf("%s did not answer when the window ended: "+
			"the offered load is not known", l.cfg.input()))
		in.LoadUnknown = true
		return
	}
	spent := &l.after.spent
	in.Harness.WorkerIdleNS = int64(spent.doing[waiting])
	in.Harness.WorkerBusyNS = int64(spent.worked - spent.doing[waiting])
	in.Harness.Busy = result.BusyTime{RoomNS: int64(spent.doing[deciding]),
		ThinkingNS: int64(spent.doing[thinking]), DispatchNS: int64(spent.dispatch)}
	if !l.cfg.Cost.Free() && in.FirstToken == nil {
		in.FirstToken = &result.FirstToken{}
	}
	in.Cost, in.Computing = l.cfg.Cost, l.after.computed-l.before.computed
	if n := l.after.passed; n > 0 {
		in.Warnings = append(in.Warnings, fmt.Sprintf("prompts of %s were longer than "+
			"the model's context window of %d tokens, the longest %d: a server would refuse them, "+
			"here they stay as they are", units.Plural(n, "request"), l.cfg.ContextWindow,
			l.after.longest))
	}
	in.Digest = l.after.digest.String()
	in.Load = l.outcomes(in.Sizer, in.QoS)
	in.Input = l.after.input
	l.wholeInput(in)
	if l.scaler != nil {
		in.Autoscaler = &result.Autoscaler{AutoscaleSummary: l.scaler.auto.summary,
			History: l.scaler.auto.kept}
	}
}

// wholeInputRows bounds the reading that follows, to seconds.
const wholeInputRows = 500_000

// wholeInput counts the rows of an input of which the window has replayed a part. It is skipped
// after a signal, because it takes seconds.
func (l *Load) wholeInput(in *record.Info) {
	src, ok := l.src.(interface {
		Rows(most int64) (rows int64, all bool)
	})
	if !ok || !in.PartOfInput() || in.EndedBy == result.EndedBySignal {
		return
	}
	if rows, all := src.Rows(wholeInputRows); all {
		in.Input.TotalRows = &rows
	}
}

// outcomes returns each class's counts of the window, except completions. Requests that were queued
// or in flight when the window opened count as offered in it, so that offered is at least the
// number served. A request in flight for longer than its class's target has missed it.
func (l *Load) outcomes(sizer model.Sizer, targets [workloads.NumClasses]workloads.QoS,
) map[string]result.ClassOutcome {
	all := make(map[string]result.ClassOutcome)
	for c, end := range l.after.classes {
		start := l.before.classes[c]
		o := result.ClassOutcome{
			Offered:      end.Offered - start.Offered + start.Queued + start.inFlight,
			OfferedBytes: sizer.Bytes(int(end.OfferedTokens - start.OfferedTokens)),
			CarriedIn:    start.Queued, Queued: end.Queued, InFlight: end.inFlight,
			Started: end.started - start.started, Failed: end.failed - start.failed,
		}
		if end.inFlight > 0 {
			o.OldestInFlightAgeS = new(slices.Max(end.ages).Seconds())
		}
		for _, age := range end.ages {
			if t := targets[c].P95; t > 0 && age > t {
				o.Late++
			}
		}
		if end.Queued > 0 && end.Oldest != workloads.Never {
			o.OldestQueuedAgeS = new(max(l.after.at-end.Oldest, 0).Seconds())
		}
		all[workloads.Class(c).String()] = o
	}
	return all
}

// Close closes the input. It waits for the source's current call.
func (l *Load) Close() error {
	c, ok := l.src.(io.Closer)
	if !ok {
		return nil
	}
	l.dispatch.mu.Lock()
	defer l.dispatch.mu.Unlock()
	return c.Close()
}
