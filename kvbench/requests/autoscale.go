package requests

import (
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/stat"

	"kvbench/kvbench/result"
)

// Autoscale lets the number of users follow what the storage can do (spec 10).
type Autoscale struct {
	Mode     string
	Target   float64       // of the saturation, qos only
	Interval time.Duration // of one round
	MaxUsers int           // 0 = 100000
}

// The numbers of spec 10.
const (
	mostUsers  = 100000
	minRounds  = 3 // before saturation can be told
	maxRounds  = 10
	readLimit  = 100 * time.Millisecond // per 100 MiB: as slow as saturated
	writeLimit = 50 * time.Millisecond
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

// round is one while it is judged: with the p95 latencies per 100 MiB, 0 where nothing moved.
type round struct {
	result.Round
	read, write time.Duration
}

// autoscaler decides; it has no clock and starts nobody, so that what it decides can be tested
// round by round.
type autoscaler struct {
	cfg    Autoscale
	users  int
	rounds []round        // the last maxRounds
	kept   []result.Round // for the result

	initial, peak int
	count         int
	above, hold   int
	at, over      int // qos: the users that were at the target last, and above it twice
	steps         int
	flat          int
	best          float64 // throughput of the last round that grew
	bestUsers     int     // of that round; qos: of the last one that was not above the target
	found         bool
	topRate       float64
}

func newAutoscaler(cfg Autoscale, users int) *autoscaler {
	if cfg.MaxUsers <= 0 {
		cfg.MaxUsers = mostUsers
	}
	return &autoscaler{cfg: cfg, users: users, initial: users, peak: users, bestUsers: users}
}

// end closes a round and returns the number of users of the next one; over says
// that the search is over.
func (a *autoscaler) end(r round) (users int, over bool) {
	r.Users = a.users
	a.count++
	a.topRate = max(a.topRate, r.BytesPerSecond)
	a.rounds = append(a.rounds, r)
	if len(a.rounds) > maxRounds {
		a.rounds = a.rounds[1:]
	}
	if s, ok := a.saturation(); ok {
		r.Saturation = &s
	}
	if a.cfg.Mode == result.AutoscaleCapacity {
		over = a.capacity(&r.Round)
	} else {
		a.qos(&r.Round)
	}
	a.users = max(1, min(r.NextUsers, a.cfg.MaxUsers))
	r.NextUsers = a.users
	a.peak = max(a.peak, a.users)
	if len(a.kept) < maxKeptRounds {
		a.kept = append(a.kept, r.Round)
	}
	return a.users, over
}

// saturation is how much of what the storage can do it does (spec 10): the worse of its two
// latencies against their limits. A storage at its limit has a steady throughput whose latency
// grows with the load; where either is missing, high latencies have another reason and count half.
func (a *autoscaler) saturation() (float64, bool) {
	if len(a.rounds) < minRounds {
		return 0, false
	}
	last := a.rounds[len(a.rounds)-1]
	share := func(p95, limit time.Duration) float64 { return min(float64(p95)/float64(limit), 1) }
	s := max(share(last.read, readLimit), share(last.write, writeLimit))
	if !a.steady() || !a.rising() {
		s *= 0.5
	}
	return s, true
}

// steady says whether throughput varies little from round to round.
func (a *autoscaler) steady() bool {
	rates := make([]float64, len(a.rounds))
	for i, r := range a.rounds {
		rates[i] = r.BytesPerSecond
	}
	mean, deviation := stat.PopMeanStdDev(rates, nil)
	return mean > 0 && deviation/mean < steadyCV
}

// rising says whether the read latency grows: the slope of a line through the
// rounds is positive.
func (a *autoscaler) rising() bool {
	at, latency := make([]float64, len(a.rounds)), make([]float64, len(a.rounds))
	for i, r := range a.rounds {
		at[i], latency[i] = float64(i), float64(r.read)
	}
	_, slope := stat.LinearRegression(at, latency, nil, false)
	return slope > 0
}

// qos holds the saturation within a tenth of the target. It takes users away only when it was
// above twice, since one slow round may be a checkpoint of the filesystem, and then holds still:
// what those users had queued must drain before latencies mean anything.
func (a *autoscaler) qos(r *result.Round) {
	r.NextUsers = a.users
	switch {
	case r.Saturation == nil:
		r.Decision = "hold: too few rounds"
		return
	case a.hold > 0:
		a.hold--
		a.above = 0
		r.Decision = "hold after users were taken away"
		return
	}
	s := *r.Saturation
	if s > 1.1*a.cfg.Target {
		if a.above++; a.above < 2 {
			r.Decision = "hold: above the target once"
			return
		}
		a.above, a.hold, a.over = 0, holdRounds, a.users
		r.NextUsers, r.Decision = scale(a.users, 0.8), "above the target twice"
		return
	}
	a.above = 0
	a.bestUsers = a.users
	if s < 0.9*a.cfg.Target {
		r.NextUsers, r.Decision = scale(a.users, 1.2), "below the target"
		return
	}
	a.at = a.users
	r.Decision = "hold: at the target"
}

// scale multiplies users and rounds up, without being fooled by the last bit.
func scale(users int, by float64) int { return int(math.Ceil(float64(users)*by - 1e-9)) }

// capacity adds users until throughput has not grown for two rounds. To have grown is to be above
// the best round by more than the noise of one: with few users throughput varies more between
// rounds than a step adds.
func (a *autoscaler) capacity(r *result.Round) (over bool) {
	r.NextUsers = a.users
	margin := max(leastGrowth*a.best, r.Noise)
	if a.best > 0 && r.BytesPerSecond <= a.best+margin {
		a.flat++
		r.Decision = fmt.Sprintf("no growth, %d of %d", a.flat, flatRounds)
		if a.flat >= flatRounds {
			a.found = true
			return true
		}
	} else if r.BytesPerSecond > 0 {
		a.flat = 0
		a.best, a.bestUsers = r.BytesPerSecond, a.users
		r.Decision = "throughput grew"
	} else {
		r.Decision = "nothing moved yet"
		return false
	}
	share := 0.2
	if a.steps == 0 {
		share = 0.4
	}
	a.steps++
	step := scale(a.users, 1+share) - a.users
	r.NextUsers = a.users + min(max(step, minStep), maxStep)
	return false
}

// summary tells what came of it. Sustained are, in capacity mode, the users of
// the last round whose throughput had grown; in qos mode those of the last round
// that was not above the target. That is found when so many were at the target,
// or more were above it twice: until then it is only how far the search came.
func (a *autoscaler) summary() result.AutoscaleSummary {
	s := result.AutoscaleSummary{
		Mode: a.cfg.Mode, InitialUsers: a.initial, FinalUsers: a.users, SustainedUsers: a.bestUsers,
		PeakUsers: a.peak,
		PeakRate:  a.topRate, Rounds: a.count, Found: a.found,
	}
	if a.cfg.Mode == result.AutoscaleQoS {
		s.Found = a.at == a.bestUsers || a.over > a.bestUsers
	}
	return s
}
