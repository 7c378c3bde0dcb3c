package kvbench

// mergeFrom adds all of o to s. Neither is locked here.
func (s *shard) mergeFrom(o *shard) {
	for l := range s.bytes {
		for op := range s.bytes[l] {
			for p := range s.bytes[l][op] {
				s.bytes[l][op][p] += o.bytes[l][op][p]
			}
			s.ops[l][op].merge(o.ops[l][op])
			s.demotions[l][op].merge(o.demotions[l][op])
			s.cancelled[l][op].merge(o.cancelled[l][op])
			s.device[l][op] += o.device[l][op]
			s.retries[l][op] += o.retries[l][op]
		}
		s.firsts[l].merge(o.firsts[l])
		s.rereads[l].merge(o.rereads[l])
		s.evictions[l].merge(o.evictions[l])
		s.deletions[l].merge(o.deletions[l])
		s.demotedFrom[l].merge(o.demotedFrom[l])
		s.demotedTo[l].merge(o.demotedTo[l])
	}
	for op := range s.phases {
		for p := range s.phases[op] {
			s.phases[op][p] += o.phases[op][p]
		}
	}
	for p := range s.purposes {
		s.purposes[p].merge(o.purposes[p])
		for r := range s.lookups[p] {
			s.lookups[p][r] += o.lookups[p][r]
		}
	}
	for i := range s.stages {
		s.stages[i] += o.stages[i]
	}
	for c := range s.byClass {
		s.byClass[c] += o.byClass[c]
	}
	for k := range s.byKind {
		s.byKind[k] += o.byKind[k]
	}
	s.oldest = max(s.oldest, o.oldest)
	s.buffers += o.buffers
	s.requests += o.requests
	s.blocks.merge(o.blocks)
	for op := range s.moved {
		s.moved[op].n += o.moved[op].n
		s.moved[op].blocks += o.moved[op].blocks
	}
	s.failedRequests += o.failedRequests
	s.tokens += o.tokens
	s.contextTokens += o.contextTokens
	s.storage += o.storage
	s.generation += o.generation
	for id, h := range o.hists {
		if s.hists == nil {
			s.hists = make(map[histID]*Histogram)
		}
		if s.hists[id] == nil {
			s.hists[id] = NewHistogram(id.unit())
		}
		s.hists[id].Merge(h)
	}
	s.timeline.merge(o.timeline)
}
