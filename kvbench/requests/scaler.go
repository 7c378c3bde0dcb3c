package requests

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// scaler measures the rounds of a trial and executes its autoscaler's decisions: users and workers
// start and stop.
type scaler struct {
	load   *Load
	source workloads.Scalable
	auto   *autoscaler

	begin   time.Duration // the window's
	bytes   int64         // of the storage tier at the last sample
	at      time.Duration
	samples []float64 // bytes/s in each tenth of the round
}

// scaledWorkers is how many workers a number of users has (spec 4): one each, up to a bound past
// which more workers only wait for each other's buffers.
func scaledWorkers(users int) int { return min(users, 500) }

func newScaler(l *Load) (*scaler, error) {
	src, ok := l.src.(workloads.Scalable)
	if !ok {
		return nil, fmt.Errorf("autoscaling needs users, and %T has none", l.src)
	}
	l.env.Rec.Rounds = true
	return &scaler{load: l, auto: newAutoscaler(*l.cfg.Autoscale, l.cfg.Users), source: src}, nil
}

// start begins with the window, before which nothing has counted, and samples until ctx ends.
func (s *scaler) start(ctx context.Context) {
	clock := s.load.env.Clock
	s.begin = clock.Now()
	s.at = s.begin
	clock.Every(ctx, s.auto.cfg.Interval/roundSamples, func() { s.sample(ctx) })
}

// sample notes a tenth of a round and ends the round with the last of them.
//
// A round is measured in tenths: their spread is the noise that growth has to exceed.
func (s *scaler) sample(ctx context.Context) {
	rec := s.load.env.Rec
	now, live := s.load.env.Clock.Now(), rec.Counters()
	bytes := live.Bytes[tiers.Storage][tiers.Read] + live.Bytes[tiers.Storage][tiers.Write]
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
	users, over := s.auto.end(result.Round{
		AtS: (now - s.begin).Seconds(), Workers: s.load.dispatch.account(now).workers,
		Goroutines: runtime.NumGoroutine(), BytesPerSecond: mean,
		Noise:   noiseErrors * stat.StdErr(deviation, roundSamples),
		ReadP95: s.latency(tiers.Read), WriteP95: s.latency(tiers.Write),
		TokensPerSecond: float64(live.Tokens) / (now - s.begin).Seconds(),
		ReadSoFarMS:     rec.P95(tiers.Storage, tiers.Read),
		WriteSoFarMS:    rec.P95(tiers.Storage, tiers.Write),
	})
	if over {
		s.load.env.End(result.EndedByCapacity) // of a window that has not ended yet
		return
	}
	workers := s.load.cfg.Workers
	if workers == scaledWorkers(s.load.cfg.Users) { // else -workers was given: only users change
		workers = scaledWorkers(users)
	}
	s.load.startWorkers(ctx, workers, func(now time.Duration) { s.source.SetUsers(users, now) })
}

// latency is the p95 of the round per 100 MiB in milliseconds, nil where nothing moved.
func (s *scaler) latency(op tiers.Op) *float64 {
	p95, some := s.load.env.Rec.TakeRound(op)
	if !some {
		return nil
	}
	return new(p95.Seconds() * 1e3)
}

// Sustained finds how many of the users a simulated device keeps up with (see result.KeptUp): run
// simulates the first n of them alone. The run with all users gives whether that kept up, and the
// first guess. Sustained returns nil when run fails.
//
// It has simulated the number that it returns, and one more. The first n users of a seed are the
// same however many follow, and an overload serves few of them, so that a search takes no longer
// than the run itself.
func Sustained(all *result.Result, users int, run func(n int) (*result.Result, error)) *int {
	if all.KeptUp(users) {
		return &users
	}
	most, tooMany := 0, users
	// Too high where small requests went first.
	next := int(float64(users) * units.OrZero(all.Load["total"].ServedRatio))
	for tooMany-most > 1 {
		next = min(max(next, most+1), tooMany-1)
		r, err := run(next)
		switch {
		case err != nil:
			return nil
		case r.KeptUp(next):
			most = next
			next = min(2*most, (most+tooMany)/2)
		default:
			tooMany = next
			next = (most + tooMany) / 2
		}
	}
	return &most
}
