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
	return &scaler{load: l, auto: newAutoscaler(*a, l.cfg.Users), source: src}, nil
}

// start takes the reference at the window's opening, and samples until ctx ends.
func (s *scaler) start(ctx context.Context) {
	env := s.load.env
	s.begin = env.Clock.Now()
	s.at, s.bytes = s.begin, s.moved()
	for op := range tiers.NumOps {
		env.Rec.TakeRound(op)
	}
	env.Clock.Every(ctx, s.auto.cfg.Interval/roundSamples, func() { s.sample(ctx) })
}

// moved is how many bytes the storage tier has given and taken.
func (s *scaler) moved() int64 {
	l := s.load.env.Rec.Counters()
	return l.Bytes[tiers.Storage][tiers.Read] + l.Bytes[tiers.Storage][tiers.Write]
}

// sample notes a tenth of a round and ends the round with the last of them.
//
// A round is measured in tenths: their spread is the noise that growth has to exceed.
func (s *scaler) sample(ctx context.Context) {
	now, bytes := s.load.env.Clock.Now(), s.moved()
	if now <= s.at {
		return
	}
	s.samples = append(s.samples, float64(bytes-s.bytes)/(now-s.at).Seconds())
	s.at, s.bytes = now, bytes
	if len(s.samples) < roundSamples {
		return
	}
	mean, deviation := stat.MeanStdDev(s.samples, nil)
	s.samples = s.samples[:0]
	users, ok := s.end(result.Round{
		AtS: (now - s.begin).Seconds(), Workers: s.load.dispatch.working(),
		Goroutines: runtime.NumGoroutine(), BytesPerSecond: mean,
		Noise:   noiseErrors * stat.StdErr(deviation, roundSamples),
		ReadP95: s.latency(tiers.Read), WriteP95: s.latency(tiers.Write),
	})
	if !ok {
		return
	}
	workers := s.load.cfg.Workers
	if workers == scaledWorkers(s.load.cfg.Users) { // else -workers was given: only users change
		workers = scaledWorkers(users)
	}
	s.load.hire(ctx, workers, func(now time.Duration) { s.source.SetUsers(users, now) })
}

// latency is the p95 of the round per 100 MiB in milliseconds, nil where nothing moved.
func (s *scaler) latency(op tiers.Op) *float64 {
	p95, some := s.load.env.Rec.TakeRound(op)
	if !some {
		return nil
	}
	return new(p95.Seconds() * 1e3)
}

// end closes a round; false when users and workers are to stay as they are.
func (s *scaler) end(r result.Round) (users int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, false
	}
	users, s.ended = s.auto.end(r)
	if s.ended {
		s.load.env.End(result.EndedByCapacity)
	}
	return users, !s.ended
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
	out.AutoscalingSummary = new(s.auto.summary)
}
