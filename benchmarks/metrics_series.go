package benchmarks

import (
	"time"

	"kvbench/kvbench"
	"kvbench/kvbench/record"
	"kvbench/kvbench/result"
	"kvbench/tiers"
)

// series is one benchmark of one rank.
type series struct {
	benchmark string
	rank      int
	trial     int         // the current one, or the last
	before    record.Live // counters of earlier trials
	live      record.Live // of this one
	now       kvbench.Snapshot
	running   bool // a trial runs: only then now is valid
}

// total are the counters of all trials.
func (s *series) total() record.Live {
	t := s.before
	t.Add(s.live)
	return t
}

// of finds a series, or begins it; a new trial goes on from where the last one ended.
func (s *metricsServer) of(benchmark string, trial, rank int) *series {
	// A run has some tens of benchmarks and ranks: nothing to look up.
	for _, one := range s.series {
		if one.benchmark != benchmark || one.rank != rank {
			continue
		}
		if one.trial != trial {
			one.before, one.live, one.trial = one.total(), record.Live{}, trial
		}
		return one
	}
	one := &series{benchmark: benchmark, rank: rank, trial: trial}
	s.series = append(s.series, one)
	return one
}

// observe takes what a rank does in a trial.
func (s *metricsServer) observe(benchmark string, trial, rank int, now kvbench.Snapshot) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.of(benchmark, trial, rank)
	one.now, one.running = now, true
	// Stages before and after the window count nothing, and a counter never falls.
	if now.Live != (record.Live{}) {
		one.live = now.Live
	}
}

// ended takes the result of a rank's trial: the last snapshot was taken before the window's end.
func (s *metricsServer) ended(benchmark string, r *result.Result) {
	if s == nil || r.MergedRanks != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(benchmark, r.Trial, r.Rank).live = counted(r)
}

// rest notes that no trial runs: the gauges of an ended trial would be stale.
func (s *metricsServer) rest() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.series {
		one.running = false
	}
}

// counted are a result's numbers as the counters of a snapshot.
func counted(r *result.Result) record.Live {
	// Levels of one kind are one tier here, as in the snapshot's arrays.
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
