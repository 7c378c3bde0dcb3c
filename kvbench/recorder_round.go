package kvbench

import (
	"time"

	"kvbench/tiers"
)

// roundSample keeps the latency per 100 MiB of one operation for the round.
func (s *shard) roundSample(o OpSample) {
	h := s.round[o.Op]
	if h == nil {
		h = NewHistogram(Nanoseconds)
		s.round[o.Op] = h
	}
	h.Record(int64(float64(o.IO()) * normalBytes / float64(o.Bytes)))
}

// TakeRound returns the p95 latency per 100 MiB of the storage tier's operations since the last call, and whether there were
// any.
func (r *Recorder) TakeRound(op tiers.Op) (p95 time.Duration, some bool) {
	all := NewHistogram(Nanoseconds)
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		h := s.round[op]
		s.round[op] = nil
		s.mu.Unlock()
		if h != nil {
			all.Merge(h)
		}
	}
	v, some := all.Percentile(0.95)
	return time.Duration(v), some
}
