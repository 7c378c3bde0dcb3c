package requests

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
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
	// Source opens the source of the requests. It is called once, at the end of the preparation.
	Source  func() (workloads.Source, error)
	Input   string // the path that the source reads during the load, "" = none
	Planner workloads.Planner
	Workers int
	// EndedBy is the result's reason when a finite source is exhausted and its requests are completed.
	// "" = EndedByInput.
	EndedBy string

	// Phase has the lengths of warm-up and window. The window also ends when a finite source is
	// exhausted.
	kvbench.Phase

	Autoscale *Autoscale // nil = the number of users is constant; else the source is Scalable

	TokenTime time.Duration // simulated generation time of a token
	// Cost is the time to compute the prompt tokens that no tier has, on one server that all requests
	// share. With a Cost every request first loads its cached entries, then computes, then writes. With
	// the zero Cost computing takes no time, and operations run in the order of the plan.
	Cost       compute.Cost
	Overtaking bool // a turn may start before the entry of the turn before is written

	// ContextWindow is the model's context window in tokens, 0 = no limit. Longer prompts are counted,
	// not changed.
	ContextWindow int

	Population   Population
	Corpus       *users.Corpus // documents that are written before the window, nil = none
	Precondition Precondition
	// ValidationTrace is the path of a recorded run to compare with, "" = none.
	ValidationTrace string

	// OnDispatch is called at the dispatch of every request, in the order of dispatch. It runs under the
	// dispatcher's lock. It must be quick, must not call the load, and must not keep plan, whose memory
	// is reused.
	OnDispatch func(r *workloads.Request, plan []workloads.Op)
	// OnBlocks is called with the decisions about the blocks of each request. The conditions of
	// OnDispatch apply.
	OnBlocks func(r *workloads.Request, s record.BlockSample)
}

// Population has the number of entries that are written before the window for decode-only requests, and
// the tokens of each. The keys are pop/<n>.
type Population struct{ Entries, Tokens int }

// Precondition has the writes that bring a drive to its steady state before the window (spec 11). Bytes
// 0 = no preconditioning. Simulations do not precondition.
type Precondition struct {
	Bytes   int64
	Threads int // 0 = the number of CPUs
	Tokens  int // per entry, 0 = 2048
}

// Load is the workload of a source's requests.
type Load struct {
	cfg Config
	env *kvbench.Env

	src      workloads.Source
	dispatch *dispatcher
	started  atomic.Pointer[dispatcher] // dispatch, for goroutines that run during Prepare
	scaler   *scaler                    // nil without autoscaling
	looker   tiers.Looker               // see Env.Looker
	askAll   bool
	lowest   tiers.Kind // the kind of the last tier

	recording    *result.Recording // of the ValidationTrace
	precondition *result.Precondition
	// The accounts at the start and at the end of the window.
	before, after account
	closed        atomic.Bool // after is valid
}

var _ kvbench.Counted = (*Load)(nil)

// New returns a Load for one trial.
func New(cfg Config) *Load { return &Load{cfg: cfg} }

// Phase implements Workload.
func (l *Load) Phase() kvbench.Phase { return l.cfg.Phase }

// Prepare implements Workload. The order of the steps matters. readValidation is first, so that an error
// in the recorded run costs no time. preconditionDrive is before populate and ingest, so that its
// entries are the first victims. The source is last, because its time starts with the load.
func (l *Load) Prepare(ctx context.Context, e *kvbench.Env) error {
	l.env = e
	l.looker, l.askAll = e.Looker()
	l.lowest = e.Levels[len(e.Levels)-1].Kind
	for _, step := range []func(context.Context) error{
		l.readValidation, l.preconditionDrive, l.populate, l.ingest, e.Rest,
	} {
		stepping, stop := context.WithCancel(ctx) // stop also ends the progress on the live line
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
		l.scaler = newScaler(l)
	}
	return nil
}

// readValidation reads the recorded run of ValidationTrace.
func (l *Load) readValidation(context.Context) error {
	if l.cfg.ValidationTrace == "" {
		return nil
	}
	v, err := formats.ReadValidation(l.cfg.ValidationTrace)
	if err != nil {
		return err
	}
	hits, moved := units.Ratio(v.Hits, v.Lookups), units.Ratio(v.ReadBytes, v.WriteBytes)
	l.recording = &result.Recording{
		Trace: v.Path, Requests: v.Requests, Malformed: v.Malformed,
		HitRate: result.Check{Recorded: hits}, ReadWriteRatio: result.Check{Recorded: moved},
		Stats: result.RecordedStats{
			Requests: v.Requests, CacheHitRate: units.OrZero(hits),
			ReadWriteRatio: float64(v.ReadBytes) / float64(max(v.WriteBytes, 1)),
			ContextMean:    units.OrZero(units.Ratio(v.ContextTokens, v.Requests)),
			GenerationMean: units.OrZero(units.Ratio(v.GeneratedTokens, v.Requests)),
		},
	}
	return nil
}

// Run implements Workload. It returns when ctx ends or when all requests of a finite source are
// completed. It returns the source's error if the source has one.
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

// CloseWindow implements kvbench.Counted. Requests in flight at the end of the window count as in
// flight, also if they complete or fail later.
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
	return l.cfg.Input, d.silent()
}

// Report implements Workload.
func (l *Load) Report(in *record.Info) {
	in.Workload.Workers, in.Recording, in.Precondition = l.cfg.Workers, l.recording,
		l.precondition
	if l.dispatch == nil {
		return // Prepare failed before
	}
	if !l.closed.Load() && l.dispatch.silent() > 0 {
		in.Warnings = append(in.Warnings, fmt.Sprintf("%s did not answer when the window ended: "+
			"the offered load is not known", l.cfg.Input))
		in.LoadUnknown = true
		return
	}
	in.Workload.Workers = max(in.Workload.Workers, l.after.most) // of an autoscaler
	spent := &l.after.spent
	in.Harness.WorkerIdleNS = int64(spent.doing[waiting])
	in.Harness.WorkerBusyNS = int64(spent.worked - spent.doing[waiting])
	in.Harness.Busy = result.BusyTime{ThinkingNS: int64(spent.doing[thinking]),
		DispatchNS: int64(spent.dispatch)}
	copy(in.Room[:], spent.doing[deciding:])
	if !l.cfg.Cost.Free() && in.FirstToken == nil {
		in.FirstToken = &result.FirstToken{}
	}
	in.Cost, in.Computing = l.cfg.Cost, l.after.computed.Since(l.before.computed)
	if n := l.after.passed; n > 0 {
		in.Warnings = append(in.Warnings, fmt.Sprintf("prompts of %s were longer than "+
			"the model's context window of %d tokens, the longest %d: a server would refuse them, "+
			"here they stay as they are", units.Plural(n, "request"), l.cfg.ContextWindow,
			l.after.longest))
	}
	in.Digest = l.after.digest.String()
	in.Load = l.outcomes(in.Sizer, in.QoS)
	in.Input = l.after.input
	if p := in.Workload.Population; p != nil && p.Rows > 0 && in.PartOfInput() {
		in.Input.TotalRows = new(p.Rows)
	}
	if l.scaler != nil {
		in.Autoscaler = &result.Autoscaler{AutoscaleSummary: l.scaler.auto.summary,
			History: l.scaler.auto.kept}
	}
}

// outcomes returns the counts of the window for each class, without completions. Requests that were
// queued or in flight at the start of the window count as offered, so that offered is at least the
// number of completions. A request counts as late if it is in flight at the end and arrived longer ago
// than the P95 target of its class.
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

// Close closes the source. It waits for the source's current call.
func (l *Load) Close() error {
	c, ok := l.src.(io.Closer)
	if !ok {
		return nil
	}
	l.dispatch.mu.Lock()
	defer l.dispatch.mu.Unlock()
	return c.Close()
}
