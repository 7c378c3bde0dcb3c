package benchmarks

import (
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// origin is a benchmark on a rank.
type origin struct {
	benchmark string
	rank      int
}

// series has the counters and the state of an origin.
type series struct {
	trial   int         // the current one, or the last
	before  record.Live // counters of earlier trials
	live    record.Live // of this one
	now     kvbench.Snapshot
	running bool // a trial runs: only then now is valid
}

// total returns the sums of the counters over all trials.
func (s *series) total() record.Live {
	t := s.before
	t.Add(s.live)
	return t
}

// of returns the series of an origin. It creates the series if there is none. At the first call for a new
// trial it adds the counters of the previous trial to before.
func (s *metricsServer) of(from origin, trial int) *series {
	one := s.series[from]
	if one == nil {
		one = &series{trial: trial}
		s.series[from] = one
	}
	if one.trial != trial {
		one.before, one.live, one.trial = one.total(), record.Live{}, trial
	}
	return one
}

// observe stores the latest snapshot of a rank in a trial.
func (s *metricsServer) observe(benchmark string, trial, rank int, now kvbench.Snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(origin{benchmark, rank}, trial)
	one.now, one.running = now, true
	// Outside the window the snapshot's counters are 0. Skip them, because a Prometheus counter must
	// not decrease.
	if now.Live != (record.Live{}) {
		one.live = now.Live
	}
}

// ended sets the counters of a trial to the values of its result. The last snapshot misses the end of
// the window.
func (s *metricsServer) ended(benchmark string, r *result.Result) {
	if s == nil || r.MergedRanks != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(origin{benchmark, r.Rank}, r.Trial).live = counted(r)
}

// idle marks that no trial runs, so that no gauges are sent: the gauges of an ended trial are stale.
func (s *metricsServer) idle() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.series {
		one.running = false
	}
}

// counted converts a result to the counters of a snapshot.
func counted(r *result.Result) record.Live {
	// All levels of one kind count as one tier, as in the snapshot's arrays.
	l := record.Live{Requests: r.Requests.Completed, Tokens: r.Requests.GeneratedTokens,
		Failures: r.Requests.FailedOperations}
	for _, t := range r.Tiers {
		for kind := range tiers.Kind(tiers.NumKinds) {
			if kind.String() != t.Level {
				continue
			}
			for op, one := range map[tiers.Op]result.TierTraffic{tiers.Read: t.Read,
				tiers.Write: t.Write} {
				l.Bytes[kind][op] += one.Bytes
				l.IO[kind][op] = record.LiveIO{Requests: one.Requests,
					InFlight: time.Duration(one.InFlightNS)}
			}
			l.Evicted[kind] += t.Evicted.Entries
		}
	}
	if r.Prompt != nil {
		l.PromptTokens, l.FoundTokens = r.Prompt.Tokens, r.Prompt.Found
	}
	return l
}
