package requests

import (
	"context"
	"runtime"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
	"kvbench/tiers"
	"kvbench/workloads"
)

// scaler measures the rounds of a trial. It sets the number of users and workers that the autoscaler
// decides.
type scaler struct {
	load   *Load
	source workloads.Scalable
	auto   *autoscaler

	begin   time.Duration // start of the window
	bytes   int64         // read and written by the storage tier until the last sample
	at      time.Duration // of the last sample
	samples []float64     // bytes/s in each tenth of the round
}

// scaledWorkers returns the number of workers for a number of users (spec 4): one per user, at most 500.
// More workers would only wait for buffers.
func scaledWorkers(users int) int { return min(users, 500) }

func newScaler(l *Load) *scaler {
	l.env.Rec.Rounds = true
	return &scaler{load: l, auto: newAutoscaler(*l.cfg.Autoscale), source: l.src.(workloads.Scalable)}
}

// start starts the rounds at the start of the window, and samples until ctx ends.
func (s *scaler) start(ctx context.Context) {
	clock := s.load.env.Clock
	s.begin = clock.Now()
	s.at = s.begin
	clock.Every(ctx, s.auto.cfg.Interval/roundSamples, func() { s.sample(ctx) })
}

// sample measures the throughput of a tenth of a round. The tenth sample ends the round. The spread of
// the ten samples gives the noise that growth has to exceed.
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
		s.load.env.End(result.EndedByCapacity) // no effect if the window has ended
		return
	}
	workers := s.load.cfg.Workers
	if !s.auto.cfg.FixedWorkers {
		workers = scaledWorkers(users)
	}
	s.load.startWorkers(ctx, workers, func(now time.Duration) { s.source.SetUsers(users, now) })
}

// latency returns the p95 latency of the round in milliseconds per 100 MiB, nil without operations.
func (s *scaler) latency(op tiers.Op) *float64 {
	p95, some := s.load.env.Rec.TakeRound(op)
	if !some {
		return nil
	}
	return new(p95.Seconds() * 1e3)
}

// Sustained returns the largest number of users with which a simulated device keeps up, see
// result.KeptUp. run simulates the first n users alone. all is the result with all users; it gives the
// first guess. Sustained returns nil if run fails.
//
// The search has simulated the returned number of users and one user more. With one seed the first n
// users make the same requests, whatever the number of users.
func Sustained(all *result.Result, users int, run func(n int) (*result.Result, error)) *int {
	if all.KeptUp(users) {
		return &users
	}
	most, tooMany := 0, users
	// The guess is too high if the small requests were served first.
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
