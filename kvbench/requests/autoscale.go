package requests

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
	"kvbench/kvbench/units"
)

// Autoscale lets the number of users follow what the storage can do.
type Autoscale struct {
	Mode     string
	Target   float64       // of the saturation, qos only
	Interval time.Duration // of one round
	MaxUsers int           // 0 = 100000
}

// Conventions of the two modes.
const (
	mostUsers  = 100000
	minRounds  = 3 // before saturation is known
	maxRounds  = 10
	readLimit  = 100.0 // ms per 100 MiB: as slow as saturated
	writeLimit = 50.0
	steadyCV   = 0.1 // of the throughput
	holdRounds = 3   // after users were taken away

	// A step of capacity mode is a share of the users, but no fewer than these, or the search
	// would crawl from one user on, and no more, or it would jump past the knee.
	minStep     = 5
	maxStep     = 100
	leastGrowth = 0.01

	noiseErrors   = 2 // standard errors of a round's throughput that are noise
	flatRounds    = 2 // without growth end the search
	roundSamples  = 10
	maxKeptRounds = 4096 // of a result: a run of days with rounds of seconds stays readable
)

// autoscaler decides. It has no clock and starts no worker, so that tests can check its decisions
// round by round.
type autoscaler struct {
	cfg Autoscale

	mu      sync.Mutex // the window may end while a round does
	over    bool       // the search, or the window: no round ends any more
	kept    []result.Round
	summary result.AutoscaleSummary // so far; its FinalUsers are those of now

	rates, reads []float64 // of the last maxRounds rounds: bytes/s, and p95 latencies

	above, hold int     // qos: rounds
	at, most    int     // qos: the users that were at the target last, and above it twice
	flat        int     // capacity: rounds
	best        float64 // capacity: throughput of the last round that grew
}

// roundNumbers are over which latencies grow.
var roundNumbers = [maxRounds]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}

// newAutoscaler begins a search. The users sustained are, in capacity mode, those of the last
// round whose throughput had grown; in qos mode those of the last round that was not above the
// target. That is found when so many were at the target, or more were above it twice: until then
// it is only how far the search came.
func newAutoscaler(cfg Autoscale, users int) *autoscaler {
	return &autoscaler{cfg: cfg, summary: result.AutoscaleSummary{Mode: cfg.Mode,
		InitialUsers: users, FinalUsers: users, SustainedUsers: users, PeakUsers: users}}
}

// end closes a round and returns the number of users of the next one; over says
// that there is none.
func (a *autoscaler) end(r result.Round) (users int, over bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return 0, true
	}
	sum := &a.summary
	sum.Rounds++
	sum.PeakRate = max(sum.PeakRate, r.BytesPerSecond)
	a.rates, a.reads = append(a.rates, r.BytesPerSecond), append(a.reads, units.OrZero(r.ReadP95))
	if len(a.rates) > maxRounds {
		a.rates, a.reads = a.rates[1:], a.reads[1:]
	}
	r.Users, r.Saturation = sum.FinalUsers, a.saturation(&r)
	var next int
	if a.cfg.Mode == result.AutoscaleCapacity {
		if next, r.Decision, a.over = a.capacity(&r); a.over {
			r.Action = result.ScaleStop
		}
	} else {
		next, r.Decision = a.qos(&r)
		sum.Found = a.at == sum.SustainedUsers || a.most > sum.SustainedUsers
	}
	r.NextUsers = max(1, min(next, cmp.Or(a.cfg.MaxUsers, mostUsers)))
	r.Action = cmp.Or(r.Action, action(r.Users, r.NextUsers))
	sum.FinalUsers = r.NextUsers
	sum.PeakUsers = max(sum.PeakUsers, r.NextUsers)
	if len(a.kept) < maxKeptRounds {
		a.kept = append(a.kept, r)
	}
	return r.NextUsers, a.over
}

// action names a change of the number of users.
func action(from, to int) string {
	switch {
	case to > from:
		return result.ScaleUp
	case to < from:
		return result.ScaleDown
	}
	return result.ScaleHold
}

// stop ends the search with the window. Afterwards what it has found does not change.
func (a *autoscaler) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// saturation is the storage's load as a share of its limit: the worse of its two latencies against
// their limits. A storage at its limit has a steady throughput and a latency that grows with the
// load; where either is missing, high latencies have another reason and count half. It is nil while
// there are too few rounds.
func (a *autoscaler) saturation(last *result.Round) *float64 {
	if len(a.rates) < minRounds {
		return nil
	}
	s := min(1, max(units.OrZero(last.ReadP95)/readLimit, units.OrZero(last.WriteP95)/writeLimit))
	mean, deviation := stat.PopMeanStdDev(a.rates, nil)
	_, slope := stat.LinearRegression(roundNumbers[:len(a.reads)], a.reads, nil, false)
	steady, rising := mean > 0 && deviation/mean < steadyCV, slope > 0
	if !steady || !rising {
		s *= 0.5
	}
	return &s
}

// qos holds the saturation within a tenth of the target. It takes users away only when it was
// above twice, since one slow round may be a checkpoint of the filesystem, and then holds still:
// what those users had queued must drain before latencies mean anything.
func (a *autoscaler) qos(r *result.Round) (next int, why string) {
	switch {
	case r.Saturation == nil:
		return r.Users, "hold: too few rounds"
	case a.hold > 0:
		a.hold--
		return r.Users, "hold after users were taken away"
	case *r.Saturation > 1.1*a.cfg.Target && a.above == 0:
		a.above = 1
		return r.Users, "hold: above the target once"
	case *r.Saturation > 1.1*a.cfg.Target:
		a.above, a.hold, a.most = 0, holdRounds, r.Users
		return scale(r.Users, 0.8), "above the target twice"
	}
	a.above, a.summary.SustainedUsers = 0, r.Users
	if *r.Saturation < 0.9*a.cfg.Target {
		return scale(r.Users, 1.2), "below the target"
	}
	a.at = r.Users
	return r.Users, "hold: at the target"
}

// scale multiplies users and rounds up, without being fooled by the last bit.
func scale(users int, by float64) int { return int(math.Ceil(float64(users)*by - 1e-9)) }

// capacity adds users until throughput has not grown for two rounds. To have grown is to be above
// the best round by more than the noise of one: with few users throughput varies more between
// rounds than a step adds.
func (a *autoscaler) capacity(r *result.Round) (next int, why string, over bool) {
	switch margin := max(leastGrowth*a.best, r.Noise); {
	case a.best > 0 && r.BytesPerSecond <= a.best+margin:
		a.flat++
		why = fmt.Sprintf("no growth, %d of %d", a.flat, flatRounds)
		if a.flat >= flatRounds {
			a.summary.Found = true
			return r.Users, why, true
		}
	case r.BytesPerSecond > 0:
		a.flat, a.best, a.summary.SustainedUsers = 0, r.BytesPerSecond, r.Users
		a.summary.SustainedRate = r.TokensPerSecond
		why = "throughput grew"
	default:
		return r.Users, "nothing moved yet", false
	}
	more := 1.2
	if r.Users == a.summary.InitialUsers { // the first step
		more = 1.4
	}
	step := scale(r.Users, more) - r.Users
	return r.Users + min(max(step, minStep), maxStep), why, false
}
