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

// Autoscale has the settings of the autoscaler, which adapts the number of users to the storage.
type Autoscale struct {
	Mode     string        // result.AutoscaleCapacity, else qos
	Target   float64       // saturation from 0 to 1, qos only
	Interval time.Duration // of one round
	Users    int           // at the start
	MinUsers int
	MaxUsers int // 0 = no limit
	// FixedWorkers: the number of workers stays, else it follows the users.
	FixedWorkers bool
}

// Conventions of the two modes.
const (
	minRounds  = 3     // rounds before the saturation is known
	maxRounds  = 10    // rounds from which the saturation is computed
	readLimit  = 100.0 // p95 in ms per 100 MiB at which the storage counts as saturated
	writeLimit = 50.0
	steadyCV   = 0.1 // coefficient of variation below which the throughput is steady
	holdRounds = 3   // rounds without a change after a decrease of users

	// A step of capacity mode is a share of the users, within these limits. Smaller steps would make the
	// search slow with few users. Larger steps would miss the knee.
	minStep     = 5
	maxStep     = 100
	leastGrowth = 0.01 // relative growth of throughput that counts

	noiseErrors   = 2    // standard errors of a round's throughput that count as noise
	flatRounds    = 2    // rounds without growth after which the search ends
	roundSamples  = 10   // throughput samples in a round
	maxKeptRounds = 4096 // rounds in a result, so that a result of a run of days stays readable
)

// autoscaler decides how many users the next round has. It has no clock and starts no worker, so that
// tests can check its decisions round by round.
type autoscaler struct {
	cfg Autoscale

	mu      sync.Mutex // the window may end while a round ends
	over    bool       // the search or the window is over: end ignores further rounds
	kept    []result.Round
	summary result.AutoscaleSummary // so far; FinalUsers is the current number of users

	rates, reads []float64 // of the last maxRounds rounds: bytes/s; p95 read latency in ms per 100 MiB

	above, hold int     // qos: rounds above the target; rounds left to hold
	at, most    int     // qos: users of the last round at the target; of the last decrease
	flat        int     // capacity: rounds without growth
	best        float64 // capacity: bytes/s of the last round that grew
}

// roundNumbers are the x values of the regression of latencies over rounds.
var roundNumbers = [maxRounds]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}

// newAutoscaler starts a search.
//
// In capacity mode SustainedUsers is the number of users of the last round whose throughput grew. In qos
// mode it is the number of users of the last round that was not above the target. In qos mode the number
// counts as found if a round with so many users was at the target, or if rounds with more users were
// above the target twice. Otherwise it is only the last step of the search.
func newAutoscaler(cfg Autoscale) *autoscaler {
	n := cfg.Users
	return &autoscaler{cfg: cfg, summary: result.AutoscaleSummary{Mode: cfg.Mode,
		InitialUsers: n, FinalUsers: n, SustainedUsers: n, PeakUsers: n}}
}

// end adds a round and returns the number of users of the next round. If over is true, the search is
// over.
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
	r.NextUsers = max(a.cfg.MinUsers, min(next, cmp.Or(a.cfg.MaxUsers, math.MaxInt)))
	if r.NextUsers != next {
		r.Decision += fmt.Sprintf(", limited to %d", r.NextUsers)
	}
	r.Action = cmp.Or(r.Action, actions[cmp.Compare(r.NextUsers, r.Users)])
	sum.FinalUsers = r.NextUsers
	sum.PeakUsers = max(sum.PeakUsers, r.NextUsers)
	if len(a.kept) < maxKeptRounds {
		a.kept = append(a.kept, r)
	}
	return r.NextUsers, a.over
}

// actions names the changes of the number of users, by cmp.Compare of the new and the old number.
var actions = map[int]string{-1: result.ScaleDown, 0: result.ScaleHold, 1: result.ScaleUp}

// stop ends the search. Afterwards summary and kept do not change.
func (a *autoscaler) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// saturation returns the saturation of the storage, from 0 to 1: the larger quotient of a p95 latency of
// the round and its limit. A saturated storage has steady throughput and read latencies that rise. If
// one of these is missing, the latencies have another cause and count half. saturation returns nil in
// the first rounds.
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

// qos returns the number of users that keeps the saturation within 10 % of the target. It removes users
// after two rounds above the target, because the filesystem's checkpoint may slow down one round. Then
// it holds for holdRounds, until the requests of the removed users have left the queue.
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

// scale returns users × by, rounded up. It ignores rounding errors of the product.
func scale(users int, by float64) int { return int(math.Ceil(float64(users)*by - 1e-9)) }

// capacity adds users until throughput has not grown for flatRounds. Throughput grows if it is above the
// best round by more than the noise of a round. With few users throughput varies more between rounds
// than a step adds.
func (a *autoscaler) capacity(r *result.Round) (next int, why string, over bool) {
	switch margin := max(leastGrowth*a.best, r.Noise); {
	case a.best > 0 && r.BytesPerSecond <= a.best+margin:
		a.flat++
		why = fmt.Sprintf("no growth, %d of %d", a.flat, flatRounds)
		if a.flat >= flatRounds {
			a.summary.Found = a.summary.SustainedUsers != a.cfg.MaxUsers // else no users could be added
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
