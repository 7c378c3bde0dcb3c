package requests

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/tiers"
	"kvbench/workloads"
)

// scaler measures the rounds of a trial and carries out what its autoscaler
// decides: users start and stop asking, workers start and stop.
type scaler struct {
	load   *Load
	source workloads.Scalable
	spawn  func(id int) // starts a worker
	fixed  bool         // -workers was given: only users change

	mu    sync.Mutex // guards the two below: the window may end while a round does
	auto  *autoscaler
	ended bool // the search, or the window: no round ends any more

	begin   time.Duration // the window's
	bytes   int64         // of the storage tier at the last sample
	at      time.Duration
	samples []float64 // bytes/s in each tenth of the round
}

// scaledWorkers is how many workers a number of users has (spec 4): one each, up to a bound past
// which more workers only wait for each other's buffers.
func scaledWorkers(users int) int { return min(users, maxScaledWorkers) }

const maxScaledWorkers = 500

// newScaler returns nil without autoscaling.
func newScaler(l *Load) (*scaler, error) {
	a := l.cfg.Autoscale
	if a == nil {
		return nil, nil
	}
	src, ok := l.src.(workloads.Scalable)
	if !ok {
		return nil, fmt.Errorf("autoscaling needs users, and %T has none", l.src)
	}
	l.env.Rec.Rounds = true
	return &scaler{
		load: l, auto: newAutoscaler(*a, l.cfg.Users), source: src,
		fixed: l.cfg.Workers != scaledWorkers(l.cfg.Users),
	}, nil
}

// interval is the time between two samples.
func (s *scaler) interval() time.Duration { return s.auto.cfg.Interval / roundSamples }

// start takes the reference at the window's opening, and samples until ctx ends.
func (s *scaler) start(ctx context.Context) {
	s.spawn = func(id int) { s.load.work(ctx, id) }
	s.begin = s.load.env.Clock.Now()
	s.at, s.bytes = s.begin, s.moved()
	s.samples = s.samples[:0]
	for op := range tiers.NumOps {
		s.load.env.Rec.TakeRound(op)
	}
	s.load.env.Clock.Every(ctx, s.interval(), s.sample)
}

// moved is how many bytes the storage tier has given and taken.
func (s *scaler) moved() int64 {
	l := s.load.env.Rec.Counters()
	return l.Bytes[tiers.Storage][tiers.Read] + l.Bytes[tiers.Storage][tiers.Write]
}

// sample notes a tenth of a round and ends the round with the last of them.
//
// A round is measured in tenths: their spread is the noise that growth has to exceed.
func (s *scaler) sample() {
	now, bytes := s.load.env.Clock.Now(), s.moved()
	if now <= s.at {
		return
	}
	s.samples = append(s.samples, float64(bytes-s.bytes)/(now-s.at).Seconds())
	s.at, s.bytes = now, bytes
	if len(s.samples) < roundSamples {
		return
	}
	d := s.load.dispatch
	r := round{Round: result.Round{AtS: (now - s.begin).Seconds(), Workers: d.working(),
		Goroutines: runtime.NumGoroutine()}}
	r.BytesPerSecond, r.Noise = meanAndNoise(s.samples)
	s.samples = s.samples[:0]
	ms := func(v time.Duration, any bool) *float64 {
		if !any {
			return nil
		}
		return new(v.Seconds() * 1e3)
	}
	var any bool
	r.read, any = s.load.env.Rec.TakeRound(tiers.Read)
	r.ReadP95 = ms(r.read, any)
	r.write, any = s.load.env.Rec.TakeRound(tiers.Write)
	r.WriteP95 = ms(r.write, any)
	if users, ok := s.end(r); ok {
		s.resize(users)
	}
}

// end closes a round; false when users and workers are to stay as they are.
func (s *scaler) end(r round) (users int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, false
	}
	users, over := s.auto.end(r)
	if over {
		s.ended = true
		s.load.env.End(result.EndedByCapacity)
	}
	return users, !over
}

// resize changes users and workers. Workers that are too many end by themselves, when they come
// for their next request.
func (s *scaler) resize(users int) {
	for _, id := range s.load.dispatch.resize(s.source, users, s.workersFor(users)) {
		s.spawn(id)
	}
}

func (s *scaler) workersFor(users int) int {
	if s.fixed {
		return s.load.cfg.Workers
	}
	return scaledWorkers(users)
}

// stop ends the search with the window.
func (s *scaler) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// report puts rounds and outcome into the result.
func (s *scaler) report(out *result.Summary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out.AutoscalingStats = s.auto.kept
	out.AutoscalingSummary = new(s.auto.summary())
}

// meanAndNoise returns the mean and two standard errors of it.
func meanAndNoise(samples []float64) (mean, noise float64) {
	mean, deviation := stat.MeanStdDev(samples, nil)
	if len(samples) < 2 {
		return mean, 0
	}
	return mean, noiseErrors * stat.StdErr(deviation, float64(len(samples)))
}
